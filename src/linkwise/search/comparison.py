"""One job with its best layout on each of several clusters, and what can be said of the differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from linkwise.errors import InputError
from linkwise.search.search import plan
from linkwise.search.table_search import TIE_FRACTION

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.estimate import Estimate
    from linkwise.job import Job

__all__ = ["EXPOSED_KINDS", "Comparison", "Contender", "Verdict", "compare", "exposed_s", "verdict"]

EXPOSED_KINDS = ("tensor", "context", "expert", "pipeline", "data")
"""Parts of a step that are communication nothing hides."""


class Verdict(StrEnum):
    """What one cluster is beside another, GPU for GPU."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUAL = "equal"
    """Closer than a reader would tell: step times within 0.1 %."""
    CLOSE = "too close to call"
    """The errors of the two estimates may be larger than their difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One of the clusters that are compared.

    Parameters
    ----------
    cluster
        The cluster.
    best
        Its fastest layout; ``None`` where none fits.
    closest
        Where none fits: the layout that lacks least memory.
    refused
        Where no layout can run at all: why, in a sentence.
    assumptions
        What was taken for granted, in sentences.
    """

    cluster: Cluster
    best: Estimate | None
    closest: Estimate | None = None
    refused: str | None = None
    assumptions: tuple[str, ...] = ()

    @property
    def gpu_s_per_step(self) -> float | None:
        """Return step time x GPUs, the time of one GPU that a step takes [s]; ``None`` where nothing fits."""
        return None if self.best is None else self.best.step_time_s * self.cluster.gpus


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One job on several clusters.

    Parameters
    ----------
    job
        The job.
    contenders
        The clusters in the order they were given.
    """

    job: Job
    contenders: tuple[Contender, ...]

    @property
    def reference(self) -> Contender | None:
        """Return the first cluster that a layout fits, the measure of the others; ``None`` without one."""
        return next((each for each in self.contenders if each.best is not None), None)


def compare(job: Job, clusters: Sequence[Cluster]) -> Comparison:
    """Return the best layout of a job on each cluster, the first that `plan` gives.

    Parameters
    ----------
    job
        What is run; a fixed layout is estimated on each.
    clusters
        At least one.

    Raises
    ------
    InputError
        When the job can run on none of the clusters, whatever their memory. One that it cannot run on stands
        among the others with the reason.
    """
    if not clusters:
        raise InputError("no cluster to compare; give one or more")
    contenders = tuple(_contender(job, cluster) for cluster in clusters)
    if all(each.refused is not None for each in contenders):
        raise InputError("; ".join(dict.fromkeys(each.refused or "" for each in contenders)))
    return Comparison(job=job, contenders=contenders)


def _contender(job: Job, cluster: Cluster) -> Contender:
    try:
        found = plan(job, cluster)
    except InputError as error:
        return Contender(cluster=cluster, best=None, refused=str(error))
    return Contender(
        cluster=cluster,
        best=found.layouts[0] if found.layouts else None,
        closest=found.closest,
        assumptions=found.assumptions,
    )


def exposed_s(estimate: Estimate) -> Mapping[str, float]:
    """Return the communication that a step waits for, by kind [s].

    Parameters
    ----------
    estimate
        A layout with its parts.
    """
    return {kind: estimate.parts[kind] for kind in EXPOSED_KINDS}


def verdict(one: Contender, other: Contender) -> Verdict | None:
    """Return whether `one` is faster than `other`, GPU for GPU; ``None`` where nothing fits one of them.

    Parameters
    ----------
    one, other
        Clusters with their best layouts for the same job.

    Notes
    -----
    Intervals that do not overlap decide. Where they do and the GPU is the same, the error of what is not
    communication is common to both (same model, framework and GPU): it moves both alike, over the interval.
    The error of the exposed communication is not common: it moves each on its own, its relative error taken
    to be that of the step. One is faster where it is so whichever way these errors fall. Of different GPUs
    no error is taken to be common.
    """
    mine, theirs = one.gpu_s_per_step, other.gpu_s_per_step
    if mine is None or theirs is None:
        return None
    if abs(mine / theirs - 1.0) <= TIE_FRACTION:
        return Verdict.EQUAL
    if _surely_faster(one, other):
        return Verdict.FASTER
    return Verdict.SLOWER if _surely_faster(other, one) else Verdict.CLOSE


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """GPU time of a step, its exposed communication apart [s], with the factors of its interval [1]."""

    rest_s: float
    exposed_s: float
    low: float
    high: float


def _step(contender: Contender) -> _Step | None:
    best, gpus = contender.best, contender.cluster.gpus
    if best is None:
        return None
    exposed = sum(exposed_s(best).values())
    return _Step(
        rest_s=gpus * (best.step_time_s - exposed),
        exposed_s=gpus * exposed,
        low=best.step_time_low_s / best.step_time_s,
        high=best.step_time_high_s / best.step_time_s,
    )


def _surely_faster(one: Contender, other: Contender) -> bool:
    mine, theirs = _step(one), _step(other)
    if mine is None or theirs is None:
        return False
    longest = mine.high * (mine.rest_s + mine.exposed_s)
    shortest = theirs.low * (theirs.rest_s + theirs.exposed_s)
    if longest < shortest:
        return True
    if one.cluster.gpu.name != other.cluster.gpu.name:
        return False
    common = (min(mine.low, theirs.low), max(mine.high, theirs.high))
    return all(
        factor * mine.rest_s + mine.high * mine.exposed_s
        < factor * theirs.rest_s + theirs.low * theirs.exposed_s
        for factor in common
    )
