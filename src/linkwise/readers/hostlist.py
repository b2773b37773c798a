"""Hostlist expressions of Slurm: `n[0-3,7],gpu-[001-128]` to names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from linkwise.errors import InputError
from linkwise.readers.faults import excerpt

__all__ = ["MOST_NAMES", "expand_hostlist"]

MOST_NAMES = 200_000
"""Names that one expression may stand for."""

_BRACKETS_PER_NAME = 4
_PIECE = re.compile(r"(?:[^\s,\[\]]|\[[0-9,-]*\])+")
_BRACKET = re.compile(r"\[([0-9,-]*)\]")
_RANGE = re.compile(r"(\d{1,12})(?:-(\d{1,12}))?")


def expand_hostlist(text: str) -> tuple[str, ...]:
    """Return the names that an expression stands for, in its order.

    Parameters
    ----------
    text
        Names with commas between them; a bracket holds numbers and ranges, whose leading zeros are kept.

    Raises
    ------
    InputError
        If it is no such expression, or stands for more than `MOST_NAMES` names.

    References
    ----------
    SchedMD, "Slurm Workload Manager", manual page of scontrol, "show hostnames", 2025.
    """
    names: list[str] = []
    for piece in _pieces(text):
        names += _names_of(piece, MOST_NAMES - len(names))
    return tuple(names)


def _pieces(text: str) -> Iterator[str]:
    """Yield what stands between commas outside brackets."""
    at = 0
    while at < len(text):
        match = _PIECE.match(text, at)
        if match is None or (match.end() < len(text) and text[match.end()] != ","):
            raise InputError(f"{excerpt(text[at:])} is not a list of names such as n[0-3,7],login")
        yield match[0]
        at = match.end() + 1
    if not text or text.endswith(","):
        raise InputError(f"{excerpt(text)} ends where a name is due")


def _names_of(piece: str, most: int) -> list[str]:
    """Return the names of one piece; several brackets stand for every combination."""
    parts = _BRACKET.split(piece)
    if len(parts) > 2 * _BRACKETS_PER_NAME + 1:
        raise InputError(f"{excerpt(piece)} has more than {_BRACKETS_PER_NAME} brackets")
    names = [""]
    for place, part in enumerate(parts):
        suffixes = _numbers(part, piece, most) if place % 2 else [part]
        if len(names) * len(suffixes) > most:
            raise InputError(f"{excerpt(piece)} stands for more than {MOST_NAMES:,} names")
        names = [name + suffix for name in names for suffix in suffixes]
    return names


def _numbers(bracket: str, piece: str, most: int) -> list[str]:
    numbers: list[str] = []
    for each in bracket.split(","):
        match = _RANGE.fullmatch(each)
        if match is None:
            raise InputError(f"{excerpt(each)} in {excerpt(piece)} is not a number or a range such as 0-3")
        low, high = match[1], match[2] or match[1]
        count = int(high) - int(low) + 1
        if count < 1:
            raise InputError(f"the range {each} in {excerpt(piece)} runs backwards")
        if len(numbers) + count > most:
            raise InputError(f"{excerpt(piece)} stands for more than {MOST_NAMES:,} names")
        width = len(low) if low.startswith("0") else 0
        numbers += [f"{number:0{width}d}" for number in range(int(low), int(high) + 1)]
    return numbers
