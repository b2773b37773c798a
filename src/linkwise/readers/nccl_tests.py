"""What nccl-tests prints or writes as JSON (`-J`): the times of one collective over sizes, and who took part.

Notes
-----
The columns of a table are told by its heading, so that tables of older releases (``error`` for ``#wrong``, no
``redop`` or ``root``) and those with more columns are read alike. Prefixes that mpirun, srun and Ray put
before a line are dropped; lines of NCCL and of anything else are passed over. ``error`` of older releases is
the largest deviation and no count of wrong values; it is not read.

References
----------
NVIDIA, nccl-tests, README.md and doc/PERFORMANCE.md, 2025.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from linkwise.readers.faults import Faults, excerpt
from linkwise.readers.json_text import looks_like_json, parse_json

__all__ = ["MOST_ROWS", "NcclTestsRow", "NcclTestsRun", "parse_nccl_tests"]

MOST_ROWS = 100_000
"""Rows of one table that are read; a sweep over sizes has some dozens."""
MOST_RANKS = 1_000_000
"""GPUs of one run that are read."""

_LONGEST_LINE = 2000
_MOST_TIME_US = 1e12
_PREFIX = re.compile(
    r"(?:\([^()]{1,80}\)\s)?(?:\[\d{1,7},\d{1,7}\]\s?<std(?:out|err)>:?|\d{1,6}:(?=\s)|(?<=\)\s))"
)
_OUTER_PREFIX = re.compile(
    r"\[pod/[^\]\s]{1,300}\]\s|[a-z0-9][a-z0-9.-]{0,252}:\s|\d{4}-\d\d-\d\dT[\d:.,+Z-]{8,24}\s"
)
"""What kubectl and tools like it write before the line of a launcher: pod, container, time."""

_ROW = re.compile(r"\d{1,19}\s+\d{1,19}\s+(?:u?int|char|half|b?float|double|f8|fp8)\w{0,12}(?=\s|$)")
_HEADING = re.compile(r"#\s+(?:size|bytes)\s.*busbw")
_ARGUMENTS = re.compile(r"#\s*nThread:?\s+(\d{1,6})\s+nGpus:?\s+(\d{1,6})\s")
_RANK = re.compile(
    r"#\s+Rank\s+(\d{1,7})\s+(?:Group\s+(\d{1,7})\s+)?Pid\s+\d{1,10}\s+on\s+(\S{1,255})\s+"
    r"device\s+\d{1,4}\s+\[[^\]]{0,40}\]\s*(.{0,100})"
)
_PROGRAM = re.compile(
    r"(?:^|[\s/:])(all_reduce|all_gather|reduce_scatter|reduce|broadcast|alltoall|sendrecv|gather|scatter|"
    r"hypercube)_perf(?:_mpi)?(?=\s|$)"
)
_VERSION = re.compile(r"NCCL version (\d{1,2}\.\d{1,3})|nccl-library=(\d{4,6})")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d\s+\d\d:\d\d:\d\d\s*$")
_MEASURED = ("time", "algbw", "busbw")
_USUAL_COLUMNS = (*_MEASURED, "#wrong") * 2


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclTestsRow:
    """One size, in place or out of place.

    Parameters
    ----------
    size_bytes
        Bytes of the full buffer [bytes].
    in_place
        Whether input and output are one buffer.
    time_s
        Time of one call [s].
    algbw_bytes_per_s, busbw_bytes_per_s
        Bandwidths as printed, three digits or fewer [bytes/s].
    wrong
        Elements with a wrong value; ``None`` where they were not checked.
    """

    size_bytes: int
    in_place: bool
    time_s: float
    algbw_bytes_per_s: float
    busbw_bytes_per_s: float
    wrong: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclTestsRun:
    """One run of nccl-tests.

    Parameters
    ----------
    rows
        In the order of the file, at least one.
    program
        Such as ``all_reduce``, of ``all_reduce_perf``; ``None`` where the file names none.
    ranks
        GPUs that took part; ``None`` where the file does not list them.
    hosts
        Names of their hosts.
    gpu
        Name of the device of rank 0 as its driver gives it.
    gpus_per_thread
        GPUs that one thread calls for.
    version
        Release of NCCL such as ``2.27``.
    unfinished_lines
        Rows that end before their in-place half, as those of a run that was stopped.
    """

    rows: tuple[NcclTestsRow, ...]
    program: str | None = None
    ranks: int | None = None
    hosts: tuple[str, ...] = ()
    gpu: str | None = None
    gpus_per_thread: int = 1
    version: str | None = None
    unfinished_lines: int = 0


@dataclass(slots=True)
class _Gathered:
    """What the lines read so far say."""

    rows: list[NcclTestsRow] = field(default_factory=list)
    programs: dict[str, int] = field(default_factory=dict)
    ranks: dict[int, str] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)
    hosts: dict[str, None] = field(default_factory=dict)
    columns: tuple[str, ...] = _USUAL_COLUMNS
    leading: int = 4
    heading_line: int | None = None
    gpus_per_thread: int = 1
    version: str | None = None
    unfinished: int = 0


def parse_nccl_tests(text: str, *, path: str | None = None) -> NcclTestsRun:
    """Return the run in what nccl-tests printed, or in the JSON file it wrote.

    Parameters
    ----------
    text
        The whole output; other lines around it do not matter.
    path
        The file it came from, for messages.

    Raises
    ------
    DocumentError
        With all faults: no table or more than one, rows with other columns than their heading, numbers that
        are none, several groups of ranks at once, times of the CPU alone (`-C`).
    """
    faults = Faults(path=path)
    if looks_like_json(text):
        return _of_json(parse_json(text, faults), faults)
    found = _Gathered()
    for number, raw in enumerate(StringIO(text), start=1):
        line = _without_prefix(raw) if len(raw) <= _LONGEST_LINE else ""
        if line:
            _take_line(found, line, number, faults)
    faults.raise_any()
    return _run(found, faults)


def _without_prefix(raw: str) -> str:
    line = raw.strip()
    for _ in range(2):
        if outer := _OUTER_PREFIX.match(line):
            line = line[outer.end() :].strip()
    prefix = _PREFIX.match(line)
    return line[prefix.end() :].strip() if prefix else line


def _take_line(found: _Gathered, line: str, number: int, faults: Faults) -> None:
    if _ROW.match(line):
        _take_row(found, line, number, faults)
    elif _HEADING.match(line):
        _take_heading(found, line, number, faults)
    elif match := _RANK.match(line):
        _take_rank(found, int(match[1]), host=match[3], device=match[4].strip(), group=match[2] or "0")
    elif match := _ARGUMENTS.match(line):
        found.gpus_per_thread = max(1, int(match[2]))
    else:
        _take_names(found, line, number)


def _take_names(found: _Gathered, line: str, number: int) -> None:
    if found.version is None and (match := _VERSION.search(line)):
        found.version = match[1] or _release(int(match[2]))
    if match := _PROGRAM.search(line):
        found.programs.setdefault(match[1], number)


def _take_heading(found: _Gathered, line: str, number: int, faults: Faults) -> None:
    """Take the columns from the first time on: out of place, then the same in place."""
    if found.heading_line is not None:
        what = f"a second table begins here, the first in line {found.heading_line}"
        hint = "give one run; one table from each process means that nccl-tests was built without MPI"
        raise faults.refusal(f"{what}; {hint}", line=number)
    found.heading_line = number
    names = line.lstrip("# ").split()
    if "cputime" in names:
        raise faults.refusal("these are times of the CPU alone (-C), not of the collective", line=number)
    leading = names.index("time") if "time" in names else 0
    columns = [name for name in names[leading:] if name != "timestamp"]
    half = len(columns) // 2
    if tuple(columns[:3]) != _MEASURED or columns[:half] != columns[half:]:
        due = "time algbw busbw and more, twice: out of place and in place"
        raise faults.refusal(f"the heading is not that of nccl-tests, which has {due}", line=number)
    found.columns, found.leading = tuple(columns), leading


def _take_rank(found: _Gathered, rank: int, *, host: str, device: str, group: str) -> None:
    if len(found.ranks) < MOST_RANKS:
        found.ranks[rank] = device
        found.hosts.setdefault(host)
        found.groups.add(group)


def _take_row(found: _Gathered, line: str, number: int, faults: Faults) -> None:
    names = found.columns
    words = _TIMESTAMP.sub("", line).split()
    has_reduction = len(words) > 3 and not words[3][0].isdigit()
    if len(words) < len(names) + (found.leading if has_reduction else 3):
        found.unfinished += 1
        return
    if len(words) > len(names) + 5:
        faults.add(f"{excerpt(line)} has more cells than the table has columns", line=number)
        return
    last = zip(names, words[-len(names) :], strict=True)
    cells = [word if name != "error" else None for name, word in last]
    half = len(names) // 2
    for in_place, part in enumerate((cells[:half], cells[half:])):
        try:
            row = _row(int(words[0]), in_place=bool(in_place), words=part)
        except ValueError as error:
            faults.add(f"{error}; was another line printed into this one?", line=number)
            return
        _keep(found, row, faults, number)


def _keep(found: _Gathered, row: NcclTestsRow | None, faults: Faults, number: int | None) -> None:
    """Keep a row; a size of 0 has nothing to compare."""
    if row is None:
        return
    if len(found.rows) >= 2 * MOST_ROWS:
        raise faults.refusal(f"the table has more than {MOST_ROWS:,} rows", line=number)
    found.rows.append(row)


def _row(size: int, *, in_place: bool, words: Sequence[object]) -> NcclTestsRow | None:
    if size == 0:
        return None
    time_us, algbw, busbw = (_number(word) for word in words[:3])
    if size >= 2**63:
        raise ValueError(f"{size} is no size of a buffer")
    if not 0 < time_us <= _MOST_TIME_US:
        raise ValueError(f"time {excerpt(str(words[0]))} is not above zero and below {_MOST_TIME_US:.0e} us")
    unchecked = len(words) < 4 or words[3] in ("N/A", None)
    return NcclTestsRow(
        size_bytes=size,
        in_place=in_place,
        time_s=time_us * 1e-6,
        algbw_bytes_per_s=algbw * 1e9,
        busbw_bytes_per_s=busbw * 1e9,
        wrong=None if unchecked else _number(words[3]),
    )


def _number(word: object) -> float:
    text = str(word)[:40]
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{excerpt(text)} is not a number") from None
    if isinstance(word, bool) or not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{excerpt(text)} is not a number of zero and more")
    return value


def _run(found: _Gathered, faults: Faults) -> NcclTestsRun:
    if not found.rows:
        hint = "give what all_reduce_perf or another program of nccl-tests printed, or its JSON file"
        raise faults.refusal(f"there is no row with a size and times; {hint}")
    if len(found.programs) > 1:
        (one, there), (other, line) = list(found.programs.items())[:2]
        raise faults.refusal(f"names {one}_perf (line {there}) and {other}_perf; give one run", line=line)
    if len(found.groups) > 1:
        raise faults.refusal(
            f"{len(found.groups)} groups of ranks ran at once (NCCL_TESTS_SPLIT); one can be read"
        )
    return NcclTestsRun(
        rows=tuple(found.rows),
        program=next(iter(found.programs), None),
        ranks=len(found.ranks) or None,
        hosts=tuple(found.hosts),
        gpu=found.ranks.get(min(found.ranks)) or None if found.ranks else None,
        gpus_per_thread=found.gpus_per_thread,
        version=found.version,
        unfinished_lines=found.unfinished,
    )


def _release(code: int) -> str:
    """Return the release of NCCL's version code: 22703 is 2.27, 2408 is 2.4."""
    return f"{code // 10_000}.{code // 100 % 100}" if code >= 10_000 else f"{code // 1000}.{code // 100 % 10}"


def _of_json(document: Mapping[str, Any], faults: Faults) -> NcclTestsRun:
    found = _Gathered()
    results = document.get("results")
    if not isinstance(results, list):
        raise faults.refusal("has no list of results; give the JSON that nccl-tests writes with -J")
    for place, entry in enumerate(results):
        _take_result(found, entry, f"results.{place}", faults)
    config = document.get("config")
    if isinstance(config, dict):
        _take_config(found, config)
    program = _first_word(document.get("args"))
    if match := _PROGRAM.search(program):
        found.programs[match[1]] = 1
    code = document.get("nccl_version")
    if isinstance(code, int) and 1000 <= code < 1_000_000:
        found.version = _release(code)
    faults.raise_any()
    return _run(found, faults)


def _take_result(found: _Gathered, entry: object, key: str, faults: Faults) -> None:
    size = entry.get("size") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(size, int) or isinstance(size, bool) or size < 0:
        faults.add("is no result with a size", key=key)
        return
    halves = [(name, entry.get(name)) for name in ("out_of_place", "in_place")]
    for name, half in halves:
        if half is None:
            continue
        try:
            _keep(found, _row(size, in_place=name == "in_place", words=list(_cells(half))), faults, None)
        except ValueError as error:
            faults.add(str(error), key=f"{key}.{name}")
    if halves[1][1] is None:
        found.unfinished += 1


def _cells(half: object) -> Iterator[object]:
    if not isinstance(half, dict) or "time" not in half:
        is_cpu = isinstance(half, dict) and "cpu_time" in half
        raise ValueError("has the time of the CPU alone (-C)" if is_cpu else "has no time")
    yield from (half.get(name) for name in ("time", "alg_bw", "bus_bw", "nwrong"))


def _take_config(found: _Gathered, config: Mapping[str, Any]) -> None:
    """Take the devices; of a process that has several only the first is listed."""
    threads, gpus = (_count(config.get(name)) for name in ("nthreads", "ngpus"))
    found.gpus_per_thread = gpus
    devices = config.get("devices")
    for device in devices if isinstance(devices, list) else ():
        if isinstance(device, dict) and isinstance(device.get("rank"), int):
            host, kind = (str(device.get(name, ""))[:255] for name in ("hostname", "device_info"))
            _take_rank(found, device["rank"], host=host, device=kind, group=str(device.get("group", 0))[:9])
    per_process = min(threads * gpus, 1024)
    if per_process > 1 and all(rank % per_process == 0 for rank in found.ranks):
        for rank, device in list(found.ranks.items()):
            found.ranks.update({rank + offset: device for offset in range(1, per_process)})


def _count(value: object) -> int:
    return value if isinstance(value, int) and 1 <= value <= 1024 else 1


def _first_word(arguments: object) -> str:
    return str(arguments[0])[:1000] if isinstance(arguments, list) and arguments else ""
