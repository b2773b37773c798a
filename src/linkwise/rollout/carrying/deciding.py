"""What people decide: approve, waive, suspend, resume. Each is checked against the log it is appended to."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from linkwise.errors import InputError, UnknownName
from linkwise.rollout.carrying.progress import Cause, Progress, progress_of
from linkwise.rollout.store.decisions import Entry, Kind
from linkwise.rollout.store.reading import Record
from linkwise.rollout.store.store import Store
from linkwise.rollout.store.writing import Writing
from linkwise.rollout.verdicts import Outcome

__all__ = ["Said", "approve", "begun_entry", "suspend", "waive"]

_WAIVABLE = (Cause.FAIL, Cause.INCONCLUSIVE, Cause.ERROR, Cause.WAIVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Who says what, and when.

    Parameters
    ----------
    by, why
        A person, and the reason.
    at
        In UTC.
    """

    by: str
    why: str
    at: dt.datetime


def begun_entry(record: Record) -> Entry:
    """Return the entry with which the file that is accepted now was accepted.

    Parameters
    ----------
    record
        Of a rollout that has begun.
    """
    kinds = (Kind.BEGUN, Kind.FILE_ACCEPTED)
    return next(entry for entry in reversed(record.entries) if entry.kind in kinds)


def approve(store: Store, rollout: str, said: Said, *, role: str = "") -> str:
    """Append an approval of the step that waits for one, and return its name.

    Parameters
    ----------
    store, rollout
        Where, and of what.
    said
        Who approves, and why.
    role
        As whom, of those the file names; empty where the person is named there.

    Raises
    ------
    InputError
        When no step waits for it.
    """
    with store.writing(rollout) as writing:
        record = _begun(writing, rollout)
        progress = progress_of(record.entries)
        step, wanted = _to_approve(record, progress)
        missing = [who for who in wanted if who not in progress.approved.get(step, ())]
        as_whom = role or said.by
        if not missing:
            raise InputError(f"step {step!r} waits for no approval; 'linkwise rollout run' goes on")
        if as_whom not in missing:
            needs = " and ".join(missing)
            raise InputError(
                f"step {step!r} waits for the approval of {needs}, not of {as_whom!r}; say as whom with --as"
            )
        writing.append(
            Kind.APPROVED, at=said.at, by=said.by, why=said.why, step=step, facts={"role": as_whom}
        )
    return step


def _to_approve(record: Record, progress: Progress) -> tuple[str, list[str]]:
    """Return the step that may be approved, and by whom; before its verdict there is nothing to approve."""
    begun = begun_entry(record)
    stated = begun.facts.get("steps")
    steps = stated if isinstance(stated, list) else []
    step = next((each for each in steps if not progress.has_passed(each["name"])), None)
    if step is None:
        raise InputError("all steps are behind; there is nothing to approve")
    name = str(step["name"])
    judged = progress.judged.get(name)
    if judged is None:
        raise InputError(f"step {name!r} has no verdict yet; approve it once its evidence is there")
    if judged.fact("outcome") != Outcome.PASS.value and name not in progress.waivers:
        raise InputError(
            f"step {name!r} did not pass ({judged.fact('outcome')}), and an approval does not mend that: "
            "change the candidate, or waive it"
        )
    wanted = [str(who) for who in step["approvals"]]
    return name, wanted or ([begun.fact("owner")] if judged.facts.get("to_approve") else [])


def waive(store: Store, rollout: str, said: Said, *, until: dt.date, step: str = "") -> str:
    """Append a waiver of a step that did not pass, and return its name.

    Parameters
    ----------
    store, rollout
        Where, and of what.
    said
        Who answers for it, and why.
    until
        The last day on which it holds.
    step
        Its name; empty for the one that suspended the rollout.

    Raises
    ------
    InputError
        When there is nothing that may be waived. What was never measured may not.
    """
    if until < said.at.date():
        raise InputError(f"--until {until} is past; give the last day on which the waiver shall hold")
    with store.writing(rollout) as writing:
        record = _begun(writing, rollout)
        progress = progress_of(record.entries)
        name = _to_waive(progress, step)
        writing.append(
            Kind.WAIVED, at=said.at, by=said.by, why=said.why, step=name, facts={"until": until.isoformat()}
        )
    return name


def _to_waive(progress: Progress, step: str) -> str:
    if progress.rollback is not None and progress.rollback.is_proven is None:
        raise InputError("the way back is being taken; finish it with 'linkwise rollout rollback' first")
    if progress.suspended is None or progress.cause is None:
        raise InputError("nothing is to be waived: the rollout is not suspended")
    if progress.cause is Cause.NO_DATA:
        raise InputError(
            "nothing was measured, and no waiver makes evidence of that; mend the measuring and resume"
        )
    if progress.cause not in _WAIVABLE:
        raise InputError(
            "a waiver is for a step that did not pass, and the rollout is suspended for another reason: "
            f"{progress.cause.value}: {progress.suspended.why}"
        )
    name = step or progress.suspended.step
    if name not in progress.judged:
        judged = [*progress.judged]
        if not judged or not step:
            raise InputError(
                f"step {name!r} has no verdict that could be waived; mend what is wrong and resume"
            )
        raise UnknownName.among(judged, kind="step with a verdict", given=name)
    if Outcome(progress.judged[name].fact("outcome")) in (Outcome.PASS, Outcome.NO_DATA):
        raise InputError(
            f"the verdict of step {name!r} is {progress.judged[name].fact('outcome')}; that is not waived"
        )
    return name


def suspend(store: Store, rollout: str, said: Said) -> bool:
    """Append that a person suspends a rollout, and return whether it was not suspended already.

    Parameters
    ----------
    store, rollout
        Where, and of what.
    said
        Who, and why.

    Raises
    ------
    InputError
        When it is done.
    """
    with store.writing(rollout) as writing:
        progress = progress_of(_begun(writing, rollout).entries)
        if progress.is_promoted:
            raise InputError(f"{rollout!r} is promoted; 'linkwise rollout rollback' is the way back")
        if progress.suspended is not None:
            return False
        writing.append(
            Kind.SUSPENDED, at=said.at, by=said.by, why=said.why, facts={"cause": Cause.PERSON.value}
        )
    return True


def _begun(writing: Writing, rollout: str) -> Record:
    record = writing.record()
    if record is None:
        raise InputError(
            f"there is no rollout {rollout!r} in this store; 'linkwise rollout run FILE' begins it"
        )
    return record
