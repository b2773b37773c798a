"""What is wrong with the objectives of a rollout: those that cannot fail, cannot be measured, or grew old."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from linkwise.rollout.gates.remark import Level, Remark
from linkwise.rollout.metrics import PLACES, Metric, Scale, find_metric, format_metric, place_kind
from linkwise.rollout.plan import (
    Against,
    Aggregate,
    Comparison,
    Dimension,
    Objective,
    Rollout,
    WorkloadKind,
)

__all__ = ["objective_remarks"]

_BLIND_FRACTION = 0.5
"""A bar below this share of what is compared with catches a breakdown only [1]."""
_WIDEST_SWEEP = 64
"""Largest over smallest size, above which one value over all of them hides some [1]."""
_TAIL_SAMPLES = {Aggregate.P90: 10, Aggregate.P95: 20, Aggregate.P99: 100}
"""Samples of a run below which a percentile is its worst sample [1]."""


def objective_remarks(rollout: Rollout, *, has_prices: bool, today: dt.date) -> Iterator[Remark]:
    """Yield what is wrong with objectives.

    Parameters
    ----------
    rollout
        As its document says.
    has_prices
        Whether the scope or its cluster names prices.
    today
        The calendar.
    """
    for place, objective in enumerate(rollout.objectives):
        key = f"objectives.{place}"
        metric = find_metric(objective.metric)
        yield from _age(objective, key, today)
        yield from _not_measured(rollout, objective, key)
        if metric.needs_prices and not has_prices:
            text = f"{metric.name} hangs on prices and the scope names none; add prices: PATH to it"
            yield Remark(level=Level.FAULT, key="scope.prices", text=text)
        yield from _blind(objective, metric, key)
        yield from _hidden(objective, key)
    if not any(each.dimension is Dimension.QUALITY for each in rollout.objectives):
        text = "no objective is of quality: a change that spoils the training would pass; add train.loss"
        yield Remark(level=Level.NOTE, key="objectives", text=text)


def _age(objective: Objective, key: str, today: dt.date) -> Iterator[Remark]:
    day = objective.reason.review_by
    if day is not None and day <= today:
        text = f"was to be looked at again by {day}: run suspends until {objective.reason.by} has done so"
        yield Remark(level=Level.WARNING, key=f"{key}.review_by", text=text)


def _not_measured(rollout: Rollout, objective: Objective, key: str) -> Iterator[Remark]:
    """Yield remarks on metrics that nobody would give samples of."""
    kind, place = objective.workload.kind, place_kind(rollout.scope.place)
    if kind not in PLACES[place]:
        text = f"nothing measures {kind} on {place} in a rollout; it does {', '.join(sorted(PLACES[place]))}"
        yield Remark(level=Level.FAULT, key=f"{key}.workload.kind", text=text)
    if any(each.against is Against.BASELINE for each in objective.comparisons):
        text = f"{objective.name!r} needs samples of what was promoted last; without any it has no data"
        yield Remark(level=Level.NOTE, key=f"{key}.compare", text=text)


def _blind(objective: Objective, metric: Metric, key: str) -> Iterator[Remark]:
    """Yield remarks on bars that let everything pass."""
    guards = [each for each in objective.comparisons if each.is_least is metric.is_more_better]
    if not guards:
        worse = "smaller" if metric.is_more_better else "larger"
        bar = "at_least" if metric.is_more_better else "at_most"
        text = f"can never fail for being worse: {metric.words} is worse when {worse}, and no bar says {bar}"
        yield Remark(level=Level.FAULT, key=f"{key}.compare", text=text)
    for place, comparison in enumerate(objective.comparisons):
        if comparison in guards:
            yield from _lax(comparison, metric, f"{key}.compare.{place}")


def _lax(comparison: Comparison, metric: Metric, key: str) -> Iterator[Remark]:
    bar = comparison.bar
    if comparison.against is not Against.FLOOR:
        allowed = bar if metric.is_more_better else 1 / bar
        if allowed < _BLIND_FRACTION:
            text = f"lets pass what is {1 / allowed:.3g} times worse than its {comparison.against}"
            yield Remark(level=Level.WARNING, key=key, text=text)
    elif metric.is_more_better and bar <= 0:
        text = f"{metric.words} of any run is more than {format_metric(bar, metric)}: it can never fail"
        yield Remark(level=Level.FAULT, key=key, text=text)
    elif metric.scale is Scale.FRACTION and bar >= 1:
        text = f"no share is more than {format_metric(bar, metric)}: it can never fail"
        yield Remark(level=Level.FAULT, key=key, text=text)


def _hidden(objective: Objective, key: str) -> Iterator[Remark]:
    """Yield remarks on single values over what is unlike."""
    sizes, work = objective.workload.sizes_bytes, objective.workload
    if sizes and max(sizes) > _WIDEST_SWEEP * min(sizes):
        text = (
            "one value over sizes so far apart hides what happens at some; write an objective for each range"
        )
        yield Remark(level=Level.WARNING, key=f"{key}.workload.sizes", text=text)
    if len(work.operations) > 1:
        text = "one value over several collectives hides one of them; write an objective for each"
        yield Remark(level=Level.WARNING, key=f"{key}.workload.operations", text=text)
    wanted = _TAIL_SAMPLES.get(objective.aggregate, 0)
    if work.kind in (WorkloadKind.TRAINING, WorkloadKind.JOB) and work.steps and work.steps < wanted:
        text = f"{objective.aggregate} of {work.steps} steps is the worst of them; run {wanted} at least"
        yield Remark(level=Level.WARNING, key=f"{key}.aggregate", text=text)
