"""Decision regret: how much slower the layout ranked first by prediction runs than the best one measured.

A model with large errors can still choose well, and one with small errors badly; this is what a user loses.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.calibrate.measured import RECOMPUTE_CODES, MeasuredLayout, MeasuredRun
from linkwise.calibrate.predict import PredictedRuns
from linkwise.units import format_quantity

__all__ = ["LayoutTimes", "RegretGroup", "RegretScore", "regret_groups", "regret_of", "score_regret"]

LEAST_LAYOUTS = 3
AS_GOOD_AS_BEST = 0.03
"""Layouts measured within this share of the best count as best: repeats of one layout differ by as much."""
_TIE = 1e-9
_RECOMPUTE_WORDS = {code: word for word, code in RECOMPUTE_CODES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutTimes:
    """One layout of a group, its repeats taken by their median.

    Attributes
    ----------
    name
        The layout in words.
    measured_s, predicted_s
        Time of a step [s].
    fits
        Whether its predicted memory is at most what the GPU has.
    """

    name: str
    measured_s: float
    predicted_s: float
    fits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RegretGroup:
    """Layouts of one job on one cluster and what choosing by prediction costs.

    Attributes
    ----------
    source
        Source of the rows.
    name
        The job and the cluster in words.
    layouts
        Number of distinct layouts.
    regret_fraction
        Measured time of the layout ranked first over the best measured, minus one [1].
    reason
        Which layout was chosen, which was best, and why.
    """

    source: str
    name: str
    layouts: int
    regret_fraction: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RegretScore:
    """Regret over groups.

    Attributes
    ----------
    groups
        Number of groups.
    mean_fraction, p95_fraction, max_fraction
        Mean, 95th percentile and largest regret [1]; ``None`` without a group.
    worst
        The group with the largest regret.
    """

    groups: int
    mean_fraction: float | None
    p95_fraction: float | None
    max_fraction: float | None
    worst: RegretGroup | None


def score_regret(groups: Sequence[RegretGroup]) -> RegretScore:
    """Return the regret over the groups of `regret_groups`."""
    if not groups:
        return RegretScore(groups=0, mean_fraction=None, p95_fraction=None, max_fraction=None, worst=None)
    regrets = np.array([group.regret_fraction for group in groups])
    return RegretScore(
        groups=len(groups),
        mean_fraction=float(np.mean(regrets)),
        p95_fraction=float(np.percentile(regrets, 95)),
        max_fraction=float(np.max(regrets)),
        worst=groups[int(np.argmax(regrets))],
    )


def regret_groups(predicted: PredictedRuns) -> tuple[RegretGroup, ...]:
    """Return the groups of runs that differ in nothing but their layout, and have three layouts or more."""
    rows_of: dict[Hashable, list[int]] = {}
    for row, run in enumerate(predicted.runs):
        rows_of.setdefault(_job(run), []).append(row)
    groups = []
    for rows in rows_of.values():
        layouts = _layout_times(predicted, rows)
        if len(layouts) >= LEAST_LAYOUTS:
            regret, reason = regret_of(layouts)
            run = predicted.runs[rows[0]]
            groups.append(
                RegretGroup(
                    source=run.source,
                    name=_job_name(run),
                    layouts=len(layouts),
                    regret_fraction=regret,
                    reason=reason,
                )
            )
    return tuple(groups)


def regret_of(layouts: Sequence[LayoutTimes]) -> tuple[float, str]:
    """Return the regret of one group [1], and which layout was chosen and which was best.

    Notes
    -----
    A layout that is said not to fit cannot be chosen; if none fits, the group counts as its worst layout.
    Layouts whose predicted times are equal are averaged. A layout measured within 3 % of the best has none.
    """
    best = min(layouts, key=lambda layout: layout.measured_s)
    fitting = [layout for layout in layouts if layout.fits]
    if not fitting:
        worst = max(layouts, key=lambda layout: layout.measured_s)
        return _regret(worst, best), "every layout is said not to fit; counted as the slowest"
    first = min(layout.predicted_s for layout in fitting)
    chosen = [layout for layout in fitting if layout.predicted_s <= first * (1.0 + _TIE)]
    regret = sum(_regret(layout, best) for layout in chosen) / len(chosen)
    ties = f" (and {len(chosen) - 1} that tie with it)" if len(chosen) > 1 else ""
    unfit = "" if best.fits else ", said not to fit"
    reason = f"chosen {_told(chosen[0])}{ties}; best {_told(best)}{unfit}"
    return regret, reason


def _regret(layout: LayoutTimes, best: LayoutTimes) -> float:
    if layout.measured_s <= best.measured_s * (1.0 + AS_GOOD_AS_BEST):
        return 0.0
    return layout.measured_s / best.measured_s - 1.0


def _told(layout: LayoutTimes) -> str:
    measured, predicted = (format_quantity(time, "s") for time in (layout.measured_s, layout.predicted_s))
    off = 100.0 * (layout.predicted_s / layout.measured_s - 1.0)
    return f"{layout.name}: measured {measured}, predicted {predicted} ({off:+.0f} %)"


def _layout_times(predicted: PredictedRuns, rows: Sequence[int]) -> list[LayoutTimes]:
    repeats: dict[Hashable, list[int]] = {}
    for row in rows:
        repeats.setdefault(_layout(predicted.runs[row].layout), []).append(row)
    used = predicted.memory_bytes / predicted.memory_available_bytes
    return [
        LayoutTimes(
            name=_layout_name(predicted.runs[same[0]].layout),
            measured_s=float(np.median(predicted.measured_s[same])),
            predicted_s=float(np.median(predicted.step_time_s[same])),
            fits=bool(np.median(used[same]) <= 1.0),
        )
        for same in repeats.values()
    ]


def _job(run: MeasuredRun) -> Hashable:
    """Return what runs must share to be compared: everything but the layout."""
    model = run.model
    shape = (
        model.layers,
        model.hidden,
        model.heads,
        model.kv_heads,
        model.ffn,
        model.expert_ffn,
        model.experts,
    )
    alone = run.gpus <= run.domain_gpus
    network = None if alone else (run.network.node_bytes_per_s, run.network.latency_s, run.network.assumed)
    job = (run.gpu_name, run.gpus, run.global_batch, run.sequence_length, run.precision)
    return (run.source, run.framework_name, shape, job, network)


def _layout(layout: MeasuredLayout) -> Hashable:
    return (
        layout.tensor,
        layout.pipeline,
        1 if layout.pipeline == 1 else layout.virtual_pipeline,
        layout.data,
        layout.context,
        layout.expert,
        layout.zero_stage,
        layout.micro_batch,
        layout.recompute,
    )


def _layout_name(layout: MeasuredLayout) -> str:
    words = [f"tensor {layout.tensor}", f"pipeline {layout.pipeline}"]
    if (layout.virtual_pipeline or 1) > 1:
        words[-1] += f" x {layout.virtual_pipeline}"
    if layout.context > 1:
        words.append(f"context {layout.context}")
    if layout.expert > 1:
        words.append(f"expert {layout.expert}")
    words.append(f"data {layout.data}")
    if layout.micro_batch is not None:
        words.append(f"micro-batch {layout.micro_batch}")
    if layout.zero_stage:
        words.append(f"ZeRO {layout.zero_stage}")
    if layout.recompute is not None:
        words.append(f"recompute {_RECOMPUTE_WORDS[layout.recompute]}")
    return ", ".join(words)


def _job_name(run: MeasuredRun) -> str:
    network = ""
    if run.gpus > run.domain_gpus and run.network.node_bytes_per_s is not None:
        network = f", {run.network.node_bytes_per_s / 1.25e8:g} Gbit/s per node"
        network += f" with {run.network.latency_s * 1e3:g} ms" if run.network.latency_s >= 1e-4 else ""
    return (
        f"{run.source}, {run.framework_name}, {run.model_name} on {run.gpus} {run.gpu_name}, "
        f"batch {run.global_batch}, sequence {run.sequence_length}, {run.precision}{network}"
    )
