"""The section of docs/accuracy.md on the doctor: right causes, confusions, and a plain search of words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from linkwise.report.wording import percent

if TYPE_CHECKING:
    from linkwise.calibrate.doctor_score import DoctorScore, ScoredCase

__all__ = ["doctor_accuracy_markdown", "doctor_section_of", "with_doctor_section"]

_START = "\n## Doctor\n"
_HEAD = """
## Doctor

This section is written by `python tools/doctor_accuracy.py`. *Generated* are the logs of `tests/job_logs`,
written from the texts of NCCL's releases by a generator that shares no code with the rules, with near
misses: logs with the texts of a cause that does not hold. *Reports* are the logs of `tests/data/nccl_cases`,
rebuilt from public reports. The rules were written with both in sight, so that neither proves how they do on
other logs. *Words* is a plain search for telling words (`linkwise.calibrate.doctor_baseline`), the most
telling first. `linkwise validate doctor CASES DIR` scores logs of your own. All shares are percent.

"""


def doctor_accuracy_markdown(generated: DoctorScore, reports: DoctorScore) -> str:
    """Return the section.

    Parameters
    ----------
    generated, reports
        The two sets of logs, scored.
    """
    return "".join(
        (_HEAD, _shares(generated, reports), _BY_CAUSE, _by_cause(generated), _BY_REPORT, _by_cause(reports))
    )


_BY_CAUSE = """
### By cause, generated logs

Each row is one of the confusion matrix without its zeros: what was named first, and how often. A right
second label counts as the cause.

"""
_BY_REPORT = """
### By cause, reports

"""


def doctor_section_of(page: str) -> str:
    """Return the section in a page; empty where it has none.

    Parameters
    ----------
    page
        docs/accuracy.md.
    """
    at = page.find(_START)
    return page[at:] if at >= 0 else ""


def with_doctor_section(page: str, section: str) -> str:
    """Return a page with the section at its end in place of the one it has.

    Parameters
    ----------
    page
        docs/accuracy.md.
    section
        As `doctor_accuracy_markdown` gives it; empty for none.
    """
    return page.removesuffix(doctor_section_of(page)).rstrip("\n") + "\n" + section


def _shares(generated: DoctorScore, reports: DoctorScore) -> str:
    scores = (generated, reports)
    rows: list[list[str]] = [
        ["logs with a cause", *_pairs(scores, lambda score: str(len(score.ill)), None)],
        ["logs without", *_pairs(scores, lambda score: str(len(score.well)), None)],
        [
            "right cause first",
            *_pairs(
                scores,
                lambda score: _share(each.is_right for each in score.ill),
                lambda score: _share(each.are_words_right for each in score.ill),
            ),
        ],
        [
            "right cause within three",
            *_pairs(scores, lambda score: _share(each.within(3) for each in score.ill), None),
        ],
        [
            "nothing found where nothing is wrong",
            *_pairs(
                scores,
                lambda score: _share(each.is_right for each in score.well),
                lambda score: _share(each.are_words_right for each in score.well),
            ),
        ],
        [
            "verdict right",
            *_pairs(scores, lambda score: _share(each.is_verdict_right for each in score.scored), None),
        ],
    ]
    return _table(["", "generated", "words", "reports", "words"], rows)


def _pairs(
    scores: Iterable[DoctorScore],
    ours: Callable[[DoctorScore], str],
    words: Callable[[DoctorScore], str] | None,
) -> list[str]:
    return [text for score in scores for text in (ours(score), "" if words is None else words(score))]


def _by_cause(score: DoctorScore) -> str:
    grouped: dict[str, list[ScoredCase]] = {}
    for each in sorted(score.ill, key=lambda each: each.case.cause):
        grouped.setdefault(each.case.cause, []).append(each)
    grouped["nothing wrong"] = list(score.well)
    rows = [
        [
            f"`{cause}`" if cause != "nothing wrong" else cause,
            str(len(cases)),
            _named(cause, cases, lambda each: each.is_right, lambda each: (*each.found, "nothing")[0]),
            _named(cause, cases, lambda each: each.are_words_right, lambda each: each.words or "nothing"),
        ]
        for cause, cases in grouped.items()
        if cases
    ]
    return _table(["cause", "logs", "doctor names", "words name"], rows)


def _named(
    cause: str,
    cases: Sequence[ScoredCase],
    is_right: Callable[[ScoredCase], bool],
    name: Callable[[ScoredCase], str],
) -> str:
    right = "nothing" if cause == "nothing wrong" else cause
    counts = Counter(right if is_right(each) else name(each) for each in cases)
    ordered = sorted(counts.items(), key=lambda pair: (pair[0] != right, -pair[1], pair[0]))
    return ", ".join(f"{each} {count}" for each, count in ordered)


def _share(flags: Iterable[bool]) -> str:
    given = list(flags)
    return percent(sum(given) / len(given)) if given else "-"


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heading) + " |", "|---" * len(heading) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
