"""The decision log: entries that each hold the digest of the one before, so that none changes alone.

The digest of an entry is over its text and its signature; a signature is over the text.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from linkwise.errors import InputError
from linkwise.rollout.canonical import canonical_text, parse_object, text_digest, texts_of

__all__ = [
    "BEFORE_THE_FIRST",
    "BOOKKEEPING",
    "Entry",
    "Kind",
    "LogHead",
    "SealedEntry",
    "Sign",
    "head_of",
    "seal",
    "unseal",
]

BEFORE_THE_FIRST = "0" * 64
"""What the first entry holds as the digest of the one before."""


class Kind(StrEnum):
    """What an entry says."""

    BEGUN = "begun"
    RUN_STARTED = "run started"
    RUN_ENDED = "run ended"
    JUDGED = "judged"
    STEP_PASSED = "step passed"
    PROMOTED = "promoted"
    SUSPENDED = "suspended"
    RESUMED = "resumed"
    FILE_ACCEPTED = "file accepted"
    APPROVED = "approved"
    WAIVED = "waived"
    ROLLBACK_BEGUN = "rollback begun"
    COMMAND_STARTED = "rollback command started"
    COMMAND_ENDED = "rollback command ended"
    RESTORED = "restored"
    ROLLBACK_VERIFIED = "rollback verified"
    ROLLBACK_UNPROVEN = "rollback unproven"
    COLLECTED = "evidence collected"


BOOKKEEPING = frozenset({Kind.RUN_STARTED, Kind.RUN_ENDED, Kind.COMMAND_STARTED})
"""Kinds that record what happened, and decide nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing that was decided or done.

    Parameters
    ----------
    number
        From 0, without a gap [1].
    rollout
        Name of the rollout.
    kind
        What it says.
    at
        When, in UTC.
    by
        Who: a person, or the person who ran the command that did it.
    why
        In words.
    step
        Name of the step; empty where it is about all.
    evidence
        What it rests on, by name: SHA-256 of texts that are in the store.
    facts
        More of it, as JSON can hold it.
    previous
        Digest of the entry before.
    signer
        Name of the key that signed it; empty where none did.
    """

    number: int
    rollout: str
    kind: Kind
    at: dt.datetime
    by: str
    why: str
    step: str = ""
    evidence: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, object] = field(default_factory=dict)
    previous: str = BEFORE_THE_FIRST
    signer: str = ""

    def fact(self, name: str) -> str:
        """Return a fact as text; empty where it is not there.

        Parameters
        ----------
        name
            Of the fact.
        """
        return str(self.facts.get(name, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedEntry:
    """An entry as it is stored.

    Parameters
    ----------
    entry
        What it says.
    text
        Its one spelling.
    digest
        SHA-256 of the text and the signature, a line each.
    signature
        Of the text by the signer, in hexadecimal; empty where nobody signed.
    """

    entry: Entry
    text: str
    digest: str
    signature: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogHead:
    """The end of a log: who knows it can tell whether the log was cut or written anew.

    Parameters
    ----------
    entries
        How many there are [1].
    digest
        Of the last one.
    """

    entries: int = 0
    digest: str = BEFORE_THE_FIRST


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """A key that signs entries.

    Parameters
    ----------
    signer
        Its name, derived from its public half.
    sign
        Returns the signature of bytes.
    """

    signer: str
    sign: Callable[[bytes], bytes]


def head_of(log: Sequence[SealedEntry]) -> LogHead:
    """Return the end of a log.

    Parameters
    ----------
    log
        All its entries.
    """
    return LogHead(entries=len(log), digest=log[-1].digest) if log else LogHead()


def seal(entry: Entry, *, sign: Sign | None = None) -> SealedEntry:
    """Return an entry as it is stored.

    Parameters
    ----------
    entry
        What it says; its signer is set here.
    sign
        The key; ``None`` to leave it unsigned.
    """
    if sign is not None:
        entry = replace(entry, signer=sign.signer)
    text = canonical_text(
        {
            "number": entry.number,
            "rollout": entry.rollout,
            "kind": entry.kind.value,
            "at": entry.at.isoformat(),
            "by": entry.by,
            "why": entry.why,
            "step": entry.step,
            "evidence": dict(entry.evidence),
            "facts": dict(entry.facts),
            "previous": entry.previous,
            "signer": entry.signer,
        }
    )
    signature = "" if sign is None else sign.sign(text.encode("ascii")).hex()
    return SealedEntry(entry=entry, text=text, digest=_digest(text, signature), signature=signature)


def unseal(text: str, *, signature: str = "") -> SealedEntry:
    """Return the entry of a stored text.

    Parameters
    ----------
    text
        As `seal` wrote it.
    signature
        As it stood beside it.

    Raises
    ------
    InputError
        When it is not.
    """
    found = parse_object(text, what="an entry of the log")
    try:
        entry = Entry(
            number=_whole(found["number"]),
            rollout=str(found["rollout"]),
            kind=Kind(found["kind"]),
            at=dt.datetime.fromisoformat(found["at"]),
            by=str(found["by"]),
            why=str(found["why"]),
            step=str(found["step"]),
            evidence=texts_of(found["evidence"], what="evidence of an entry"),
            facts=dict(found["facts"]),
            previous=str(found["previous"]),
            signer=str(found["signer"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"an entry of the log is none of ours, or was altered ({error})") from None
    return SealedEntry(entry=entry, text=text, digest=_digest(text, signature), signature=signature)


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is no number of an entry")
    return value


def _digest(text: str, signature: str) -> str:
    return text_digest(f"{text}\n{signature}")
