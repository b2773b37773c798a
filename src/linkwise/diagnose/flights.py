"""What dumps of PyTorch's Flight Recorder say together: who did not arrive, or called another collective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from linkwise.readers.flight_recorder import FlightCall, FlightGroup, FlightRecording
from linkwise.readers.job_log.values import Evidence

__all__ = ["Disagreement", "disagreement_of"]

_ANY_SIZE = ("alltoall", "all_to_all", "scatter", "gather", "send", "recv", "coalesced")
"""Calls in which ranks may pass different sizes; ``all_gather`` and ``reduce_scatter`` are not among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """Ranks of one process group that do not wait in the same collective.

    Parameters
    ----------
    ranks
        Those that are not where the others are.
    text
        What they did, in a sentence.
    evidence
        The calls of both sides.
    is_sure
        Whether the dumps alone decide; else the job may just have moved on between two dumps.
    """

    ranks: tuple[int, ...]
    text: str
    evidence: tuple[Evidence, ...]
    is_sure: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One rank in one group: the first call that it waits in, and how far it came."""

    rank: int
    file: str
    group: FlightGroup
    waiting: FlightCall | None
    last: int


def disagreement_of(recordings: Sequence[tuple[str, FlightRecording]]) -> Disagreement | None:
    """Return where the ranks part; ``None`` where all wait in the same call, or none waits.

    Parameters
    ----------
    recordings
        Dumps with the name of their file; those whose name has no rank are left out.

    Notes
    -----
    Calls of a group are numbered alike on all of its ranks. A rank that waits in another group is the victim
    of that one, so that the group is named first whose missing ranks wait nowhere.
    """
    groups = _parts(recordings)
    busy = {part.rank for parts in groups.values() for part in parts if part.waiting is not None}
    found = [each for parts in groups.values() if (each := _parting(parts)) is not None]
    found.sort(key=lambda each: (bool(busy.intersection(each.ranks)), not each.is_sure))
    return found[0] if found else None


def _parts(
    recordings: Sequence[tuple[str, FlightRecording]],
) -> Mapping[tuple[str, tuple[int, ...]], list[_Part]]:
    # Groups of different ranks may bear one name, as the halves of a split do.
    groups: dict[tuple[str, tuple[int, ...]], list[_Part]] = {}
    seen: set[tuple[int, str]] = set()
    for file, recording in recordings:
        for group in recording.groups:
            if recording.rank is None or (recording.rank, group.name) in seen:
                continue
            seen.add((recording.rank, group.name))
            groups.setdefault((group.name, group.ranks), []).append(_part(recording.rank, file, group))
    return groups


def _part(rank: int, file: str, group: FlightGroup) -> _Part:
    waiting = next((each for each in group.calls if each.state != "completed"), None)
    issued = max((each.sequence for each in group.calls), default=0)
    return _Part(
        rank=rank, file=file, group=group, waiting=waiting, last=max(issued, group.last_enqueued or 0)
    )


def _parting(parts: list[_Part]) -> Disagreement | None:
    waiting = [(each, each.waiting) for each in parts if each.waiting is not None]
    if not waiting:
        return None
    sequence = min(call.sequence for _, call in waiting)
    behind = [each for each in parts if each.last < sequence]
    here = [(part, call) for part, call in waiting if call.sequence == sequence]
    if behind:
        return _missing(behind, here)
    odd = _odd(here)
    if odd:
        return _different(odd, here)
    return _unlaunched(here) or _without_dump(parts, here)


def _missing(behind: list[_Part], here: Sequence[tuple[_Part, FlightCall]]) -> Disagreement:
    part, call = here[0]
    ranks = tuple(each.rank for each in behind)
    others = _listed([each.rank for each, _ in here])
    return Disagreement(
        ranks=ranks,
        text=f"{_listed(ranks)} never issued {_called(part, call)}, which {others} issued.",
        evidence=(*map(_last_of, behind), *map(_evidence, here)),
        is_sure=any(each.has_timed_out for _, each in here),
    )


def _odd(here: Sequence[tuple[_Part, FlightCall]]) -> list[tuple[_Part, FlightCall]]:
    """Return the calls that are not like those of most ranks."""
    shapes: dict[object, list[tuple[_Part, FlightCall]]] = {}
    for part, call in here:
        shapes.setdefault(_shape(call), []).append((part, call))
    if len(shapes) < 2:
        return []
    most = max(shapes.values(), key=len)
    return [each for same in shapes.values() if same is not most for each in same]


def _shape(call: FlightCall) -> object:
    name = call.operation.rpartition(":")[2].lstrip("_")
    if name.startswith(_ANY_SIZE):
        return (call.operation, call.types[:1])
    return (call.operation, call.input_sizes, call.output_sizes, call.types)


def _different(odd: list[tuple[_Part, FlightCall]], here: Sequence[tuple[_Part, FlightCall]]) -> Disagreement:
    part, call = next(each for each in here if each not in odd)
    other = odd[0][1]
    ranks = tuple(each.rank for each, _ in odd)
    return Disagreement(
        ranks=ranks,
        text=f"{_listed(ranks)} called {_words(other)} where rank {part.rank} called {_called(part, call)}.",
        evidence=(*map(_evidence, odd), *(_evidence(each) for each in here if each not in odd)),
        # Two ranks wait for each other in different calls, whenever the dumps were written.
        is_sure=True,
    )


def _unlaunched(here: Sequence[tuple[_Part, FlightCall]]) -> Disagreement | None:
    """Return the finding where most ranks run a call that few have only scheduled."""
    idle = [each for each in here if each[1].state == "scheduled"]
    running = [each for each in here if each[1].state == "started"]
    if not idle or not running or len(idle) >= len(running):
        return None
    ranks = tuple(part.rank for part, _ in idle)
    part, call = running[0]
    return Disagreement(
        ranks=ranks,
        text=f"{_listed(ranks)} issued {_called(part, call)} but its GPU never began it: something before it"
        " on the stream does not end.",
        evidence=tuple(map(_evidence, (*idle, *running))),
        is_sure=False,
    )


def _without_dump(parts: list[_Part], here: Sequence[tuple[_Part, FlightCall]]) -> Disagreement | None:
    """Return the finding where few ranks of the group wrote no dump and the others all wait."""
    members = set(parts[0].group.ranks)
    absent = sorted(members - {each.rank for each in parts})
    if not absent or 2 * len(absent) >= len(members) or len(here) < len(parts):
        return None
    part, call = here[0]
    return Disagreement(
        ranks=tuple(absent),
        text=f"{_listed(absent)} left no dump, and the others wait in {_called(part, call)}.",
        evidence=tuple(map(_evidence, here)),
        is_sure=False,
    )


def _listed(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[:8])) + (" ..." if len(ranks) > 8 else "")
    return f"rank {shown}" if len(ranks) == 1 else f"ranks {shown}"


def _called(part: _Part, call: FlightCall) -> str:
    description = f" ({part.group.description})" if part.group.description else ""
    return f"{_words(call)}, number {call.sequence} of process group {part.group.name}{description}"


def _words(call: FlightCall) -> str:
    sizes = " ".join("x".join(map(str, shape)) for shape in call.input_sizes[:3])
    return f"{call.operation or 'a call'}{f' of {sizes}' if sizes else ''}"


def _evidence(each: tuple[_Part, FlightCall]) -> Evidence:
    part, call = each
    text = f"rank {part.rank}: {_called(part, call)}, {call.state}"
    return Evidence(file=part.file, line=call.entry, text=text)


def _last_of(part: _Part) -> Evidence:
    if not part.group.calls:
        text = f"rank {part.rank}: no call in process group {part.group.name}"
        return Evidence(file=part.file, line=1, text=text)
    return _evidence((part, part.group.calls[-1]))
