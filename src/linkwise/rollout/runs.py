"""What was measured for a step: runs with their samples, and what they rest on."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["RunState", "Side", "StepRun"]


class Side(StrEnum):
    """Which configuration ran."""

    CANDIDATE = "candidate"
    CONTROL = "control"
    PROMOTED = "promoted"
    """What a rollback restored."""


class RunState(StrEnum):
    """How far a run came."""

    STARTED = "started"
    """Nobody has written down its end yet."""
    VALID = "valid"
    INVALID = "invalid"
    """It ended, but it was not what was planned: it never counts as data."""
    FAILED = "failed"
    CUT = "cut"
    """Whoever ran it was killed; what it said is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRun:
    """One run of one workload: the unit that verdicts count.

    Parameters
    ----------
    run_id
        Unlike that of any other.
    step
        Name of the step.
    workload
        SHA-256 of the workload; objectives of one workload share its runs.
    side
        Which configuration ran.
    configuration
        Digest of the configuration.
    turn
        Place in the order of all runs of the step under one candidate, from 0 and without a gap. The k-th run
        of the candidate and the k-th of the control are a pair, made in the order A B B A.
    is_warmup
        Whether it is left out of all verdicts, as planned beforehand.
    state
        How far it came.
    reason
        Why it is no valid run, in words; empty for one.
    samples
        By name of the metric, in its unit, in the order they were taken; all of them.
    predictions
        What the model says of each metric; absent where it says nothing.
    started, ended
        In UTC; ``ended`` is ``None`` while nobody knows.
    gpu_s
        GPU-seconds it held [s].
    gpus
        GPUs, or ranks where there are none, that took part [1]; 0 where nobody wrote it down.
    nodes
        Names of the nodes it ran on.
    record
        Where its record lies; empty for none.
    record_digest
        SHA-256 of the record; empty for none.
    seen
        What was seen of the cluster, by the names of `plan.Scope.fingerprint`; of what was not seen, nothing.
    """

    run_id: str
    step: str
    workload: str
    side: Side
    configuration: str
    turn: int
    is_warmup: bool = False
    state: RunState
    reason: str = ""
    samples: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    predictions: Mapping[str, float] = field(default_factory=dict)
    started: dt.datetime
    ended: dt.datetime | None = None
    gpu_s: float = 0.0
    gpus: int = 0
    nodes: tuple[str, ...] = ()
    record: str = ""
    record_digest: str = ""
    seen: Mapping[str, str] = field(default_factory=dict)
