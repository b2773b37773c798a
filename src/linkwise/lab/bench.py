"""Collectives over the links of a lab: predicted and measured times, predicted and counted bytes."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.errors import InputError, UnknownName
from linkwise.lab.design import LabDesign
from linkwise.lab.job import JobEnd, JobRequest
from linkwise.lab.routes import LabLink, Tier, counter_of, links_of, path_between, payload_bytes_per_s
from linkwise.network.gloo import GLOO_OPERATIONS, gloo_time_s, gloo_traffic, link_loads

__all__ = [
    "BenchRow",
    "Host",
    "TierBytes",
    "bench_request",
    "bench_rows",
    "host_calls",
    "host_of",
    "payload_of",
    "tier_bytes",
]

HEADER_BYTES = 66
"""Ethernet 14, IPv4 20, TCP 20 and its timestamps 12: those of every packet [bytes]."""
_ROUND_BYTES, _LOOPBACK_BYTES = 4, 4 * 2**20
_ROUND_REPEATS, _LOOPBACK_REPEATS = 15, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What the machine adds of its own, measured before anything is predicted.

    Parameters
    ----------
    round_s
        What one message takes without its bytes: an all-reduce of 4 bytes over its rounds [s].
    loopback_bytes_per_s
        What a node's loopback carries while all nodes use theirs; infinite with one rank a node [bytes/s].
    """

    round_s: float
    loopback_bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TierBytes:
    """Payload on the links of one tier, of one call.

    Parameters
    ----------
    tier
        Between what.
    predicted_bytes, counted_bytes
        Of the busiest link, as predicted [bytes].
    worst_fraction
        Largest difference of any link of the tier, over what the busiest carries [1].
    """

    tier: Tier
    predicted_bytes: float
    counted_bytes: float
    worst_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRow:
    """One operation at one size.

    Parameters
    ----------
    operation, size_bytes
        What was called [bytes].
    predicted_s, measured_s
        Time of a call; measured is the median of the repeats, each the slowest rank's [s].
    bound
        Tier of the link that takes longest, as predicted.
    tiers
        Bytes by tier.
    """

    operation: str
    size_bytes: int
    predicted_s: float
    measured_s: float
    bound: Tier
    tiers: tuple[TierBytes, ...]


def bench_request(
    design: LabDesign, *, operations: Sequence[str], sizes_bytes: Sequence[int], repeats: int, python: str
) -> JobRequest:
    """Return the job that measures collectives, after the two figures of the machine.

    Parameters
    ----------
    design
        The lab.
    operations
        Of `linkwise.network.gloo.GLOO_OPERATIONS`.
    sizes_bytes
        Bytes of the full buffer [bytes].
    repeats
        Calls that are timed [1].
    python
        The Python that has torch.

    Raises
    ------
    UnknownName
        If there is no such operation.
    InputError
        If there is one rank.
    """
    for operation in operations:
        if operation not in GLOO_OPERATIONS:
            raise UnknownName.among(GLOO_OPERATIONS, kind="operation", given=operation)
    if design.ranks < 2:
        raise InputError("a collective needs at least two ranks, and this lab has one")
    rest = [
        _call(operation, _whole(size, design.ranks), warmup=1, repeats=repeats)
        for operation in operations
        for size in sizes_bytes
    ]
    return JobRequest(
        kind="collectives", work={"calls": [*host_calls(), *rest]}, python=python, timeout_s=300.0
    )


def host_calls() -> list[dict[str, Any]]:
    """Return the calls that come first in a job, by which `host_of` knows the machine."""
    return [
        {**_call("all_reduce", _ROUND_BYTES, warmup=3, repeats=_ROUND_REPEATS), "is_counted": False},
        {**_call("inside", _LOOPBACK_BYTES, warmup=1, repeats=_LOOPBACK_REPEATS), "is_counted": False},
    ]


def host_of(design: LabDesign, end: JobEnd) -> Host:
    """Return the two figures of the machine that a job measured whose calls begin with `host_calls`.

    Parameters
    ----------
    design
        The lab.
    end
        How the job ended.
    """
    times = _times(end)
    rounds = gloo_traffic("all_reduce", ranks=design.ranks, size_bytes=_ROUND_BYTES).rounds
    sent = design.ranks_per_node * _LOOPBACK_BYTES
    is_alone = design.ranks_per_node == 1
    return Host(round_s=times[0] / rounds, loopback_bytes_per_s=float("inf") if is_alone else sent / times[1])


def bench_rows(lab: str, design: LabDesign, request: JobRequest, end: JobEnd) -> tuple[BenchRow, ...]:
    """Return predicted and measured, call by call.

    Parameters
    ----------
    lab
        Name of the lab.
    design
        What it is.
    request
        As `bench_request` gave it.
    end
        How the job ended.
    """
    host, times, counted = host_of(design, end), _times(end), _counted(end)
    calls: list[Mapping[str, Any]] = list(request.work["calls"])  # type: ignore[call-overload]

    def rate(link: LabLink) -> float:
        return payload_bytes_per_s(design, link, loopback_bytes_per_s=host.loopback_bytes_per_s)

    def row(number: int, call: Mapping[str, Any]) -> BenchRow:
        traffic = gloo_traffic(call["operation"], ranks=design.ranks, size_bytes=call["size_bytes"])
        loads = link_loads(traffic, range(design.ranks), lambda one, two: path_between(design, one, two))
        payload = {
            link: counted.get((number, counter_of(lab, link)), 0.0) / call["repeats"]
            for link in links_of(design)
        }
        return BenchRow(
            operation=call["operation"],
            size_bytes=call["size_bytes"],
            predicted_s=gloo_time_s(loads, rate, rounds=traffic.rounds, round_s=host.round_s),
            measured_s=times[number],
            bound=max(loads, key=lambda link: loads[link] / rate(link)).tier,
            tiers=tuple(tier_bytes(loads, payload)),
        )

    return tuple(row(number, call) for number, call in list(enumerate(calls))[2:])


def tier_bytes(predicted: Mapping[LabLink, float], counted: Mapping[LabLink, float]) -> Iterator[TierBytes]:
    """Yield predicted and counted bytes of the tiers that are used.

    Parameters
    ----------
    predicted
        Bytes by link; links without any may be absent [bytes].
    counted
        Bytes by link, of all links [bytes].
    """
    for tier in Tier:
        links = [link for link in counted if link.tier is tier]
        busiest = max(links, key=lambda link: predicted.get(link, 0.0), default=None)
        if busiest is None or not predicted.get(busiest):
            continue
        most = predicted[busiest]
        yield TierBytes(
            tier=tier,
            predicted_bytes=most,
            counted_bytes=counted[busiest],
            worst_fraction=max(abs(counted[link] - predicted.get(link, 0.0)) for link in links) / most,
        )


def payload_of(sent_bytes: int, packets: int) -> float:
    """Return the bytes of a counter without headers [bytes].

    Parameters
    ----------
    sent_bytes, packets
        What it counted. Shaped links count the headers of every packet on the wire; a loopback those of each
        packet it was handed, of up to 64 kB [bytes] [1].
    """
    return max(0.0, float(sent_bytes - HEADER_BYTES * packets))


def _call(operation: str, size_bytes: int, *, warmup: int, repeats: int) -> dict[str, Any]:
    return {"operation": operation, "size_bytes": size_bytes, "warmup": warmup, "repeats": repeats}


def _whole(size_bytes: int, ranks: int) -> int:
    """Return the size as whole elements of 4 bytes for every rank."""
    each = 4 * ranks
    return max(each, size_bytes // each * each)


def _times(end: JobEnd) -> dict[int, float]:
    return {
        int(each["call"]): statistics.median(each["times_s"])
        for each in end.events
        if each["event"] == "measured"
    }


def _counted(end: JobEnd) -> dict[tuple[int, str], float]:
    return {
        (int(each["call"]), str(each["link"])): payload_of(each["bytes"], each["packets"])
        for each in end.events
        if each["event"] == "counted"
    }
