"""The published result `linkwise.collective/1`: what nccl-tests would print on a cluster, and its table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from linkwise.network.collective_interval import interval_factors, reach_of
from linkwise.report.tables import Column, print_line, split_table, wrapped
from linkwise.report.wording import counted, three_digits

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.cluster import Cluster
    from linkwise.network.collective_time import CollectiveTimes
    from linkwise.network.setting import Setting

__all__ = [
    "CollectiveResult",
    "CollectiveRow",
    "collective_csv_rows",
    "collective_result",
    "print_collective",
]


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class CollectiveRow(_Result):
    """One size."""

    size_bytes: int = Field(description="Bytes of the full buffer, as nccl-tests counts them.")
    algorithm: str
    protocol: str
    time_s: float
    time_low_s: float = Field(description="Lower end of the 90 % interval.")
    time_high_s: float
    algbw_bytes_per_s: float
    busbw_bytes_per_s: float


class CollectiveResult(_Result):
    """Times of a collective over sizes."""

    published: Literal["linkwise.collective/1"] = Field(default="linkwise.collective/1", alias="schema")
    collective: str
    cluster: str
    gpus: int
    domains: int = Field(description="NVLink domains, or hosts where there is no NVLink, that take part.")
    network: str
    assumptions: list[str]
    rows: list[CollectiveRow]


def collective_result(
    times: CollectiveTimes,
    *,
    operation: str,
    cluster: Cluster,
    setting: Setting,
    assumptions: Sequence[str],
) -> CollectiveResult:
    """Return times as they are published.

    Parameters
    ----------
    times
        The times.
    operation
        The collective.
    cluster, setting
        Where it runs.
    assumptions
        What the times rest on.
    """
    low, high = interval_factors(reach_of(setting), times.size_bytes, operation=operation)
    chosen = [times.names[place] for place in times.choice]
    rows = [
        CollectiveRow(
            size_bytes=int(size),
            algorithm=algorithm,
            protocol=protocol,
            time_s=time_s,
            time_low_s=time_s * down,
            time_high_s=time_s * up,
            algbw_bytes_per_s=algbw,
            busbw_bytes_per_s=busbw,
        )
        for (algorithm, protocol), size, time_s, down, up, algbw, busbw in zip(
            chosen,
            times.size_bytes.tolist(),
            times.time_s.tolist(),
            low.tolist(),
            high.tolist(),
            times.algbw_bytes_per_s.tolist(),
            times.busbw_bytes_per_s.tolist(),
            strict=True,
        )
    ]
    return CollectiveResult(
        collective=operation,
        cluster=cluster.name,
        gpus=setting.group.ranks,
        domains=setting.group.domains,
        network=setting.network,
        assumptions=list(assumptions),
        rows=rows,
    )


def collective_csv_rows(result: CollectiveResult) -> Iterator[tuple[object, ...]]:
    """Yield the heading and the sizes of a result as rows of a CSV."""
    names = tuple(CollectiveRow.model_fields)
    yield names
    for row in result.rows:
        yield tuple(getattr(row, name) for name in names)


def print_collective(result: CollectiveResult, console: Console) -> None:
    """Print times as a table, and what they rest on.

    Parameters
    ----------
    result
        The times as they are published.
    console
        Where to.
    """
    domains = (
        f"{result.domains:,} domains over {network_text(result.network)}"
        if result.domains > 1
        else "one domain"
    )
    print_line(
        console, f"{result.collective} on {counted(result.gpus, 'GPU')} of {result.cluster}, {domains}"
    )
    print_line(console)
    rows = result.rows
    columns = (
        Column(heading="algorithm", cells=tuple(row.algorithm for row in rows), justify="left"),
        Column(heading="protocol", cells=tuple(row.protocol for row in rows), justify="left"),
        Column(heading="time [us]", cells=tuple(_us(row.time_s) for row in rows)),
        Column(heading="90 % interval", cells=tuple(_interval(row) for row in rows)),
        Column(heading="algbw [GB/s]", cells=tuple(_gb_per_s(row.algbw_bytes_per_s) for row in rows)),
        Column(heading="busbw [GB/s]", cells=tuple(_gb_per_s(row.busbw_bytes_per_s) for row in rows)),
    )
    key = Column(heading="size", cells=tuple(size_text(row.size_bytes) for row in rows))
    for table in split_table(columns, key=key, width=console.width):
        console.print(table, crop=False)
        print_line(console)
    print_line(console, "Taken for granted:")
    for line in result.assumptions:
        print_line(console, wrapped(line, width=console.width, indent="    ", first="  "))


def size_text(size_bytes: int) -> str:
    """Return a size in the largest binary unit that keeps it whole, such as ``16 MiB``."""
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size_bytes >= 1 << power and size_bytes % (1 << power) == 0:
            return f"{size_bytes >> power:,} {unit}"
    return f"{size_bytes:,} B"


def network_text(network: str) -> str:
    """Return a kind of network as its owner writes it, such as ``efa-v1``."""
    return network.replace("_", "-")


def _interval(row: CollectiveRow) -> str:
    return f"{_us(row.time_low_s)} to {_us(row.time_high_s)}"


def _us(time_s: float) -> str:
    return three_digits(time_s * 1e6)


def _gb_per_s(bytes_per_s: float) -> str:
    return three_digits(bytes_per_s / 1e9)
