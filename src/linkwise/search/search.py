"""The value `Plan`, and the search that makes it."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from linkwise.estimate import Estimate, estimate_layouts
from linkwise.estimate.estimate import assumptions_of
from linkwise.search.space import search_space
from linkwise.search.table_search import Found, search_table

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.estimate.columns import Table
    from linkwise.job import Job
    from linkwise.job.offers import Offer

__all__ = ["CHUNK_ROWS", "Mapper", "Plan", "plan"]

CHUNK_ROWS = 131_072
"""Rows of one table: its widest columns are 1 MB, small beside a cache, long beside the cost of a call."""


class Mapper(Protocol):
    """What applies a function to tables: `map`, or that of a pool of processes."""

    def __call__(self, function: Callable[[Table], Found], tables: Iterable[Table], /) -> Iterable[Found]:
        """Return the results in the order of the tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The best layouts of a job on a cluster, and why the others lost.

    Parameters
    ----------
    layouts
        The best, fastest first; empty where nothing fits.
    evaluated
        Layouts whose memory was computed, and their step time where they fit.
    fitting
        Those of them that fit.
    infeasible
        Layouts that cannot be used, by reason: what does not divide, or which bytes on which stage do not
        fit.
    closest
        The layout that lacks least memory, where nothing fits, else ``None``.
    assumptions
        What was taken for granted, in sentences.
    """

    layouts: tuple[Estimate, ...]
    evaluated: int
    fitting: int
    infeasible: Mapping[str, int] = field(hash=False)
    closest: Estimate | None
    assumptions: tuple[str, ...]


def plan(
    job: Job,
    cluster: Cluster,
    *,
    top: int = 10,
    offer: Offer | None = None,
    only: Mapping[str, Sequence[int]] | None = None,
    chunk_rows: int = CHUNK_ROWS,
    map: Mapper = builtins.map,  # noqa: A002
) -> Plan:
    """Return the fastest layouts that fit; of a job whose layout is fixed, that one.

    Parameters
    ----------
    job, cluster
        What is run on what.
    top
        How many layouts to return.
    offer
        What may be chosen; what the job's framework has unless given.
    only
        Values to keep, by name of a degree: ``{"tensor": (8,)}``.
    chunk_rows
        Rows that are evaluated at once.
    map
        What applies the search to tables: the built-in, or that of a pool.

    Raises
    ------
    InputError
        When no layout at all is legal, or the fixed one cannot run. That nothing fits is no exception:
        `Plan.closest`.

    Notes
    -----
    One layout is listed for each cut (degrees and micro-batch): its fastest, or of those within 0.1 % of it
    the one closest to what the framework does by default.
    """
    if job.layout is not None:
        return _fixed_plan(job, cluster)
    space = search_space(job, cluster, offer=offer, only=only)
    found = list(map(partial(search_table, top=top), space.tables(chunk_rows)))
    infeasible = dict(space.rejected)
    for one in found:
        for reason, count in one.shortfalls.items():
            infeasible[reason] = infeasible.get(reason, 0) + count
    best = sorted((candidate for one in found for candidate in one.best), key=lambda c: c.rank)[:top]
    estimates = estimate_layouts(job, cluster, [candidate.layout for candidate in best], offer=offer)
    return Plan(
        layouts=tuple(sorted(estimates, key=lambda estimate: estimate.step_time_s)),
        evaluated=sum(one.rows for one in found),
        fitting=sum(one.fitting for one in found),
        infeasible=infeasible,
        closest=None if best else _closest(job, cluster, found, offer),
        assumptions=assumptions_of(job, cluster),
    )


def _closest(job: Job, cluster: Cluster, found: Sequence[Found], offer: Offer | None) -> Estimate:
    short = min((one.closest for one in found if one.closest is not None), key=lambda c: c.rank)
    return estimate_layouts(job, cluster, (short.layout,), offer=offer)[0]


def _fixed_plan(job: Job, cluster: Cluster) -> Plan:
    if job.layout is None:
        raise ValueError("the job has no fixed layout; use plan")
    (estimate,) = estimate_layouts(job, cluster, (job.layout,))
    stage = "first" if estimate.fullest_stage == 0 else "last"
    part = max(estimate.memory_parts, key=lambda name: estimate.memory_parts[name])
    where = f" ({stage} stage)" if estimate.layout.pipeline > 1 else ""
    return Plan(
        layouts=(estimate,) if estimate.fits else (),
        evaluated=1,
        fitting=int(estimate.fits),
        infeasible={} if estimate.fits else {f"memory: {part}{where}": 1},
        closest=None if estimate.fits else estimate,
        assumptions=assumptions_of(job, cluster),
    )
