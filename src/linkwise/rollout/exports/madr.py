"""Decisions as Markdown in the layout of MADR 4, one file each, with the evidence by its digest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from linkwise.rollout.store.decisions import BOOKKEEPING, Entry, Kind, SealedEntry
from linkwise.rollout.store.reading import Record
from linkwise.rollout.store.verdict_text import verdict_of_text
from linkwise.rollout.verdicts import Outcome

__all__ = ["madr_files"]

_TITLES: Mapping[Kind, str] = {
    Kind.BEGUN: "Begin the rollout",
    Kind.JUDGED: "Judge step {step}: {outcome}",
    Kind.STEP_PASSED: "Go on after step {step}",
    Kind.PROMOTED: "Promote the candidate",
    Kind.SUSPENDED: "Suspend the rollout ({cause})",
    Kind.RESUMED: "Resume the rollout",
    Kind.FILE_ACCEPTED: "Accept another rollout file",
    Kind.APPROVED: "Approve step {step}",
    Kind.WAIVED: "Waive step {step} until {until}",
    Kind.ROLLBACK_BEGUN: "Take the way back",
    Kind.COMMAND_ENDED: "Run the command of the rollback",
    Kind.RESTORED: "Restore what was promoted before",
    Kind.ROLLBACK_VERIFIED: "Call the way back proven",
    Kind.ROLLBACK_UNPROVEN: "Call the way back not proven",
    Kind.COLLECTED: "Collect evidence of an incident",
}
_OPTIONS: Mapping[Kind, tuple[str, ...]] = {
    Kind.JUDGED: tuple(each.value for each in Outcome),
    Kind.STEP_PASSED: ("go on", "wait for an approval"),
    Kind.PROMOTED: ("promote", "stay at the last step"),
    Kind.SUSPENDED: ("suspend", "go on"),
    Kind.RESUMED: ("resume", "stay suspended", "take the way back"),
    Kind.FILE_ACCEPTED: ("go on with the new file from its first step", "put the old file back"),
    Kind.APPROVED: ("approve", "leave it waiting", "suspend"),
    Kind.WAIVED: ("waive", "change the candidate", "take the way back"),
    Kind.ROLLBACK_BEGUN: ("take the way back", "stay suspended"),
}


def madr_files(record: Record) -> dict[str, str]:
    """Return a file for each decision and one that lists them, by their names.

    Parameters
    ----------
    record
        Of a rollout.
    """
    files = {}
    decided = [each for each in record.log if each.entry.kind not in BOOKKEEPING]
    for sealed in decided:
        files[_name(sealed.entry)] = "\n".join(_lines(record, sealed)) + "\n"
    rows = "".join(f"- [{_title(each.entry)}]({_name(each.entry)})\n" for each in decided)
    files["README.md"] = (
        f"# Decisions of the rollout {_plain(record.rollout)}\n\n{rows}\n"
        f"Log of {record.head.entries} entries, head `{record.head.digest}`.\n"
    )
    return files


def _name(entry: Entry) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", _title(entry).lower()).strip("-")
    return f"{entry.number:04d}-{words[:60].rstrip('-')}.md"


def _title(entry: Entry) -> str:
    facts = {name: _plain(entry.fact(name)) for name in ("outcome", "cause", "until")}
    return _TITLES.get(entry.kind, entry.kind.value).format(step=_plain(entry.step), **facts)


def _lines(record: Record, sealed: SealedEntry) -> Iterator[str]:
    entry = sealed.entry
    yield from (
        "---",
        "status: accepted",
        f"date: {entry.at:%Y-%m-%d}",
        f"decision-makers: {_quoted(entry.by)}",
        "---",
        "",
        f"# {_title(entry)}",
        "",
        "## Context and Problem Statement",
        "",
        _context(record, entry),
        "",
    )
    drivers = list(_drivers(record, entry))
    if drivers:
        yield from ("## Decision Drivers", "", *drivers, "")
    options = _OPTIONS.get(entry.kind, ())
    if options:
        yield from ("## Considered Options", "", *(f"* {each}" for each in options), "")
    yield from (
        "## Decision Outcome",
        "",
        f"{_outcome(entry)}: {_plain(entry.why)}",
        "",
        "### Confirmation",
        "",
    )
    yield from _confirmation(sealed)


def _context(record: Record, entry: Entry) -> str:
    begun = next(
        each
        for each in reversed(record.entries[: entry.number + 1])
        if each.kind in (Kind.BEGUN, Kind.FILE_ACCEPTED)
    )
    step = f" Step {_plain(entry.step)} is under way." if entry.step else ""
    return (
        f"{_plain(begun.fact('change'))} goes out to {_plain(begun.fact('scope'))} as the rollout "
        f"{_plain(record.rollout)}; {_plain(begun.fact('owner'))} answers for it.{step}"
    )


def _drivers(record: Record, entry: Entry) -> Iterator[str]:
    """Yield what the verdict behind a decision says of each objective."""
    before = record.entries[: entry.number + 1]
    judged = next(
        (each for each in reversed(before) if each.kind is Kind.JUDGED and each.step == entry.step), None
    )
    own = entry if "verdict" in entry.evidence else judged
    if own is None or "verdict" not in own.evidence:
        return
    for each in verdict_of_text(record.kept[own.evidence["verdict"]]).objectives:
        yield f"* {_plain(each.sentence)}"


def _outcome(entry: Entry) -> str:
    options = _OPTIONS.get(entry.kind, ())
    chosen = entry.fact("outcome") if entry.kind is Kind.JUDGED else options[0] if options else "Done"
    return f'Chosen option: "{chosen}"' if options else chosen


def _confirmation(sealed: SealedEntry) -> Iterator[str]:
    entry = sealed.entry
    yield f"* entry {entry.number} of the log, digest `{sealed.digest}`, after `{entry.previous}`"
    yield f"* {entry.at.isoformat(timespec='seconds')}"
    for name, digest in entry.evidence.items():
        yield f"* {_plain(name)}: `{digest}`"
    if entry.signer:
        yield f"* signed by `{_plain(entry.signer)}`"


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    words = " ".join(text.split())
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", words)


def _quoted(text: str) -> str:
    return "'" + " ".join(text.split()).replace("'", "''") + "'"
