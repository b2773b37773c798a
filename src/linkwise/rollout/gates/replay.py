"""The gates of a rollout over recorded runs, without a cluster."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.errors import ExitCode, UnknownName
from linkwise.rollout.gates.judging import judge_step
from linkwise.rollout.measuring.recorded_runs import RecordedRuns
from linkwise.rollout.plan import Rollout
from linkwise.rollout.verdicts import Outcome, StepVerdict

__all__ = ["Replay", "exit_code_of", "replay_rollout"]

_CODES = {
    Outcome.PASS: ExitCode.DONE,
    Outcome.FAIL: ExitCode.AGAINST,
    Outcome.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
    Outcome.ERROR: ExitCode.NOT_MEASURED,
    Outcome.NO_DATA: ExitCode.NOT_MEASURED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What the gates say of recorded runs.

    Parameters
    ----------
    verdicts
        Of each step, in order.
    stopped_at
        The first step that does not pass; empty where all do.
    """

    verdicts: tuple[StepVerdict, ...]
    stopped_at: str

    @property
    def outcome(self) -> Outcome:
        """Return the verdict of the first step that does not pass, else a pass."""
        stopped = [each.outcome for each in self.verdicts if each.step == self.stopped_at]
        return stopped[0] if stopped else Outcome.PASS

    @property
    def to_approve(self) -> tuple[str, ...]:
        """Return what should hold and does not pass, in steps that were reached."""
        names = [name for each in self.reached for name in each.to_approve]
        return tuple(dict.fromkeys(names))

    @property
    def reached(self) -> tuple[StepVerdict, ...]:
        """Return the steps up to the one that stopped."""
        steps = [each.step for each in self.verdicts]
        last = steps.index(self.stopped_at) + 1 if self.stopped_at else len(steps)
        return self.verdicts[:last]


def replay_rollout(
    rollout: Rollout, records: RecordedRuns, *, steps: Sequence[str] = (), today: dt.date
) -> Replay:
    """Return what the gates of a rollout say of recorded runs.

    Parameters
    ----------
    rollout
        Whose gates.
    records
        The runs. A step without any has no data.
    steps
        Names of those that are judged; all, if empty.
    today
        The calendar, by which numbers grow old.

    Raises
    ------
    UnknownName
        When there is no such step.
    """
    known = [step.name for step in rollout.steps]
    for name in steps:
        if name not in known:
            raise UnknownName.among(known, kind="step", given=name)
    verdicts = tuple(
        judge_step(rollout, step, records.by_step.get(step.name, ()), baseline=records.baseline, today=today)
        for step in rollout.steps
        if not steps or step.name in steps
    )
    stopped = next((each.step for each in verdicts if each.outcome is not Outcome.PASS), "")
    return Replay(verdicts=verdicts, stopped_at=stopped)


def exit_code_of(replay: Replay) -> ExitCode:
    """Return how a command ends: done only where all passes and nobody must approve anything.

    Parameters
    ----------
    replay
        What the gates say.
    """
    if replay.outcome is Outcome.PASS and replay.to_approve:
        return ExitCode.INCONCLUSIVE
    return _CODES[replay.outcome]
