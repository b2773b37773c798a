"""Times of pairs of ranks that exchange a buffer, all pairs of a round at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist

from .collectives import exchange
from .session import Session

__all__ = ["measure"]


def measure(session: Session, plan: Mapping[str, Any]) -> None:
    """Time the pairs of every round.

    Parameters
    ----------
    session
        This rank.
    plan
        ``rounds``, each a list of pairs of ranks in which no rank comes twice; ``size_bytes``, ``repeats``,
        and what `Session.warm_up` reads.
    """
    given = torch.full((int(plan["size_bytes"]) // 4,), float(session.rank), device=session.device)
    result = torch.empty_like(given)
    calls: int | None = None
    for number, pairs in enumerate(plan["rounds"]):
        session.tell("begin", round=number)
        peer = _peer(session.rank, pairs)

        def call(peer: int | None = peer) -> None:
            if peer is not None:
                exchange(given, result, to=peer, source=peer)

        calls = session.warm_up(call, plan if calls is None else {**plan, "calls": calls})
        for _ in range(int(plan["repeats"])):
            _sample(session, pairs, call_s=session.time_calls(call, calls) / calls, round_number=number)
        wrong = 0 if peer is None else int((result != float(peer)).sum().item())
        session.tell("checked", round=number, wrong=int(session.total(wrong)))


def _peer(rank: int, pairs: Sequence[Sequence[int]]) -> int | None:
    for one, other in pairs:
        if rank in (one, other):
            return other if rank == one else one
    return None


def _sample(session: Session, pairs: Sequence[Sequence[int]], *, call_s: float, round_number: int) -> None:
    """Say what each pair took: the longer of its two ranks."""
    times = torch.zeros(session.ranks, dtype=torch.float64, device=session.device)
    times[session.rank] = call_s
    dist.all_reduce(times)
    by_rank = times.tolist()
    for one, other in pairs:
        session.tell(
            "sample", round=round_number, pair=[one, other], time_s=max(by_rank[one], by_rank[other])
        )
