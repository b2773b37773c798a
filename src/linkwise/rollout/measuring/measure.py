"""What a rollout asks of whoever measures for it, and what it gets back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from linkwise.rollout.plan import Configuration, Scope, Step, ValidRun, Workload
from linkwise.rollout.runs import Side, StepRun

__all__ = ["Measure", "RunRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One run that is wanted.

    Parameters
    ----------
    run_id
        Unlike that of any other; it is in the store before the run starts.
    step, workload, workload_digest
        For what it is run, and what.
    metrics
        Names of the metrics that objectives need of it.
    side, configuration
        Which configuration runs. Whoever measures puts it in force first, by its command where it has one.
    scope, valid_run
        Where it runs, and what it must show.
    turn, is_warmup
        As in `StepRun`.
    folder
        Its own, which does not exist yet; kept with the evidence.
    """

    run_id: str
    step: Step
    workload: Workload
    workload_digest: str
    metrics: tuple[str, ...]
    side: Side
    configuration: Configuration
    scope: Scope
    valid_run: ValidRun
    turn: int
    is_warmup: bool
    folder: Path


class Measure(Protocol):
    """Who measures: a machine, a Slurm cluster, a lab, or a folder of recorded runs."""

    def measure(self, request: RunRequest) -> StepRun:
        """Return the run once it has ended, well or not; bad ends are states, not exceptions.

        Parameters
        ----------
        request
            What is wanted.
        """
        ...

    def recover(self, request: RunRequest) -> StepRun | None:
        """Return what a run left on disk whose keeper was killed, after stopping what still runs of it.

        Parameters
        ----------
        request
            As it was when the run was started; ``None`` comes back where nothing was started.
        """
        ...
