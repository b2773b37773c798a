"""Floors of collectives beside what the model says: those that catch nothing, or that nothing reaches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import median

import numpy as np

from linkwise.cluster import Cluster
from linkwise.errors import InputError
from linkwise.network.cluster_setting import setting_of
from linkwise.network.collective_interval import interval_factors, reach_of
from linkwise.network.collective_time import collective_times
from linkwise.network.setting import Launch, bus_factor
from linkwise.rollout.gates.remark import Level, Remark
from linkwise.rollout.metrics import find_metric, format_metric
from linkwise.rollout.plan import Against, Comparison, Objective, Rollout, Step, Workload, WorkloadKind
from linkwise.rollout.targets import target_gpus

__all__ = ["floor_remarks"]

_BLIND_FRACTION = 0.5
"""Half of what the model says: what misses that is broken, not slow [1]."""


def floor_remarks(rollout: Rollout, cluster: Cluster) -> Iterator[Remark]:
    """Yield what the model says of floors of collectives, for every step in which they are judged.

    Parameters
    ----------
    rollout
        As its document says. On CPUs the model, which is of NCCL, says nothing.
    cluster
        That of its scope.
    """
    if rollout.scope.device != "cuda":
        return
    for place, objective in enumerate(rollout.objectives):
        for order, bar in enumerate(objective.comparisons):
            if objective.workload.kind is not WorkloadKind.COLLECTIVES or bar.against is not Against.FLOOR:
                continue
            for step in (each for each in rollout.steps if objective.name in each.objectives):
                yield from _of_step(objective, bar, step, cluster, f"objectives.{place}.compare.{order}")


def _of_step(
    objective: Objective, bar: Comparison, step: Step, cluster: Cluster, key: str
) -> Iterator[Remark]:
    metric = find_metric(objective.metric)
    if bar.is_least is not metric.is_more_better:
        return
    try:
        gpus = target_gpus(step.target, cluster)
        slow, middle, fast = _predicted(objective, cluster, gpus)
    except InputError:
        return  # told where the step is looked at, or not known to the model
    told = f"in step {step.name!r} the model says {format_metric(middle, metric)}"
    room = bar.bar / middle if metric.is_more_better else middle / bar.bar
    if room < _BLIND_FRACTION:
        text = f"{told}, at worst {format_metric(slow, metric)}: this bar catches a breakdown only"
        yield Remark(level=Level.WARNING, key=key, text=text)
    elif (bar.bar > fast) if metric.is_more_better else (bar.bar < fast):
        text = f"{told}, at best {format_metric(fast, metric)}: no run would meet this bar"
        yield Remark(level=Level.WARNING, key=key, text=text)


def _predicted(objective: Objective, cluster: Cluster, gpus: int) -> tuple[float, float, float]:
    """Return the worst, the middle and the best that the model says of a metric; medians over sizes."""
    rows = list(_times(objective.workload, cluster, gpus))
    ends = []
    for end in range(3):
        values = [moved / times[end] if objective.metric == "collective.busbw" else times[end]
                  for moved, times in rows]  # fmt: skip
        ends.append(median(values))
    return ends[0], ends[1], ends[2]


def _times(work: Workload, cluster: Cluster, gpus: int) -> Iterator[tuple[float, tuple[float, float, float]]]:
    """Yield bytes on the bus, and the longest, likely and shortest time, of each collective and size."""
    setting = replace(setting_of(cluster, gpus=gpus), launch=Launch.FRAMEWORK)
    sizes = np.array(work.sizes_bytes, dtype=np.float64)
    for operation in work.operations:
        times_s = collective_times(operation, setting, sizes).time_s
        low, high = interval_factors(reach_of(setting), sizes, operation=operation)
        for size, time_s, fewer, more in zip(sizes, times_s, low, high, strict=True):
            moved = float(size) * bus_factor(operation, gpus)
            yield moved, (float(time_s * more), float(time_s), float(time_s * fewer))
