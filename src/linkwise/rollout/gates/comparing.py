"""One bar of an objective against the values of its runs: an interval, and what it says of the bar."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linkwise.evidence.median import LEAST_SAMPLES
from linkwise.evidence.ranked import RankedPieces, of_one, of_pairs, of_two
from linkwise.rollout.gates.run_values import RunValue
from linkwise.rollout.plan import Against, Comparison
from linkwise.rollout.verdicts import Outcome

__all__ = ["Compared", "References", "compare", "outcome_of"]

_LARGEST_RATIO = 1e100
"""Beyond it a ratio is of something that is no number [1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """What values may be compared with.

    Parameters
    ----------
    control
        Runs of the control, in order: each is the partner of the run of the candidate in its place.
    baseline
        Values of runs of the configuration that was promoted last, on as many GPUs.
    is_paired
        Whether runs were made in turns; those after a rollback were not.
    """

    control: tuple[RunValue, ...] = ()
    baseline: tuple[float, ...] = ()
    is_paired: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What evidence says of one bar.

    Parameters
    ----------
    comparison
        The bar.
    outcome
        What is said of it.
    value, low, high
        Middle and interval; ``None`` where there is too little.
    count
        Runs, or pairs of them, that it rests on [1].
    references
        What they were compared with; empty for a floor.
    chance_of_miss
        How often evidence would look so bad were the bar just met [1].
    lack
        What is missing where there is too little.
    can_grow
        Whether more runs would give what is missing.
    """

    comparison: Comparison
    outcome: Outcome
    value: float | None = None
    low: float | None = None
    high: float | None = None
    count: int = 0
    references: tuple[float, ...] = ()
    chance_of_miss: float | None = None
    lack: str = ""
    can_grow: bool = True


def compare(
    comparison: Comparison, values: Sequence[RunValue], references: References, *, needed: int = LEAST_SAMPLES
) -> Compared:
    """Return what the runs of a candidate say of one bar.

    Parameters
    ----------
    comparison
        The bar.
    values
        Runs of the candidate in order, those that do not count among them.
    references
        What they are compared with.
    needed
        Runs, or pairs, with fewer of which nothing is said [1].
    """
    counted = [each for each in values if each.value is not None]
    if comparison.against is Against.FLOOR:
        ours = [each.value for each in counted if each.value is not None]
        return _judged(comparison, of_one, ours, (), needed, lack="runs that count")
    if comparison.against is Against.PREDICTION:
        return _to_prediction(comparison, counted, needed)
    if comparison.against is Against.CONTROL and references.is_paired:
        return _to_control(comparison, values, references.control, needed)
    stored = references.baseline
    if comparison.against is Against.CONTROL:
        stored = tuple(each.value for each in references.control if each.value is not None) or stored
    ours = [each.value for each in counted if each.value is not None and each.value >= 0]
    return _to_stored(comparison, ours, stored, needed)


def _to_prediction(comparison: Comparison, counted: Sequence[RunValue], needed: int) -> Compared:
    pairs = [
        (each.value, each.prediction)
        for each in counted
        if each.value is not None and each.value >= 0 and each.prediction is not None
    ]
    ratios = [value / predicted for value, predicted in pairs]
    theirs = tuple(predicted for _, predicted in pairs)
    if counted and not pairs:
        lack = "no prediction for any run: does the model know this cluster and this work?"
        return Compared(comparison=comparison, outcome=Outcome.NO_DATA, lack=lack, can_grow=False)
    return _judged(comparison, of_one, ratios, theirs, needed, lack="runs that count with a prediction")


def _to_control(
    comparison: Comparison, values: Sequence[RunValue], control: Sequence[RunValue], needed: int
) -> Compared:
    pairs = [
        (ours.value, theirs.value)
        for ours, theirs in zip(values, control, strict=False)
        if ours.value is not None and ours.value >= 0 and theirs.value is not None
    ]
    pairs = [(ours, theirs) for ours, theirs in pairs if _is_reference(theirs)]
    ratios = [ours / theirs for ours, theirs in pairs]
    references = tuple(theirs for _, theirs in pairs)
    return _judged(
        comparison,
        of_pairs,
        ratios,
        references,
        needed,
        lack="pairs with the control that count and are above zero",
    )


def _to_stored(
    comparison: Comparison, ours: Sequence[float], stored: Sequence[float], needed: int
) -> Compared:
    theirs = tuple(each for each in stored if _is_reference(each))
    if len(theirs) < LEAST_SAMPLES:
        lack = f"{len(theirs)} stored runs of the {comparison.against}, {LEAST_SAMPLES} are needed"
        return Compared(comparison=comparison, outcome=Outcome.NO_DATA, lack=lack, can_grow=False)
    return _judged(
        comparison, lambda values: of_two(values, theirs), ours, theirs, needed, lack="runs that count"
    )


def _is_reference(value: float) -> bool:
    return math.isfinite(value) and value > 0


def _judged(
    comparison: Comparison,
    method: Callable[[Sequence[float]], RankedPieces],
    values: Sequence[float],
    references: tuple[float, ...],
    needed: int,
    *,
    lack: str,
) -> Compared:
    """Return the verdict of an interval, or what is missing."""
    if len(values) < max(needed, LEAST_SAMPLES):
        outcome = Outcome.INCONCLUSIVE if values else Outcome.NO_DATA
        missing = f"{len(values)} {lack}, {max(needed, LEAST_SAMPLES)} are needed"
        return Compared(comparison=comparison, outcome=outcome, count=len(values), lack=missing)
    ranked = method(values)
    interval = ranked.interval()
    chance = ranked.chance_if_at_least if comparison.is_least else ranked.chance_if_at_most
    return Compared(
        comparison=comparison,
        outcome=outcome_of(comparison, interval.low, interval.high),
        value=_shown(interval.median),
        low=_shown(interval.low),
        high=_shown(interval.high),
        count=len(values),
        references=references,
        chance_of_miss=chance(comparison.bar),
    )


def _shown(value: float) -> float:
    return math.inf if value > _LARGEST_RATIO else 0.0 if value < 1 / _LARGEST_RATIO else value


def outcome_of(comparison: Comparison, low: float, high: float) -> Outcome:
    """Return what an interval says of a bar: a pass if all of it clears, a fail if all of it misses.

    Parameters
    ----------
    comparison
        The bar.
    low, high
        Ends of the interval, in the unit of the bar.
    """
    bar = comparison.bar
    if comparison.is_least:
        return Outcome.PASS if low >= bar else Outcome.FAIL if high < bar else Outcome.INCONCLUSIVE
    return Outcome.PASS if high <= bar else Outcome.FAIL if low > bar else Outcome.INCONCLUSIVE
