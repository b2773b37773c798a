"""What a series does anyway: the distances between its values some way apart, kept in order."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

__all__ = ["Moves", "median_of", "spread_of"]

_MOST = 200
_FEW, _LEAST = 5, 4
_NINTH_DECILE_OVER_MEAN = 1.645 / 0.798
"""Of the absolute value of a normal variable: the 95th percentile over the square root of 2/pi [1]."""
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
        """Return the distance that nine of ten do not exceed.

        While there are few, an order statistic of them says little: it is taken from their mean, as the
        normal distribution has it, and at first from that of neighbours; infinite with fewer than four.
        """
        count = len(self._ordered)
        if count >= _FEW:
            return self._ordered[int(0.9 * (count - 1))]
        if len(self.values) < _LEAST:
            return math.inf
        neighbours = [abs(one - other) for one, other in pairwise(self.values)]
        moves = neighbours if count < _LEAST else self._ordered
        return _NINTH_DECILE_OVER_MEAN * sum(moves) / len(moves)

    def latest_median(self, count: int) -> float:
        """Return the median of the last values.

        Parameters
        ----------
        count
            How many [1].
        """
        return median_of(list(self.values)[-count:])
