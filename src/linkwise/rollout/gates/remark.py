"""One thing that a check of a rollout says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Level", "Remark"]


class Level(StrEnum):
    """How bad it is."""

    FAULT = "fault"
    """The rollout cannot do what it says."""
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """One thing that a check says.

    Parameters
    ----------
    level
        How bad it is.
    key
        Of the document that it is about.
    text
        In words, with what to do.
    """

    level: Level
    key: str
    text: str
