"""A cluster that was imported, as the text of a `cluster/1` document with a comment beside each key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from linkwise.cluster.document import HEADER
from linkwise.documents.reading import HEADER_KEY

__all__ = ["Line", "imported_yaml"]

_PLAIN = re.compile(r"(?!(?:true|false|null)$)[a-z][a-z0-9.+-]*")
_LONGEST_COMMENT = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One key of the document.

    Parameters
    ----------
    key
        The key; below `fabric` as ``fabric.link``.
    value
        A word, a number, or a mapping of such.
    comment
        Where it is from, or that it is assumed and why.
    """

    key: str
    value: str | float | Mapping[str, str | int]
    comment: str = ""


def imported_yaml(
    lines: Sequence[Line], *, read: Iterable[str], notes: Iterable[str], changes: Sequence[Line] = ()
) -> str:
    """Return the text of a document.

    Parameters
    ----------
    lines
        Its keys in their order.
    read
        What each file was read as.
    notes
        What no key holds: it is written as comments.
    changes
        Entries of `changes`, each a mapping; their keys do not matter.
    """
    head = ["# Imported by 'linkwise cluster import'.", *(f"# read {_one_line(each)}" for each in read)]
    body = [f"{HEADER_KEY}: {HEADER}", *_body(lines), *(["changes:"] if changes else [])]
    body += [f"  - {_value(line.value)}{_comment(line)}" for line in changes]
    foot = [f"# note: {_one_line(each)}" for each in notes]
    return "\n".join([*head, *body, *foot]) + "\n"


def _body(lines: Iterable[Line]) -> Iterator[str]:
    opened = False
    for line in lines:
        section, _, key = line.key.rpartition(".")
        if section and not opened:
            opened = True
            yield f"{section}:"
        yield f"{'  ' if section else ''}{key}: {_value(line.value)}{_comment(line)}"


def _comment(line: Line) -> str:
    return f"  # {_one_line(line.comment)}" if line.comment else ""


def _value(value: str | float | Mapping[str, str | int]) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_value(each)}' for key, each in value.items())}}}"
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) else json.dumps(value)
    return f"{value:.10g}"


def _one_line(text: str) -> str:
    """Return text that comes from strangers so that it stays within one comment."""
    plain = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return plain if len(plain) <= _LONGEST_COMMENT else plain[: _LONGEST_COMMENT - 3] + "..."
