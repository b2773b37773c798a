"""The doctor scored on logs whose cause is known, beside what a list of words to look for would say."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from linkwise.calibrate.doctor_baseline import words_say
from linkwise.diagnose.doctor import Diagnosis, diagnose
from linkwise.diagnose.finding import Severity
from linkwise.diagnose.vocabulary import FAMILIES
from linkwise.documents.text import read_text
from linkwise.errors import DocumentError, Fault, InputError
from linkwise.readers.job_log.reading import read_job_logs

__all__ = ["DoctorCase", "DoctorScore", "ScoredCase", "read_cases", "score_doctor", "share"]

_LARGEST_BYTES = 50_000_000
_SEVERITIES = ("broken", "slow", "harmless")
_CAUSES = frozenset(cause for causes in FAMILIES.values() for cause in causes)


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorCase:
    """One report with a known cause.

    Parameters
    ----------
    id
        Its name; its log is ``<id>.log``, with further inputs ``<id>.*``.
    cause
        The confirmed cause.
    also
        Causes that are right too.
    severity
        ``broken``, ``slow``, ``harmless``, or ``healthy`` for a log without a case.
    """

    id: str
    cause: str
    also: tuple[str, ...]
    severity: str

    @property
    def is_well(self) -> bool:
        """Return whether nothing slow or broken may be found."""
        return self.severity in {"harmless", "healthy"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredCase:
    """A case beside what was found.

    Parameters
    ----------
    case
        The case.
    verdict
        What was said of the job.
    found
        Causes of the findings that are slow or broken, first first.
    words
        The cause that a plain search for words names; empty where it names none.
    """

    case: DoctorCase
    verdict: str
    found: tuple[str, ...]
    words: str

    @property
    def is_right(self) -> bool:
        """Return whether the first finding is right; of a well log, whether there is none."""
        return self.within(1)

    def within(self, count: int) -> bool:
        """Return whether one of the first findings is right; of a well log, whether there is none.

        Parameters
        ----------
        count
            How many findings count.
        """
        if self.case.is_well:
            return not self.found
        return bool({self.case.cause, *self.case.also} & set(self.found[:count]))

    @property
    def is_verdict_right(self) -> bool:
        """Return whether the verdict is that of the case."""
        return self.verdict == ("healthy" if self.case.is_well else self.case.severity)

    @property
    def are_words_right(self) -> bool:
        """Return whether the plain search is right."""
        if self.case.is_well:
            return not self.words
        return self.words in {self.case.cause, *self.case.also}


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorScore:
    """All cases that have a log.

    Parameters
    ----------
    scored
        The cases.
    without_log
        Names of cases without one.
    """

    scored: tuple[ScoredCase, ...]
    without_log: tuple[str, ...]

    @property
    def ill(self) -> tuple[ScoredCase, ...]:
        """Return the cases in which something is slow or broken."""
        return tuple(each for each in self.scored if not each.case.is_well)

    @property
    def well(self) -> tuple[ScoredCase, ...]:
        """Return the cases in which nothing is."""
        return tuple(each for each in self.scored if each.case.is_well)


def score_doctor(cases_file: str | Path, folder: str | Path) -> DoctorScore:
    """Return how the doctor does on the logs of a folder.

    Parameters
    ----------
    cases_file
        Cases, a JSON object a line, with ``id``, ``category``, ``also`` and ``severity``.
    folder
        The logs. One without a case must be healthy.

    Raises
    ------
    DocumentError
        If the cases cannot be read.
    InputError
        If the folder holds no log.
    """
    cases = {each.id: each for each in read_cases(cases_file)}
    logs = {path.name.removesuffix(".log"): path for path in sorted(Path(folder).glob("*.log"))}
    if not logs:
        raise InputError(f"{folder}: no file NAME.log is there; give the folder with the logs of the cases")
    healthy = {name: DoctorCase(id=name, cause="", also=(), severity="healthy") for name in logs}
    return DoctorScore(
        scored=tuple(_score((healthy | cases)[name], path) for name, path in logs.items()),
        without_log=tuple(name for name in cases if name not in logs),
    )


def read_cases(path: str | Path) -> tuple[DoctorCase, ...]:
    """Return the cases of a file.

    Parameters
    ----------
    path
        JSON, an object a line.

    Raises
    ------
    DocumentError
        With all faults of the file.
    """
    faults: list[Fault] = []
    cases: list[DoctorCase] = []
    text = read_text(path, largest_bytes=_LARGEST_BYTES)
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                cases.append(_case(json.loads(line)))
            except (ValueError, RecursionError) as error:
                faults.append(Fault(path=str(path), line=number, message=f"is no case: {error}"))
    if faults or not cases:
        raise DocumentError(
            faults[:20] or [Fault(path=str(path), message="holds no case; one is a JSON object a line")]
        )
    return tuple(cases)


def _case(entry: object) -> DoctorCase:
    if not isinstance(entry, Mapping):
        raise ValueError("write an object with id, category, also and severity")  # noqa: TRY004
    name, cause, severity = (entry.get(key) for key in ("id", "category", "severity"))
    also = entry.get("also", [])
    if not isinstance(name, str) or not name:
        raise ValueError("its id is missing; it is the name of its log")
    named = also if isinstance(also, list) else [also]
    for each in (cause, *named):
        if each not in _CAUSES:
            raise ValueError(f"{each!r} is no cause; see docs/doctor.md for those there are")
    if severity not in _SEVERITIES:
        raise ValueError(f"severity {severity!r} is none of {', '.join(_SEVERITIES)}")
    return DoctorCase(id=name, cause=str(cause), also=tuple(map(str, named)), severity=str(severity))


def _score(case: DoctorCase, log: Path) -> ScoredCase:
    files = [
        log,
        *(path for path in sorted(log.parent.glob(f"{case.id}.*")) if path != log and path.is_file()),
    ]
    diagnosis = diagnose(read_job_logs([str(path) for path in files]))
    text = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files)
    return ScoredCase(
        case=case, verdict=diagnosis.verdict.value, found=tuple(_wrong(diagnosis)), words=words_say(text)
    )


def _wrong(diagnosis: Diagnosis) -> Iterator[str]:
    for each in diagnosis.findings:
        if each.severity is not Severity.HARMLESS:
            yield each.cause


def share(flags: Iterable[bool]) -> float | None:
    """Return the share of flags that are set; ``None`` where there are none.

    Parameters
    ----------
    flags
        One per case.
    """
    given = list(flags)
    return sum(given) / len(given) if given else None
