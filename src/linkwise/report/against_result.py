"""A measured run beside its estimate as it is published, and on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from linkwise.report.tables import Column, print_line, split_table, wrapped
from linkwise.report.wording import percent, three_digits, with_unit

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.calibrate.against import Against
    from linkwise.estimate import Estimate
    from linkwise.readers.launch_record import LaunchedRun

__all__ = ["AgainstResult", "PhaseResult", "against_result", "not_compared", "print_against"]


class PhaseResult(BaseModel):
    """One phase of a step."""

    name: str
    parts: list[str] = Field(description="Parts of the estimate that it holds.")
    predicted_s: float
    measured_s: float


class AgainstResult(BaseModel):
    """A measured run beside its estimate."""

    record: str
    source: str
    steps: int = Field(description="Steps that count.")
    left_out: int = Field(description="Steps at the start that do not.")
    predicted_s: float
    low_s: float = Field(description="Lower end of the 80 % interval of the prediction.")
    high_s: float
    measured_s: float | None = Field(
        description="Median time of a step; null of a run that is invalid, which is not averaged."
    )
    verdict: str = Field(
        description="as predicted, slower or faster: by the interval; invalid or cannot tell: not compared."
    )
    phases: list[PhaseResult]
    off: str | None = Field(description="The phase that is off most.")
    reason: str


def not_compared(
    estimate: Estimate, run: LaunchedRun, *, record: str, verdict: str, reason: str
) -> AgainstResult:
    """Return a run that is not set beside its estimate, with the reason.

    Parameters
    ----------
    estimate
        What it should have taken.
    run
        What its record tells.
    record
        The file of the run.
    verdict
        ``invalid`` or ``cannot tell``.
    reason
        Why, a sentence without its stop.
    """
    return AgainstResult(
        record=record,
        source="linkwise launch",
        steps=0,
        left_out=len(run.step_times_s),
        predicted_s=estimate.step_time_s,
        low_s=estimate.step_time_low_s,
        high_s=estimate.step_time_high_s,
        measured_s=None,
        verdict=verdict,
        phases=[],
        off=None,
        reason=reason,
    )


def against_result(found: Against, *, record: str) -> AgainstResult:
    """Return a comparison as it is published.

    Parameters
    ----------
    found
        The comparison.
    record
        The file of the run.
    """
    verdict = "as predicted" if found.is_expected else "slower" if found.is_slower else "faster"
    return AgainstResult(
        record=record,
        source=found.source,
        steps=found.steps,
        left_out=found.left_out,
        predicted_s=found.predicted_s,
        low_s=found.low_s,
        high_s=found.high_s,
        measured_s=found.measured_s,
        verdict=verdict,
        phases=[
            PhaseResult(
                name=each.name,
                parts=list(each.parts),
                predicted_s=each.predicted_s,
                measured_s=each.measured_s,
            )
            for each in found.phases
        ],
        off=found.off,
        reason=found.reason,
    )


def print_against(result: AgainstResult, console: Console) -> None:
    """Print a measured run beside its estimate, phase by phase.

    Parameters
    ----------
    result
        The comparison as it is published.
    console
        Where to.
    """
    if result.measured_s is None:
        said = f"{result.record} is not compared ({result.verdict}): {result.reason}."
        print_line(console, wrapped(said, width=console.width), style="bold yellow")
        predicted = f"{three_digits(result.predicted_s)} s ({three_digits(result.low_s)} to "
        print_line(console, f"A step should take {predicted}{three_digits(result.high_s)} s).")
        return
    step_s = result.measured_s
    start = f", {result.left_out} at the start left out" if result.left_out else ""
    words = f"MEASURED: {result.record} ({result.source}, {result.steps} steps{start})"
    print_line(console, wrapped(words, width=console.width), style="bold")
    rows = [
        ("step", result.predicted_s, step_s),
        *((each.name, each.predicted_s, each.measured_s) for each in result.phases),
    ]
    key = Column(heading="phase", cells=tuple(name for name, _, _ in rows), justify="left")
    columns = [
        Column(heading="predicted", cells=tuple(with_unit(each, "s") for _, each, _ in rows)),
        Column(heading="measured", cells=tuple(with_unit(each, "s") for _, _, each in rows)),
        Column(heading="longer by", cells=tuple(_longer(low, high) for _, low, high in rows)),
        Column(
            heading="of the step [%]",
            cells=tuple(percent((high - low) / step_s) for _, low, high in rows),
        ),
    ]
    for table in split_table(columns, key=key, width=console.width):
        console.print(table, crop=False)
    interval = f"{three_digits(result.low_s)} to {three_digits(result.high_s)} s"
    said = f"The step is {result.verdict} (80 % interval {interval})."
    lead = " Likely: " if result.off else " But "
    likely = f"{lead}{result.reason}." if result.reason else ""
    off = "" if result.off is None else f" Off most: {result.off}."
    print_line(console, wrapped(f"{said}{off}{likely}", width=console.width))
    parts = [f"{each.name}: {', '.join(each.parts)}" for each in result.phases]
    if parts:
        words = f"What is predicted for a phase is the sum of parts of the estimate. {'; '.join(parts)}."
        print_line(console, wrapped(words, width=console.width), style="dim")


def _longer(predicted_s: float, measured_s: float) -> str:
    longer = measured_s - predicted_s
    return f"-{with_unit(-longer, 's')}" if longer < 0 else with_unit(longer, "s")
