"""A sweep in a lab as it is published, `linkwise.lab-sweep/1`, as CSV and on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from linkwise.lab.sweep import layout_words
from linkwise.report.results import PublishedResult
from linkwise.report.tables import Column, print_line, split_table, wrapped
from linkwise.report.wording import percent, three_digits

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.lab.design import LabDesign
    from linkwise.lab.sweep import Sweep, SweepRow

__all__ = ["LabSweepResult", "lab_sweep_csv_rows", "lab_sweep_result", "print_lab_sweep"]


class SweptLayout(PublishedResult):
    """One layout of a sweep; times are of the lab, not of the cluster."""

    layout: str = Field(description="In words.")
    tensor: int
    pipeline: int
    data: int
    zero_stage: int
    rank_order: str
    micro_batch: int
    micro_batches: int
    predicted_step_s: float | None = Field(description="Null where the job failed.")
    measured_step_s: float | None = Field(
        description="Median of the steps; each is that of the slowest rank."
    )
    predicted_rank: int | None = Field(description="1 is the fastest.")
    measured_rank: int | None
    bytes_off_fraction: float | None = Field(
        description="Largest difference of any link, over the most predicted on a link of its tier."
    )
    reason: str = Field(description="Why the job failed; empty where it did not.")


class LabSweepResult(PublishedResult):
    """Layouts of a job in one lab, fastest measured first, then those that failed."""

    schema_: Literal["linkwise.lab-sweep/1"] = Field(default="linkwise.lab-sweep/1", alias="schema")
    lab: str
    cluster: str
    model: str
    ranks: int
    dilation: float
    layouts: list[SweptLayout]
    rank_correlation: float | None = Field(
        description="Spearman's, of predicted and measured steps; null with fewer than three."
    )
    lost_fraction: float | None = Field(
        description="How much longer the layout predicted best takes than the one measured best."
    )


def lab_sweep_result(lab: str, design: LabDesign, found: Sweep) -> LabSweepResult:
    """Return a sweep as it is published.

    Parameters
    ----------
    lab
        Name of the lab.
    design
        What it is.
    found
        What the sweep showed.
    """
    done = [row.result for row in found.rows if row.result is not None]
    predicted = sorted(each.predicted.time_s for each in done)
    measured = sorted(each.measured_s for each in done)
    layouts = [_layout(row, predicted, measured) for row in found.rows]
    return LabSweepResult(
        lab=lab,
        cluster=design.cluster,
        model=found.rows[0].run.job.model.name,
        ranks=design.ranks,
        dilation=design.dilation,
        layouts=sorted(layouts, key=lambda each: each.measured_rank or len(layouts) + 1),
        rank_correlation=found.correlation,
        lost_fraction=found.lost_fraction,
    )


def _layout(row: SweepRow, predicted: Sequence[float], measured: Sequence[float]) -> SweptLayout:
    layout, result = row.run.layout, row.result
    return SweptLayout(
        layout=layout_words(layout),
        tensor=layout.tensor,
        pipeline=layout.pipeline,
        data=layout.data or 1,
        zero_stage=layout.zero_stage,
        rank_order=layout.rank_order.word,
        micro_batch=layout.micro_batch,
        micro_batches=row.run.micro_batches,
        predicted_step_s=None if result is None else result.predicted.time_s,
        measured_step_s=None if result is None else result.measured_s,
        predicted_rank=None if result is None else 1 + predicted.index(result.predicted.time_s),
        measured_rank=None if result is None else 1 + measured.index(result.measured_s),
        bytes_off_fraction=None
        if result is None
        else max((tier.worst_fraction for tier in result.tiers), default=0.0),
        reason=row.reason,
    )


def lab_sweep_csv_rows(result: LabSweepResult) -> Iterator[tuple[object, ...]]:
    """Yield the heading and one row a layout.

    Parameters
    ----------
    result
        As it is published.
    """
    names = tuple(SweptLayout.model_fields)
    yield names
    for each in result.layouts:
        values = (getattr(each, name) for name in names)
        yield tuple("" if value is None else value for value in values)


def print_lab_sweep(result: LabSweepResult, console: Console) -> None:
    """Print a sweep.

    Parameters
    ----------
    result
        As it is published.
    console
        Where to.
    """
    width = min(console.width, 100)
    heading = f"{result.lab}: {result.model} on {result.cluster}, {result.ranks} ranks, dilation "
    print_line(
        console, wrapped(f"{heading}{result.dilation:,.6g}; layouts in the order measured", width=width)
    )
    print_line(console)
    done = [each for each in result.layouts if each.measured_rank is not None]
    columns = [Column(heading=heading, cells=tuple(cells)) for heading, cells in _cells(done)]
    key = Column(heading="layout", cells=tuple(each.layout for each in done), justify="left")
    if done:
        for table in split_table(columns, key=key, width=width, best=None):
            console.print(table)
        print_line(console)
    for line in _closing(result, done):
        print_line(console, wrapped(line, width=width))


def _cells(done: Sequence[SweptLayout]) -> Iterator[tuple[str, list[str]]]:
    yield "micro-\nbatch", [str(each.micro_batch) for each in done]
    yield "predicted\ns", [three_digits(each.predicted_step_s or 0.0) for each in done]
    yield "measured\ns", [three_digits(each.measured_step_s or 0.0) for each in done]
    ratios = [(each.measured_step_s or 0.0) / (each.predicted_step_s or 1.0) for each in done]
    yield "measured /\npredicted", [three_digits(ratio) for ratio in ratios]
    yield "rank\npredicted", [str(each.predicted_rank) for each in done]
    yield "rank\nmeasured", [str(each.measured_rank) for each in done]


def _closing(result: LabSweepResult, done: Sequence[SweptLayout]) -> Iterator[str]:
    if result.rank_correlation is not None:
        yield f"Rank correlation of the two orders (Spearman): {result.rank_correlation:.3f}"
    if result.lost_fraction is not None:
        chosen = next(each for each in done if each.predicted_rank == 1)
        lost = result.lost_fraction
        yield f"Predicted best: {chosen.layout}; it is " + (
            "the one measured best." if lost == 0 else f"{percent(lost)} % slower than the one measured best."
        )
    off = max((each.bytes_off_fraction or 0.0 for each in done), default=0.0)
    yield f"Bytes of links are off by {percent(off)} % at most."
    for each in result.layouts:
        if each.measured_rank is None:
            yield f"Failed: {each.layout}, micro-batch {each.micro_batch}: {' '.join(each.reason.split())}"
