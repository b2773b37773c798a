"""What a rollout is, as values: the change, its objectives, its steps, and the way back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from linkwise.rollout.objective import (
    Against,
    Aggregate,
    Comparison,
    Dimension,
    Objective,
    Reason,
    Severity,
    Workload,
    WorkloadKind,
)

__all__ = [
    "COLLECTED",
    "PROOFS",
    "Against",
    "Aggregate",
    "Change",
    "Comparison",
    "Configuration",
    "Dimension",
    "Incident",
    "Limits",
    "Objective",
    "Reaction",
    "Reactions",
    "Reason",
    "Rollback",
    "Rollout",
    "Sampling",
    "Scope",
    "Severity",
    "Step",
    "Target",
    "TargetKind",
    "ValidRun",
    "Workload",
    "WorkloadKind",
]


PROOFS: Mapping[str, str] = {
    "world_size": "world size",
    "hosts": "hosts",
    "environment": "environment",
    "ranks_of_nccl": "ranks of NCCL",
    "inside_a_node": "inside a node",
    "between_nodes": "between nodes",
    "gpudirect_rdma": "GPUDirect RDMA",
    "transport": "transport",
    "interface": "interface",
}
"""Checks of a run as a document names them, and as `linkwise.launch.run.proof` does."""

COLLECTED: Mapping[str, str] = {
    "decisions": "the decision log with its head digest",
    "runs": "every run with its samples",
    "records": "the folders of the runs: records, logs, rendered files",
    "configurations": "candidate, control and what was promoted last",
    "fingerprint": "what was seen of the cluster, and how it differs from what is promised",
    "host": "what linkwise collect gathers on this machine",
}
"""What may go into the archive of an incident."""


class TargetKind(StrEnum):
    """In what the size of a step is counted."""

    GPUS = "gpus"
    NODES = "nodes"
    PAIRS = "pairs"
    """Of nodes: twice as many nodes."""
    LEAVES = "leaves"
    FRACTION = "fraction"


class Reaction(StrEnum):
    """What follows from a verdict that is no pass."""

    SUSPEND = "suspend"
    ROLL_BACK = "roll-back"
    """Suspend, and restore what was promoted last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What is run: the thing that is changed, and what it was before.

    Parameters
    ----------
    settings
        Variables of the environment.
    job
        Path of the job document, absolute; empty where none is needed.
    layout
        Layout of the job over that of its document, as ``key: value``; empty to take the document's.
    script
        Path of what is started instead of the framework's program, absolute; empty for that.
    python
        The Python that has torch; empty for that of Linkwise.
    command
        Argv that puts it in force; empty where the settings are all.
    digest
        SHA-256 over all of it, with the contents of the files it names in place of where they lie.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    job: str = ""
    layout: Mapping[str, object] = field(default_factory=dict)
    script: str = ""
    python: str = ""
    command: tuple[str, ...] = ()
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """How much of the cluster a step touches.

    Parameters
    ----------
    kind
        In what it is counted.
    amount
        How many [1], or the fraction of nodes for FRACTION [1].
    """

    kind: TargetKind
    amount: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step, which is a gate.

    Parameters
    ----------
    name
        Unlike that of any other step.
    target
        What it touches.
    objectives
        Names; those that are judged.
    soak_s
        How long it must have run before it is judged [s].
    approvals
        Who must approve before the next step, by role or name.
    """

    name: str
    target: Target
    objectives: tuple[str, ...]
    soak_s: float = 0.0
    approvals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How often each objective is measured.

    Parameters
    ----------
    repeats, most_repeats
        Runs at first, and after more were added while it is undecided [1].
    warmup
        Runs before the first that counts [1].
    budget_gpu_s
        GPU-seconds that one step may spend on tests; ``None`` for no limit [s].
    """

    repeats: int = 5
    most_repeats: int = 15
    warmup: int = 1
    budget_gpu_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidRun:
    """What a run must show to count; each is on unless the file says why not.

    Parameters
    ----------
    checks
        Of `PROOFS`, in the words of `linkwise.launch.run.proof`: those that must be met wherever they apply.
    left_out
        Those that need not, each with the reason.
    most_noise_fraction
        Spread within a run, over its median, above which it does not count [1]; ``None`` for any.
    least_valid_fraction
        Of all runs that were started, those that must count; with fewer nothing is judged [1].
    """

    checks: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    most_noise_fraction: float | None = None
    least_valid_fraction: float = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Reactions:
    """What follows from each verdict that is no pass."""

    fail: Reaction = Reaction.SUSPEND
    inconclusive: Reaction = Reaction.SUSPEND
    error: Reaction = Reaction.SUSPEND
    no_data: Reaction = Reaction.SUSPEND


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the rollout may not exceed.

    Parameters
    ----------
    most_nodes
        Nodes that may be touched in all [1]; ``None`` for no limit.
    most_failures, within_s
        Failed runs within a time after which nothing is started [1], [s]; ``None`` for no limit.
    """

    most_nodes: int | None = None
    most_failures: int | None = None
    within_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """The way back.

    Parameters
    ----------
    to
        ``control``, or the digest of a configuration.
    command
        Argv that restores it; empty where the settings are all.
    rehearsed
        The day it was tried; ``None`` for never.
    verify
        Names of the objectives that prove it.
    """

    to: str = "control"
    command: tuple[str, ...] = ()
    rehearsed: dt.date | None = None
    verify: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """What is ready for the worst.

    Parameters
    ----------
    page
        Whom to call.
    runbook
        Where the steps are written down.
    collect
        Kinds of evidence, of `COLLECTED`.
    """

    page: tuple[str, ...] = ()
    runbook: str = ""
    collect: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What goes out.

    Parameters
    ----------
    what
        In words.
    kind
        Such as ``nccl``, ``driver``, ``firmware``, ``topology``, ``layout``, ``scale``.
    reference
        Of a ticket; empty for none.
    """

    what: str
    kind: str
    reference: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Where the rollout is valid.

    Parameters
    ----------
    cluster
        Path of the cluster document, absolute, or ``SYSTEM:NODES``.
    prices
        Path of the list of prices, absolute; empty without one.
    place
        Where jobs run: ``local``, ``slurm``, ``lab`` or ``lab:NAME``.
    device
        ``cuda``, or ``cpu`` for trials with gloo.
    fingerprint
        What must be seen of it, by name (``gpu``, ``gpus_per_node``, ``nccl``, ``driver``...), as text.
    """

    cluster: str
    place: str
    device: str = "cuda"
    prices: str = ""
    fingerprint: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """A change that goes out step by step.

    Parameters
    ----------
    name, owner
        Of the rollout.
    change, scope
        What goes out, and where.
    candidate, control
        What is new, and what it replaces.
    objectives, steps
        In the order of the file.
    sampling, valid_run, reactions, limits, rollback, incident
        How it is carried out.
    digest
        SHA-256 of the document, comments and spelling aside.
    """

    name: str
    owner: str
    change: Change
    scope: Scope
    candidate: Configuration
    control: Configuration
    objectives: tuple[Objective, ...]
    steps: tuple[Step, ...]
    sampling: Sampling = field(default_factory=Sampling)
    valid_run: ValidRun = field(default_factory=ValidRun)
    reactions: Reactions = field(default_factory=Reactions)
    limits: Limits = field(default_factory=Limits)
    rollback: Rollback = field(default_factory=Rollback)
    incident: Incident = field(default_factory=Incident)
    digest: str = ""

    def objective(self, name: str) -> Objective:
        """Return an objective.

        Parameters
        ----------
        name
            One that exists: documents with others are refused when they are read.
        """
        return next(each for each in self.objectives if each.name == name)
