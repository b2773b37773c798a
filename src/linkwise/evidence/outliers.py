"""Which of many alike are worse than the rest: robust spread, and nodes judged by their pairs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from linkwise.errors import InputError

__all__ = ["LEAST_MEMBERS", "Fleet", "fleet_of", "node_scores", "robust_sigma", "round_robin"]

LEAST_MEMBERS = 8
"""Among fewer the middle is no baseline [1]."""
_ROBUST_SIGMAS = 3.5
_MARGIN_FRACTION = 0.03
_MAD_TO_SIGMA = 1.4826
_ROUNDS_BY_BEST = 2
"""With no more rounds than this a node is scored by its best pair [1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Scores of members that should be alike.

    Parameters
    ----------
    middle
        Their median, in the unit of the scores.
    sigma
        Their spread as a standard deviation, from the median absolute deviation.
    floor
        What a score must lie below to be low.
    low
        Members below it, worst first; empty where there are too few to tell.
    is_enough
        Whether there are members enough for a baseline.
    """

    middle: float
    sigma: float
    floor: float
    low: tuple[int, ...]
    is_enough: bool


def robust_sigma(values: Collection[float]) -> float:
    """Return the spread of values as a standard deviation, from their median absolute deviation.

    Parameters
    ----------
    values
        At least one.

    Notes
    -----
    1.4826 times the median absolute deviation is the standard deviation of a normal distribution; half of the
    values may be wild.

    References
    ----------
    B. Iglewicz, D. C. Hoaglin, How to Detect and Handle Outliers, 1993.
    """
    middle = median(values)
    return _MAD_TO_SIGMA * median(abs(each - middle) for each in values)


def fleet_of(scores: Mapping[int, float]) -> Fleet:
    """Return which members score low: by 3.5 robust sigmas and by 3 % below the median, both.

    Parameters
    ----------
    scores
        By member; larger is better.

    Notes
    -----
    The margin of 3 % is the floor where all scores are alike and sigma is zero. Sigma is `robust_sigma`.

    References
    ----------
    B. Iglewicz, D. C. Hoaglin, How to Detect and Handle Outliers, 1993 (the limit of 3.5).
    """
    if not scores:
        raise InputError("there are no scores")
    middle = median(scores.values())
    sigma = robust_sigma(scores.values())
    floor = middle - max(_ROBUST_SIGMAS * sigma, _MARGIN_FRACTION * middle)
    is_enough = len(scores) >= LEAST_MEMBERS
    below = [member for member, score in scores.items() if score < floor]
    low = tuple(sorted(below, key=lambda member: scores[member])) if is_enough else ()
    return Fleet(middle=middle, sigma=sigma, floor=floor, low=low, is_enough=is_enough)


def node_scores(pairs: Mapping[tuple[int, int], Sequence[float]]) -> dict[int, float]:
    """Return the score of every node: the median over its pairs, or its best pair where it has two or fewer.

    Parameters
    ----------
    pairs
        What each pair reached, once for each round they met in; larger is better.

    Notes
    -----
    One round cannot tell which of two partners is bad; the best pair of two rounds can unless both were.
    """
    by_node: dict[int, list[float]] = {}
    for nodes, values in pairs.items():
        for node in nodes:
            by_node.setdefault(node, []).extend(values)
    return {node: _score(values) for node, values in sorted(by_node.items())}


def _score(values: Sequence[float]) -> float:
    return max(values) if len(values) <= _ROUNDS_BY_BEST else median(values)


def round_robin(count: int, rounds: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return rounds of disjoint pairs, by the circle method; no pair comes twice.

    Parameters
    ----------
    count
        Nodes; of an odd number one rests in each round [1].
    rounds
        How many, at most one less than nodes (as many as nodes, where those are odd) [1].

    Raises
    ------
    InputError
        When there are fewer than two nodes, or not so many rounds.
    """
    seats = count + count % 2
    if count < 2:
        raise InputError(
            f"pairs need two nodes at least; there is {count}" if count else "there are no nodes"
        )
    if not 1 <= rounds <= seats - 1:
        raise InputError(f"{count} nodes have 1 to {seats - 1} rounds of pairs; {rounds} were asked for")
    circle = list(range(1, seats))
    found = []
    for turn in range(rounds):
        order = [0, *circle[turn:], *circle[:turn]]
        met = zip(order[: seats // 2], reversed(order[seats // 2 :]), strict=True)
        found.append(tuple(_ordered(*pair) for pair in met if max(pair) < count))
    return tuple(found)


def _ordered(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one < other else (other, one)
