"""What must be reached in a rollout, as values: how it is measured, compared, and why that number."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum

__all__ = [
    "Against",
    "Aggregate",
    "Comparison",
    "Dimension",
    "Objective",
    "Reason",
    "Severity",
    "Workload",
    "WorkloadKind",
]


class Dimension(StrEnum):
    """What an objective is about."""

    THROUGHPUT = "throughput"
    LATENCY = "latency"
    QUALITY = "quality"
    COST = "cost"
    RELIABILITY = "reliability"


class Severity(StrEnum):
    """What a missed objective does to its step."""

    MUST = "must"
    """Anything but a pass stops the step."""
    SHOULD = "should"
    """A fail is told and needs an approval."""
    WATCH = "watch"
    """It is told."""


class Against(StrEnum):
    """What a value is compared with."""

    FLOOR = "floor"
    """A fixed number, in the unit of the metric."""
    BASELINE = "baseline"
    """Stored samples of the configuration that was promoted last."""
    CONTROL = "control"
    """The control, measured in turns with the candidate."""
    PREDICTION = "prediction"
    """What the model says of this job on this cluster."""


class Aggregate(StrEnum):
    """How the samples of one run become the one value of that run."""

    MEDIAN = "median"
    MEAN = "mean"
    P90 = "p90"
    P95 = "p95"
    P99 = "p99"
    WORST = "worst"
    LAST = "last"


class WorkloadKind(StrEnum):
    """What is run to measure an objective."""

    COLLECTIVES = "collectives"
    PAIRS = "pairs"
    TRAINING = "training"
    """The small transformer of ``linkwise bench training``."""
    JOB = "job"
    """The job of the configuration, launched."""
    ENDPOINT = "endpoint"
    """A running server, read over a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Where a number comes from.

    Parameters
    ----------
    why
        In words.
    by
        Who answers for it.
    review_by
        The day from which it must be looked at again; ``None`` for never.
    """

    why: str
    by: str
    review_by: dt.date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is run to measure an objective.

    Parameters
    ----------
    kind
        What kind of work.
    operations
        Collectives; for COLLECTIVES and PAIRS.
    sizes_bytes
        Sizes of the full buffer [bytes]; for COLLECTIVES and PAIRS.
    rounds
        Rounds of disjoint pairs of the nodes of the step; for PAIRS [1].
    cut
        How the small model is cut, of `linkwise.bench.training.CUTS`; for TRAINING.
    steps
        Training steps of one run; for TRAINING and JOB; ``None`` for the job's own [1].
    endpoint
        Address of metrics; for ENDPOINT.
    """

    kind: WorkloadKind
    operations: tuple[str, ...] = ()
    sizes_bytes: tuple[int, ...] = ()
    rounds: int | None = None
    cut: str = ""
    steps: int | None = None
    endpoint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The bar of an objective.

    Parameters
    ----------
    against
        What the value is compared with.
    bar
        A value in the unit of the metric for FLOOR, else a ratio to what it is compared with [1].
    is_least
        Whether the bar is the least that passes, else the most.
    """

    against: Against
    bar: float
    is_least: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """What must be reached, how it is measured, and why that number.

    Parameters
    ----------
    name
        Unlike that of any other objective of the rollout.
    dimension
        What it is about.
    metric
        Name in `metrics.METRICS`.
    workload
        What is run.
    aggregate
        Of the samples of one run.
    comparisons
        All must be met; one at least.
    severity
        What a miss does.
    reason
        Of the number.
    """

    name: str
    dimension: Dimension
    metric: str
    workload: Workload
    aggregate: Aggregate
    comparisons: tuple[Comparison, ...]
    severity: Severity
    reason: Reason
