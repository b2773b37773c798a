"""Collectives and sizes as they are named on the command line."""

from __future__ import annotations

from linkwise.errors import InputError, UnknownName

__all__ = ["collective_named", "size_of", "sizes_of"]

_LARGEST_BYTES = 2**63 - 1


def collective_named(text: str) -> str:
    """Return the collective of that name; case, hyphens and underscores do not count.

    Parameters
    ----------
    text
        As it was given.

    Raises
    ------
    UnknownName
        When there is none.
    """
    from linkwise.network.setting import OPERATIONS

    plain = {name.replace("_", ""): name for name in OPERATIONS}
    try:
        return plain[text.lower().replace("_", "").replace("-", "")]
    except KeyError:
        raise UnknownName.among(OPERATIONS, kind="collective", given=text) from None


def sizes_of(text: str) -> list[int]:
    """Return the sizes of ``--sizes``: FROM:TO, doubling, or with commas between [bytes].

    Parameters
    ----------
    text
        As it was given.

    Raises
    ------
    InputError
        When one is no size of a buffer or given twice, or the first is larger than the last.
    """
    if ":" not in text:
        return _listed(text)
    low, high = (size_of(word, "--sizes") for word in text.split(":", 1))
    if low > high:
        raise InputError(f"--sizes {text}: the first size is larger than the last; write it as 8B:16GiB")
    sizes = [low]
    while sizes[-1] * 2 <= high:
        sizes.append(sizes[-1] * 2)
    return sizes


def _listed(text: str) -> list[int]:
    listed: dict[int, None] = {}
    for size in (size_of(word, "--sizes") for word in text.split(",")):
        if size in listed:
            raise InputError(f"--sizes {text}: {size:,} bytes are given twice; leave one out")
        listed[size] = None
    return list(listed)


def size_of(word: str, option: str) -> int:
    """Return one size [bytes].

    Parameters
    ----------
    word
        As it was given, with a unit.
    option
        The option, for the message.

    Raises
    ------
    InputError
        When it is no size of a buffer.
    """
    from linkwise.units import parse

    try:
        size = parse(word.strip(), "bytes")
    except InputError as error:
        raise InputError(f"{option}: {error}") from None
    if not 1 <= size <= _LARGEST_BYTES:
        largest = "the largest below 8,388,608 TiB"
        raise InputError(f"{option}: {word.strip()} is no size of a buffer; the least is 1 byte, {largest}")
    if not size.is_integer():
        raise InputError(f"{option}: {word.strip()} is not a whole number of bytes")
    return int(size)
