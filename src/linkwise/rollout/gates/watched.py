"""Objectives of a rollout as alerts of a watched job, with bars in the unit of the metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from linkwise.monitor.alert import Comparison as Bound
from linkwise.monitor.alert import Objective as WatchedObjective
from linkwise.monitor.alert import Severity as AlertSeverity
from linkwise.rollout.gates.run_values import values_of
from linkwise.rollout.plan import Against, Aggregate, Comparison, Objective, Rollout, Severity
from linkwise.rollout.runs import RunState, Side, StepRun

__all__ = ["watched_objectives"]

_WATCHED: Mapping[tuple[str, Aggregate], str] = {
    ("train.step_time", Aggregate.MEDIAN): "train.step_time",
    ("train.step_time", Aggregate.P95): "train.step_time_p95",
    ("train.tokens_per_s", Aggregate.MEDIAN): "train.tokens_per_s",
    ("train.loss", Aggregate.MEDIAN): "train.loss",
    ("train.loss", Aggregate.LAST): "train.loss",
    ("serve.ttft", Aggregate.MEDIAN): "serving.ttft_p50",
    ("serve.ttft", Aggregate.P99): "serving.ttft_p99",
    ("serve.tpot", Aggregate.MEDIAN): "serving.tpot_p50",
    ("serve.tpot", Aggregate.P99): "serving.tpot_p99",
    ("serve.error_fraction", Aggregate.MEDIAN): "serving.error_fraction",
    ("serve.waiting", Aggregate.MEDIAN): "serving.queue",
}
"""What a watched job shows of a metric, by the aggregate that the objective wants."""
_SEVERITIES = {
    Severity.MUST: AlertSeverity.CRITICAL,
    Severity.SHOULD: AlertSeverity.WARNING,
    Severity.WATCH: AlertSeverity.INFO,
}


def watched_objectives(
    rollout: Rollout, runs: Sequence[StepRun] = ()
) -> tuple[tuple[WatchedObjective, ...], tuple[str, ...]]:
    """Return the objectives that a watched job can be held to, and in words those that it cannot.

    Parameters
    ----------
    rollout
        The plan.
    runs
        Those of the rollout: a bar that is a ratio is one to the median of the control, or to the
        prediction, of the last step that has them.
    """
    found, left_out = [], []
    for objective in rollout.objectives:
        metric = _WATCHED.get((objective.metric, objective.aggregate))
        if metric is None:
            what = f"the {objective.aggregate.value} of {objective.metric}"
            left_out.append(f"{objective.name}: a watched job does not show {what}")
            continue
        for place, comparison in enumerate(objective.comparisons):
            bar = _bar(rollout, objective, comparison, runs)
            if bar is None:
                left_out.append(
                    f"{objective.name}: its ratio to the {comparison.against.value} has no figure yet: "
                    "no run that counts gave one"
                )
                continue
            found.append(
                WatchedObjective(
                    name=objective.name if place == 0 else f"{objective.name}-{comparison.against.value}",
                    metric=metric,
                    comparison=Bound.AT_LEAST if comparison.is_least else Bound.AT_MOST,
                    bar=bar,
                    severity=_SEVERITIES[objective.severity],
                )
            )
    return tuple(found), tuple(left_out)


def _bar(
    rollout: Rollout, objective: Objective, comparison: Comparison, runs: Sequence[StepRun]
) -> float | None:
    """Return a bar in the unit of the metric; ``None`` where nothing is known that it is a ratio to."""
    if comparison.against is Against.FLOOR:
        return comparison.bar
    counted = [run for run in runs if run.state is RunState.VALID and not run.is_warmup]
    for step in reversed(rollout.steps):
        mine = [run for run in counted if run.step == step.name]
        known = list(_references(objective, comparison, mine))
        if known:
            return comparison.bar * median(known)
    return None


def _references(objective: Objective, comparison: Comparison, runs: Sequence[StepRun]) -> Iterable[float]:
    side = Side.CANDIDATE if comparison.against is Against.PREDICTION else Side.CONTROL
    for each in values_of(objective, runs, side=side):
        value = each.prediction if comparison.against is Against.PREDICTION else each.value
        if value is not None:
            yield value
