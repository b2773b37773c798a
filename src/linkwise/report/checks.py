"""What was planned beside what was seen of a run, as it is published."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from linkwise.launch.run.checks import Check
from linkwise.report.results import PublishedResult

__all__ = ["CheckResult", "check_results"]


class CheckResult(PublishedResult):
    """One thing that was planned, and what was seen of it."""

    what: str
    planned: str
    seen: str
    is_as_planned: bool | None = Field(description="null where nothing shows it.")


def check_results(checks: Sequence[Check]) -> list[CheckResult]:
    """Return checks as they are published.

    Parameters
    ----------
    checks
        Of a run.
    """
    return [
        CheckResult(what=each.what, planned=each.planned, seen=each.seen, is_as_planned=each.is_as_planned)
        for each in checks
    ]
