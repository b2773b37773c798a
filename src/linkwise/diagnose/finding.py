"""A finding: a cause, how bad and how sure, the lines that prove it, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from linkwise.diagnose.vocabulary import family_of
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["Confidence", "Finding", "Severity", "finding", "first_of"]

_MOST_EVIDENCE = 400
_RANK_PREFIX = re.compile(r"\[rank(\d{1,7})\]:")
"""What PyTorch and torchrun write before each line of a rank."""
_PREFIX_LOOKS = 120


class Severity(StrEnum):
    """What a cause does to the job, worst first."""

    BROKEN = "broken"
    SLOW = "slow"
    HARMLESS = "harmless"


class Confidence(StrEnum):
    """How sure a finding is: the line alone decides, it fits best, or other causes print the same."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One cause of what is wrong.

    Parameters
    ----------
    cause
        A word of the vocabulary.
    severity, confidence
        How bad, how sure.
    where
        Hosts and ranks it is seen on; empty where no line says.
    evidence
        The lines that prove it, the decisive one first.
    explanation
        What happened, in about two sentences.
    fix
        Commands or settings that mend it.
    next_check
        What would confirm it, or tell it from a cause that looks alike.
    order
        Place of its first line, to tell first causes from later ones.
    """

    cause: str
    severity: Severity
    confidence: Confidence
    where: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    explanation: str
    fix: tuple[str, ...]
    next_check: str
    order: int = 0

    @property
    def family(self) -> str:
        """Return the family of causes it belongs to."""
        return family_of(self.cause)


def finding(
    cause: str,
    severity: Severity,
    confidence: Confidence,
    *,
    proof: Sequence[Sighting | Evidence],
    explanation: str,
    fix: Iterable[str],
    next_check: str,
    where: Iterable[str] | None = None,
) -> Finding:
    """Return a finding with its place told from the lines that prove it.

    Parameters
    ----------
    cause, severity, confidence
        As of `Finding`.
    proof
        The lines, the decisive one first; lines of the same text on other ranks may be among them.
    explanation, fix, next_check
        As of `Finding`.
    where
        Hosts and ranks, where the lines do not say them.
    """
    sightings = [each for each in proof if isinstance(each, Sighting)]
    evidence = [each.evidence if isinstance(each, Sighting) else each for each in proof]
    return Finding(
        cause=cause,
        severity=severity,
        confidence=confidence,
        where=tuple(dict.fromkeys(where if where is not None else _places(sightings))),
        evidence=tuple(dict.fromkeys(evidence))[:_MOST_EVIDENCE],
        explanation=explanation,
        fix=tuple(fix),
        next_check=next_check,
        order=min((each.order for each in sightings), default=0),
    )


def first_of(*found: Finding | None) -> Finding | None:
    """Return the first of several findings of one cause, with the evidence of the others behind its own.

    Parameters
    ----------
    found
        What the parts of a rule gave, the surest first.
    """
    given = [each for each in found if each is not None]
    if not given:
        return None
    lines = dict.fromkeys(line for each in given for line in each.evidence)
    return replace(given[0], evidence=tuple(lines)[:_MOST_EVIDENCE])


def _places(sightings: Iterable[Sighting]) -> Iterable[str]:
    for each in sightings:
        if each.host is not None:
            yield each.host
        elif each.rank is not None:
            yield f"rank {each.rank}"
        elif (prefix := _RANK_PREFIX.search(each.evidence.text[:_PREFIX_LOOKS])) is not None:
            yield f"rank {prefix[1]}"
