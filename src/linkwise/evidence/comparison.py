"""Two things measured alternately: the ratio of their times, and how an interval lies to a bar."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from linkwise.errors import InputError
from linkwise.evidence.median import MedianInterval, median_interval

__all__ = ["Standing", "ratio_interval", "standing"]


class Standing(StrEnum):
    """How an interval lies to a bar."""

    BELOW = "below"
    ABOVE = "above"
    ACROSS = "across"
    """The bar lies inside: cannot tell."""


def ratio_interval(candidate: Sequence[float], control: Sequence[float]) -> MedianInterval:
    """Return the ratio of candidate to control and its interval.

    Parameters
    ----------
    candidate, control
        Measured in turns, so that what moves both (neighbours, heat) moves each pair alike; above zero.

    Raises
    ------
    InputError
        When they are not in pairs, fewer than five, or not above zero.
    """
    if len(candidate) != len(control):
        raise InputError(
            f"{len(candidate)} samples of the candidate and {len(control)} of the control; they must be pairs"
        )
    if not all(value > 0 for value in (*candidate, *control)):
        raise InputError("a sample is not above zero; a ratio needs such")
    return median_interval([one / other for one, other in zip(candidate, control, strict=True)])


def standing(interval: MedianInterval, bar: float) -> Standing:
    """Return whether all of an interval lies on one side of a bar.

    Parameters
    ----------
    interval
        Of a median.
    bar
        In the same unit.
    """
    if interval.high < bar:
        return Standing.BELOW
    return Standing.ABOVE if interval.low > bar else Standing.ACROSS
