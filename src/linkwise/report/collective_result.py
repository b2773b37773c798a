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
    from linkwise.network.collective_comparison import CollectiveComparison
    from linkwise.network.collective_time import CollectiveTimes
    from linkwise.network.measured_collective import MeasuredCollective, OverriddenTimes
    from linkwise.network.setting import Setting

__all__ = [
    "CollectiveResult",
    "CollectiveRow",
    "ComparedCollectiveResult",
    "ComparedCollectiveRow",
    "collective_csv_rows",
    "collective_result",
    "compared_collective_result",
    "overridden_collective_result",
    "print_collective",
    "print_compared_collective",
]


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class CollectiveRow(_Result):
    """One size."""

    size_bytes: int = Field(description="Bytes of the full buffer, as nccl-tests counts them.")
    algorithm: str
    protocol: str
    time_s: float
    time_low_s: float = Field(
        description="Lower end of the 90 % interval; where measured, the shortest time of the log."
    )
    time_high_s: float
    algbw_bytes_per_s: float
    busbw_bytes_per_s: float
    basis: Literal["model", "measured", "interpolated", "scaled"] = Field(
        default="model", description="How the time is known; all but the first with measured times."
    )


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


class ComparedCollectiveRow(CollectiveRow):
    """One size, and what was measured."""

    measured_time_s: float
    measured_busbw_bytes_per_s: float
    ratio: float = Field(description="Measured over predicted busbw.")
    inside: bool = Field(description="Whether the measured time lies in the interval.")


class CauseResult(_Result):
    """Something that would explain what was measured."""

    cause: str
    ratio: float = Field(description="Busbw it would leave over the predicted one, at the largest size.")
    explained: float = Field(description="Share of the distance to the prediction that it explains.")


class ComparedCollectiveResult(CollectiveResult):
    """Times of a collective over the sizes of a log, beside those of the log."""

    rows: list[ComparedCollectiveRow]  # type: ignore[assignment]
    verdict: Literal["as it should be", "below", "cannot tell"]
    reason: str
    causes: list[CauseResult] = Field(description="Best first; empty where nothing fits.")
    notes: list[str]


def collective_result(
    times: CollectiveTimes,
    *,
    operation: str,
    cluster: Cluster,
    setting: Setting,
    assumptions: Sequence[str],
    own_interval: bool = True,
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
    own_interval
        Whether the interval is that of the operation rather than of all; a verdict is judged by that of all.
    """
    rows_of = operation if own_interval else None
    low, high = interval_factors(reach_of(setting), times.size_bytes, operation=rows_of)
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


def overridden_collective_result(
    found: OverriddenTimes, measured: MeasuredCollective, *, cluster: Cluster, assumptions: Sequence[str]
) -> CollectiveResult:
    """Return times with measured ones laid over them as they are published.

    Parameters
    ----------
    found
        The times.
    measured
        What was measured.
    cluster
        Where it ran.
    assumptions
        What the times rest on.
    """
    result = collective_result(
        found.times,
        operation=measured.operation,
        cluster=cluster,
        setting=measured.setting,
        assumptions=(*measured.notes, *assumptions),
    )
    rows = [
        row.model_copy(update={"time_low_s": low_s, "time_high_s": high_s, "basis": str(basis)})
        for row, low_s, high_s, basis in zip(
            result.rows, found.low_s.tolist(), found.high_s.tolist(), found.basis, strict=True
        )
    ]
    return result.model_copy(update={"rows": rows})


def compared_collective_result(
    comparison: CollectiveComparison, *, cluster: Cluster, assumptions: Sequence[str]
) -> ComparedCollectiveResult:
    """Return a comparison as it is published.

    Parameters
    ----------
    comparison
        Measured times beside predicted ones.
    cluster
        Where the collective should have run.
    assumptions
        What the predicted times rest on.
    """
    predicted = collective_result(
        comparison.expected,
        operation=comparison.operation,
        cluster=cluster,
        setting=comparison.setting,
        assumptions=assumptions,
        own_interval=False,
    )
    rows = [
        ComparedCollectiveRow(
            **dict(row),
            measured_time_s=measured_s,
            measured_busbw_bytes_per_s=row.busbw_bytes_per_s * ratio,
            ratio=ratio,
            inside=row.time_low_s <= measured_s <= row.time_high_s,
        )
        for row, measured_s, ratio in zip(
            predicted.rows, comparison.measured_s.tolist(), comparison.ratio.tolist(), strict=True
        )
    ]
    return ComparedCollectiveResult(
        **{**dict(predicted), "rows": rows},
        verdict=comparison.verdict.value,
        reason=comparison.reason,
        causes=[
            CauseResult(cause=one.cause, ratio=one.ratio, explained=one.explained)
            for one in comparison.causes
        ],
        notes=list(comparison.notes),
    )


def collective_csv_rows(result: CollectiveResult) -> Iterator[tuple[object, ...]]:
    """Yield the heading and the sizes of a result as rows of a CSV."""
    row_type = ComparedCollectiveRow if isinstance(result, ComparedCollectiveResult) else CollectiveRow
    names = tuple(row_type.model_fields)
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
    _print_heading(result, console)
    rows = result.rows
    is_measured = any(row.basis != "model" for row in rows)
    basis = Column(heading="basis", cells=tuple(row.basis for row in rows), justify="left")
    interval = "interval" if is_measured else "90 % interval"
    columns = (
        *((basis,) if is_measured else ()),
        Column(heading="algorithm", cells=tuple(row.algorithm for row in rows), justify="left"),
        Column(heading="protocol", cells=tuple(row.protocol for row in rows), justify="left"),
        Column(heading="time [us]", cells=tuple(_us(row.time_s) for row in rows)),
        Column(heading=interval, cells=tuple(_interval(row) for row in rows)),
        Column(heading="algbw [GB/s]", cells=tuple(_gb_per_s(row.algbw_bytes_per_s) for row in rows)),
        Column(heading="busbw [GB/s]", cells=tuple(_gb_per_s(row.busbw_bytes_per_s) for row in rows)),
    )
    _print_sizes(result, columns, console)
    _print_list("Taken for granted:", result.assumptions, console)


def print_compared_collective(result: ComparedCollectiveResult, console: Console) -> None:
    """Print measured times beside predicted ones, the verdict and what would explain it.

    Parameters
    ----------
    result
        The comparison as it is published.
    console
        Where to.
    """
    _print_heading(result, console)
    rows = result.rows
    columns = (
        Column(heading="measured [us]", cells=tuple(_us(row.measured_time_s) for row in rows)),
        Column(heading="model [us]", cells=tuple(_us(row.time_s) for row in rows)),
        Column(heading="90 % interval", cells=tuple(_interval(row) for row in rows)),
        Column(
            heading="busbw [GB/s]", cells=tuple(_gb_per_s(row.measured_busbw_bytes_per_s) for row in rows)
        ),
        Column(heading="model [GB/s]", cells=tuple(_gb_per_s(row.busbw_bytes_per_s) for row in rows)),
        Column(heading="ratio", cells=tuple(three_digits(row.ratio) for row in rows)),
        Column(heading="", cells=tuple(map(_place, rows)), justify="left"),
    )
    _print_sizes(result, columns, console)
    for line in _verdict_lines(result):
        print_line(console, wrapped(line, width=console.width))
    if result.causes:
        _print_causes(result.causes, console)
    print_line(console)
    _print_list("Taken for granted:", (*result.notes, *result.assumptions), console)


def _verdict_lines(result: ComparedCollectiveResult) -> Iterator[str]:
    if result.verdict == "as it should be":
        yield f"As it should be: {result.reason}."
    elif result.verdict == "below":
        yield f"Below what the cluster should give: {result.reason}."
        yield "Likely causes, best first:" if result.causes else "Cannot tell why: nothing priced here fits."
    else:
        yield f"Cannot tell: {result.reason}."


def _print_causes(causes: Sequence[CauseResult], console: Console) -> None:
    key = Column(heading="cause", cells=tuple(one.cause for one in causes), justify="left")
    columns = (
        Column(heading="ratio", cells=tuple(three_digits(one.ratio) for one in causes)),
        Column(heading="explains [%]", cells=tuple(f"{100 * one.explained:.0f}" for one in causes)),
    )
    for table in split_table(columns, key=key, width=console.width, best=None):
        console.print(table, crop=False)


def _place(row: ComparedCollectiveRow) -> str:
    if row.inside:
        return ""
    return "slower" if row.measured_time_s > row.time_high_s else "faster"


def _print_heading(result: CollectiveResult, console: Console) -> None:
    several = f"{result.domains:,} domains over {network_text(result.network)}"
    domains = several if result.domains > 1 else "one domain"
    gpus = counted(result.gpus, "GPU")
    print_line(console, f"{result.collective} on {gpus} of {result.cluster}, {domains}")
    print_line(console)


def _print_sizes(result: CollectiveResult, columns: Sequence[Column], console: Console) -> None:
    key = Column(heading="size", cells=tuple(size_text(row.size_bytes) for row in result.rows))
    for table in split_table(columns, key=key, width=console.width, best=None):
        console.print(table, crop=False)
        print_line(console)


def _print_list(title: str, lines: Sequence[str], console: Console) -> None:
    print_line(console, title)
    for line in lines:
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
