"""The record of a launched job: what was planned, where it runs, what was seen, how it ended."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field

from linkwise.launch.run.ending import Ending, Outcome
from linkwise.launch.run.proof import Check, Expected, is_valid
from linkwise.launch.run.steps import TrainedStep

__all__ = ["WARM_UP_STEPS", "LaunchRecord", "Prediction", "Witnessed"]

WARM_UP_STEPS = 2
"""First steps that no median counts: they connect, allocate and compile; assumed [1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a step should take.

    Parameters
    ----------
    step_time_s, step_time_low_s, step_time_high_s
        Time and its interval [s].
    tokens_per_step
        All GPUs together [tokens].
    steps
        As planned; ``None`` where the program is the user's own and may do others [1].
    sequences_per_step
        All GPUs together; ``None`` in records of before it was kept [1].
    """

    step_time_s: float
    step_time_low_s: float
    step_time_high_s: float
    tokens_per_step: int
    steps: int | None
    sequences_per_step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Witnessed:
    """What was seen of a run.

    Parameters
    ----------
    hosts
        Those that ranks ran on.
    versions
        Of Linkwise and of what the nodes have, alike on all.
    transports
        What is in use by the log of NCCL, by the names of the doctor.
    findings
        Causes that the doctor found, worst first.
    verdict
        That of the doctor; empty without a log of NCCL.
    checks
        What was planned beside what was seen.
    steps
        That the program told of.
    """

    hosts: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    transports: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[str, ...] = ()
    verdict: str = ""
    checks: tuple[Check, ...] = ()
    steps: tuple[TrainedStep, ...] = ()


_RUNNING = Ending(outcome=Outcome.RUNNING)
_NOTHING = Witnessed()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRecord:
    """How a job was launched, and what came of it.

    Parameters
    ----------
    run_id
        Unlike that of any other run.
    name
        Of the job.
    place
        ``local``, ``slurm`` or ``lab``.
    handle
        How it is found there again: a process, or the number of a Slurm job; empty before it starts.
    argv
        What was started.
    plan_digest
        SHA-256 of the files that were rendered.
    expected, prediction
        What was planned.
    notes
        What launch did on its own, and why.
    started, ended
        In UTC; ``ended`` is ``None`` while it runs.
    ending
        How it ended.
    witnessed
        What was seen.
    """

    run_id: str
    name: str
    place: str
    handle: str
    argv: tuple[str, ...]
    plan_digest: str
    expected: Expected
    prediction: Prediction
    notes: tuple[str, ...] = ()
    started: dt.datetime
    ended: dt.datetime | None = None
    ending: Ending = _RUNNING
    witnessed: Witnessed = _NOTHING

    @property
    def is_over(self) -> bool:
        """Return whether it has ended."""
        return self.ending.outcome is not Outcome.RUNNING

    @property
    def is_valid(self) -> bool | None:
        """Return whether it was what was planned; ``None`` while it runs."""
        return is_valid(self.witnessed.checks) if self.is_over else None

    @property
    def counted_times_s(self) -> tuple[float, ...]:
        """Return the step times that a median may count: none of an invalid run, nor of its warm-up [s]."""
        if not self.is_valid or self.ending.outcome is not Outcome.DONE:
            return ()
        return tuple(each.time_s for each in self.witnessed.steps[WARM_UP_STEPS:])
