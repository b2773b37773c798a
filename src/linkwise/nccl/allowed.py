"""Which values a variable may have, and how NCCL reads a value that is none of them.

The words of the tables: ``any``; ``int``, with bounds ``int 1..31`` or ``int 1..``; ``one 0|1``, numbers;
``word A|B``; ``list A|B``, with commas and ``^`` before them; ``filter`` of devices or interfaces; ``path``,
a distance such as PHB; ``cidr``; ``algorithms`` and ``protocols``.

References
----------
NVIDIA, NCCL, src/misc/param.cc: numbers are read by strtoll with base 0, so that what does not start with a
number is 0, and what follows one is dropped. src/graph/tuning.cc: lists for each function from 2.24 on.
"""

from __future__ import annotations

import ipaddress
import re

from linkwise.nccl.variables import Release

__all__ = ["ALGORITHMS", "PROTOCOLS", "integer_read", "misfit"]

ALGORITHMS = ("Ring", "Tree", "CollnetDirect", "CollnetChain", "NVLS", "NVLSTree", "PAT", "Collnet")
"""Algorithms that NCCL_ALGO may name, in all releases together."""
PROTOCOLS = ("LL", "LL128", "Simple")
"""Protocols that NCCL_PROTO may name."""

_FUNCTIONS = ("broadcast", "reduce", "allgather", "reducescatter", "allreduce", "allgatherv")
_DISTANCES = ("LOC", "NVL", "PIX", "PXB", "PHB", "SYS", "PXN", "P2C", "NVB", "C2C", "NODE")
_INTEGER = re.compile(r"\s*([+-]?)(?:0[xX]([0-9a-fA-F]{1,16})|(0[0-7]{0,20})|([1-9]\d{0,18}))")
_DEVICE = re.compile(r"[\w.-]{1,64}(?::[\w-]{0,10}){0,3}")


def integer_read(value: str) -> tuple[int, bool]:
    """Return the number that NCCL reads from a text, and whether the text is that number and nothing else.

    Parameters
    ----------
    value
        The value of a variable.
    """
    match = _INTEGER.match(value)
    if match is None:
        return 0, False
    sign, hexadecimal, octal, decimal = match.groups()
    number = int(hexadecimal, 16) if hexadecimal else int(octal, 8) if octal else int(decimal)
    return -number if sign == "-" else number, not value[match.end() :].strip()


def misfit(allowed: str, value: str, release: Release) -> str | None:
    """Return why a value is not one of those allowed, or ``None`` where it is.

    Parameters
    ----------
    allowed
        What is allowed, in the words of the tables.
    value
        The value.
    release
        The release of NCCL that reads it.
    """
    kind, _, words = allowed.partition(" ")
    if kind in ("int", "one"):
        return _number_misfit(kind, words, value)
    if kind == "word":
        return _word_misfit([value], words.split("|"))
    if kind == "list":
        return _word_misfit(value.lstrip("^").split(","), words.split("|"))
    if kind == "path":
        return None if integer_read(value)[1] else _word_misfit([value], _DISTANCES)
    if kind == "cidr":
        return _network_misfit(value)
    if kind == "filter":
        return _filter_misfit(value)
    if kind in ("algorithms", "protocols"):
        return _choice_misfit(value, ALGORITHMS if kind == "algorithms" else PROTOCOLS, release)
    return None


def _number_misfit(kind: str, words: str, value: str) -> str | None:
    number, is_whole = integer_read(value)
    if not is_whole:
        return f"is not a number; NCCL reads it as {number}"
    if kind == "one":
        choices = [int(word) for word in words.split("|")]
        # -1 and -2 are how NCCL itself writes "not set".
        fits = number in choices or number in (-1, -2)
        return None if fits else f"is none of {', '.join(words.split('|'))}"
    low, _, high = words.partition("..")
    if low and number < int(low) and number not in (-1, -2):
        return f"is below {low}"
    return f"is above {high}" if high and number > int(high) else None


def _word_misfit(given: list[str], words: list[str] | tuple[str, ...]) -> str | None:
    known = {word.casefold() for word in words}
    wrong = [word for word in given if word.strip().casefold() not in known]
    return f"has {wrong[0][:40]!r}, which is none of {', '.join(words)}" if wrong else None


def _network_misfit(value: str) -> str | None:
    try:
        for part in value.split(","):
            ipaddress.ip_network(part.strip(), strict=False)
    except ValueError:
        return "is no range of addresses such as 10.0.0.0/8"
    return None


def _filter_misfit(value: str) -> str | None:
    if not value.strip():
        return "is empty"
    names = value.removeprefix("^").removeprefix("=").split(",")
    wrong = [name for name in names if not _DEVICE.fullmatch(name)]
    if not wrong:
        return None
    if any(name != name.strip() for name in wrong):
        return "has blanks between the names; NCCL takes them as part of a name"
    if any(name.startswith(("^", "=")) for name in wrong):
        return "has '^' or '=' inside the list; they count once, before the first name"
    return f"has {wrong[0][:40]!r}, which is no name of a device"


def _choice_misfit(value: str, words: tuple[str, ...], release: Release) -> str | None:
    parts = [part for part in value.split(";") if part.strip()]
    if release < (2, 24, 0):
        if ":" in value or len(parts) > 1:
            return "sets choices for each function, which releases before 2.24 cannot read"
        return _word_misfit(value.removeprefix("^").split(","), words)
    for part in parts:
        function, colon, choices = part.rpartition(":")
        if colon and function.strip().casefold() not in _FUNCTIONS:
            return f"has {function[:40]!r}, which is none of {', '.join(_FUNCTIONS)}"
        found = _word_misfit(choices.strip().removeprefix("^").split(","), words)
        if found is not None:
            return found
    return None
