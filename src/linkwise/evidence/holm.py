"""Several tests at once, without a false alarm the more."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["holm_rejects"]


def holm_rejects(chances: Sequence[float], *, level: float) -> tuple[bool, ...]:
    """Return which of several tests are rejected; any falsely with no more chance than the level.

    Parameters
    ----------
    chances
        Of each test, that it looks as it does by chance (its p-value) [1].
    level
        Of a false rejection among all [1].

    References
    ----------
    S. Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics 6,
    1979.
    """
    order = sorted(range(len(chances)), key=lambda place: chances[place])
    rejected = [False] * len(chances)
    for done, place in enumerate(order):
        if chances[place] > level / (len(chances) - done):
            break
        rejected[place] = True
    return tuple(rejected)
