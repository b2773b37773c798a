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
    "PREAMBLE_BYTES",
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


PREAMBLE_BYTES = 48
"""What gloo says of a message, six numbers of 8 bytes: once from the sender that it is ready, once ahead of
the payload, once back from the receiver that it is ready (gloo/transport/tcp/pair.cc and pair.h) [bytes]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlooTraffic:
    """What one call sends.

    Attributes
    ----------
    sent_bytes
        Payload from each rank of the group (row) to each other (column) (ranks, ranks) [bytes].
    messages
        In how many messages (ranks, ranks) [1].
    rounds
        Messages that wait for one another, one after the other [1].
    """

    sent_bytes: Floats
    messages: Floats
    rounds: int

    @property
    def stream_bytes(self) -> Floats:
        """Return what TCP carries: payload, and gloo's words about each message (ranks, ranks) [bytes]."""
        return self.sent_bytes + PREAMBLE_BYTES * (2 * self.messages + self.messages.T)


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
    all-to-all S/n from each to each. Rings send each chunk as two segments; segments above 1 MB are cut once
    more, whose preambles are left out.

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
    sent, messages, rounds = _FORMS[operation](ranks)
    return GlooTraffic(sent_bytes=sent * size_bytes, messages=messages, rounds=rounds)


def link_loads(
    traffic: GlooTraffic, members: Sequence[int], path: Callable[[int, int], Sequence[Link]]
) -> dict[Link, float]:
    """Return the bytes on every link that one call uses, headers of TCP and below left out [bytes].

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
    stream = traffic.stream_bytes
    for source, target in zip(*np.nonzero(stream), strict=True):
        for link in path(members[source], members[target]):
            loads[link] = loads.get(link, 0.0) + float(stream[source, target])
    return loads


def gloo_time_s(
    loads: Mapping[Link, float],
    bytes_per_s: Callable[[Link], float],
    *,
    rounds: int,
    round_s: float,
    reached_fraction: float = 1.0,
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
    reached_fraction
        Share of the busiest link's rate that the algorithm reaches, measured [1].

    Notes
    -----
    Latency and bandwidth add (Hockney, The communication challenge for MPP, 1994). No order of messages can
    take less than the busiest link; a ring whose steps do not overlap takes more. gloo's rings have two
    segments of a chunk on their way at once and wait for all of them between reducing and gathering: where
    some of a ring's links are much faster than others, the slow ones stand idle meanwhile.
    """
    slowest_s = max((load / bytes_per_s(link) for link, load in loads.items()), default=0.0)
    return rounds * round_s + slowest_s / reached_fraction


def _ring(ranks: int, *, step: int) -> Floats:
    """Return ones from each rank to the one `step` further on."""
    sent = np.zeros((ranks, ranks))
    each = np.arange(ranks)
    sent[each, (each + step) % ranks] = 1.0
    return sent


_Form = tuple[Floats, Floats, int]
"""Shares of the buffer sent, messages, rounds."""
_SEGMENTS = 2
"""Of a chunk, so that one is on its way while the other is reduced (gloo/allreduce.cc, allgather.cc) [1]."""


def _all_reduce(ranks: int) -> _Form:
    ring, steps = _ring(ranks, step=-1), 2 * (ranks - 1)
    return ring * (steps / ranks), ring * (_SEGMENTS * steps), steps


def _all_gather(ranks: int) -> _Form:
    ring, steps = _ring(ranks, step=1), ranks - 1
    return ring * (steps / ranks), ring * (_SEGMENTS * steps), steps


def _all_to_all(ranks: int) -> _Form:
    pairs = 1.0 - np.eye(ranks)
    return pairs / ranks, pairs, 1


def _broadcast(ranks: int) -> _Form:
    sent, span, rounds = np.zeros((ranks, ranks)), 1, math.ceil(math.log2(ranks))
    while span < ranks:
        for rank in range(min(span, ranks - span)):
            sent[rank, rank + span] = 1.0
        span *= 2
    return sent, sent, rounds


def _reduce(ranks: int) -> _Form:
    ring, steps = _ring(ranks, step=-1), ranks - 1
    sent, messages = ring * (steps / ranks), ring * (_SEGMENTS * steps)
    sent[1:, 0] += 1.0 / ranks
    messages[1:, 0] += _SEGMENTS
    return sent, messages, ranks


def _send_recv(ranks: int) -> _Form:
    ring = _ring(ranks, step=1)
    return ring, ring, 1


_FORMS: dict[str, Callable[[int], _Form]] = {
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
