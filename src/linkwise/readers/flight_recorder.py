"""Dumps of PyTorch's Flight Recorder, one file a rank: the last collectives that the rank issued.

References
----------
PyTorch, torch/csrc/distributed/c10d/FlightRecorder.hpp and FlightRecorderDetail.hpp (versions 1.4 to 2.10 of
the dump), https://github.com/pytorch/pytorch; PyTorch, *Flight Recorder for Debugging Stuck Jobs*,
https://docs.pytorch.org/tutorials/unstable/flight_recorder_tutorial.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from linkwise.readers.faults import Faults
from linkwise.readers.job_log.lines import printable
from linkwise.readers.json_text import parse_json
from linkwise.readers.plain_pickle import NotPlain, is_pickle, load_plain

__all__ = [
    "LARGEST_BYTES",
    "FlightCall",
    "FlightGroup",
    "FlightRecording",
    "is_flight_recording",
    "parse_flight_recording",
]

LARGEST_BYTES = 64 << 20
"""A larger dump is not read; one of 2,000 calls with their stacks has one to ten megabytes [bytes]."""

_KEYS = (b'"collective_seq_id"', b'"pg_config"', b'"profiling_name"')
_RANK = re.compile(r"(\d+)(?:\.(?:json|pkl|pickle|txt|bin|dump))*$")
_COMPLETED_KEPT = 64
_WAITING_KEPT = 256
_MOST_GROUPS = 4096
_LONGEST_NAME = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightCall:
    """One collective of one rank.

    Parameters
    ----------
    entry
        Its place in the dump, from one.
    sequence
        Its number in the process group; ranks of the group count alike.
    operation
        Such as ``nccl:all_reduce``.
    input_sizes, output_sizes
        Shapes of the tensors.
    types
        Types of the tensors, inputs first.
    state
        ``scheduled``, ``started`` or ``completed``.
    has_timed_out
        Whether the watchdog gave it up before it completed.
    """

    entry: int
    sequence: int
    operation: str
    input_sizes: tuple[tuple[int, ...], ...]
    output_sizes: tuple[tuple[int, ...], ...]
    types: tuple[str, ...]
    state: str
    has_timed_out: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightGroup:
    """What one rank did in one process group.

    Parameters
    ----------
    name, description
        As PyTorch names it: ``0`` and ``default_pg``.
    ranks
        Its global ranks; empty where the dump does not say.
    calls
        The last that completed and the first that did not, by sequence.
    last_enqueued
        Sequence of the last that the rank issued; ``None`` where the dump does not say.
    """

    name: str
    description: str
    ranks: tuple[int, ...]
    calls: tuple[FlightCall, ...]
    last_enqueued: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightRecording:
    """The dump of one rank.

    Parameters
    ----------
    rank
        Its global rank, which only the name of the file says; ``None`` where that ends in no number.
    groups
        What it did, by process group.
    """

    rank: int | None
    groups: tuple[FlightGroup, ...]


def is_flight_recording(start: bytes) -> bool:
    """Return whether an input may be a dump by its start: a pickle, or JSON with a key of dumps.

    Parameters
    ----------
    start
        Its first bytes.
    """
    return is_pickle(start) or (start.lstrip()[:1] == b"{" and any(key in start for key in _KEYS))


def parse_flight_recording(data: bytes, *, path: str) -> FlightRecording:
    """Return what a dump says.

    Parameters
    ----------
    data
        The file, of `LARGEST_BYTES` at most.
    path
        Its name, which ends in the rank.

    Raises
    ------
    DocumentError
        If it is damaged, is no dump, or is a pickle with more than plain values.
    """
    faults = Faults(path=path)
    dump = _value(data, faults)
    # Where a rank issued nothing, the JSON has no entries at all.
    entries = dump.get("entries", [] if "pg_config" in dump else None) if isinstance(dump, dict) else None
    if not isinstance(entries, list):
        raise faults.refusal("is no dump of PyTorch's Flight Recorder: it has no list 'entries'")
    ranks = dict(_group_ranks(dump.get("pg_config")))
    last = dict(_last_enqueued(dump.get("pg_status")))
    found = _RANK.search(path)
    return FlightRecording(
        rank=int(found[1][-9:]) if found else None,
        groups=tuple(_groups(entries, ranks, last)),
    )


def _value(data: bytes, faults: Faults) -> Any:
    if not is_pickle(data[:3]):
        return parse_json(data.decode("utf-8", "replace"), faults)
    try:
        return load_plain(data)
    except NotPlain as error:
        raise faults.refusal(str(error)) from None


def _groups(
    entries: Iterable[object], ranks: Mapping[str, tuple[int, ...]], last: Mapping[str, int]
) -> Iterator[FlightGroup]:
    calls: dict[str, list[FlightCall]] = {}
    descriptions: dict[str, str] = {}
    ids: dict[str, str] = {}
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict) or entry.get("is_p2p") is True:
            continue  # sends and receives are numbered for each pair of ranks
        name, description = _name(entry)
        sequence = entry.get("collective_seq_id", entry.get("seq_id"))
        if type(sequence) is not int or sequence < 0 or (name not in calls and len(calls) >= _MOST_GROUPS):
            continue
        descriptions[name] = description
        ids[name] = str(entry.get("pg_id", name))[:_LONGEST_NAME]
        kept = calls.setdefault(name, [])
        kept.append(_call(number, sequence, entry))
        if len(kept) > 4 * (_WAITING_KEPT + _COMPLETED_KEPT):
            calls[name] = _fewer(kept)
    for name in dict.fromkeys((*calls, *ranks)):
        yield FlightGroup(
            name=name,
            description=descriptions.get(name, ""),
            ranks=ranks.get(name, ()),
            calls=tuple(_fewer(calls.get(name, []))),
            last_enqueued=last.get(ids.get(name, name)),
        )


def _fewer(calls: list[FlightCall]) -> list[FlightCall]:
    """Return the last calls that completed and the first that did not, by sequence."""
    ordered = sorted(calls, key=lambda each: (each.sequence, each.entry))
    completed = [each for each in ordered if each.state == "completed"][-_COMPLETED_KEPT:]
    waiting = [each for each in ordered if each.state != "completed"][:_WAITING_KEPT]
    return sorted((*completed, *waiting), key=lambda each: (each.sequence, each.entry))


def _call(number: int, sequence: int, entry: Mapping[str, object]) -> FlightCall:
    return FlightCall(
        entry=number,
        sequence=sequence,
        operation=_text(entry.get("profiling_name")),
        input_sizes=_shapes(entry.get("input_sizes")),
        output_sizes=_shapes(entry.get("output_sizes")),
        types=(*_texts(entry.get("input_dtypes")), *_texts(entry.get("output_dtypes"))),
        state=(state := _text(entry.get("state"))),
        has_timed_out=entry.get("retired") is True and state != "completed",
    )


def _name(entry: Mapping[str, object]) -> tuple[str, str]:
    """Return name and description of the group of an entry; older dumps have its number alone."""
    pair = entry.get("process_group")
    if isinstance(pair, (list, tuple)) and len(pair) == 2:
        return _text(pair[0]), _text(pair[1])
    number = entry.get("pg_id")
    return (str(number) if type(number) is int else "0"), ""


def _group_ranks(config: object) -> Iterator[tuple[str, tuple[int, ...]]]:
    for name, each in _items(config):
        text = each.get("ranks")
        if isinstance(text, str):
            yield name, tuple(int(word[:9]) for word in re.findall(r"\d+", text[:1_000_000]))


def _last_enqueued(status: object) -> Iterator[tuple[str, int]]:
    for name, each in _items(status):
        # The pickle has numbers here, the JSON texts.
        text = str(each.get("last_enqueued_collective"))[:20]
        if re.fullmatch(r"-?\d+", text):
            yield name, int(text)


def _items(value: object) -> Iterator[tuple[str, Mapping[str, object]]]:
    if isinstance(value, dict):
        for name, each in list(value.items())[:_MOST_GROUPS]:
            if isinstance(each, dict):
                yield _text(str(name)), each


def _shapes(value: object) -> tuple[tuple[int, ...], ...]:
    if not isinstance(value, (list, tuple)):
        return ()
    return tuple(
        tuple(size for size in shape[:16] if type(size) is int)
        for shape in value[:64]
        if isinstance(shape, (list, tuple))
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(_text(each) for each in value[:64]) if isinstance(value, (list, tuple)) else ()


def _text(value: object) -> str:
    if not isinstance(value, str):
        return ""
    # A pickle may hold halves of characters, which no terminal can be given.
    return printable(value[:_LONGEST_NAME].encode("utf-8", "replace").decode("utf-8"))
