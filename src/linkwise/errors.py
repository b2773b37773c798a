"""Exceptions of Linkwise and the exit codes of its command line.

The tree::

    LinkwiseError                 anything Linkwise raises on purpose
    └── InputError (ValueError)   what was given cannot be used            exit code 2
        ├── UnknownName           no such GPU, system, model, link, key...
        ├── UnitError             a quantity without a unit, or with the wrong one
        ├── NotKnown              what is asked hangs on what nobody states  exit code 3
        └── DocumentError         all faults of one document, with file, line and key

*Infeasible is a value, not an exception*: no class here says that nothing fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Self

__all__ = [
    "DocumentError",
    "ExitCode",
    "Fault",
    "InputError",
    "LinkwiseError",
    "NotKnown",
    "UnitError",
    "UnknownName",
    "nearest_names",
]


class ExitCode(IntEnum):
    """Exit codes of every verb."""

    DONE = 0
    """Done, pass or healthy."""
    AGAINST = 1
    """A judgement against: a gate failed, a finding, an accuracy below what was required."""
    WRONG_INPUT = 2
    """Wrong use or input."""
    INCONCLUSIVE = 3
    """Cannot tell, suspended, or waiting for approval."""
    NOT_MEASURED = 4
    """Nothing could be measured."""
    INFEASIBLE = 5
    """No layout fits."""
    INTERRUPTED = 130
    """Stopped from the keyboard."""


class LinkwiseError(Exception):
    """Root of everything Linkwise raises on purpose."""


class InputError(LinkwiseError, ValueError):
    """What was given cannot be used; the message says why and what to do."""


class UnitError(InputError):
    """A quantity has no unit, an unknown one, or one of another dimension."""


class NotKnown(InputError):
    """The input is right, but what is asked hangs on a fact that it and the catalogue do not have."""


class UnknownName(InputError):
    """A name is not among those that exist.

    Parameters
    ----------
    kind
        What the name should name, in words of the reader: ``"GPU"``, ``"system"``.
    given
        The name as it was given.
    nearest
        The valid names closest to it, best first; may be empty.
    valid
        All valid names, where they are few enough to print.
    """

    def __init__(
        self, *, kind: str, given: str, nearest: Sequence[str] = (), valid: Sequence[str] = ()
    ) -> None:
        self.kind = kind
        self.given = given
        self.nearest = tuple(nearest)
        self.valid = tuple(valid)
        super().__init__(_unknown_name_message(kind, given, self.nearest, self.valid))

    @classmethod
    def among(cls, names: Iterable[str], *, kind: str, given: str) -> Self:
        """Return the exception for `given`, with the nearest of the valid `names` looked up.

        Parameters
        ----------
        names
            All valid names.
        kind
            What the name should name.
        given
            The name as it was given.
        """
        valid = tuple(names)
        return cls(
            kind=kind,
            given=given,
            nearest=nearest_names(given, valid),
            valid=valid if len(valid) <= _NAMES_PRINTED else (),
        )

    def __reduce__(self) -> tuple[object, ...]:
        """Return what rebuilds the exception in another process."""
        return (_rebuild_unknown_name, (self.kind, self.given, self.nearest, self.valid))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing wrong in a document.

    Parameters
    ----------
    path
        File the fault is in, or ``None`` where the text had no file.
    line
        Line counted from one, or ``None`` where it is not known.
    key
        Dotted key the fault is at; empty for the document as a whole.
    message
        What was given, why it cannot be, and what to do.
    """

    path: str | None = None
    line: int | None = None
    key: str = ""
    message: str

    def __str__(self) -> str:
        """Return the fault on one line, ``file:line: key: message``."""
        place = ":".join(str(part) for part in (self.path, self.line) if part is not None)
        return ": ".join(part for part in (place, self.key, self.message) if part)


class DocumentError(InputError):
    """All faults of one document.

    Parameters
    ----------
    faults
        The faults in the order of the document; at least one.
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))

    def __reduce__(self) -> tuple[object, ...]:
        """Return what rebuilds the exception in another process."""
        return (DocumentError, (self.faults,))


_NAMES_PRINTED = 12

_CATALOGUED = frozenset({"gpu", "system", "nic", "link", "switch", "cable", "model"})


def nearest_names(given: str, names: Iterable[str], *, count: int = 3) -> tuple[str, ...]:
    """Return the `names` closest in spelling to `given`, best first.

    Case, hyphens, underscores and spaces do not count as differences.

    Parameters
    ----------
    given
        The name as it was given.
    names
        All valid names.
    count
        How many to return at most.
    """
    import difflib

    wanted = _plain(given[:200])
    folded: dict[str, str] = {}
    for name in names:
        folded.setdefault(_plain(name), name)
    close = difflib.get_close_matches(wanted, folded, n=count, cutoff=0.6)
    if len(wanted) >= 3:
        close += [name for name in folded if wanted in name and name not in close]
    return tuple(folded[name] for name in close[:count])


def _plain(name: str) -> str:
    return name.casefold().replace("_", "-").replace(" ", "-")


def _unknown_name_message(kind: str, given: str, nearest: Sequence[str], valid: Sequence[str]) -> str:
    shown = given if len(given) <= 100 else given[:97] + "..."
    message = f"unknown {kind} {shown!r}"
    if nearest:
        message += f"; did you mean {_either(nearest)}?"
    elif valid:
        message += f"; valid: {', '.join(valid)}"
    elif kind.lower() in _CATALOGUED:
        message += f"; 'linkwise catalog {kind.lower()}' lists those there are"
    return message


def _either(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _rebuild_unknown_name(
    kind: str, given: str, nearest: tuple[str, ...], valid: tuple[str, ...]
) -> UnknownName:
    return UnknownName(kind=kind, given=given, nearest=nearest, valid=valid)
