"""The variables that NCCL and its neighbours read, by release, and the nearest name of one that none reads.

References
----------
NVIDIA, NCCL user guide, "Environment Variables", and NCCL, src/ at the tags 2.3.5 to 2.30.7: `variables.csv`
names the place of each row. `companions.csv` has those that plugins, launchers and frameworks read.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from linkwise.errors import InputError, nearest_names

__all__ = [
    "NEWEST",
    "Companion",
    "Release",
    "Variable",
    "companion",
    "nearest_variables",
    "parse_release",
    "release_text",
    "variables",
]

Release = tuple[int, int, int]
"""Major, minor and patch number of a release of NCCL; 99 for the newest patch of a series."""

NEWEST: Release = (2, 30, 7)
"""The newest release whose variables are known here."""

_NEWEST_PATCH = 99


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One variable that NCCL reads.

    Attributes
    ----------
    name
        Its name.
    allowed
        Its values, in the words of `linkwise.nccl.allowed`.
    defaults
        Value where it is not set, and the release from which on, oldest first.
    since
        The first release that reads it; ``None`` for one before the oldest known.
    until
        The last release that reads it; ``None`` where the newest does.
    section
        ``system`` or ``debugging`` as the user guide sorts it; empty where the guide does not have it.
    meaning, misuse
        What it does, and what it does where it should not be set.
    source
        Where that was read.
    """

    name: str
    allowed: str
    defaults: tuple[tuple[Release | None, str], ...]
    since: Release | None
    until: Release | None
    section: str
    meaning: str
    misuse: str
    source: str

    def is_known(self, release: Release) -> bool:
        """Return whether a release reads it."""
        return (self.since is None or release >= self.since) and not self.is_gone(release)

    def is_gone(self, release: Release) -> bool:
        """Return whether a release no longer reads it; what was last seen in a series is gone in the next."""
        return self.until is not None and release[:2] > self.until[:2]

    def default(self, release: Release) -> str:
        """Return the value that holds in a release where the variable is not set."""
        held = [value for since, value in self.defaults if since is None or since <= release]
        return held[-1] if held else self.defaults[0][1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Companion:
    """A variable, or all of a prefix, that something beside NCCL reads.

    Attributes
    ----------
    name
        Its name; ``*`` at its end stands for any ending.
    owner
        What reads it.
    allowed
        Its values, in the words of `linkwise.nccl.allowed`.
    renamed
        Its name today; empty where it has kept it.
    meaning
        What it does.
    source
        Where that was read.
    """

    name: str
    owner: str
    allowed: str
    renamed: str
    meaning: str
    source: str


def parse_release(text: str) -> Release:
    """Return the release that a text such as ``2.27`` or ``2.27.3`` names.

    Parameters
    ----------
    text
        The text; without a patch number the newest patch is meant.

    Raises
    ------
    InputError
        If it names none.
    """
    match = re.fullmatch(r"\s*v?(\d{1,2})\.(\d{1,3})(?:\.(\d{1,3}))?(?:[-+].{0,40})?\s*", text)
    if match is None:
        raise InputError(f"{text[:40]!r} is not a release of NCCL; write it as 2.27 or 2.27.3")
    return int(match[1]), int(match[2]), _NEWEST_PATCH if match[3] is None else int(match[3])


def release_text(release: Release) -> str:
    """Return a release as people write it."""
    major, minor, patch = release
    return f"{major}.{minor}" if patch == _NEWEST_PATCH else f"{major}.{minor}.{patch}"


@cache
def variables() -> Mapping[str, Variable]:
    """Return all variables of NCCL by name."""
    return {row["name"]: _variable(row) for row in _rows("variables.csv")}


def companion(name: str) -> Companion | None:
    """Return what is known of a variable that something beside NCCL reads, or ``None``.

    Parameters
    ----------
    name
        Its name.
    """
    exact, prefixes = _companions()
    return exact.get(name) or next((each for start, each in prefixes if name.startswith(start)), None)


def nearest_variables(name: str, release: Release) -> tuple[str, ...]:
    """Return the known name nearest to one that nothing reads, or nothing.

    Parameters
    ----------
    name
        The name that nothing reads.
    release
        Only variables that this release reads are proposed.
    """
    known = [each.name for each in variables().values() if each.is_known(release)]
    exact, _ = _companions()
    known += [each.name for each in exact.values() if not each.renamed]
    return nearest_names(name, known, count=1)


@cache
def _companions() -> tuple[Mapping[str, Companion], tuple[tuple[str, Companion], ...]]:
    found = [Companion(**row) for row in _rows("companions.csv")]
    prefixes = tuple((each.name[:-1], each) for each in found if each.name.endswith("*"))
    return {each.name: each for each in found if not each.name.endswith("*")}, prefixes


def _rows(name: str) -> Iterator[dict[str, str]]:
    text = files("linkwise.nccl").joinpath(name).read_text(encoding="utf-8")
    yield from csv.DictReader(text.splitlines())


def _variable(row: dict[str, str]) -> Variable:
    return Variable(
        name=row["name"],
        allowed=row["allowed"],
        defaults=tuple(_default(word) for word in row["default"].split(" ")),
        since=parse_release(row["since"]) if row["since"] else None,
        until=parse_release(row["until"]) if row["until"] else None,
        section=row["section"],
        meaning=row["meaning"],
        misuse=row["misuse"],
        source=row["source"],
    )


def _default(word: str) -> tuple[Release | None, str]:
    since, separator, value = word.partition(":")
    return (parse_release(since), value) if separator else (None, word)
