"""What a series does anyway: the distances between its values some way apart, kept in order."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Moves", "median_of", "spread_of"]

_MOST = 200
_NORMAL_IQR = 1.349
"""Interquartile range of the normal distribution with standard deviation 1."""


def median_of(values: Sequence[float]) -> float:
    """Return the median.

    Parameters
    ----------
    values
        At least one.
    """
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def spread_of(values: Sequence[float]) -> float:
    """Return the standard deviation that a normal distribution with these quartiles would have.

    Parameters
    ----------
    values
        At least four.
    """
    ordered = sorted(values)
    count = len(ordered)
    return (ordered[3 * count // 4] - ordered[count // 4]) / _NORMAL_IQR


@dataclass(slots=True)
class Moves:
    """The last values of a series, and how far they lie from those some places before.

    Parameters
    ----------
    lag
        How many places [1].
    """

    lag: int
    values: deque[float] = field(default_factory=lambda: deque(maxlen=_MOST))
    _moves: deque[float] = field(default_factory=deque)
    _ordered: list[float] = field(default_factory=list)

    def add(self, value: float) -> None:
        """Take the next value; of many the oldest are forgotten.

        Parameters
        ----------
        value
            The value.
        """
        if len(self.values) >= self.lag:
            move = abs(value - self.values[-self.lag])
            self._moves.append(move)
            insort(self._ordered, move)
            if len(self._moves) > _MOST - self.lag:
                del self._ordered[bisect_left(self._ordered, self._moves.popleft())]
        self.values.append(value)

    @property
    def ninth_decile(self) -> float:
        """Return the distance that nine of ten do not exceed; infinite while there are too few."""
        count = len(self._ordered)
        return self._ordered[int(0.9 * (count - 1))] if count >= self.lag else math.inf

    def latest_median(self, count: int) -> float:
        """Return the median of the last values.

        Parameters
        ----------
        count
            How many [1].
        """
        return median_of(list(self.values)[-count:])
