"""A job run in a lab as it is published, `linkwise.lab-run/1`, and on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from linkwise.report.lab_bench import TierBytesResult, tier_results
from linkwise.report.results import PublishedResult
from linkwise.report.tables import Column, print_line, split_table, wrapped
from linkwise.report.wording import percent, three_digits

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.lab.lab_job import LabJob
    from linkwise.lab.training import RunResult

__all__ = ["LabRunResult", "lab_run_result", "print_lab_run"]


class CallCostResult(PublishedResult):
    """What a kind of call was measured to cost before the steps."""

    operation: str
    groups: int = Field(description="That call at the same time.")
    ranks: int = Field(description="Of a group.")
    tier: str = Field(description="Of the links that carry most of it.")
    round_s: float = Field(description="What one of its messages takes without its bytes.")
    reached_fraction: float = Field(description="Share of the slowest link's rate that it reaches.")


class LabRunResult(PublishedResult):
    """Predicted and measured steps of a job in a lab; times are of the lab, not of the cluster."""

    schema_: Literal["linkwise.lab-run/1"] = Field(default="linkwise.lab-run/1", alias="schema")
    lab: str
    model: str
    tensor: int
    pipeline: int
    data: int
    zero_stage: int
    micro_batch: int
    micro_batches: int
    predicted_step_s: float
    predicted_parts_s: dict[str, float] = Field(description="They sum to the predicted step.")
    measured_step_s: float = Field(description="Median of the steps; each is that of the slowest rank.")
    steps_s: list[float]
    losses: list[float]
    slept_layer_s: float = Field(description="Forward and backward of a layer and micro-batch, slept.")
    computed_layer_s: float = Field(
        description="What the small model really computes of them, on a core that a stage shares."
    )
    calls: list[CallCostResult]
    tiers: list[TierBytesResult] = Field(description="Bytes of one step.")
    wall_s: float = Field(description="Of the whole job, its start included.")


def lab_run_result(lab: str, run: LabJob, result: RunResult) -> LabRunResult:
    """Return a run as it is published.

    Parameters
    ----------
    lab
        Name of the lab.
    run
        What was run.
    result
        What it showed.
    """
    layout = run.layout
    return LabRunResult(
        lab=lab,
        model=run.job.model.name,
        tensor=layout.tensor,
        pipeline=layout.pipeline,
        data=layout.data or 1,
        zero_stage=layout.zero_stage,
        micro_batch=layout.micro_batch,
        micro_batches=run.micro_batches,
        predicted_step_s=result.predicted.time_s,
        predicted_parts_s=result.predicted.parts,
        measured_step_s=result.measured_s,
        steps_s=list(result.steps_s),
        losses=list(result.losses),
        slept_layer_s=run.forward_s + run.backward_s,
        computed_layer_s=result.alone.forward_s + result.alone.backward_s,
        calls=[
            CallCostResult(
                operation=kind.operation,
                groups=kind.groups,
                ranks=kind.ranks,
                tier=kind.slowest_tier,
                round_s=cost.round_s,
                reached_fraction=cost.reached_fraction,
            )
            for kind, cost in result.calibration.costs.items()
        ],
        tiers=tier_results(result.tiers),
        wall_s=result.wall_s,
    )


def print_lab_run(result: LabRunResult, console: Console) -> None:
    """Print a run.

    Parameters
    ----------
    result
        As it is published.
    console
        Where to.
    """
    width = min(console.width, 100)
    for line in _heading(result):
        print_line(console, wrapped(line, width=width))
    print_line(console)
    tiers = result.tiers
    columns = [
        Column(heading=heading, cells=tuple(cells))
        for heading, cells in (
            ("predicted\nMB a step", [three_digits(each.predicted_bytes / 1e6) for each in tiers]),
            ("counted\nMB a step", [three_digits(each.counted_bytes / 1e6) for each in tiers]),
            ("worst link\noff", [f"{percent(each.worst_fraction)} %" for each in tiers]),
        )
    ]
    key = Column(heading="link", cells=tuple(each.tier for each in tiers), justify="left")
    for table in split_table(columns, key=key, width=width, best=None):
        console.print(table)
    print_line(console)
    for line in _notes(result):
        print_line(console, wrapped(line, width=width, first="- ", indent="  "), style="dim")


def _heading(result: LabRunResult) -> Iterator[str]:
    degrees = f"tensor {result.tensor}, pipeline {result.pipeline}, data {result.data}"
    sharded = ", parameters sharded (FSDP)" if result.zero_stage == 3 else ""
    passes = f"{result.micro_batches} x {result.micro_batch} sequences a replica"
    yield f"{result.lab}: {result.model}, {degrees}{sharded}, {passes}"
    predicted, measured = result.predicted_step_s, result.measured_step_s
    ratio = three_digits(measured / predicted)
    yield (
        f"Step: predicted {three_digits(predicted)} s, measured {three_digits(measured)} s "
        f"({len(result.steps_s)} steps), measured / predicted {ratio}"
    )
    parts = {name: value for name, value in result.predicted_parts_s.items() if value > 0}
    yield "Predicted parts: " + ", ".join(f"{name} {three_digits(value)} s" for name, value in parts.items())
    first, last = result.losses[0], result.losses[-1]
    yield f"Loss: {first:.3f} to {last:.3f}. The whole job took {three_digits(result.wall_s)} s."


def _notes(result: LabRunResult) -> Iterator[str]:
    slept = three_digits(1e3 * result.slept_layer_s)
    yield f"a layer sleeps {slept} ms a micro-batch: what a GPU computes by the estimate, times the dilation"
    computed = three_digits(1e3 * result.computed_layer_s)
    yield f"the small model really computes {computed} ms of it more, measured before the steps"
    for each in result.calls:
        who = f"{each.groups} x {each.ranks} ranks" if each.groups > 1 else f"{each.ranks} ranks"
        reached = "" if each.tier == "inside node" else f", {percent(each.reached_fraction)} % of the link"
        yield (
            f"measured before: {each.operation} of {who} ({each.tier}) takes "
            f"{three_digits(1e3 * each.round_s)} ms a message{reached}"
        )
    if result.zero_stage == 3:
        yield "on CPUs fully_shard waits for each gather and scatter: none is hidden behind computing"
