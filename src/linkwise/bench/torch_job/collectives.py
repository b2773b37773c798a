"""Times of collectives over sizes, with a check of every result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from .session import Session

__all__ = ["OPERATIONS", "Collective", "measure", "prepare"]

_PERIOD = 31
_ELEMENT_BYTES = 4

# torch 2.13 renames them; the old names warn there and are the only ones before.
_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


@dataclass(frozen=True)
class Collective:
    """One collective on its buffers.

    Parameters
    ----------
    call
        Does it once.
    given
        The buffer it reads.
    fill
        What `given` holds before the call, of this rank.
    result
        The buffer it writes.
    expected
        What `result` must hold after it; ``None`` where it says nothing on this rank.
    """

    call: Callable[[], object]
    given: torch.Tensor
    fill: torch.Tensor
    result: torch.Tensor
    expected: torch.Tensor | None

    def wrong(self) -> int:
        """Return how many elements of the result are not what they must be, after one call on fresh data."""
        self.result.fill_(-1.0)
        self.given.copy_(self.fill)
        self.call()
        if self.expected is None:
            return 0
        return int((self.result != self.expected).sum().item())


def measure(session: Session, plan: Mapping[str, Any]) -> None:
    """Time every collective of the plan at every size.

    Parameters
    ----------
    session
        This rank.
    plan
        ``sizes_bytes`` by operation, ``repeats``, and what `Session.warm_up` reads.
    """
    for operation, sizes in plan["sizes_bytes"].items():
        for size_bytes in sizes:
            named = {"operation": operation, "size_bytes": size_bytes}
            session.tell("begin", **named)
            collective = prepare(session, operation, size_bytes)
            wrong = collective.wrong()
            collective.given.zero_()  # sums of sums stay finite
            _sample(session, plan, collective, named)
            wrong += collective.wrong()
            session.tell("checked", **named, wrong=int(session.total(wrong)))


def _sample(
    session: Session, plan: Mapping[str, Any], collective: Collective, named: Mapping[str, object]
) -> None:
    calls = session.warm_up(collective.call, plan)
    for _ in range(int(plan["repeats"])):
        (slowest,), (fastest,) = session.extremes(session.time_calls(collective.call, calls) / calls)
        session.tell("sample", **named, calls=calls, time_s=slowest, first_s=fastest)


def prepare(session: Session, operation: str, size_bytes: int) -> Collective:
    """Return a collective of float32 on its buffers.

    Parameters
    ----------
    session
        This rank.
    operation
        One of `OPERATIONS`.
    size_bytes
        Bytes of the full buffer, as nccl-tests counts them [bytes].
    """
    return OPERATIONS[operation](session, size_bytes // _ELEMENT_BYTES)


def _weight(rank: int) -> int:
    """Return a small number that tells ranks apart; sums of it stay exact in float32."""
    return rank % 61 + 1


def _total(ranks: int) -> int:
    return sum(map(_weight, range(ranks)))


def _pattern(session: Session, count: int) -> torch.Tensor:
    return (torch.arange(count, device=session.device) % _PERIOD + 1).to(torch.float32)


def _all_reduce(session: Session, count: int) -> Collective:
    pattern = _pattern(session, count)
    buffer = torch.empty_like(pattern)
    return Collective(
        call=lambda: dist.all_reduce(buffer),
        given=buffer,
        fill=pattern * _weight(session.rank),
        result=buffer,
        expected=pattern * _total(session.ranks),
    )


def _all_gather(session: Session, count: int) -> Collective:
    pattern = _pattern(session, count // session.ranks)
    given = torch.empty_like(pattern)
    result = torch.empty(len(pattern) * session.ranks, device=session.device)
    return Collective(
        call=lambda: _gather(result, given),
        given=given,
        fill=pattern * _weight(session.rank),
        result=result,
        expected=torch.cat([pattern * _weight(rank) for rank in range(session.ranks)]),
    )


def _reduce_scatter(session: Session, count: int) -> Collective:
    part = count // session.ranks
    pattern = _pattern(session, part * session.ranks)
    given = torch.empty_like(pattern)
    result = torch.empty(part, device=session.device)
    return Collective(
        call=lambda: _scatter(result, given),
        given=given,
        fill=pattern * _weight(session.rank),
        result=result,
        expected=pattern[session.rank * part : (session.rank + 1) * part] * _total(session.ranks),
    )


def _all_to_all(session: Session, count: int) -> Collective:
    pattern = _pattern(session, count // session.ranks)
    given = torch.empty(len(pattern) * session.ranks, device=session.device)
    result = torch.empty_like(given)
    ranks = range(session.ranks)
    return Collective(
        call=lambda: dist.all_to_all_single(result, given),
        given=given,
        fill=torch.cat([pattern * _weight(session.rank) + rank for rank in ranks]),
        result=result,
        expected=torch.cat([pattern * _weight(rank) + session.rank for rank in ranks]),
    )


def _broadcast(session: Session, count: int) -> Collective:
    pattern = _pattern(session, count)
    buffer = torch.empty_like(pattern)
    return Collective(
        call=lambda: dist.broadcast(buffer, src=0),
        given=buffer,
        fill=pattern * _weight(session.rank),
        result=buffer,
        expected=pattern * _weight(0),
    )


def _reduce(session: Session, count: int) -> Collective:
    pattern = _pattern(session, count)
    buffer = torch.empty_like(pattern)
    return Collective(
        call=lambda: dist.reduce(buffer, dst=0),
        given=buffer,
        fill=pattern * _weight(session.rank),
        result=buffer,
        expected=pattern * _total(session.ranks) if session.rank == 0 else None,
    )


def _send_recv(session: Session, count: int) -> Collective:
    pattern = _pattern(session, count)
    given, result = torch.empty_like(pattern), torch.empty_like(pattern)
    after, before = (session.rank + 1) % session.ranks, (session.rank - 1) % session.ranks
    return Collective(
        call=lambda: exchange(given, result, to=after, source=before),
        given=given,
        fill=pattern * _weight(session.rank),
        result=result,
        expected=pattern * _weight(before),
    )


def exchange(given: torch.Tensor, result: torch.Tensor, *, to: int, source: int) -> None:
    """Send one buffer and receive another at the same time.

    Parameters
    ----------
    given, result
        What is sent, and where to what comes is written.
    to, source
        Ranks.
    """
    operations = [dist.P2POp(dist.isend, given, to), dist.P2POp(dist.irecv, result, source)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()


OPERATIONS: dict[str, Callable[[Session, int], Collective]] = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "send_recv": _send_recv,
}
"""Every collective that can be timed, in the words of nccl-tests."""
