"""How often something is measured, and the samples that came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from linkwise.errors import InputError
from linkwise.evidence.median import LEAST_SAMPLES

__all__ = ["Sampling", "positive_seconds"]

_SAMPLE_S = 0.01
_MOST_CALLS = 100
_MOST_REPEATS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How often each thing is measured.

    Parameters
    ----------
    repeats
        Samples of each size; five at least [1].
    warmup
        Calls before the first that is timed [1].
    calls
        Calls that one sample times in a row; by default as many as last 10 ms, 100 at most [1].

    Raises
    ------
    InputError
        When five repeats are not reached, or one of them is absurd.
    """

    repeats: int = 9
    warmup: int = 5
    calls: int | None = None

    def __post_init__(self) -> None:
        """Refuse too few repeats."""
        if self.repeats < LEAST_SAMPLES:
            raise InputError(
                f"--repeats {self.repeats}: at least {LEAST_SAMPLES} are needed; fewer have no interval"
            )
        if self.repeats > _MOST_REPEATS:
            raise InputError(f"--repeats {self.repeats}: {_MOST_REPEATS:,} are the most")

    def told(self) -> dict[str, object]:
        """Return it as ranks read it."""
        return {
            "repeats": self.repeats,
            "warmup": self.warmup,
            "calls": self.calls,
            "sample_s": _SAMPLE_S,
            "most_calls": _MOST_CALLS,
        }


def positive_seconds(event: Mapping[str, object], name: str) -> float:
    """Return a time that a rank said [s].

    Parameters
    ----------
    event
        What it said.
    name
        Of the time.

    Raises
    ------
    InputError
        When it is no time.
    """
    value = event.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise InputError(f"a rank said {name} {value!r}, which is no time; was another job's output read?")
    return float(value)
