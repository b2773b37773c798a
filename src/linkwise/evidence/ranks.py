"""Whether two orders agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from linkwise.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LEAST_PAIRS", "rank_correlation"]

LEAST_PAIRS = 3
"""Two things are in one order or the other, which is no correlation [1]."""


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return Spearman's rank correlation, from -1 to 1; ``None`` where all values of either are equal [1].

    Parameters
    ----------
    one, other
        Values of the same things, in the same order; three at least.

    Raises
    ------
    InputError
        If there are fewer, or not as many of each.

    Notes
    -----
    The correlation of the ranks, equal values sharing the mean of theirs.

    References
    ----------
    C. Spearman, The Proof and Measurement of Association between Two Things, 1904.
    """
    if len(one) != len(other) or len(one) < LEAST_PAIRS:
        raise InputError(
            f"a rank correlation takes {LEAST_PAIRS} pairs at least; there are {len(one)} and {len(other)}"
        )
    ranks = [_ranks(values) for values in (one, other)]
    first, second = (each - each.mean() for each in ranks)
    spread = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / spread if spread else None


def _ranks(values: Sequence[float]) -> NDArray[np.float64]:
    column = np.asarray(values, dtype=np.float64)
    below = (column[None, :] < column[:, None]).sum(axis=1)
    same = (column[None, :] == column[:, None]).sum(axis=1)
    ranks: NDArray[np.float64] = below + (same - 1) / 2
    return ranks
