"""One spelling of every value as JSON, over which digests are taken."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from linkwise.errors import InputError

__all__ = ["canonical_text", "number_of", "number_word", "parse_object", "text_digest", "texts_of"]


def canonical_text(value: object) -> str:
    """Return the one spelling of a value as JSON: keys sorted, no blanks, ASCII only.

    Parameters
    ----------
    value
        Of mappings with text as keys, lists, text, finite numbers, booleans and ``None``.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def text_digest(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8, in hexadecimal.

    Parameters
    ----------
    text
        The text; bytes that were no text count as they were.
    """
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def parse_object(text: str, *, what: str) -> dict[str, Any]:
    """Return a JSON object that is in its one spelling.

    Parameters
    ----------
    text
        The text.
    what
        What it should be, for the message.

    Raises
    ------
    InputError
        When it is no JSON, no object, or spelled in another way than it was written.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
        is_same = isinstance(value, dict) and canonical_text(value) == text
    except (ValueError, RecursionError):
        raise InputError(f"{what} is no JSON object; it was altered, or it is none of ours") from None
    if not is_same:
        raise InputError(f"{what} is not spelled as it was written; it was altered")
    return dict(value)


def _refuse_constant(word: str) -> float:
    raise ValueError(word)


def number_word(value: float) -> float | str:
    """Return a number as JSON can hold it: what is not finite as its word.

    Parameters
    ----------
    value
        Any number: a loss may be no number at all.
    """
    return value if math.isfinite(value) else str(value)


def number_of(value: object) -> float:
    """Return the number that `number_word` was given.

    Parameters
    ----------
    value
        What stood in the JSON.

    Raises
    ------
    InputError
        When it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InputError(f"{value!r} is no number; it was altered, or it is none of ours")
    if isinstance(value, str) and value not in ("nan", "inf", "-inf"):
        raise InputError(f"{value!r} is no number; it was altered, or it is none of ours")
    return float(value)


def texts_of(value: object, *, what: str) -> dict[str, str]:
    """Return a mapping of text to text.

    Parameters
    ----------
    value
        What stood in the JSON.
    what
        What it should be, for the message.

    Raises
    ------
    InputError
        When it is none.
    """
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value.values()):
        raise InputError(f"{what} is no mapping of text; it was altered, or it is none of ours")
    return {str(key): each for key, each in value.items()}
