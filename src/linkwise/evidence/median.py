"""The median of samples and its interval, by order statistics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.errors import InputError

__all__ = ["LEAST_SAMPLES", "MedianInterval", "coverage_fraction", "median_interval"]

LEAST_SAMPLES = 5
"""With fewer even the range of all samples holds the median in less than nine cases of ten [1]."""
_WANTED_COVERAGE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class MedianInterval:
    """The median of samples, and a range that holds the median of where they come from.

    Parameters
    ----------
    median, low, high
        In the unit of the samples.
    coverage_fraction
        In how many cases such a range holds the true median [1].
    count
        Samples it rests on [1].
    """

    median: float
    low: float
    high: float
    coverage_fraction: float
    count: int


def coverage_fraction(count: int, dropped: int) -> float:
    """Return how often the true median lies in the range left when samples are dropped at both ends [1].

    Parameters
    ----------
    count
        Independent samples [1].
    dropped
        How many are dropped at each end [1].

    Notes
    -----
    Each sample is below the true median with chance one half, so that the count below it is binomial:
    1 - 2 sum(C(n, i), i = 0..dropped) / 2^n. It holds for any continuous distribution.

    References
    ----------
    H. A. David, H. N. Nagaraja, Order Statistics, 3rd ed., 2003, section 7.1.
    """
    below = sum(math.comb(count, place) for place in range(dropped + 1))
    return float(1 - 2 * below / 2**count)


def median_interval(samples: Sequence[float]) -> MedianInterval:
    """Return the median and its interval: the narrowest that covers 95 %, or all samples where none does.

    Parameters
    ----------
    samples
        Independent measurements of one thing; five at least.

    Raises
    ------
    InputError
        When there are fewer than five, or one is no finite number.
    """
    if len(samples) < LEAST_SAMPLES:
        raise InputError(f"{len(samples)} samples say too little; at least {LEAST_SAMPLES} are needed")
    if not all(map(math.isfinite, samples)):
        raise InputError("a sample is no finite number")
    ordered, count = sorted(samples), len(samples)
    dropped = 0
    while coverage_fraction(count, dropped + 1) >= _WANTED_COVERAGE:
        dropped += 1
    middle = count // 2
    median = ordered[middle] if count % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return MedianInterval(
        median=median,
        low=ordered[dropped],
        high=ordered[count - 1 - dropped],
        coverage_fraction=coverage_fraction(count, dropped),
        count=count,
    )
