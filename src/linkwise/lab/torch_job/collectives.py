"""Times and bytes of collectives."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist

from .session import Session

__all__ = ["measure"]


def measure(session: Session, plan: Mapping[str, Any]) -> None:
    """Time every call of the plan, and count what it sends.

    Parameters
    ----------
    session
        This rank.
    plan
        ``calls``, each with ``operation``, ``size_bytes``, ``warmup`` and ``repeats``.
    """
    for number, each in enumerate(plan["calls"]):
        call = _OPERATIONS[each["operation"]](session, int(each["size_bytes"]))
        for _ in range(int(each["warmup"])):
            call()
        before = session.counters()
        times_s = [_timed(session, call) for _ in range(int(each["repeats"]))]
        after = session.counters()
        told = {link: [a - b for a, b in zip(after[link], before[link], strict=True)] for link in after}
        session.tell("measured", call=number, times_s=times_s)
        for link, values in told.items():
            session.tell("counted", call=number, link=link, bytes=values[0], packets=values[1])


def _timed(session: Session, call: Callable[[], object]) -> float:
    """Return what one call took on the slowest rank; they start within a barrier of one another."""
    dist.barrier()
    begin = time.perf_counter()
    call()
    return session.slowest(time.perf_counter() - begin)


def _ones(size_bytes: int) -> torch.Tensor:
    return torch.ones(max(1, size_bytes // 4))


def _all_reduce(_: Session, size_bytes: int) -> Callable[[], object]:
    buffer = _ones(size_bytes)
    return lambda: dist.all_reduce(buffer, op=dist.ReduceOp.MAX)


def _named(new: str, old: str) -> Callable[..., object]:
    """Return a function of torch by its name since 2.13, or the one before."""
    found: Callable[..., object] = getattr(dist, new, None) or getattr(dist, old)
    return found


def _all_gather(session: Session, size_bytes: int) -> Callable[[], object]:
    own = _ones(size_bytes // session.ranks)
    whole = torch.empty(own.numel() * session.ranks)
    gather = _named("all_gather_single", "all_gather_into_tensor")
    return lambda: gather(whole, own)


def _reduce_scatter(session: Session, size_bytes: int) -> Callable[[], object]:
    own = _ones(size_bytes // session.ranks)
    whole = torch.ones(own.numel() * session.ranks)
    scatter = _named("reduce_scatter_single", "reduce_scatter_tensor")
    return lambda: scatter(own, whole, op=dist.ReduceOp.MAX)


def _all_to_all(session: Session, size_bytes: int) -> Callable[[], object]:
    given = torch.ones(max(1, size_bytes // 4 // session.ranks) * session.ranks)
    result = torch.empty_like(given)
    return lambda: dist.all_to_all_single(result, given)


def _broadcast(_: Session, size_bytes: int) -> Callable[[], object]:
    buffer = _ones(size_bytes)
    return lambda: dist.broadcast(buffer, src=0)


def _reduce(_: Session, size_bytes: int) -> Callable[[], object]:
    buffer = _ones(size_bytes)
    return lambda: dist.reduce(buffer, dst=0, op=dist.ReduceOp.MAX)


def _send_recv(session: Session, size_bytes: int) -> Callable[[], object]:
    after, before = (session.rank + 1) % session.ranks, (session.rank - 1) % session.ranks
    return _passed(_ones(size_bytes), to=after, source=before)


def _passed(given: torch.Tensor, *, to: int, source: int) -> Callable[[], object]:
    result = torch.empty_like(given)

    def call() -> None:
        operations = [dist.P2POp(dist.isend, given, to), dist.P2POp(dist.irecv, result, source)]
        for work in dist.batch_isend_irecv(operations):
            work.wait()

    return call


def _inside(session: Session, size_bytes: int) -> Callable[[], object]:
    """Pass a buffer around among the ranks of each node, all nodes at once."""
    ranks = session.plan["ranks"]
    own = ranks[session.rank]["namespace"]
    mates = [rank for rank, each in enumerate(ranks) if each["namespace"] == own]
    if len(mates) == 1:
        return lambda: None
    place = mates.index(session.rank)
    after, before = mates[(place + 1) % len(mates)], mates[place - 1]
    return _passed(_ones(size_bytes), to=after, source=before)


_OPERATIONS: dict[str, Callable[[Session, int], Callable[[], object]]] = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "send_recv": _send_recv,
    "inside": _inside,
}
