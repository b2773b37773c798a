"""A job that `linkwise launch` ran, from its record: what the comparison with a plan needs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from linkwise.readers.faults import Faults, excerpt
from linkwise.readers.json_text import looks_like_json, parse_json

__all__ = ["LaunchedRun", "is_launch_record", "parse_launch_record", "unlike_planned"]

SCHEMA = "linkwise.launch/1"
_MOST_STEPS = 100_000
_MOST_RANKS = 10_000_000
_LARGEST = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedRun:
    """A launched job.

    Attributes
    ----------
    device
        ``cuda`` or ``cpu``.
    ranks
        As planned [1].
    tokens_per_step
        As planned, over all ranks [tokens].
    outcome, reason
        How it ended, ``done`` where it ended well.
    is_valid
        Whether it was seen to be what was planned; ``None`` while it runs.
    unlike
        What was not seen as planned, in words.
    findings
        Causes that the doctor found, worst first.
    step_times_s
        In order [s].
    """

    device: str
    ranks: int
    tokens_per_step: int
    outcome: str
    reason: str
    is_valid: bool | None
    unlike: tuple[str, ...]
    findings: tuple[str, ...]
    step_times_s: tuple[float, ...]

    @property
    def hindrance(self) -> tuple[str, str]:
        """Return ``invalid`` or ``cannot tell`` and why, where it is not compared; else empty texts."""
        if self.outcome != "done":
            return "invalid", f"the job did not end well ({self.outcome}: {self.reason})"
        if self.is_valid is not True:
            return "invalid", "; ".join(self.unlike[:3]) or "nothing shows that it ran as planned"
        if self.device != "cuda":
            return "cannot tell", "its ranks computed on CPUs, and the estimate is of the GPUs of the cluster"
        return "", ""


def is_launch_record(text: str) -> bool:
    """Return whether a text is the record of a launch, or starts as one.

    Parameters
    ----------
    text
        The file.
    """
    return looks_like_json(text, SCHEMA)


def parse_launch_record(text: str, *, path: str | None = None) -> LaunchedRun:
    """Return the run that a record tells of.

    Parameters
    ----------
    text
        The ``record.json`` of a run folder.
    path
        The file it came from, for messages.

    Raises
    ------
    DocumentError
        If it is another kind of record, or a value cannot be.
    """
    faults = Faults(path=path)
    record = parse_json(text, faults)
    if record.get("schema") != SCHEMA:
        raise faults.refusal(f"schema is {excerpt(str(record.get('schema')))}, not {SCHEMA}", key="schema")
    expected, predicted = _object(record, "expected"), _object(record, "predicted")
    ranks = _whole(expected, "nodes", faults) * _whole(expected, "ranks_per_node", faults)
    if ranks > _MOST_RANKS:
        faults.add(f"{ranks} is no number of ranks", key="expected")
    found = LaunchedRun(
        device="cpu" if expected.get("device") == "cpu" else "cuda",
        ranks=ranks,
        tokens_per_step=_whole(predicted, "tokens_per_step", faults),
        outcome=str(record.get("outcome"))[:40],
        reason=str(record.get("reason"))[:400],
        is_valid=record.get("valid") if isinstance(record.get("valid"), bool) else None,
        unlike=unlike_planned(record.get("checks")),
        findings=tuple(str(each)[:80] for each in _list(record, "findings")),
        step_times_s=tuple(_times(record, faults)),
    )
    faults.raise_any()
    return found


def unlike_planned(checks: object) -> tuple[str, ...]:
    """Return what checks of a run say is not proved to be as planned, a few words each.

    Parameters
    ----------
    checks
        As a record holds them.
    """
    told = [each for each in (checks if isinstance(checks, list) else ()) if isinstance(each, dict)]
    words = [[str(each.get(key))[:200] for key in ("what", "seen", "planned")] for each in told
             if each.get("is_as_planned") is not True]  # fmt: skip
    return tuple(f"{what}: {seen}, planned: {planned}" for what, seen, planned in words)


def _times(record: Mapping[str, Any], faults: Faults) -> list[float]:
    samples = _list(record, "samples")
    if len(samples) > _MOST_STEPS:
        raise faults.refusal(f"has more than {_MOST_STEPS:,} steps", key="samples")
    found = []
    for number, each in enumerate(samples):
        value = each.get("time_s") if isinstance(each, dict) else None
        if isinstance(value, int | float) and math.isfinite(value) and 0 < value < _LARGEST:
            found.append(float(value))
        else:
            faults.add("holds what is no time above zero", key=f"samples.{number}.time_s")
    return found


def _object(record: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = record.get(key)
    return value if isinstance(value, dict) else {}


def _list(record: Mapping[str, Any], key: str) -> list[Any]:
    value = record.get(key)
    return value if isinstance(value, list) else []


def _whole(values: Mapping[str, Any], key: str, faults: Faults) -> int:
    value = values.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**60:
        return value
    faults.add(f"{excerpt(str(value))} is no count above zero", key=key)
    return 1
