"""Times of pairs of nodes whose ranks exchange buffers, all pairs of a round at once."""

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
        ``rounds``, each a list of pairs of nodes in which no node comes twice; ``ranks_per_node``,
        ``size_bytes`` that each rank sends the one in its place on the other node, ``repeats``, and what
        `Session.warm_up` reads.
    """
    per_node = int(plan["ranks_per_node"])
    given = torch.full((int(plan["size_bytes"]) // 4,), float(session.rank), device=session.device)
    result = torch.empty_like(given)
    calls: int | None = None
    for number, pairs in enumerate(plan["rounds"]):
        session.tell("begin", round=number)
        peer = _peer(session.rank, pairs, per_node)

        def call(peer: int | None = peer) -> None:
            if peer is not None:
                exchange(given, result, to=peer, source=peer)

        calls = session.warm_up(call, plan if calls is None else {**plan, "calls": calls})
        for _ in range(int(plan["repeats"])):
            call_s = session.time_calls(call, calls) / calls
            _sample(session, pairs, call_s=call_s, round_number=number, per_node=per_node)
        wrong = 0 if peer is None else int((result != float(peer)).sum().item())
        session.tell("checked", round=number, wrong=int(session.total(wrong)))


def _peer(rank: int, pairs: Sequence[Sequence[int]], per_node: int) -> int | None:
    """Return the rank in the same place on the other node of the pair; ``None`` where the node is idle."""
    node, place = divmod(rank, per_node)
    for one, other in pairs:
        if node in (one, other):
            return (other if node == one else one) * per_node + place
    return None


def _sample(
    session: Session, pairs: Sequence[Sequence[int]], *, call_s: float, round_number: int, per_node: int
) -> None:
    """Say what each pair took: the longest of the ranks of its two nodes."""
    times = torch.zeros(session.ranks, dtype=torch.float64, device=session.device)
    times[session.rank] = call_s
    dist.all_reduce(times)
    by_rank = times.tolist()
    by_node = [max(by_rank[first : first + per_node]) for first in range(0, session.ranks, per_node)]
    for one, other in pairs:
        time_s = max(by_node[one], by_node[other])
        session.tell("sample", round=round_number, pair=[one, other], time_s=time_s)
