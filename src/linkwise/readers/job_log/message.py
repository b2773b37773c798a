"""A message: what is looked for in a line, and how its parts are told."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Message", "message"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One kind of line.

    Parameters
    ----------
    name
        What `Sighting.what` says.
    literal
        A text that each such line contains; looked for first, so the rarer the better.
    pattern
        The full pattern, searched for in lines with the literal; its named groups are the fields.
    """

    name: str
    literal: str
    pattern: re.Pattern[str]


def message(name: str, literal: str, pattern: str) -> Message:
    """Return a message from the text of its pattern.

    Parameters
    ----------
    name, literal, pattern
        As of `Message`.
    """
    return Message(name=name, literal=literal, pattern=re.compile(pattern))
