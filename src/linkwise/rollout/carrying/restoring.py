"""The effects of the way back: its command, and the file that launchers read."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence

from linkwise.errors import InputError
from linkwise.rollout.canonical import canonical_text
from linkwise.rollout.carrying.acting import Acting
from linkwise.rollout.carrying.progress import Cause, progress_of
from linkwise.rollout.measuring.command_to_end import end_command, run_to_end
from linkwise.rollout.plan import Configuration
from linkwise.rollout.store.decisions import Entry, Kind
from linkwise.rollout.store.kept_configuration import promoted_json, put_back
from linkwise.rollout.store.reading import Record
from linkwise.rollout.store.verification import BASELINE
from linkwise.rollout.store.writing import Writing

__all__ = [
    "begin_rollback",
    "kept_text",
    "restore",
    "restored_configuration",
    "run_command",
    "way_to",
    "write_promoted",
]


def way_to(acting: Acting) -> str:
    """Return the digest of the configuration that a rollback restores.

    Parameters
    ----------
    acting
        What is done.
    """
    to = acting.loaded.rollout.rollback.to
    return progress_of(acting.known.entries).control if to == "control" else to


def begin_rollback(acting: Acting, *, step: str, why: str, is_told: bool = False) -> bool:
    """Write down that the way back is taken, and return whether nothing else was decided meanwhile.

    Parameters
    ----------
    acting
        What is done.
    step, why
        Where it stopped, and the reason.
    is_told
        Whether a person says so, who thereby suspends it too.
    """
    to = way_to(acting)
    kept_text(acting, to)
    progress = progress_of(acting.known.entries)
    at, by = acting.ground.clock(), acting.ground.who
    # What was promoted is no longer what others are compared with.
    ended = {BASELINE: canonical_text({"rows": []})} if progress.is_promoted else {}

    def write(writing: Writing) -> None:
        if is_told and progress.suspended is None:
            facts = {"cause": Cause.PERSON.value}
            writing.append(Kind.SUSPENDED, at=at, by=by, why=why, step=step, facts=facts)
        writing.append(Kind.ROLLBACK_BEGUN, at=at, by=by, why=why, step=step, facts={"to": to}, texts=ended)
        if ended:
            writing.put_baseline(())

    return acting.write(write)


def kept_text(acting: Acting, digest: str) -> str:
    """Return a configuration as it is kept, of this rollout or of the one that promoted it.

    Parameters
    ----------
    acting
        What is done.
    digest
        Of the configuration.

    Raises
    ------
    InputError
        When no rollout of the store has it.
    """
    found = _kept_in(acting.known, digest)
    other = None if found else acting.ground.store.promoted_in(digest)
    if other is not None:
        found = _kept_in(acting.ground.store.record(other), digest)
    if found is None:
        raise InputError(f"the store keeps no configuration {digest[:12]}; there is nothing to go back to")
    return found


def _kept_in(record: Record, digest: str) -> str | None:
    for entry in reversed(record.entries):
        for name in ("candidate", "control"):
            if name in entry.evidence and entry.fact(name) == digest:
                return record.kept[entry.evidence[name]]
    return None


def run_command(acting: Acting, argv: Sequence[str]) -> bool:
    """Run the command of a rollback to its end, and return whether nothing else was decided before it.

    Parameters
    ----------
    acting
        What is done.
    argv
        Program and arguments; no shell reads them.

    Notes
    -----
    Where this is killed, the next one ends what is left of the command and runs it again: nobody can know
    how far it came. It must be safe to run twice.
    """
    for entry in reversed(acting.known.entries):
        if entry.kind is Kind.ROLLBACK_BEGUN:
            break
        if entry.kind is Kind.COMMAND_STARTED:
            end_command(entry.fact("process_mark"))
    mark = secrets.token_hex(8)
    words = " ".join(argv)
    if not acting.decide(
        Kind.COMMAND_STARTED, why=f"the way back: {words}", facts={"argv": list(argv), "process_mark": mark}
    ):
        return False
    ended = run_to_end(argv, environment=os.environ, mark=mark, folder=acting.loaded.path.absolute().parent)

    def end(writing: Writing) -> None:
        writing.append(
            Kind.COMMAND_ENDED,
            at=acting.ground.clock(),
            by=acting.ground.who,
            why=f"{words} ended with {ended.exit_code}",
            facts={"exit_code": ended.exit_code},
            texts={"output": ended.output},
        )

    acting.note(end)
    return True


def restore(acting: Acting, to: str) -> bool:
    """Write the configuration that was there before for launchers, and say so in the log.

    Parameters
    ----------
    acting
        What is done.
    to
        Digest of the configuration.
    """
    kept = kept_text(acting, to)
    write_promoted(acting, kept)
    why = f"{acting.ground.promoted} holds configuration {to[:12]} again"
    return acting.decide(Kind.RESTORED, why=why, facts={"to": to}, texts={"configuration": kept})


def write_promoted(acting: Acting, kept: str) -> None:
    """Write the file that launchers read, so that at no time there is half of it.

    Parameters
    ----------
    acting
        What is done.
    kept
        The configuration that is in force from now on.
    """
    target = acting.ground.promoted
    text = promoted_json(
        kept,
        rollout=acting.loaded.rollout.name,
        since=acting.ground.clock().isoformat(timespec="seconds"),
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(target)


def restored_configuration(acting: Acting, begun: Entry) -> Configuration:
    """Return the configuration that a rollback restored, with files as they were kept.

    Parameters
    ----------
    acting
        What is done.
    begun
        The entry with which the rollback began.
    """
    to = begun.fact("to")
    return put_back(kept_text(acting, to), acting.ground.promoted.parent / f"promoted-{to[:12]}")
