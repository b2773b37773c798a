"""Going on after a stop: only where something is another than when it stopped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from linkwise.errors import InputError
from linkwise.rollout.carrying import actions
from linkwise.rollout.carrying.beginning import begin_facts, begin_texts, check_way_back
from linkwise.rollout.carrying.carrying import situation_of
from linkwise.rollout.carrying.deciding import Said, begun_entry
from linkwise.rollout.carrying.ground import Loaded
from linkwise.rollout.carrying.next_action import next_action
from linkwise.rollout.carrying.progress import Progress, progress_of
from linkwise.rollout.store.decisions import Entry, Kind
from linkwise.rollout.store.reading import Record
from linkwise.rollout.store.store import Store
from linkwise.rollout.verdicts import Outcome

__all__ = ["accept_file", "resume"]

_MEND = "change the candidate and 'resume --accept-file', or answer for it with 'linkwise rollout waive'"


def resume(store: Store, loaded: Loaded, said: Said) -> None:
    """Append that a rollout goes on.

    Parameters
    ----------
    store, loaded
        Where, and the file as it is now.
    said
        Who says so, and why.

    Raises
    ------
    InputError
        When it is not suspended, or would stop again at once, on the same evidence or for the same reason.
    """
    record = store.record(loaded.rollout.name)
    progress = progress_of(record.entries)
    _check_stopped(loaded, progress)
    if loaded.rollout.digest != progress.file:
        raise InputError(
            "the file is not the one that was accepted: look at what changed, and give --accept-file to go "
            "on with it from its first step, or put the old one back"
        )
    _check_goes_on(store, loaded, record, said)
    with store.writing(loaded.rollout.name) as writing:
        if writing.head() != record.head:
            raise InputError("something else was decided just now; look at the status and try again")
        writing.append(Kind.RESUMED, at=said.at, by=said.by, why=said.why)


def _check_stopped(loaded: Loaded, progress: Progress) -> None:
    name = loaded.rollout.name
    if progress.rollback is not None and progress.rollback.is_proven is None:
        raise InputError(
            f"the way back of {name!r} is being taken; finish it with 'linkwise rollout rollback'"
        )
    if progress.suspended is None:
        raise InputError(f"{name!r} is not suspended; 'linkwise rollout run' goes on")


def _check_goes_on(store: Store, loaded: Loaded, record: Record, said: Said) -> None:
    """Ask what would come next: a stop for the same reason means that nothing is another than it was."""
    resumed = Entry(
        number=record.head.entries,
        rollout=record.rollout,
        kind=Kind.RESUMED,
        at=said.at,
        by=said.by,
        why=said.why,
    )
    situation = situation_of(store, loaded, record, now=said.at)
    action = next_action(replace(situation, entries=(*record.entries, resumed)))
    if isinstance(action, actions.Suspend):
        raise InputError(f"it would be suspended again at once ({action.cause.value}): {action.why}")
    if isinstance(action, actions.Promote) and progress_of(record.entries).rollback is not None:
        raise InputError(
            "it was promoted and taken back, and every step is behind: to resume would promote it again "
            "with nothing measured since; change the candidate and 'resume --accept-file'"
        )
    if isinstance(action, actions.Judge) and action.verdict.outcome is not Outcome.PASS:
        raise InputError(
            f"on the evidence there is, and every run counts, step {action.verdict.step!r} is judged "
            f"{action.verdict.outcome.value} again: {action.verdict.sentence} To go on, {_MEND}"
        )


def accept_file(store: Store, loaded: Loaded, said: Said) -> None:
    """Append that a rollout goes on with another file, from its first step.

    Parameters
    ----------
    store, loaded
        Where, and the file as it is now.
    said
        Who says so, and why.

    Raises
    ------
    InputError
        When it is the file that is accepted already, or its candidate has failed.

    Notes
    -----
    What was measured of the same candidate counts on. A candidate that failed a step cannot come back with
    another bar: only a waiver lets it pass.
    """
    record = store.record(loaded.rollout.name)
    progress = progress_of(record.entries)
    if progress.rollback is not None and progress.rollback.is_proven is None:
        _check_stopped(loaded, progress)
    if loaded.rollout.digest == progress.file:
        raise InputError("the file is the one that is accepted already; leave --accept-file out")
    check_way_back(loaded, store)
    for why in _obstacles(loaded, record):
        raise InputError(why)
    with store.writing(loaded.rollout.name) as writing:
        if writing.head() != record.head:
            raise InputError("something else was decided just now; look at the status and try again")
        writing.append(
            Kind.FILE_ACCEPTED,
            at=said.at,
            by=said.by,
            why=said.why,
            facts=begin_facts(loaded),
            texts=begin_texts(loaded),
        )


def _obstacles(loaded: Loaded, record: Record) -> Iterator[str]:
    candidate, control = loaded.rollout.candidate.digest, loaded.rollout.control.digest
    failed = _failed(record.entries)
    if candidate in failed:
        entry = failed[candidate]
        yield (
            f"the candidate is the one that failed step {entry.step!r} (entry {entry.number}: "
            f"{entry.why}); a file with another bar does not change that: {_MEND}"
        )
    begun = [each for each in record.entries if each.kind in (Kind.BEGUN, Kind.FILE_ACCEPTED)]
    if any(each.fact("candidate") == candidate and each.fact("control") != control for each in begun):
        yield (
            "the candidate was measured in turns with another control, and the pairs would be broken; put "
            "that control back, or give the rollout another name"
        )
    before = {each["name"]: each["target"] for each in _steps(begun_entry(record))}
    measured = {run.step for run in record.runs}
    for name, size in loaded.sizes.items():
        if name in measured and before.get(name, size.words) != size.words:
            yield (
                f"step {name!r} was measured on {before[name]} and is on {size.words} now; give it "
                "another name"
            )


def _steps(begun: Entry) -> list[dict[str, str]]:
    stated = begun.facts.get("steps")
    return stated if isinstance(stated, list) else []


def _failed(entries: Sequence[Entry]) -> dict[str, Entry]:
    """Return the verdicts of candidates that failed and were not waived, by their digest."""
    failed: dict[str, Entry] = {}
    candidate = ""
    for entry in entries:
        if entry.kind in (Kind.BEGUN, Kind.FILE_ACCEPTED):
            candidate = entry.fact("candidate")
        if entry.kind is Kind.JUDGED and entry.fact("outcome") == Outcome.FAIL.value:
            failed[candidate] = entry
        if entry.kind is Kind.WAIVED and candidate in failed and failed[candidate].step == entry.step:
            del failed[candidate]
    return failed
