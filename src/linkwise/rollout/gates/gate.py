"""One gate as other programs ask for it: open only where its step passes on evidence."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from linkwise.errors import ExitCode, UnknownName
from linkwise.rollout.carrying.progress import Progress
from linkwise.rollout.gates.replay import exit_code_of, replay_rollout
from linkwise.rollout.measuring.recorded_runs import RecordedRuns
from linkwise.rollout.plan import Rollout
from linkwise.rollout.verdicts import Outcome

__all__ = ["Gate", "check_step", "gate_of_log", "gate_of_records"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Whether a gate is open, and why.

    Parameters
    ----------
    step
        Name of the step.
    code
        How a command ends that asks; done only where the gate is open.
    why
        In words.
    """

    step: str
    code: ExitCode
    why: str

    @property
    def is_open(self) -> bool:
        """Return whether whoever asked may go on."""
        return self.code is ExitCode.DONE


def check_step(rollout: Rollout, step: str) -> None:
    """Refuse a step that there is not.

    Parameters
    ----------
    rollout
        Whose steps.
    step
        The name that was given.

    Raises
    ------
    UnknownName
        When there is none of that name.
    """
    names = [each.name for each in rollout.steps]
    if step not in names:
        raise UnknownName.among(names, kind="step", given=step)


def gate_of_records(rollout: Rollout, step: str, records: RecordedRuns, *, today: dt.date) -> Gate:
    """Return the gate of a step that recorded runs are judged by.

    Parameters
    ----------
    rollout, step
        Which gate.
    records
        The runs.
    today
        The calendar.
    """
    replay = replay_rollout(rollout, records, steps=[step], today=today)
    (verdict,) = replay.verdicts
    told = " ".join(each.sentence for each in verdict.objectives if each.outcome is not Outcome.PASS)
    return Gate(step=step, code=exit_code_of(replay), why=f"{verdict.sentence} {told}".strip())


def gate_of_log(rollout: Rollout, step: str, progress: Progress) -> Gate:
    """Return the gate of a step as the decision log has it.

    Parameters
    ----------
    rollout, step
        Which gate.
    progress
        How far the log says that the rollout is.

    Notes
    -----
    A waiver is a decision of a person and no pass: it opens no gate here. Nor does a pass under another file
    or candidate, or of a rollout that was suspended or rolled back since.
    """
    code, why = _standing(rollout, step, progress)
    return Gate(step=step, code=code, why=f"{step}: {why}")


def _standing(rollout: Rollout, step: str, progress: Progress) -> tuple[ExitCode, str]:
    if not progress.has_begun:
        return ExitCode.NOT_MEASURED, "the rollout has not begun"
    if (progress.file, progress.candidate) != (rollout.digest, rollout.candidate.digest):
        return ExitCode.INCONCLUSIVE, "the file or its candidate is another than the log is of"
    if progress.rollback is not None:
        return ExitCode.AGAINST, "the rollout was rolled back"
    judged = progress.judged.get(step)
    outcome = Outcome(judged.fact("outcome")) if judged is not None else None
    if outcome is Outcome.FAIL:
        return ExitCode.AGAINST, judged.why if judged else ""
    if progress.suspended is not None:
        return ExitCode.INCONCLUSIVE, f"suspended: {progress.suspended.why}"
    if judged is None or outcome is None:
        return ExitCode.NOT_MEASURED, "not judged yet"
    if outcome is not Outcome.PASS:
        code = ExitCode.INCONCLUSIVE if outcome is Outcome.INCONCLUSIVE else ExitCode.NOT_MEASURED
        return code, judged.why
    if not progress.has_passed(step):
        return ExitCode.INCONCLUSIVE, f"{judged.why} It waits for its soak or an approval."
    return ExitCode.DONE, judged.why
