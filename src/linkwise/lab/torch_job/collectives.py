"""Times and bytes of collectives."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
        ``calls``, each with ``operation``, ``size_bytes``, ``warmup`` and ``repeats``; ``groups`` that call
        at the same time, all ranks without; ``in_a_row``, how often a repeat calls, once without; ``busy_s``,
        how long each rank computes before each of them; ``is_counted`` is false where its bytes are not asked
        for.
    """
    groups = {json.dumps(each["groups"]): each["groups"] for each in plan["calls"] if each.get("groups")}
    teams = {told: _team(session, members) for told, members in groups.items()}
    for number, each in enumerate(plan["calls"]):
        team = teams[json.dumps(each["groups"])] if each.get("groups") else _everybody(session)
        call = _call(session, team, each)
        for _ in range(int(each["warmup"])):
            call()
        is_counted = bool(each.get("is_counted", True))
        before = session.counters() if is_counted else {}
        in_a_row, busy_s = int(each.get("in_a_row", 1)), float(each.get("busy_s", 0.0))
        times_s = [_timed(session, call, in_a_row, busy_s) for _ in range(int(each["repeats"]))]
        after = session.counters() if is_counted else {}
        told = {link: [a - b for a, b in zip(after[link], before[link], strict=True)] for link in after}
        session.tell("measured", call=number, times_s=times_s)
        for link, values in told.items():
            session.tell("counted", call=number, link=link, bytes=values[0], packets=values[1])


_AT_ONCE = 4
"""Calls that are under way together, each with a buffer of its own [1]."""


@dataclass(frozen=True)
class _Team:
    """The ranks that call together, as numbers of the job; none on a rank that does not take part."""

    members: list[int]
    group: Any


def _everybody(session: Session) -> _Team:
    return _Team(members=list(range(session.ranks)), group=dist.group.WORLD)


def _team(session: Session, groups: list[list[int]]) -> _Team | None:
    """Return the group of this rank, having made all of them: every rank has to take part in that."""
    made = [(members, dist.new_group(members)) for members in groups]
    return next((_Team(members=one, group=group) for one, group in made if session.rank in one), None)


def _call(session: Session, team: _Team | None, told: Mapping[str, Any]) -> Callable[[], object]:
    if team is None:
        return lambda: None
    return _OPERATIONS[told["operation"]](session, team, int(told["size_bytes"]))


def _timed(session: Session, call: Callable[[], object], in_a_row: int, busy_s: float) -> float:
    """Return what one call took, from the first rank that began to the last that ended."""
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(in_a_row):
        _compute(busy_s)
        call()
    time_s, _ = session.span(begin, time.perf_counter())
    return time_s / in_a_row


def _compute(time_s: float) -> None:
    """Spend so long on a core, however long it takes to get one."""
    end = time.process_time() + time_s
    while time.process_time() < end:
        pass


def _ones(size_bytes: int) -> torch.Tensor:
    return torch.ones(max(1, size_bytes // 4))


def _all_reduce(_: Session, team: _Team, size_bytes: int) -> Callable[[], object]:
    buffer = _ones(size_bytes)
    return lambda: dist.all_reduce(buffer, op=dist.ReduceOp.MAX, group=team.group)


def _named(new: str, old: str) -> Callable[..., object]:
    """Return a function of torch by its name since 2.13, or the one before."""
    found: Callable[..., object] = getattr(dist, new, None) or getattr(dist, old)
    return found


def _all_gather(_: Session, team: _Team, size_bytes: int) -> Callable[[], object]:
    ranks = len(team.members)
    own = _ones(size_bytes // ranks)
    whole = torch.empty(own.numel() * ranks)
    gather = _named("all_gather_single", "all_gather_into_tensor")
    return lambda: gather(whole, own, group=team.group)


def _reduce_scatter(_: Session, team: _Team, size_bytes: int) -> Callable[[], object]:
    ranks = len(team.members)
    own = _ones(size_bytes // ranks)
    whole = torch.ones(own.numel() * ranks)
    scatter = _named("reduce_scatter_single", "reduce_scatter_tensor")
    return lambda: scatter(own, whole, op=dist.ReduceOp.MAX, group=team.group)


def _all_to_all(_: Session, team: _Team, size_bytes: int) -> Callable[[], object]:
    ranks = len(team.members)
    given = torch.ones(max(1, size_bytes // 4 // ranks) * ranks)
    result = torch.empty_like(given)
    return lambda: dist.all_to_all_single(result, given, group=team.group)


def _broadcast(_: Session, team: _Team, size_bytes: int) -> Callable[[], object]:
    buffer = _ones(size_bytes)
    return lambda: dist.broadcast(buffer, src=team.members[0], group=team.group)


def _reduce(_: Session, team: _Team, size_bytes: int) -> Callable[[], object]:
    buffer = _ones(size_bytes)
    return lambda: dist.reduce(buffer, dst=team.members[0], op=dist.ReduceOp.MAX, group=team.group)


def _send_recv(session: Session, team: _Team, size_bytes: int) -> Callable[[], object]:
    return _around(session, team.members, size_bytes)


def _around(session: Session, members: list[int], size_bytes: int) -> Callable[[], object]:
    place = members.index(session.rank)
    after, before = members[(place + 1) % len(members)], members[place - 1]
    return _passed(_ones(size_bytes), to=after, source=before)


def _all_reduces_at_once(_: Session, team: _Team, size_bytes: int) -> Callable[[], object]:
    """Sum several buffers, each called before the one before it has ended."""
    buffers = [_ones(size_bytes) for _ in range(_AT_ONCE)]

    def call() -> None:
        works = [
            dist.all_reduce(each, op=dist.ReduceOp.MAX, group=team.group, async_op=True) for each in buffers
        ]
        for work in works:
            work.wait()

    return call


def _there_and_back(session: Session, team: _Team, size_bytes: int) -> Callable[[], object]:
    """Send a buffer to the second of two ranks and wait for it: two messages, one after the other."""
    one, other = team.members
    buffer = _ones(size_bytes)

    def first() -> None:
        dist.send(buffer, other, group=team.group)
        dist.recv(buffer, other, group=team.group)

    def second() -> None:
        dist.recv(buffer, one, group=team.group)
        dist.send(buffer, one, group=team.group)

    return first if session.rank == one else second


def _passed(given: torch.Tensor, *, to: int, source: int) -> Callable[[], object]:
    result = torch.empty_like(given)

    def call() -> None:
        operations = [dist.P2POp(dist.isend, given, to), dist.P2POp(dist.irecv, result, source)]
        for work in dist.batch_isend_irecv(operations):
            work.wait()

    return call


def _inside(session: Session, _: _Team, size_bytes: int) -> Callable[[], object]:
    """Pass a buffer around among the ranks of each node, all nodes at once."""
    ranks = session.plan["ranks"]
    own = ranks[session.rank]["namespace"]
    mates = [rank for rank, each in enumerate(ranks) if each["namespace"] == own]
    return (lambda: None) if len(mates) == 1 else _around(session, mates, size_bytes)


_OPERATIONS: dict[str, Callable[[Session, _Team, int], Callable[[], object]]] = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "send_recv": _send_recv,
    "inside": _inside,
    "all_reduces_at_once": _all_reduces_at_once,
    "there_and_back": _there_and_back,
}
