"""The published result of `validate doctor`: shares of right answers, and every answer that is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from linkwise.report.results import PublishedResult
from linkwise.report.tables import print_line, wrapped
from linkwise.report.wording import counted, percent

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.calibrate.doctor_score import DoctorScore, ScoredCase

__all__ = [
    "DoctorValidationResult",
    "WrongAnswerResult",
    "doctor_validation_result",
    "print_doctor_validation",
]


class WrongAnswerResult(PublishedResult):
    """A case whose first finding, or whose verdict, is not right."""

    id: str
    cause: str
    also: list[str]
    severity: str
    verdict: str
    found: list[str]


class DoctorValidationResult(PublishedResult):
    """The doctor scored on logs whose cause is known."""

    published: Literal["linkwise.validate.doctor/1"] = Field(
        default="linkwise.validate.doctor/1", alias="schema"
    )
    ill: int = Field(description="Logs in which something is slow or broken.")
    well: int = Field(description="Logs that are healthy, or only look ill.")
    without_log: int
    first_fraction: float | None = Field(description="Of the ill: the right cause is the first finding.")
    within_three_fraction: float | None
    verdict_fraction: float | None = Field(description="Of all: the verdict is right.")
    well_fraction: float | None = Field(description="Of the well: nothing slow or broken is found.")
    words_first_fraction: float | None = Field(description="Of the ill: a plain search for words is right.")
    words_well_fraction: float | None
    confusion: dict[str, dict[str, int]] = Field(
        description="By the confirmed cause: how often each cause was named first; a right second label"
        " counts as it."
    )
    wrong: list[WrongAnswerResult]


def doctor_validation_result(score: DoctorScore) -> DoctorValidationResult:
    """Return a score as it is published.

    Parameters
    ----------
    score
        The cases, scored.
    """
    from linkwise.calibrate.doctor_score import share

    return DoctorValidationResult(
        ill=len(score.ill),
        well=len(score.well),
        without_log=len(score.without_log),
        first_fraction=share(each.is_right for each in score.ill),
        within_three_fraction=share(each.within(3) for each in score.ill),
        verdict_fraction=share(each.is_verdict_right for each in score.scored),
        well_fraction=share(each.is_right for each in score.well),
        words_first_fraction=share(each.are_words_right for each in score.ill),
        words_well_fraction=share(each.are_words_right for each in score.well),
        confusion=_confusion(score.ill),
        wrong=[_wrong(each) for each in score.scored if not (each.is_right and each.is_verdict_right)],
    )


def _confusion(cases: tuple[ScoredCase, ...]) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for each in sorted(cases, key=lambda each: each.case.cause):
        named = each.case.cause if each.is_right else (*each.found, "none")[0]
        row = counts.setdefault(each.case.cause, {})
        row[named] = row.get(named, 0) + 1
    return counts


def _wrong(each: ScoredCase) -> WrongAnswerResult:
    return WrongAnswerResult(
        id=each.case.id,
        cause=each.case.cause,
        also=list(each.case.also),
        severity=each.case.severity,
        verdict=each.verdict,
        found=list(each.found),
    )


def print_doctor_validation(result: DoctorValidationResult, console: Console) -> None:
    """Print a score.

    Parameters
    ----------
    result
        The score.
    console
        Where to.
    """
    print_line(console, f"{counted(result.ill, 'log')} with a cause, {counted(result.well, 'log')} without\n")
    print_line(console, f"{'':<42}{'doctor':>10}{'words':>10}", style="bold")
    rows = (
        ("right cause first", result.first_fraction, result.words_first_fraction),
        ("right cause within three", result.within_three_fraction, None),
        ("nothing found where nothing is wrong", result.well_fraction, result.words_well_fraction),
        ("verdict right", result.verdict_fraction, None),
    )
    for label, ours, words in rows:
        print_line(console, f"{label:<42}{_share(ours):>10}{_share(words):>10}")
    for each in result.wrong:
        wanted = " or ".join([each.cause, *each.also]) if each.cause else "nothing"
        named = ", ".join(each.found[:3]) or "nothing"
        line = f"{each.id}: {each.severity}, {wanted}; said {each.verdict}, {named}"
        print_line(
            console,
            ("\n" if each is result.wrong[0] else "")
            + wrapped(line, width=console.width, indent="  ", first=""),
        )


def _share(fraction: float | None) -> str:
    return "" if fraction is None else f"{percent(fraction)} %"
