"""A diagnosis made again and again while a log grows: what is new, has changed, or no longer holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from linkwise.diagnose.doctor import Diagnosis, Verdict
from linkwise.diagnose.finding import Finding, Severity

__all__ = ["Change", "ChangeKind", "Told"]


class ChangeKind(StrEnum):
    """What happened to a finding since it was last told."""

    NEW = "new"
    CHANGED = "changed"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing to tell.

    Parameters
    ----------
    kind
        Whether it is new, has changed, or no longer holds.
    finding
        The finding; ``None`` where an error is seen that no known cause explains.
    reason
        What is said where there is no finding, or why a finding is withdrawn.
    """

    kind: ChangeKind
    finding: Finding | None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What was told so far: the findings by cause, and whether an unexplained error was.

    Parameters
    ----------
    findings
        Each as it was last told.
    has_told_failure
        Whether an error without a cause was told.
    """

    findings: Mapping[str, Finding] = field(default_factory=dict)
    has_told_failure: bool = False

    def tell(self, diagnosis: Diagnosis) -> tuple[tuple[Change, ...], Told]:
        """Return what a diagnosis adds, and what was told with it.

        Parameters
        ----------
        diagnosis
            The diagnosis of the log as far as it goes.

        Notes
        -----
        A finding is told once, and again when its severity or confidence changes or it is seen in at least
        twice as many places. More evidence for the same is no change.
        """
        now = {each.cause: each for each in diagnosis.findings if each.severity is not Severity.HARMLESS}
        changes = (*_withdrawn(self.findings, now), *_added(self.findings, now))
        told = {cause: each for cause, each in self.findings.items() if cause in now}
        told |= {
            each.finding.cause: each.finding for each in changes if each.finding and each.finding.cause in now
        }
        is_failure = diagnosis.verdict is Verdict.BROKEN and bool(diagnosis.reason)
        if is_failure and not self.has_told_failure:
            changes += (Change(kind=ChangeKind.NEW, finding=None, reason=diagnosis.reason),)
        return changes, Told(findings=told, has_told_failure=self.has_told_failure or is_failure)


def _added(before: Mapping[str, Finding], now: Mapping[str, Finding]) -> Iterator[Change]:
    for cause, each in now.items():
        last = before.get(cause)
        if last is None:
            yield Change(kind=ChangeKind.NEW, finding=each)
        elif _is_other(last, each):
            yield Change(kind=ChangeKind.CHANGED, finding=each)


def _is_other(last: Finding, now: Finding) -> bool:
    if (last.severity, last.confidence) != (now.severity, now.confidence):
        return True
    return len(now.where) >= 2 * max(len(last.where), 1) and len(now.where) > len(last.where) + 1


def _withdrawn(before: Mapping[str, Finding], now: Mapping[str, Finding]) -> Iterator[Change]:
    for cause, last in before.items():
        if cause not in now:
            winners = ", ".join(now)
            reason = (
                f"what follows explains it: {winners}" if winners else "what came later speaks against it"
            )
            yield Change(kind=ChangeKind.WITHDRAWN, finding=last, reason=reason)
