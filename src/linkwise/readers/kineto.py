"""What PyTorch's profiler writes (Kineto, JSON): time of computing and of each collective, hidden or not.

Notes
-----
Kernels of NCCL are those whose name says so; what runs beside them on another stream hides them, copies on
the GPU too. Without kernels, as in a trace of CPUs, operators of PyTorch are computing, and those of gloo or
c10d communication. Times are unions of intervals, so that nested and parallel events count once. Steps are
the ranges that the profiler's schedule names ``ProfilerStep#N``; without them the whole trace is one.

References
----------
PyTorch, Kineto, libkineto/README.md and libkineto/src/output_json.cpp. Google, Trace Event Format, 2016.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.readers.faults import Faults
from linkwise.readers.json_text import looks_like_json, parse_json

__all__ = ["CollectiveShare", "KinetoTrace", "is_kineto", "parse_kineto"]

Floats = NDArray[np.float64]

_LARGEST_US = 1e18
_STEP = re.compile(r"ProfilerStep#\d{1,12}")
_NCCL = re.compile(r"(?:nccl|rccl)(?:Dev)?Kernel|^nccl(?!:)", re.IGNORECASE)
_BACKEND = re.compile(r"^(?:gloo|nccl|mpi|ucc):(?!:)")
_DISPATCH = re.compile(r"^c10d::")
_OPERATIONS = (
    ("all_reduce", re.compile(r"all_?reduce", re.IGNORECASE)),
    ("reduce_scatter", re.compile(r"reduce_?scatter", re.IGNORECASE)),
    ("all_gather", re.compile(r"all_?gather", re.IGNORECASE)),
    ("all_to_all", re.compile(r"all_?to_?all", re.IGNORECASE)),
    ("send_recv", re.compile(r"send|recv", re.IGNORECASE)),
    ("broadcast", re.compile(r"broadcast", re.IGNORECASE)),
    ("reduce", re.compile(r"reduce", re.IGNORECASE)),
)
"""Words of names, the longer ones first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveShare:
    """What one collective takes in a step.

    Attributes
    ----------
    operation
        One of `linkwise.network.setting.OPERATIONS`, or ``other``.
    ranks
        GPUs of its groups; ``None`` where the trace does not say.
    calls
        Calls per step [1].
    busy_s, exposed_s
        Time per step in which it runs, and in which it runs and nothing computes [s].
    """

    operation: str
    ranks: int | None
    calls: float
    busy_s: float
    exposed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KinetoTrace:
    """Where the time of a step goes, seen from one process.

    Attributes
    ----------
    steps
        Steps that the trace holds [1].
    step_times_s
        Time of each [s].
    compute_s, communication_s, exposed_s, idle_s
        Time per step in which something computes, something communicates, something communicates and nothing
        computes, and nothing runs [s].
    collectives
        The same by collective, most exposed first.
    on_gpu
        Whether kernels were seen; otherwise operators of the host.
    world_size
        Processes of the job; ``None`` where the trace does not say.
    """

    steps: int
    step_times_s: tuple[float, ...]
    compute_s: float
    communication_s: float
    exposed_s: float
    idle_s: float
    collectives: tuple[CollectiveShare, ...]
    on_gpu: bool
    world_size: int | None = None


@dataclass(slots=True)
class _Gathered:
    """Intervals of the events of one kind, in microseconds."""

    compute: list[tuple[float, float]]
    communication: dict[tuple[str, int | None], list[tuple[float, float]]]


def is_kineto(text: str) -> bool:
    """Return whether a text is a trace of PyTorch's profiler, or starts as one.

    Parameters
    ----------
    text
        The file.
    """
    return looks_like_json(text, "traceEvents")


def parse_kineto(text: str, *, path: str | None = None) -> KinetoTrace:
    """Return where the time of the steps of a trace goes.

    Parameters
    ----------
    text
        The trace, not compressed.
    path
        The file it came from, for messages.

    Raises
    ------
    DocumentError
        If it is no trace, or holds no event with a time.
    """
    faults = Faults(path=path)
    trace = parse_json(text, faults)
    events = trace.get("traceEvents")
    if not isinstance(events, list):
        raise faults.refusal("has no list traceEvents; give what torch.profiler's export_chrome_trace writes")
    timed = [(event, span) for event in events if isinstance(event, dict) and (span := _span(event))]
    on_gpu = any(event.get("cat") == "kernel" for event, _ in timed)
    steps = _steps(timed)
    gathered = _gathered(timed, on_gpu=on_gpu)
    everything = [*gathered.compute, *(each for many in gathered.communication.values() for each in many)]
    if not everything:
        raise faults.refusal(
            "has no kernel and no operator with a time; profile with activities CPU and CUDA over a few steps"
        )
    windows = steps or [(min(low for low, _ in everything), max(high for _, high in everything))]
    return _trace(gathered, windows, on_gpu=on_gpu, world_size=_world_size(trace))


def _trace(
    gathered: _Gathered, windows: Sequence[tuple[float, float]], *, on_gpu: bool, world_size: int | None
) -> KinetoTrace:
    count = len(windows)
    window = _union(windows)
    compute = _intersection(_union(gathered.compute), window)
    spoken = {key: _intersection(_union(many), window) for key, many in gathered.communication.items()}
    calls = {key: _inside(many, window) for key, many in gathered.communication.items()}
    all_spoken = _union([tuple(each) for many in spoken.values() for each in many.tolist()])
    exposed = _length(all_spoken) - _length(_intersection(all_spoken, compute))
    busy = _length(_union([*map(tuple, compute.tolist()), *map(tuple, all_spoken.tolist())]))
    shares = [
        CollectiveShare(
            operation=operation,
            ranks=ranks,
            calls=calls[operation, ranks] / count,
            busy_s=_length(many) / count,
            exposed_s=(_length(many) - _length(_intersection(many, compute))) / count,
        )
        for (operation, ranks), many in spoken.items()
        if len(many)
    ]
    return KinetoTrace(
        steps=count,
        step_times_s=tuple((high - low) * 1e-6 for low, high in windows),
        compute_s=_length(compute) / count,
        communication_s=_length(all_spoken) / count,
        exposed_s=max(exposed, 0.0) / count,
        idle_s=max(_length(window) - busy, 0.0) / count,
        collectives=tuple(sorted(shares, key=lambda each: -each.exposed_s)),
        on_gpu=on_gpu,
        world_size=world_size,
    )


def _span(event: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return start and end of a complete event [us]; ``None`` for any other."""
    if event.get("ph") != "X":
        return None
    start, length = event.get("ts"), event.get("dur")
    for each in (start, length):
        if isinstance(each, bool) or not isinstance(each, int | float):
            return None
    if not (math.isfinite(start) and 0 <= length < _LARGEST_US and abs(start) < _LARGEST_US):  # type: ignore[arg-type,operator]
        return None
    return float(start), float(start) + float(length)  # type: ignore[arg-type]


def _steps(timed: Sequence[tuple[Mapping[str, Any], tuple[float, float]]]) -> list[tuple[float, float]]:
    """Return the steps, by the times of the GPU where it has them."""
    for category in ("gpu_user_annotation", "user_annotation"):
        found = {
            event["name"]: span
            for event, span in timed
            if event.get("cat") == category
            and isinstance(event.get("name"), str)
            and _STEP.fullmatch(event["name"])
            and span[1] > span[0]
        }
        if found:
            return sorted(found.values())
    return []


def _gathered(timed: Sequence[tuple[Mapping[str, Any], tuple[float, float]]], *, on_gpu: bool) -> _Gathered:
    gathered = _Gathered([], {})
    names = (event.get("name") for event, _ in timed)
    seen = any(isinstance(name, str) and _BACKEND.match(name) for name in names)
    spoken = _BACKEND if seen else _DISPATCH  # the backend's range lies within the call that waits for it
    for event, span in timed:
        name, category = event.get("name"), event.get("cat")
        if not isinstance(name, str):
            continue
        if on_gpu:
            speaks = category == "kernel" and _NCCL.search(name) is not None
            computes = category in ("kernel", "gpu_memcpy", "gpu_memset") and not speaks
        else:
            speaks = category in ("cpu_op", "user_annotation") and spoken.match(name) is not None
            computes = category == "cpu_op" and name.startswith("aten::")
        if speaks:
            gathered.communication.setdefault(_collective(event, name[:500]), []).append(span)
        elif computes:
            gathered.compute.append(span)
    return gathered


def _collective(event: Mapping[str, Any], name: str) -> tuple[str, int | None]:
    given = event.get("args")
    args: Mapping[str, Any] = given if isinstance(given, dict) else {}
    stated = args.get("Collective name")
    words = stated[:100] if isinstance(stated, str) and stated else name
    operation = next((each for each, pattern in _OPERATIONS if pattern.search(words)), "other")
    ranks = args.get("Group size")
    is_count = isinstance(ranks, int) and not isinstance(ranks, bool) and 0 < ranks < 10_000_000
    return operation, ranks if is_count else None


def _world_size(trace: Mapping[str, Any]) -> int | None:
    info = trace.get("distributedInfo")
    size = info.get("world_size") if isinstance(info, dict) else None
    return size if isinstance(size, int) and not isinstance(size, bool) and 0 < size < 10_000_000 else None


def _union(spans: Sequence[tuple[float, ...]]) -> Floats:
    """Return disjoint intervals that cover the same, ascending (intervals, 2)."""
    if not spans:
        return np.zeros((0, 2))
    every = np.array(spans, dtype=np.float64).reshape(-1, 2)
    every = every[np.argsort(every[:, 0], kind="stable")]
    reach = np.maximum.accumulate(every[:, 1])
    first = np.concatenate([[True], every[1:, 0] > reach[:-1]])
    ends = np.concatenate([np.flatnonzero(first)[1:] - 1, [len(every) - 1]])
    return np.stack([every[first, 0], reach[ends]], axis=1)


def _intersection(one: Floats, other: Floats) -> Floats:
    return np.array(list(_common(one.tolist(), other.tolist())), dtype=np.float64).reshape(-1, 2)


def _common(
    one: Sequence[Sequence[float]], other: Sequence[Sequence[float]]
) -> Iterator[tuple[float, float]]:
    left = right = 0
    while left < len(one) and right < len(other):
        low, high = max(one[left][0], other[right][0]), min(one[left][1], other[right][1])
        if low < high:
            yield low, high
        if one[left][1] < other[right][1]:
            left += 1
        else:
            right += 1


def _inside(spans: Sequence[tuple[float, float]], window: Floats) -> int:
    """Return how many intervals begin inside the window."""
    starts = np.array([low for low, _ in spans])
    place = np.searchsorted(window[:, 0], starts, side="right") - 1
    return int(np.sum((place >= 0) & (starts < window[np.maximum(place, 0), 1])))


def _length(spans: Floats) -> float:
    """Return what intervals cover together [s]."""
    return float(np.sum(spans[:, 1] - spans[:, 0])) * 1e-6
