"""A record of a bench beside the model of a cluster, as it is published and on a terminal."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from linkwise.evidence.comparison import Standing
from linkwise.report.against_result import AgainstResult, against_result, print_against
from linkwise.report.collective_result import size_text
from linkwise.report.results import PublishedResult
from linkwise.report.tables import Column, print_line, split_table, wrapped
from linkwise.report.wording import three_digits, with_unit

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.bench.against import CollectivesAgainst, CutAgainst

__all__ = [
    "BenchAgainstResult",
    "collectives_against_result",
    "not_compared_result",
    "print_bench_against",
    "training_against_result",
]


class SizeAgainstResult(PublishedResult):
    """One collective at one size beside the model."""

    collective: str
    size_bytes: int
    predicted_s: float
    low_s: float = Field(description="Lower end of the 90 % interval of the prediction.")
    high_s: float
    measured_s: float = Field(description="Median of the samples.")
    samples: int
    standing: Literal["slower", "faster", "inside"] | None = Field(
        description="The whole interval measured against that predicted; null with fewer than five samples."
    )


class CutAgainstResult(PublishedResult):
    """The training under one cut beside its estimate."""

    cut: str
    against: AgainstResult


class BenchAgainstResult(PublishedResult):
    """A record of a bench beside the model of a cluster."""

    published: Literal["linkwise.explain-bench/1"] = Field(default="linkwise.explain-bench/1", alias="schema")
    record: str
    cluster: str
    kind: Literal["collectives", "training"]
    verdict: str = Field(description="as predicted, slower, invalid or cannot tell.")
    off: str | None = Field(description="What is off most.")
    reason: str = Field(description="What would explain it, or why it is not compared.")
    sizes: list[SizeAgainstResult] = Field(default_factory=list)
    cuts: list[CutAgainstResult] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)


_STANDINGS: dict[Standing, Literal["slower", "faster", "inside"]] = {
    Standing.ABOVE: "slower",
    Standing.BELOW: "faster",
    Standing.ACROSS: "inside",
}


def not_compared_result(
    cluster: str, record: str, kind: Literal["collectives", "training"], *, verdict: str, reason: str
) -> BenchAgainstResult:
    """Return a record that is not compared, with the reason.

    Parameters
    ----------
    cluster, record
        What it was to be compared with, and its file.
    kind
        What was measured.
    verdict
        ``invalid`` or ``cannot tell``.
    reason
        Why.
    """
    return BenchAgainstResult(
        record=record, cluster=cluster, kind=kind, verdict=verdict, off=None, reason=reason
    )


def collectives_against_result(
    found: CollectivesAgainst, *, cluster: str, record: str, ranks: int
) -> BenchAgainstResult:
    """Return collectives beside the model as they are published.

    Parameters
    ----------
    found
        The comparison.
    cluster, record
        Where, and the file.
    ranks
        How many took part [1].
    """
    return BenchAgainstResult(
        record=record,
        cluster=cluster,
        kind="collectives",
        verdict="slower" if found.is_slower else "as predicted",
        off=found.off,
        reason=found.reason,
        sizes=[
            SizeAgainstResult(
                collective=one.operation,
                size_bytes=one.size_bytes,
                predicted_s=model.time_s,
                low_s=model.low_s,
                high_s=model.high_s,
                measured_s=statistics.median(one.samples_s),
                samples=len(one.samples_s),
                standing=None if model.standing is None else _STANDINGS[model.standing],
            )
            for one, model in found.rows
        ],
        notes=[f"{ranks} ranks; 90 % intervals of the model", *found.assumptions],
    )


def training_against_result(found: Sequence[CutAgainst], *, cluster: str, record: str) -> BenchAgainstResult:
    """Return the training of a bench beside its estimates as it is published.

    Parameters
    ----------
    found
        Every cut.
    cluster, record
        Where, and the file.
    """
    slower = [each for each in found if each.found.is_slower]
    worst = max(slower, key=lambda each: each.found.measured_s / each.found.predicted_s, default=None)
    phase = "" if worst is None or worst.found.off is None else f", {worst.found.off}"
    return BenchAgainstResult(
        record=record,
        cluster=cluster,
        kind="training",
        verdict="slower" if slower else "as predicted",
        off=None if worst is None else f"{worst.cut}{phase}",
        reason="" if worst is None else worst.found.reason,
        cuts=[
            CutAgainstResult(cut=each.cut, against=against_result(each.found, record=record))
            for each in found
        ],
        notes=["the model is a plain transformer in float32, whose matrix products tensor cores do as TF32"],
    )


def print_bench_against(result: BenchAgainstResult, console: Console) -> None:
    """Print a record of a bench beside the model.

    Parameters
    ----------
    result
        The comparison as it is published.
    console
        Where to.
    """
    print_line(console, f"MEASURED: {result.record}, beside the model of {result.cluster}", style="bold")
    if not result.sizes and not result.cuts:
        words = f"It is not compared ({result.verdict}): {result.reason}."
        print_line(console, wrapped(words, width=console.width), style="bold yellow")
        return
    for each in result.cuts:
        print_line(console)
        print_line(console, each.cut, style="bold")
        print_against(each.against, console)
    if result.sizes:
        _print_sizes(result.sizes, console)
    if result.off is not None:
        words = f"Slower than predicted, off most: {result.off}. Likely: {result.reason}."
        print_line(console, wrapped(words, width=console.width))
    elif result.sizes:
        print_line(console, "Neither small nor large sizes are slower than the model's intervals.")
    for note in result.notes:
        print_line(console, wrapped(note, width=console.width, indent="  ", first="- "), style="dim")


def _print_sizes(rows: Sequence[SizeAgainstResult], console: Console) -> None:
    names = tuple(f"{row.collective} {size_text(row.size_bytes)}" for row in rows)
    key = Column(heading="collective", cells=names, justify="left")
    columns = [
        Column(heading="predicted", cells=tuple(with_unit(row.predicted_s, "s") for row in rows)),
        Column(heading="measured", cells=tuple(with_unit(row.measured_s, "s") for row in rows)),
        Column(heading="times", cells=tuple(three_digits(row.measured_s / row.predicted_s) for row in rows)),
        Column(heading="", cells=tuple(row.standing or "too few samples" for row in rows), justify="left"),
    ]
    for table in split_table(columns, key=key, width=console.width):
        console.print(table, crop=False)
