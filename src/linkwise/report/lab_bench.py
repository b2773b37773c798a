"""Collectives in a lab as they are published, `linkwise.lab-bench/1`, and on a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from linkwise.report.results import PublishedResult
from linkwise.report.tables import Column, print_line, split_table, wrapped
from linkwise.report.wording import percent, three_digits
from linkwise.units import format_quantity

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.lab.bench import BenchRow, Host, TierBytes
    from linkwise.lab.design import LabDesign

__all__ = ["LabBenchResult", "TierBytesResult", "lab_bench_result", "print_lab_bench", "tier_results"]


class TierBytesResult(PublishedResult):
    """Payload on the links of one tier."""

    tier: str
    predicted_bytes: float = Field(description="Of the link that carries most.")
    counted_bytes: float = Field(description="Of the same link, without headers.")
    worst_fraction: float = Field(description="Largest difference of any link, over the predicted bytes.")


class CallResult(PublishedResult):
    """One operation at one size."""

    operation: str
    size_bytes: int
    predicted_s: float
    measured_s: float = Field(description="Median of the repeats; each is that of the slowest rank.")
    bound: str = Field(description="The tier whose links take longest, as predicted.")
    tiers: list[TierBytesResult]


class LabBenchResult(PublishedResult):
    """Predicted and measured collectives of a lab."""

    schema_: Literal["linkwise.lab-bench/1"] = Field(default="linkwise.lab-bench/1", alias="schema")
    lab: str
    cluster: str
    ranks: int
    dilation: float
    round_s: float = Field(description="What one message takes without its bytes, measured first.")
    loopback_bytes_per_s: float | None = Field(
        description="Of a node, measured first; null with one rank a node."
    )
    calls: list[CallResult]


def lab_bench_result(lab: str, design: LabDesign, host: Host, rows: Sequence[BenchRow]) -> LabBenchResult:
    """Return measured collectives as they are published.

    Parameters
    ----------
    lab
        Name of the lab.
    design
        What it is.
    host
        What was measured first.
    rows
        Calls, in order.
    """
    rate = host.loopback_bytes_per_s
    return LabBenchResult(
        lab=lab,
        cluster=design.cluster,
        ranks=design.ranks,
        dilation=design.dilation,
        round_s=host.round_s,
        loopback_bytes_per_s=rate if math.isfinite(rate) else None,
        calls=[
            CallResult(
                operation=row.operation,
                size_bytes=row.size_bytes,
                predicted_s=row.predicted_s,
                measured_s=row.measured_s,
                bound=str(row.bound),
                tiers=tier_results(row.tiers),
            )
            for row in rows
        ],
    )


def tier_results(tiers: Sequence[TierBytes]) -> list[TierBytesResult]:
    """Return bytes by tier as they are published.

    Parameters
    ----------
    tiers
        Predicted and counted.
    """
    return [
        TierBytesResult(
            tier=str(each.tier),
            predicted_bytes=each.predicted_bytes,
            counted_bytes=each.counted_bytes,
            worst_fraction=each.worst_fraction,
        )
        for each in tiers
    ]


def print_lab_bench(result: LabBenchResult, console: Console) -> None:
    """Print measured collectives.

    Parameters
    ----------
    result
        As it is published.
    console
        Where to.
    """
    for line in _heading(result):
        print_line(console, wrapped(line, width=min(console.width, 100)))
    print_line(console)
    calls = result.calls
    cells: list[tuple[str, Sequence[str]]] = [
        ("size", [_size(each.size_bytes) for each in calls]),
        ("predicted\nms", [three_digits(1e3 * each.predicted_s) for each in calls]),
        ("measured\nms", [three_digits(1e3 * each.measured_s) for each in calls]),
        ("measured /\npredicted", [three_digits(each.measured_s / each.predicted_s) for each in calls]),
        ("slowest link", [each.bound for each in calls]),
        ("bytes\noff", [f"{percent(_worst(each))} %" for each in calls]),
    ]
    columns = [Column(heading=heading, cells=tuple(each)) for heading, each in cells]
    key = Column(heading="operation", cells=tuple(each.operation for each in calls), justify="left")
    for table in split_table(columns, key=key, width=min(console.width, 100), best=None):
        console.print(table)
    print_line(console)
    for line in _notes(result):
        print_line(
            console, wrapped(line, width=min(console.width, 100), first="- ", indent="  "), style="dim"
        )


def _heading(result: LabBenchResult) -> Iterator[str]:
    rate = result.loopback_bytes_per_s
    inside = "" if rate is None else f"; a node's loopback carries {format_quantity(rate, 'bytes_per_s')}"
    yield f"{result.lab}: gloo over {result.ranks} ranks, dilation {result.dilation:,.6g}"
    yield f"Measured first: a message takes {three_digits(1e3 * result.round_s)} ms without its bytes{inside}"


def _notes(result: LabBenchResult) -> Iterator[str]:
    yield "predicted: rounds of the algorithm x the time of a message, plus the bytes of the slowest link"
    yield "bytes off: the largest difference of any link, over the most predicted on a link of its tier"
    if any(each.operation == "reduce_scatter" for each in result.calls):
        yield "gloo's reduce_scatter is a whole all_reduce: twice the bytes of NCCL's"
    if any(each.measured_s > 1.3 * each.predicted_s for each in result.calls):
        yield (
            "where it takes much longer than predicted, processes wait for a core or steps of a ring do not "
            "overlap; larger sizes and a larger --scale make links count more"
        )


def _size(size_bytes: int) -> str:
    for unit, factor in (("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.4g} {unit}"
    return f"{size_bytes} B"


def _worst(call: CallResult) -> float:
    return max(each.worst_fraction for each in call.tiers)
