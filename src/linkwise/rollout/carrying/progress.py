"""How far a rollout is: what its decision log says, folded into one value."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from linkwise.rollout.runs import StepRun
from linkwise.rollout.store.decisions import Entry, Kind
from linkwise.rollout.verdicts import Outcome

__all__ = ["Cause", "PassedStep", "Progress", "RollbackProgress", "Waiver", "progress_of"]


class Cause(StrEnum):
    """Why a rollout is suspended."""

    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    ERROR = "error"
    NO_DATA = "no data"
    PERSON = "person"
    """Somebody said so."""
    FAILURES = "failures"
    """Too many failed runs within a time."""
    BUDGET = "budget"
    NODES = "nodes"
    CLUSTER = "cluster"
    """It is not the one that the file is for, or has changed."""
    REVIEW = "review"
    """A number in the file is past its day."""
    FILE = "file"
    """It was edited."""
    WAIVER = "waiver"
    """One has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """Somebody answers for a step that did not pass.

    Parameters
    ----------
    step
        Name of the step.
    by, why
        Who, and the reason.
    until
        The last day on which it holds.
    """

    step: str
    by: str
    why: str
    until: dt.date


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedStep:
    """A step that is behind.

    Parameters
    ----------
    step
        Its name.
    is_waived
        Whether it passed by a waiver alone.
    """

    step: str
    is_waived: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackProgress:
    """How far the way back is.

    Parameters
    ----------
    begun
        The entry it began with.
    command_exit
        Exit code of the command [1]; ``None`` before it ended.
    is_restored
        Whether the file that launchers read holds what was promoted.
    is_proven
        What its objectives said; ``None`` before.
    why
        In words, once that is known.
    """

    begun: Entry
    command_exit: int | None = None
    is_restored: bool = False
    is_proven: bool | None = None
    why: str = ""

    @property
    def step_name(self) -> str:
        """Return the name under which its runs are kept: no other rollback's."""
        return f"rollback-{self.begun.number}"

    @property
    def to(self) -> str:
        """Return the digest of the configuration that is restored."""
        return self.begun.fact("to")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a rollout is.

    Parameters
    ----------
    file, candidate, control
        Digests of what was accepted last; empty before it began.
    passed
        Steps that are behind, in order.
    judged
        The last verdict of a step that is not behind: its entry by the name of the step.
    approved
        Who approved, by the name of the step, since its verdict.
    waivers
        By the name of the step; the last one counts.
    rounds
        By the name of the step: how often it was resumed after nothing could be measured [1].
    suspended
        The entry that suspended it; ``None`` while it is not.
    resumed
        When it was resumed last; ``None`` for never.
    rollback
        The way back, once that is taken; ``None`` after somebody resumed.
    is_promoted
        Whether it is done.
    trials
        By the name of each run: the candidate that was accepted when it started, and the step.
    """

    file: str = ""
    candidate: str = ""
    control: str = ""
    passed: tuple[PassedStep, ...] = ()
    judged: Mapping[str, Entry] = field(default_factory=dict)
    approved: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    waivers: Mapping[str, Waiver] = field(default_factory=dict)
    rounds: Mapping[str, int] = field(default_factory=dict)
    suspended: Entry | None = None
    resumed: dt.datetime | None = None
    rollback: RollbackProgress | None = None
    is_promoted: bool = False
    trials: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def has_begun(self) -> bool:
        """Return whether anything was done yet."""
        return bool(self.file)

    @property
    def cause(self) -> Cause | None:
        """Return why it is suspended; ``None`` while it is not."""
        return None if self.suspended is None else Cause(self.suspended.fact("cause"))

    def has_passed(self, step: str) -> bool:
        """Return whether a step is behind.

        Parameters
        ----------
        step
            Its name.
        """
        return any(each.step == step for each in self.passed)

    def started_of_trial(self, step: str) -> tuple[str, ...]:
        """Return the names of all runs of a step that were started under the candidate accepted now.

        Parameters
        ----------
        step
            Its name.
        """
        mine = (trial for trial in self.trials.items() if trial[1] == (self.candidate, step))
        return tuple(run_id for run_id, _ in mine)

    def of_trial(self, runs: Iterable[StepRun], *, step: str) -> tuple[StepRun, ...]:
        """Return all runs of a step under the candidate that is accepted now, whenever they were.

        Parameters
        ----------
        runs
            All runs of the rollout.
        step
            Its name.
        """
        return tuple(run for run in runs if self.trials.get(run.run_id) == (self.candidate, step))


def progress_of(log: Sequence[Entry]) -> Progress:
    """Return how far a rollout is.

    Parameters
    ----------
    log
        All its entries.
    """
    progress = Progress()
    for entry in log:
        fold = _FOLDS.get(entry.kind)
        progress = progress if fold is None else fold(progress, entry)
    return progress


def _begun(progress: Progress, entry: Entry) -> Progress:
    """Accept a file: all steps are ahead again, and so are their approvals."""
    return replace(
        progress,
        file=entry.fact("file"),
        candidate=entry.fact("candidate"),
        control=entry.fact("control"),
        passed=(),
        judged={},
        approved={},
        waivers={},
        rounds={},
        suspended=None,
        rollback=None,
        resumed=entry.at if entry.kind is Kind.FILE_ACCEPTED else None,
        is_promoted=False,
    )


def _run_started(progress: Progress, entry: Entry) -> Progress:
    return replace(
        progress, trials={**progress.trials, entry.fact("run_id"): (progress.candidate, entry.step)}
    )


def _judged(progress: Progress, entry: Entry) -> Progress:
    approved = {step: who for step, who in progress.approved.items() if step != entry.step}
    return replace(progress, judged={**progress.judged, entry.step: entry}, approved=approved)


def _step_passed(progress: Progress, entry: Entry) -> Progress:
    passed = PassedStep(step=entry.step, is_waived=entry.facts.get("is_waived") is True)
    return replace(progress, passed=(*progress.passed, passed))


def _promoted(progress: Progress, _: Entry) -> Progress:
    return replace(progress, is_promoted=True)


def _suspended(progress: Progress, entry: Entry) -> Progress:
    return replace(progress, suspended=entry)


def _resumed(progress: Progress, entry: Entry) -> Progress:
    """Go on: what did not pass is judged again, on all that was measured and will be."""
    rounds = dict(progress.rounds)
    judged = dict(progress.judged)
    for step, verdict in progress.judged.items():
        outcome = Outcome(verdict.fact("outcome"))
        if outcome is Outcome.PASS or progress.has_passed(step):
            continue
        del judged[step]
        if outcome in (Outcome.ERROR, Outcome.NO_DATA):
            rounds[step] = rounds.get(step, 0) + 1
    return replace(progress, suspended=None, rollback=None, resumed=entry.at, judged=judged, rounds=rounds)


def _approved(progress: Progress, entry: Entry) -> Progress:
    who = (*progress.approved.get(entry.step, ()), entry.fact("role"))
    return replace(progress, approved={**progress.approved, entry.step: who})


def _waived(progress: Progress, entry: Entry) -> Progress:
    until = dt.date.fromisoformat(entry.fact("until"))
    waiver = Waiver(step=entry.step, by=entry.by, why=entry.why, until=until)
    waivers = {**progress.waivers, entry.step: waiver}
    return replace(progress, waivers=waivers, suspended=None, rollback=None, resumed=entry.at)


def _rollback_begun(progress: Progress, entry: Entry) -> Progress:
    return replace(progress, rollback=RollbackProgress(begun=entry), is_promoted=False)


def _in_rollback(change: Callable[[RollbackProgress, Entry], RollbackProgress]) -> _Fold:
    def fold(progress: Progress, entry: Entry) -> Progress:
        if progress.rollback is None:
            return progress
        return replace(progress, rollback=change(progress.rollback, entry))

    return fold


_Fold = Callable[[Progress, Entry], Progress]
_FOLDS: Mapping[Kind, _Fold] = {
    Kind.BEGUN: _begun,
    Kind.FILE_ACCEPTED: _begun,
    Kind.RUN_STARTED: _run_started,
    Kind.JUDGED: _judged,
    Kind.STEP_PASSED: _step_passed,
    Kind.PROMOTED: _promoted,
    Kind.SUSPENDED: _suspended,
    Kind.RESUMED: _resumed,
    Kind.APPROVED: _approved,
    Kind.WAIVED: _waived,
    Kind.ROLLBACK_BEGUN: _rollback_begun,
    Kind.COMMAND_ENDED: _in_rollback(
        lambda way, entry: replace(way, command_exit=int(entry.fact("exit_code")))
    ),
    Kind.RESTORED: _in_rollback(lambda way, _: replace(way, is_restored=True)),
    Kind.ROLLBACK_VERIFIED: _in_rollback(lambda way, entry: replace(way, is_proven=True, why=entry.why)),
    Kind.ROLLBACK_UNPROVEN: _in_rollback(lambda way, entry: replace(way, is_proven=False, why=entry.why)),
}
"""What each kind of entry changes; kinds that are not here change nothing."""
