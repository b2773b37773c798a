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
    doctor_where: list[str] = Field(description="Hosts and ranks that the first cause is seen on.")
    doctor_named_kind: bool = Field(description="Whether the first cause is the kind of the fault.")
    doctor_node: str | None = Field(
        description="The one node the first cause names; null where it names none."
    )
    doctor_named_node: bool | None = Field(
        description="Whether that is the node of the fault; null where it names none."
    )
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
        doctor_verdict=run.said.verdict,
        doctor_words=run.said.words,
        doctor_causes=list(run.said.causes),
        doctor_where=list(run.said.where),
        doctor_named_kind=run.is_kind_named,
        doctor_node=run.said.node,
        doctor_named_node=run.is_node_right,
        doctor_s=run.said.time_s,
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
    yield _times(result)
    took = three_digits(1e3 * result.doctor_s)
    verdict = result.doctor_verdict.replace("_", " ")
    causes = ", ".join(result.doctor_causes) or "no cause"
    where = f" at {', '.join(result.doctor_where)}" if result.doctor_where else ""
    yield f"The doctor, from the output alone, in {took} ms: {verdict}, {causes}{where}"
    yield f"  {result.doctor_words}"
    yield f"Kind: {_judged(result.doctor_named_kind)}. Node: {_judged(result.doctor_named_node)}"


def _times(result: LabFaultResult) -> str:
    if result.noticed_s is None and result.ended_s is None:
        return "No rank had an error"
    first = "no rank had an error"
    if result.noticed_s is not None:
        first = f"first error {three_digits(result.noticed_s)} s after the fault"
    ended = (
        f", end of the job {three_digits(result.ended_s)} s after it" if result.ended_s is not None else ""
    )
    return (first + ended)[0].upper() + (first + ended)[1:]


def _judged(is_right: bool | None) -> str:  # noqa: FBT001 (one value, three words)
    return "not told" if is_right is None else "right" if is_right else "wrong"
