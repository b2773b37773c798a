"""The network wall: the size from which communication takes more than a given share of the step.

The cluster doubles again and again, and the global batch with it (weak scaling) or not (strong scaling).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from linkwise.cluster.growth import grown_cluster, growth_limit
from linkwise.errors import InputError
from linkwise.network.clos import priced_wiring, unwired_words
from linkwise.search.comparison import exposed_s
from linkwise.search.search import plan

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.estimate import Estimate
    from linkwise.job import Job

__all__ = ["Scaling", "Wall", "WallPoint", "grown_job", "network_wall"]


class Scaling(StrEnum):
    """What happens to the global batch as a cluster grows."""

    WEAK = "weak"
    """It grows with the GPUs."""
    STRONG = "strong"
    """It stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WallPoint:
    """One size of a growing cluster.

    Parameters
    ----------
    gpus
        GPUs in use.
    global_batch
        Sequences per optimizer step.
    best
        The fastest layout; ``None`` where none fits, or none divides the job.
    """

    gpus: int
    global_batch: int
    best: Estimate | None

    @property
    def exposed_fraction(self) -> float | None:
        """Return the share of the step that is exposed communication [1]; ``None`` where nothing fits."""
        return None if self.best is None else sum(exposed_s(self.best).values()) / self.best.step_time_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Wall:
    """How the share of communication grows with a cluster.

    Parameters
    ----------
    share_fraction
        The share of the step that is called the wall [1].
    points
        Smallest first.
    stopped
        Why the cluster cannot grow to the size asked for, else ``None``.
    """

    share_fraction: float
    points: tuple[WallPoint, ...]
    stopped: str | None

    @property
    def gpus(self) -> int | None:
        """Return the first size whose share is above the wall; ``None`` where none of the points is."""
        return next(
            (each.gpus for each in self.points if (each.exposed_fraction or 0.0) > self.share_fraction), None
        )


def network_wall(
    job: Job,
    cluster: Cluster,
    *,
    most_gpus: int,
    share_fraction: float,
    scaling: Scaling = Scaling.WEAK,
) -> Wall:
    """Return the share of communication at every doubling of a cluster, with the best layout of each size.

    Parameters
    ----------
    job
        What is run; the data degree of a fixed layout grows with the cluster.
    cluster
        The smallest size.
    most_gpus
        No size above it, but for the first [GPUs].
    share_fraction
        The share of the step that is called the wall [1].
    scaling
        Whether the global batch grows, too.

    Notes
    -----
    A fabric that can be wired at first grows as far as it can: a leaf-spine fabric by a third tier.
    """
    sizes, stopped = _sizes(cluster, most_gpus)
    points = (_point(grown_job(job, times, scaling), grown) for times, grown in sizes)
    return Wall(share_fraction=share_fraction, points=tuple(points), stopped=stopped)


def grown_job(job: Job, times: int, scaling: Scaling) -> Job:
    """Return the job of a cluster that is so many times as large, its data degree left to that cluster.

    Parameters
    ----------
    job
        The job.
    times
        At least 1.
    scaling
        Whether the global batch is so many times as large, too.
    """
    batch = job.global_batch * times if scaling is Scaling.WEAK else job.global_batch
    layout = None if job.layout is None else replace(job.layout, data=None)
    return replace(job, global_batch=batch, layout=layout)


def _sizes(cluster: Cluster, most_gpus: int) -> tuple[list[tuple[int, Cluster]], str | None]:
    """Return the doublings of a cluster whose fabric can be wired, and why there are no more of them."""
    limit, wired = growth_limit(cluster), _is_wired(cluster)
    found: list[tuple[int, Cluster]] = []
    times = 1
    while times == 1 or cluster.gpus * times <= most_gpus:
        grown = grown_cluster(cluster, times)
        if limit is not None and grown.nodes > max(limit[0], cluster.nodes):
            return found, limit[1]
        if wired and not _is_wired(grown):
            return found, unwired_words(grown)
        found.append((times, grown))
        times *= 2
    return found, None


def _is_wired(cluster: Cluster) -> bool:
    try:
        priced_wiring(cluster)
    except InputError:
        return False
    return True


def _point(job: Job, cluster: Cluster) -> WallPoint:
    try:
        layouts = plan(job, cluster).layouts
    except InputError:
        layouts = ()
    return WallPoint(gpus=cluster.gpus, global_batch=job.global_batch, best=layouts[0] if layouts else None)
