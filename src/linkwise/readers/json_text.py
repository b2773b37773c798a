"""JSON that another program wrote, bounded."""

from __future__ import annotations

import json
from typing import Any

from linkwise.readers.faults import Faults

__all__ = ["looks_like_json", "parse_json"]

MOST_VALUES = 5_000_000
"""Values of one file that are read: the nodes of the largest Kubernetes clusters have half of that."""


def looks_like_json(text: str, *words: str) -> bool:
    """Return whether `text` starts as a JSON object and has all of some keys somewhere.

    Parameters
    ----------
    text
        The file, or its start.
    words
        The keys.
    """
    return text[:1000].lstrip().startswith("{") and all(f'"{word}"' in text for word in words)


def parse_json(text: str, faults: Faults) -> dict[str, Any]:
    """Return the object in `text`.

    Parameters
    ----------
    text
        The file.
    faults
        Of the file.

    Raises
    ------
    DocumentError
        If it is not JSON, is cut short, is nested too deep, holds too much, or is no object.
    """
    if sum(map(text.count, "[{,")) > MOST_VALUES:
        raise faults.refusal(f"holds more than {MOST_VALUES:,} values")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        cut = "; the file is cut short" if error.pos >= len(text.rstrip()) else ""
        raise faults.refusal(f"not valid JSON: {error.msg}{cut}", line=error.lineno) from None
    except RecursionError:
        raise faults.refusal("not read: nested too deep") from None
    except ValueError as error:
        raise faults.refusal(f"not valid JSON: {str(error)[:80]}") from None
    if not isinstance(value, dict):
        raise faults.refusal("is no JSON object ({...})", line=1)
    return value
