"""Collectives over sizes: what ranks are told to measure, and what they found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from linkwise.bench.sampling import Sampling, positive_seconds
from linkwise.errors import InputError
from linkwise.evidence.median import LEAST_SAMPLES, MedianInterval, median_interval
from linkwise.network.setting import OPERATIONS, bus_factor

__all__ = ["CollectivesPlan", "MeasuredSize", "measured_sizes", "whole_size_bytes"]

ELEMENT_BYTES = 4
"""Elements are float32, as those of nccl-tests [bytes]."""

_CUT_IN_PARTS = ("all_gather", "reduce_scatter", "all_to_all")


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectivesPlan:
    """Which collectives are measured, and over which sizes.

    Parameters
    ----------
    operations
        Of `linkwise.network.setting.OPERATIONS`, in order.
    sizes_bytes
        Sizes of the full buffer as asked for [bytes].
    sampling
        How often.

    Raises
    ------
    InputError
        When there is nothing to measure.
    """

    operations: tuple[str, ...]
    sizes_bytes: tuple[int, ...]
    sampling: Sampling = field(default_factory=Sampling)

    def __post_init__(self) -> None:
        """Refuse an empty plan."""
        if not self.operations or not self.sizes_bytes:
            raise InputError("there is no collective or no size to measure")

    def told(self, ranks: int) -> dict[str, object]:
        """Return it as ranks read it.

        Parameters
        ----------
        ranks
            How many take part; parts of a buffer are whole elements [1].

        Raises
        ------
        InputError
            When a collective needs more ranks.
        """
        if ranks < 2 and "send_recv" in self.operations:
            raise InputError("send_recv needs two ranks at least; with one there is nobody to send to")
        sizes = {
            operation: list(
                dict.fromkeys(whole_size_bytes(operation, size, ranks) for size in self.sizes_bytes)
            )
            for operation in self.operations
        }
        return {"sizes_bytes": sizes, **self.sampling.told()}


def whole_size_bytes(operation: str, size_bytes: int, ranks: int) -> int:
    """Return the size that can be cut into whole elements for each rank, nccl-tests' way: down, but above 0.

    Parameters
    ----------
    operation
        One of `linkwise.network.setting.OPERATIONS`.
    size_bytes
        The size asked for [bytes].
    ranks
        How many take part [1].
    """
    unit = ELEMENT_BYTES * (ranks if operation in _CUT_IN_PARTS else 1)
    return max(1, size_bytes // unit) * unit


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSize:
    """One collective at one size.

    Parameters
    ----------
    operation
        The collective.
    size_bytes
        Bytes of the full buffer [bytes].
    calls
        Calls that one sample timed [1].
    samples_s
        Time of a call in each repeat, that of the slowest rank [s].
    first_s
        The same of the fastest rank [s].
    wrong
        Elements that were not what they must be, over all ranks; ``None`` where they were not checked.
    """

    operation: str
    size_bytes: int
    calls: int
    samples_s: tuple[float, ...]
    first_s: tuple[float, ...]
    wrong: int | None

    @property
    def time_s(self) -> MedianInterval | None:
        """Return the median time of a call and its interval [s]; ``None`` with fewer than five samples."""
        return median_interval(self.samples_s) if len(self.samples_s) >= LEAST_SAMPLES else None

    def busbw_factor(self, ranks: int) -> float:
        """Return bus bandwidth over algorithm bandwidth [1].

        Parameters
        ----------
        ranks
            How many took part [1].
        """
        return bus_factor(self.operation, ranks)


def measured_sizes(events: Iterable[Mapping[str, Any]]) -> tuple[MeasuredSize, ...]:
    """Return what ranks measured, in order; the last may lack samples, where the job ended early.

    Parameters
    ----------
    events
        What they said.

    Raises
    ------
    InputError
        When what they said is no measurement.
    """
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for event in events:
        if event.get("event") not in ("sample", "checked"):
            continue
        entry = found.setdefault(_key(event), {"samples": [], "first": [], "calls": 1, "wrong": None})
        if event["event"] == "checked":
            entry["wrong"] = _count(event, "wrong")
        else:
            entry["samples"].append(positive_seconds(event, "time_s"))
            entry["first"].append(positive_seconds(event, "first_s"))
            entry["calls"] = _count(event, "calls")
    return tuple(_measured(key, entry) for key, entry in found.items())


def _measured(key: tuple[str, int], entry: Mapping[str, Any]) -> MeasuredSize:
    samples: Sequence[float] = entry["samples"]
    return MeasuredSize(
        operation=key[0],
        size_bytes=key[1],
        calls=entry["calls"],
        samples_s=tuple(samples),
        first_s=tuple(entry["first"]),
        wrong=entry["wrong"],
    )


def _key(event: Mapping[str, Any]) -> tuple[str, int]:
    operation, size = event.get("operation"), event.get("size_bytes")
    if operation not in OPERATIONS or not isinstance(size, int) or not 0 < size < 2**63:
        what = f"{str(operation)[:40]!r} of {str(size)[:40]} bytes"
        raise InputError(f"a rank said it measured {what}, which is no size of a collective")
    return str(operation), size


def _count(event: Mapping[str, Any], name: str) -> int:
    value = event.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"a rank said {name} {str(value)[:40]!r}, which is no count")
    return value
