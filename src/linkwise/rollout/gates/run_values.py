"""From the runs of a step to one value each: what counts, what does not, and why."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from linkwise.rollout.digests import workload_digest
from linkwise.rollout.metrics import Metric, find_metric
from linkwise.rollout.plan import Aggregate, Objective
from linkwise.rollout.runs import RunState, Side, StepRun

__all__ = ["RunValue", "counting", "run_value", "values_of", "why_not"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunValue:
    """One run, as an objective sees it.

    Parameters
    ----------
    run_id
        Of the run.
    value
        Its one value, in the unit of the metric; ``None`` where it does not count.
    prediction
        What the model said of it; ``None`` where it says nothing.
    reason
        Why it does not count; empty where it does.
    """

    run_id: str
    value: float | None
    prediction: float | None
    reason: str = ""


def values_of(objective: Objective, runs: Iterable[StepRun], *, side: Side) -> tuple[RunValue, ...]:
    """Return the runs of an objective on one side in the order they were made, warm-up left out.

    Parameters
    ----------
    objective
        What is judged.
    runs
        Those of a step.
    side
        Which configuration.
    """
    digest = workload_digest(objective.workload)
    chosen = [run for run in runs if run.side is side and run.workload == digest and not run.is_warmup]
    return tuple(_value(objective, run) for run in sorted(chosen, key=lambda run: (run.turn, run.run_id)))


def _value(objective: Objective, run: StepRun) -> RunValue:
    metric = find_metric(objective.metric)
    prediction = run.predictions.get(metric.name)
    reason = why_not(run, metric)
    value = None if reason else run_value(run.samples[metric.name], objective.aggregate, metric)
    known = prediction is not None and math.isfinite(prediction) and prediction > 0
    return RunValue(run_id=run.run_id, value=value, prediction=prediction if known else None, reason=reason)


def why_not(run: StepRun, metric: Metric) -> str:
    """Return why a run does not count for a metric; empty where it does.

    Parameters
    ----------
    run
        The run.
    metric
        What is asked of it.
    """
    if run.state is not RunState.VALID:
        return f"{run.state}: {run.reason}" if run.reason else str(run.state)
    samples = run.samples.get(metric.name, ())
    if not samples:
        return f"gave no {metric.words}"
    return ""


def run_value(samples: Sequence[float], aggregate: Aggregate, metric: Metric) -> float:
    """Return the one value of a run; a sample that is no finite number counts as the worst there is.

    Parameters
    ----------
    samples
        In the order they were taken; at least one.
    aggregate
        How they become one.
    metric
        Of what they are: it says which end is bad.
    """
    worst = 0.0 if metric.is_more_better else math.inf
    finite = [each if math.isfinite(each) else worst for each in samples]
    if aggregate is Aggregate.LAST:
        return finite[-1]
    if aggregate is Aggregate.WORST:
        return min(finite) if metric.is_more_better else max(finite)
    return _AGGREGATES[aggregate](sorted(finite, reverse=metric.is_more_better))


def _rank(fraction: float) -> Callable[[list[float]], float]:
    """Return the nearest rank of a percentile, towards the bad end, of samples from good to bad."""
    return lambda ordered: ordered[math.ceil(fraction * len(ordered) - 1e-9) - 1]


_AGGREGATES: Mapping[Aggregate, Callable[[list[float]], float]] = {
    Aggregate.MEDIAN: median,
    Aggregate.MEAN: fmean,
    Aggregate.P90: _rank(0.90),
    Aggregate.P95: _rank(0.95),
    Aggregate.P99: _rank(0.99),
}


def counting(values: Iterable[RunValue]) -> tuple[str, ...]:
    """Return why runs do not count, the most frequent reason first, each with how often.

    Parameters
    ----------
    values
        Those of one side.
    """
    reasons = Counter(each.reason for each in values if each.reason)
    return tuple(f"{count} {reason}" for reason, count in reasons.most_common())
