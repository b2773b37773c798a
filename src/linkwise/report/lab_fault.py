"""A fault in a lab as it is published, `linkwise.lab-fault/1`, and on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from linkwise.report.results import PublishedResult
from linkwise.report.tables import print_line, wrapped
from linkwise.report.wording import three_digits

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.lab.faults import FaultRun

__all__ = ["LabFaultResult", "lab_fault_result", "print_lab_fault"]


class LabFaultResult(PublishedResult):
    """What a job did under a fault."""

    schema_: Literal["linkwise.lab-fault/1"] = Field(default="linkwise.lab-fault/1", alias="schema")
    lab: str
    kind: str
    node: int
    step: int
    did: str
    noticed_s: float | None = Field(description="From the fault to the first error of a rank.")
    ended_s: float | None = Field(description="From the fault to the end of the job; null where it went on.")
    step_before_s: float = Field(description="Median before the fault.")
    longest_after_s: float | None = Field(description="Longest step that was finished after it.")
    doctor_verdict: str
    doctor_words: str
    doctor_causes: list[str]
    doctor_s: float


def lab_fault_result(lab: str, run: FaultRun) -> LabFaultResult:
    """Return what a job did as it is published.

    Parameters
    ----------
    lab
        Name of the lab.
    run
        What it did.
    """
    return LabFaultResult(
        lab=lab,
        kind=str(run.kind),
        node=run.node,
        step=run.step,
        did=run.did,
        noticed_s=run.noticed_s,
        ended_s=run.ended_s,
        step_before_s=run.step_before_s,
        longest_after_s=run.longest_after_s,
        doctor_verdict=run.verdict,
        doctor_words=run.words,
        doctor_causes=list(run.causes),
        doctor_s=run.doctor_s,
    )


def print_lab_fault(result: LabFaultResult, console: Console) -> None:
    """Print what a job did.

    Parameters
    ----------
    result
        As it is published.
    console
        Where to.
    """
    for line in _lines(result):
        print_line(console, wrapped(line, width=min(console.width, 100), indent="  ", first=""))


def _lines(result: LabFaultResult) -> Iterator[str]:
    yield f"{result.lab}: {result.kind} at node {result.node}, from step {result.step} on"
    yield f"The job: {result.did}"
    before = three_digits(result.step_before_s)
    if result.longest_after_s is not None:
        yield f"Steps: {before} s before, at most {three_digits(result.longest_after_s)} s after"
    else:
        yield f"Steps: {before} s before, none was finished after"
    if result.noticed_s is not None:
        yield f"First error {three_digits(result.noticed_s)} s after the fault"
    if result.ended_s is not None:
        yield f"The job ended {three_digits(result.ended_s)} s after the fault"
    causes = f" ({', '.join(result.doctor_causes)})" if result.doctor_causes else ""
    verdict = result.doctor_verdict.replace("_", " ")
    took = three_digits(1e3 * result.doctor_s)
    yield f"The doctor, from the output alone, in {took} ms: {verdict}{causes}; {result.doctor_words}"
