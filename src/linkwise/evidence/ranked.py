"""Where samples lie, by ranks alone: one sample, pairs, or two samples; an interval, and the chance of a bar.

Three methods have one form. From the samples come *pieces*: the samples themselves, the middles of each two,
or the ratios of each of one sample to each of the other. How many pieces lie below the truth hangs on ranks,
not on how the samples are spread, so that its chances are known exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from linkwise.errors import InputError
from linkwise.evidence.median import LEAST_SAMPLES, MedianInterval

__all__ = ["RankedPieces", "of_one", "of_pairs", "of_two"]

Floats = npt.NDArray[np.float64]

_OUTSIDE_FRACTION = 0.025
"""What an interval leaves out at each end, at most [1]."""
_LARGEST_LOG = 690.0
"""Logarithm of the largest ratio; beyond it is no number that means anything [1]."""
_MOST_EXACT_PAIRS = 200
_MOST_EXACT_PRODUCT = 2500
"""Sizes up to which chances are counted; above, the normal curve is within a thousandth [1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedPieces:
    """What samples say of where they lie.

    Parameters
    ----------
    pieces
        In ascending order.
    cumulative
        Chance that at most k pieces lie below the truth, from k = 0 on [1].
    count
        Samples, pairs, or samples of the candidate [1].
    """

    pieces: Floats
    cumulative: Floats
    count: int

    def interval(self) -> MedianInterval:
        """Return the middle of the pieces and the narrowest range that covers 95 %, or all where none does.

        Notes
        -----
        With d pieces dropped at each end, the range misses the truth when at most d lie below it, or above.
        """
        dropped = max(0, int(np.searchsorted(self.cumulative, _OUTSIDE_FRACTION, side="right")) - 1)
        last = len(self.pieces) - 1
        return MedianInterval(
            median=float((self.pieces[last // 2] + self.pieces[(last + 1) // 2]) / 2),
            low=float(self.pieces[dropped]),
            high=float(self.pieces[last - dropped]),
            coverage_fraction=float(1 - 2 * self.cumulative[dropped]),
            count=self.count,
        )

    def chance_if_at_least(self, bar: float) -> float:
        """Return how often so few pieces would lie at or above a bar, were the truth no less than it [1].

        Parameters
        ----------
        bar
            In the unit of the pieces.
        """
        above = len(self.pieces) - int(np.searchsorted(self.pieces, bar, side="left"))
        return self._chance(above)

    def chance_if_at_most(self, bar: float) -> float:
        """Return how often so few pieces would lie at or below a bar, were the truth no more than it [1].

        Parameters
        ----------
        bar
            In the unit of the pieces.
        """
        return self._chance(int(np.searchsorted(self.pieces, bar, side="right")))

    def _chance(self, pieces: int) -> float:
        return float(self.cumulative[min(pieces, len(self.cumulative) - 1)])


def of_one(samples: Sequence[float]) -> RankedPieces:
    """Return what samples say of their median: each is a piece.

    Parameters
    ----------
    samples
        Independent, of one thing; five at least. Infinite ones are the worst there is.

    Notes
    -----
    Each is below the true median with chance one half, whatever the distribution.

    References
    ----------
    H. A. David, H. N. Nagaraja, Order Statistics, 3rd ed., 2003, section 7.1.
    """
    values = _checked(samples)
    return RankedPieces(pieces=np.sort(values), cumulative=_signs(len(values)), count=len(values))


def of_pairs(ratios: Sequence[float]) -> RankedPieces:
    """Return what pairs measured in turns say of their ratio: the middle of each two is a piece.

    Parameters
    ----------
    ratios
        Of each pair, above zero; five at least.

    Notes
    -----
    The interval of Tukey and the estimate of Hodges and Lehmann, on logarithms. It takes the noise of a pair
    to be alike on both sides but for scale, as it is when both are measured in turns: then the logarithm of
    the ratio lies evenly about that of the true one, whatever the distribution. It needs fewer pairs than
    signs do.

    References
    ----------
    M. Hollander, D. A. Wolfe, E. Chicken, Nonparametric Statistical Methods, 3rd ed., 2014, section 3.3.
    """
    logs = _logs(_checked(ratios))
    rows, columns = _triangle(len(logs))
    middles = np.sort((logs[rows] + logs[columns]) / 2)
    return RankedPieces(pieces=np.exp(middles), cumulative=_signed_ranks(len(logs)), count=len(logs))


def of_two(candidate: Sequence[float], reference: Sequence[float]) -> RankedPieces:
    """Return what two samples say of the ratio of one to the other: the ratio of each two is a piece.

    Parameters
    ----------
    candidate, reference
        Independent, above zero; five at least of each.

    Notes
    -----
    The interval of Moses and the estimate of Hodges and Lehmann, on logarithms. The noise of the reference
    counts like that of the candidate. Both are taken to be spread alike but for scale.

    References
    ----------
    M. Hollander, D. A. Wolfe, E. Chicken, Nonparametric Statistical Methods, 3rd ed., 2014, section 4.3.
    """
    ours, theirs = _logs(_checked(candidate)), _logs(_checked(reference))
    pieces = np.sort(np.subtract.outer(ours, theirs), axis=None)
    cumulative = _rank_sums(*sorted((len(ours), len(theirs))))
    return RankedPieces(pieces=np.exp(np.clip(pieces, -_LARGEST_LOG, _LARGEST_LOG)), cumulative=cumulative,
                        count=len(ours))  # fmt: skip


def _checked(samples: Sequence[float]) -> Floats:
    values = np.asarray(samples, dtype=np.float64)
    if len(values) < LEAST_SAMPLES:
        raise InputError(f"{len(values)} samples say too little; at least {LEAST_SAMPLES} are needed")
    if np.isnan(values).any():
        raise InputError("a sample is no number")
    return values


def _logs(values: Floats) -> Floats:
    if (values < 0).any():
        raise InputError("a sample is below zero; a ratio needs such above it")
    with np.errstate(divide="ignore"):
        return np.clip(np.log(values), -_LARGEST_LOG, _LARGEST_LOG)


@cache
def _triangle(count: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    return np.triu_indices(count)


@cache
def _signs(count: int) -> Floats:
    """Return the chances of 0, 1, 2... successes at most in `count` tosses of a coin."""
    total = 2.0**count if count < 1000 else math.inf
    if math.isinf(total):
        return _normal(count / 2, count / 4, count)
    return np.cumsum([math.comb(count, k) / total for k in range(count + 1)])


@cache
def _signed_ranks(count: int) -> Floats:
    """Return the chances of at most k in the sum of the ranks 1..count that were tossed heads."""
    most = count * (count + 1) // 2
    if count > _MOST_EXACT_PAIRS:
        return _normal(most / 2, count * (count + 1) * (2 * count + 1) / 24, most)
    chances = np.zeros(most + 1)
    chances[0] = 1.0
    for rank in range(1, count + 1):
        chances[rank:] = (chances[rank:] + chances[:-rank]) / 2
        chances[:rank] /= 2
    return np.cumsum(chances)


@cache
def _rank_sums(few: int, many: int) -> Floats:
    """Return the chances of at most k pairs, of all pairs of one of each sample, that are in one order.

    Notes
    -----
    The counts are the coefficients of the Gaussian binomial (few + many, few) in q: the product of
    (1 - q^(many + i)) / (1 - q^i) over i = 1..few.
    """
    most = few * many
    if most > _MOST_EXACT_PRODUCT:
        return _normal(most / 2, most * (few + many + 1) / 12, most)
    counts = [1] + [0] * most
    for place in range(1, few + 1):
        for k in range(most, many + place - 1, -1):
            counts[k] -= counts[k - many - place]
        for k in range(place, most + 1):
            counts[k] += counts[k - place]
    total = math.comb(few + many, few)
    sums = np.cumsum(np.array(counts, dtype=object))
    return np.array([int(each) / total for each in sums])


def _normal(mean: float, variance: float, most: int) -> Floats:
    """Return the normal curve at 0..most, half a step on."""
    scale = math.sqrt(2 * variance)
    return np.array([0.5 * math.erfc((mean - k - 0.5) / scale) for k in range(most + 1)])
