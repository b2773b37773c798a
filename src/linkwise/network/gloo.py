"""What gloo's collectives send from rank to rank, and what that takes on links; one more set beside NCCL's.

gloo is what PyTorch uses on CPUs. It has one algorithm for each operation whatever the size, and no
reduce-scatter of its own: torch runs a whole all-reduce and keeps a part, which sends twice the bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import InputError, UnknownName

__all__ = [
    "GLOO_OPERATIONS",
    "TCP_PAYLOAD_FRACTION",
    "GlooTraffic",
    "gloo_time_s",
    "gloo_traffic",
    "link_loads",
]

Floats = NDArray[np.float64]
Link = TypeVar("Link", bound=Hashable)

TCP_PAYLOAD_FRACTION = 1448 / 1514
"""Payload of a full frame: 1500 bytes (IEEE 802.3) less 20 of IPv4 (RFC 791), 20 of TCP (RFC 9293) and 12 of
timestamps (RFC 7323), of those and 14 of Ethernet [1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlooTraffic:
    """What one call sends.

    Attributes
    ----------
    sent_bytes
        Payload from each rank of the group (row) to each other (column) (ranks, ranks) [bytes].
    rounds
        Messages that wait for one another, one after the other [1].
    """

    sent_bytes: Floats
    rounds: int


def gloo_traffic(operation: str, *, ranks: int, size_bytes: float) -> GlooTraffic:
    """Return what one call of an operation sends.

    Parameters
    ----------
    operation
        One of `GLOO_OPERATIONS`, in the words of nccl-tests.
    ranks
        Of the group, two at least [1].
    size_bytes
        Bytes of the full buffer, as nccl-tests counts them [bytes].

    Raises
    ------
    UnknownName
        If there is no such operation.
    InputError
        If there is one rank only.

    Notes
    -----
    With S bytes and n ranks: all-reduce is a ring towards the lower rank, 2 (n-1)/n S from each; all-gather a
    ring towards the higher, (n-1)/n S; reduce-scatter an all-reduce; reduce a ring reduce-scatter,
    (n-1)/n S, and S/n from each to the root; broadcast a binomial tree from rank 0, S on each edge;
    all-to-all S/n from each to each. Headers are not counted.

    References
    ----------
    gloo (github.com/facebookincubator/gloo), docs/algorithms.md and gloo/allreduce.cc, allgather.cc,
    alltoall.cc, broadcast.cc, reduce.cc; torch 2.13 ProcessGroupGloo for the reduce-scatter. Bytes counted
    per connection with torch 2.13 agree with all of them (docs/lab.md).
    """
    if operation not in _FORMS:
        raise UnknownName.among(_FORMS, kind="operation", given=operation)
    if ranks < 2:
        raise InputError("a collective needs at least two ranks; there is one")
    sent, rounds = _FORMS[operation](ranks)
    return GlooTraffic(sent_bytes=sent * size_bytes, rounds=rounds)


def link_loads(
    traffic: GlooTraffic, members: Sequence[int], path: Callable[[int, int], Sequence[Link]]
) -> dict[Link, float]:
    """Return the bytes on every link that one call uses [bytes].

    Parameters
    ----------
    traffic
        What the group sends.
    members
        Ranks of the job that are ranks 0, 1... of the group.
    path
        Gives the directed links from one rank of the job to another.
    """
    loads: dict[Link, float] = {}
    for source, target in zip(*np.nonzero(traffic.sent_bytes), strict=True):
        for link in path(members[source], members[target]):
            loads[link] = loads.get(link, 0.0) + float(traffic.sent_bytes[source, target])
    return loads


def gloo_time_s(
    loads: Mapping[Link, float], bytes_per_s: Callable[[Link], float], *, rounds: int, round_s: float
) -> float:
    """Return the time of a call: its rounds, and the bytes of the busiest link [s].

    Parameters
    ----------
    loads
        Bytes on each link [bytes].
    bytes_per_s
        Gives the payload rate of a link, one direction [bytes/s].
    rounds
        Messages that wait for one another [1].
    round_s
        What a message takes without its bytes, a property of the host [s].

    Notes
    -----
    Latency and bandwidth add (Hockney, The communication challenge for MPP, 1994). No order of messages can
    take less than the busiest link; a ring whose steps do not overlap takes more.
    """
    slowest_s = max((load / bytes_per_s(link) for link, load in loads.items()), default=0.0)
    return rounds * round_s + slowest_s


def _ring(ranks: int, *, step: int) -> Floats:
    """Return ones from each rank to the one `step` further on."""
    sent = np.zeros((ranks, ranks))
    each = np.arange(ranks)
    sent[each, (each + step) % ranks] = 1.0
    return sent


def _all_reduce(ranks: int) -> tuple[Floats, int]:
    return _ring(ranks, step=-1) * (2 * (ranks - 1) / ranks), 2 * (ranks - 1)


def _all_gather(ranks: int) -> tuple[Floats, int]:
    return _ring(ranks, step=1) * ((ranks - 1) / ranks), ranks - 1


def _all_to_all(ranks: int) -> tuple[Floats, int]:
    return (1.0 - np.eye(ranks)) / ranks, 1


def _broadcast(ranks: int) -> tuple[Floats, int]:
    sent, span, rounds = np.zeros((ranks, ranks)), 1, math.ceil(math.log2(ranks))
    while span < ranks:
        for rank in range(min(span, ranks - span)):
            sent[rank, rank + span] = 1.0
        span *= 2
    return sent, rounds


def _reduce(ranks: int) -> tuple[Floats, int]:
    sent = _ring(ranks, step=-1) * ((ranks - 1) / ranks)
    sent[1:, 0] += 1.0 / ranks
    return sent, ranks


def _send_recv(ranks: int) -> tuple[Floats, int]:
    return _ring(ranks, step=1), 1


_FORMS: dict[str, Callable[[int], tuple[Floats, int]]] = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _all_reduce,
    "all_to_all": _all_to_all,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "send_recv": _send_recv,
}
GLOO_OPERATIONS = tuple(_FORMS)
"""Operations that are known."""
