"""What is told while a log is followed: text or a line of JSON for each finding that is new or changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from linkwise.diagnose.vocabulary import title_of
from linkwise.readers.job_log.lines import printable
from linkwise.report.doctor import FindingResult, finding_result
from linkwise.report.doctor_table import cited, places
from linkwise.report.results import PublishedResult
from linkwise.report.tables import wrapped

if TYPE_CHECKING:
    from linkwise.diagnose.following import Change

__all__ = ["DoctorChangeResult", "change_result", "change_text"]


class DoctorChangeResult(PublishedResult):
    """One thing that is told of a running job."""

    published: Literal["linkwise.doctor.change/1"] = Field(default="linkwise.doctor.change/1", alias="schema")
    at: str = Field(description="When it was told, UTC.")
    change: Literal["new", "changed", "withdrawn"]
    finding: FindingResult | None = Field(description="None where no known cause explains an error.")
    reason: str = Field(description="What is said without a finding, or why one is withdrawn.")


def change_result(change: Change, *, at: str) -> DoctorChangeResult:
    """Return a change as it is published.

    Parameters
    ----------
    change
        What is told.
    at
        When.
    """
    return DoctorChangeResult(
        at=at,
        change=change.kind.value,
        finding=None if change.finding is None else finding_result(change.finding),
        reason=change.reason,
    )


def change_text(result: DoctorChangeResult, *, width: int) -> str:
    """Return a change as lines of text.

    Parameters
    ----------
    result
        What is told.
    width
        Columns of the terminal.
    """
    return "\n".join(_lines(result, width))


def _lines(result: DoctorChangeResult, width: int) -> Iterator[str]:
    clock = result.at[11:19]
    each = result.finding
    if each is None:
        yield wrapped(f"{clock}  broken: {printable(result.reason)}", width=width, indent=" " * 10, first="")
        return
    name = f"{title_of(each.cause)} ({each.cause})"
    if result.change == "withdrawn":
        yield wrapped(f"{clock}  withdrawn: {name}; {result.reason}", width=width, indent=" " * 10, first="")
        return
    again = " (changed)" if result.change == "changed" else ""
    head = f"{clock}  {each.severity}{again}: {name}, confidence {each.confidence}"
    yield wrapped(head, width=width, indent=" " * 10, first="")
    if each.where:
        yield wrapped(places(each.where), width=width, indent=" " * 10)
    for line in each.evidence[:1]:
        yield cited(line, width, indent=10)
    for fix in each.fix[:1]:
        yield wrapped(f"to mend it: {fix}", width=width, indent=" " * 12, first=" " * 10)
