"""Whether a decision log, and what it rests on, is as it was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from linkwise.errors import InputError
from linkwise.rollout.canonical import canonical_text, text_digest
from linkwise.rollout.store.decisions import BEFORE_THE_FIRST, Kind, LogHead, SealedEntry, unseal
from linkwise.rollout.store.signing import PublicKeys, is_signed_by

__all__ = ["BASELINE", "RUN", "LogContents", "LogRow", "flaws_of", "read_log"]

RUN = "run"
"""Name under which an entry holds the digest of a run."""
BASELINE = "baseline"
"""Name under which a promotion holds the digest of the list of runs that became the baseline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """An entry as it lies in a store or an export, not yet believed.

    Parameters
    ----------
    number
        Its place, as it stands beside it.
    text, digest, signature
        As stored.
    """

    number: int
    text: str
    digest: str
    signature: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogContents:
    """All that a log consists of, not yet believed.

    Parameters
    ----------
    rollout
        Name of the rollout.
    head
        As it stands beside the log.
    rows
        The entries.
    runs
        Texts of runs by their names.
    kept
        Other texts by their digests.
    baselines
        Rows of the baseline that the rollout left, in order.
    """

    rollout: str
    head: LogHead
    rows: tuple[LogRow, ...]
    runs: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)
    baselines: tuple[tuple[str, ...], ...] = ()


def read_log(contents: LogContents) -> tuple[SealedEntry, ...]:
    """Return the entries of a log that is as it was written.

    Parameters
    ----------
    contents
        What was found.

    Raises
    ------
    InputError
        When something in it was altered; with the first flaws.
    """
    flaws = flaws_of(contents)
    if flaws:
        raise InputError(
            f"the log of {contents.rollout!r} was altered: {flaws[0]}; nothing is decided on it: "
            "'linkwise rollout log --verify' names all flaws"
        )
    return tuple(unseal(row.text, signature=row.signature) for row in contents.rows)


def flaws_of(
    contents: LogContents, *, head: str | None = None, keys: PublicKeys | None = None
) -> tuple[str, ...]:
    """Return what is wrong with a log, in words; nothing where it is as it was written.

    Parameters
    ----------
    contents
        What was found.
    head
        Digest of an entry that somebody noted down earlier; ``None`` where nobody did.
    keys
        Of those who may sign; ``None`` to look at no signature.

    Notes
    -----
    Without `head` or `keys` a log that was written anew from the first entry on, by somebody who also writes
    its stored head, cannot be told from a true one.
    """
    found: list[SealedEntry] = []
    flaws: list[str] = []
    for place, row in enumerate(contents.rows):
        try:
            sealed = unseal(row.text, signature=row.signature)
        except InputError as error:
            flaws.append(f"entry {place}: {error}")
            continue
        flaws += (f"entry {place}: {each}" for each in _row_flaws(contents, row, sealed, place, found))
        found.append(sealed)
    flaws += _end_flaws(contents, found, head)
    flaws += _evidence_flaws(contents, found)
    flaws += _run_flaws(contents, found)
    flaws += _baseline_flaws(contents, found)
    flaws += _signature_flaws(found, keys)
    return tuple(flaws)


def _row_flaws(
    contents: LogContents, row: LogRow, sealed: SealedEntry, place: int, before: Sequence[SealedEntry]
) -> Iterator[str]:
    entry = sealed.entry
    if not row.number == entry.number == place:
        yield f"stands at {row.number} and says it is {entry.number}: one is missing, or was moved"
    if row.digest != sealed.digest:
        yield "its text or signature is not what its digest says: it was altered"
    if entry.rollout != contents.rollout:
        yield f"is of the rollout {entry.rollout!r}"
    if entry.previous != (before[-1].digest if before else BEFORE_THE_FIRST):
        yield "does not follow from the one before: an entry before it was altered, added or taken out"


def _end_flaws(contents: LogContents, found: Sequence[SealedEntry], noted: str | None) -> Iterator[str]:
    end = LogHead(entries=len(contents.rows), digest=found[-1].digest if found else BEFORE_THE_FIRST)
    if contents.head != end:
        yield (
            f"the log has {end.entries} entries and ends with {end.digest[:12]}, and its head says "
            f"{contents.head.entries} and {contents.head.digest[:12]}: the end was cut off or added to"
        )
    if noted is not None and noted not in {each.digest for each in found}:
        yield (
            f"no entry has the digest {noted[:12]} that was noted: the end was cut off, or the log was "
            "written anew"
        )


def _evidence_flaws(contents: LogContents, found: Sequence[SealedEntry]) -> Iterator[str]:
    named = set()
    for sealed in found:
        for name, digest in sealed.entry.evidence.items():
            if name == RUN:
                continue
            named.add(digest)
            if digest not in contents.kept:
                yield f"entry {sealed.entry.number}: its {name} ({digest[:12]}) is gone"
    for digest, text in contents.kept.items():
        if text_digest(text) != digest:
            yield f"the text that is kept as {digest[:12]} was altered"
        if digest not in named:
            yield f"no entry names the text that is kept as {digest[:12]}: it was added"


def _run_flaws(contents: LogContents, found: Sequence[SealedEntry]) -> Iterator[str]:
    last = {
        sealed.entry.fact("run_id"): sealed.entry.evidence.get(RUN, "")
        for sealed in found
        if sealed.entry.kind in {Kind.RUN_STARTED, Kind.RUN_ENDED}
    }
    for run_id, digest in last.items():
        if run_id not in contents.runs:
            yield f"run {run_id} is gone: it was taken out"
        elif text_digest(contents.runs[run_id]) != digest:
            yield f"run {run_id} was altered"
    for run_id in contents.runs:
        if run_id not in last:
            yield f"no entry names run {run_id}: it was added"


def _baseline_flaws(contents: LogContents, found: Sequence[SealedEntry]) -> Iterator[str]:
    promised = [each.entry.evidence[BASELINE] for each in found if BASELINE in each.entry.evidence]
    listed = canonical_text({"rows": [list(row) for row in contents.baselines]})
    if promised and text_digest(listed) != promised[-1]:
        yield "the runs of the baseline are not those that were promoted: they were altered"
    if not promised and contents.baselines:
        yield "there are runs of a baseline, and nothing was promoted: they were added"


def _signature_flaws(found: Sequence[SealedEntry], keys: PublicKeys | None) -> Iterator[str]:
    for sealed in found:
        entry = sealed.entry
        if bool(entry.signer) != bool(sealed.signature):
            yield f"entry {entry.number}: names a signer and has no signature, or the other way round"
        if keys is None:
            continue
        if entry.signer not in keys:
            who = entry.signer or "nobody"
            yield f"entry {entry.number}: is signed by {who}, whose key was not given"
        elif not is_signed_by(keys[entry.signer], text=sealed.text, signature=sealed.signature):
            yield f"entry {entry.number}: its signature is not that of {entry.signer}"
