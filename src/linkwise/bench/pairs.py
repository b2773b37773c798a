"""Pairs of nodes in rounds: what ranks are told to measure, and which nodes are slow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from linkwise.bench.sampling import Sampling, positive_seconds
from linkwise.errors import InputError
from linkwise.evidence.median import LEAST_SAMPLES, MedianInterval, median_interval
from linkwise.evidence.outliers import Fleet, fleet_of, node_scores, round_robin

__all__ = [
    "MeasuredPair",
    "PairsPlan",
    "confirming_rounds",
    "hosts_of",
    "judged_nodes",
    "measured_pairs",
    "rounds_of",
]

_DEFAULT_ROUNDS = 5
"""Enough to name a node that is 10 % slow among 32, at 3 % of noise, in 88 % of cases
(tests/evidence/test_outliers.py) [1]."""
_CONFIRMING_PARTNERS = 3
"""Good nodes that a low one meets again: the median of three outvotes one bad pair [1]."""

Rounds = tuple[tuple[tuple[int, int], ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsPlan:
    """Which pairs are measured, and with how large a buffer.

    Parameters
    ----------
    rounds
        Pairs that run at once, round after round.
    size_bytes
        What each rank sends the one in its place on the other node [bytes].
    ranks_per_node
        All of them take part [1].
    sampling
        How often.
    """

    rounds: Rounds
    size_bytes: int
    ranks_per_node: int = 1
    sampling: Sampling = field(default_factory=Sampling)

    @property
    def node_bytes(self) -> int:
        """Return what each of two nodes sends the other [bytes]."""
        return self.size_bytes * self.ranks_per_node

    def told(self) -> dict[str, object]:
        """Return it as ranks read it."""
        shape = {"size_bytes": self.size_bytes, "ranks_per_node": self.ranks_per_node}
        return {"rounds": self.rounds, **shape, **self.sampling.told()}


def rounds_of(nodes: int, asked: int | None) -> Rounds:
    """Return the rounds: five by default, or all there are.

    Parameters
    ----------
    nodes
        How many [1].
    asked
        Rounds that were asked for [1].

    Raises
    ------
    InputError
        When there are not so many.
    """
    return round_robin(nodes, asked or min(_DEFAULT_ROUNDS, max(1, nodes + nodes % 2 - 1)))


def confirming_rounds(suspects: Sequence[int], scores: Mapping[int, float]) -> Rounds:
    """Return rounds in which each suspect meets nodes that are good, the best three, one suspect at a time.

    Parameters
    ----------
    suspects
        Nodes that scored low.
    scores
        Of all nodes; larger is better.

    Notes
    -----
    The other good nodes meet each other meanwhile, so that the second run has a baseline of its own; where
    one is left over, it is another one each time.
    """
    good = sorted((node for node in scores if node not in suspects), key=lambda node: -scores[node])
    rounds = []
    for suspect in suspects:
        for place in range(min(_CONFIRMING_PARTNERS, len(good))):
            others = [node for node in good if node != good[place]]
            if len(others) % 2:
                del others[-1 - place]
            idle = [(one, other) for one, other in zip(others[::2], others[1::2], strict=False)]
            rounds.append(((suspect, good[place]), *idle))
    return tuple(rounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPair:
    """One pair in one round.

    Parameters
    ----------
    round_number
        From 0.
    pair
        The two nodes.
    samples_s
        Time of an exchange in each repeat [s].
    """

    round_number: int
    pair: tuple[int, int]
    samples_s: tuple[float, ...]

    @property
    def time_s(self) -> MedianInterval | None:
        """Return the median time of an exchange and its interval [s]; ``None`` with too few samples."""
        return median_interval(self.samples_s) if len(self.samples_s) >= LEAST_SAMPLES else None


def measured_pairs(events: Iterable[Mapping[str, Any]]) -> tuple[MeasuredPair, ...]:
    """Return what ranks measured, in order.

    Parameters
    ----------
    events
        What they said.

    Raises
    ------
    InputError
        When what they said is no measurement.
    """
    found: dict[tuple[int, tuple[int, int]], list[float]] = {}
    for event in events:
        if event.get("event") == "sample":
            found.setdefault(_key(event), []).append(positive_seconds(event, "time_s"))
    return tuple(
        MeasuredPair(round_number=number, pair=pair, samples_s=tuple(samples))
        for (number, pair), samples in found.items()
    )


def _key(event: Mapping[str, Any]) -> tuple[int, tuple[int, int]]:
    number, pair = event.get("round"), event.get("pair")
    is_pair = isinstance(pair, list) and len(pair) == 2 and all(isinstance(rank, int) for rank in pair)
    if not isinstance(number, int) or not is_pair or pair is None:
        raise InputError(
            f"a rank said it measured pair {str(pair)[:40]}, round {str(number)[:20]}: none such"
        )
    return number, (pair[0], pair[1])


def hosts_of(events: Iterable[Mapping[str, Any]], ranks_per_node: int) -> dict[int, str]:
    """Return the names of nodes, as their ranks said them.

    Parameters
    ----------
    events
        What ranks said.
    ranks_per_node
        Ranks are counted node by node [1].
    """
    ready = (each for each in events if each.get("event") == "ready" and isinstance(each.get("rank"), int))
    return {each["rank"] // ranks_per_node: str(each.get("host"))[:255] for each in ready}


def judged_nodes(pairs: Iterable[MeasuredPair], node_bytes: int) -> tuple[dict[int, float], Fleet]:
    """Return the bandwidth each node is scored with [bytes/s], and which are low among them.

    Parameters
    ----------
    pairs
        What was measured, each with five samples or more.
    node_bytes
        What each of two nodes sends the other [bytes].
    """
    reached: dict[tuple[int, int], list[float]] = {}
    for each in pairs:
        if each.time_s is not None:
            reached.setdefault(each.pair, []).append(node_bytes / each.time_s.median)
    scores = node_scores(reached)
    return scores, fleet_of(scores)
