"""Every layout that a job, a cluster and a framework allow, as tables of columns.

A *cut* is a choice of degrees: tensor, context, pipeline, data, micro-batch, virtual pipeline, expert. The
other choices (sharding, recomputation, sequence parallelism, schedule, rank order, exchange) combine freely,
but for a few that need another rank to have an effect; cuts with the same free choices form one product, cut
into tables that fit a processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkwise.errors import InputError
from linkwise.estimate.columns import Axis, Floats, Table
from linkwise.estimate.job_inputs import fixed_columns, framework_of_job, nvlink_domain
from linkwise.job.offers import Offer, offer_of
from linkwise.network.placement import ranks_per_domain
from linkwise.search.cuts import CUT_COLUMNS, Cuts, legal_cuts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linkwise.cluster import Cluster
    from linkwise.job import Job

__all__ = ["Product", "Space", "search_space"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """Cuts that share their free choices.

    Parameters
    ----------
    choices
        Axes of the free choices, the usual value of each first.
    cuts
        Columns of the cuts, (cuts,) each.
    """

    choices: tuple[Axis, ...]
    cuts: Mapping[str, Floats]

    @property
    def per_cut(self) -> int:
        """Return the layouts of one cut."""
        return int(np.prod([axis.entries for axis in self.choices]))

    @property
    def rows(self) -> int:
        """Return the layouts."""
        return self.per_cut * len(self.cuts["tensor"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """What a search looks at.

    Parameters
    ----------
    products
        The legal layouts.
    fixed
        Columns that are the same for all of them.
    rejected
        Layouts that are not legal, by reason.
    """

    products: tuple[Product, ...]
    fixed: Mapping[str, Floats]
    rejected: Mapping[str, int]

    @property
    def rows(self) -> int:
        """Return the number of legal layouts."""
        return sum(product.rows for product in self.products)

    def tables(self, chunk_rows: int) -> Iterator[Table]:
        """Yield the layouts as tables of about so many rows, the cuts on the last axis.

        Parameters
        ----------
        chunk_rows
            Rows of a table; one cut at least.
        """
        for product in self.products:
            count, step = len(product.cuts["tensor"]), max(1, chunk_rows // product.per_cut)
            pieces = max(1, round(count / step))
            for piece in range(pieces):
                part = slice(piece * count // pieces, (piece + 1) * count // pieces)
                cuts = Axis(columns={name: values[part] for name, values in product.cuts.items()})
                rows = product.per_cut * cuts.entries
                yield Table(rows=rows, axes=(*product.choices, cuts), fixed=self.fixed)


def search_space(
    job: Job,
    cluster: Cluster,
    *,
    offer: Offer | None = None,
    only: Mapping[str, Sequence[int]] | None = None,
) -> Space:
    """Return the layouts that may be tried.

    Parameters
    ----------
    job, cluster
        What is run on what.
    offer
        What may be chosen; what the job's framework has unless given.
    only
        Values to keep, by name of a degree: ``{"tensor": (8,), "context": (1, 2)}``.

    Raises
    ------
    InputError
        When no layout at all is legal, with what does not divide; when `only` names no degree.
    """
    given = offer if offer is not None else offer_of(framework_of_job(job))
    fixed = fixed_columns(job, cluster)
    cuts = legal_cuts(job, cluster, given, only=only or {})
    if not len(cuts):
        raise InputError(_nothing_legal(job, cluster, cuts.rejected))
    return Space(products=tuple(_products(cuts, job, cluster, given)), fixed=fixed, rejected=cuts.rejected)


def _nothing_legal(job: Job, cluster: Cluster, rejected: Mapping[str, int]) -> str:
    reasons = ", ".join(sorted(rejected, key=lambda reason: -rejected[reason])[:4]) or "no degrees are left"
    what = f"{job.model.name}, {job.global_batch} sequences of {job.sequence_length} tokens"
    return (
        f"no layout divides {what}, over {cluster.gpus} GPUs: {reasons}; "
        "change the batch, the sequence or the number of GPUs"
    )


def _products(cuts: Cuts, job: Job, cluster: Cluster, offer: Offer) -> Iterator[Product]:
    """Group the cuts by which free choices have an effect.

    Notes
    -----
    Sequence parallelism needs tensor ranks, a schedule needs stages, a rank order stages and replicas, an
    exchange of heads context ranks that divide the heads, sharding ranks to shard over; hybrid sharding a
    gradient group with several ranks in a domain and several domains.
    """
    columns = cuts.columns
    replicas = columns["data"] * columns["context"]
    has = {
        "tensor": columns["tensor"] > 1,
        "pipeline": columns["pipeline"] > 1,
        "order": (columns["pipeline"] > 1) & (columns["data"] > 1) & (columns["expert"] == 1),
        "replicas": replicas > 1,
        "exchange": _heads_divide(columns, job),
        "hybrid": _spans_domains(columns, float(nvlink_domain(cluster).gpus)) & offer.hybrid_shard,
    }
    key = sum(flag.astype(np.intp) << place for place, flag in enumerate(has.values()))
    for code in np.unique(key):
        rows = np.flatnonzero(key == code)
        on = {name: bool(code >> place & 1) for place, name in enumerate(has)}
        yield Product(
            choices=_choices(on, offer, mixture=job.model.experts > 0),
            cuts={name: columns[name][rows] for name in CUT_COLUMNS},
        )


def _spans_domains(columns: Mapping[str, Floats], domain: float) -> NDArray[np.bool_]:
    tensor, context, data = columns["tensor"], columns["context"], columns["data"]
    gpus = np.full_like(tensor, domain)
    inside = ranks_per_domain(context, tensor, gpus) * ranks_per_domain(data, tensor * context, gpus)
    spans: NDArray[np.bool_] = (inside > 1.0) & (inside < data * context)
    return spans


def _heads_divide(columns: Mapping[str, Floats], job: Job) -> NDArray[np.bool_]:
    """Return the cuts whose context groups can swap slices of the sequence for whole heads."""
    ranks = columns["tensor"] * columns["context"]
    divides: NDArray[np.bool_] = (columns["context"] > 1) & (job.model.heads % ranks == 0)
    return divides


def _choices(on: Mapping[str, bool], offer: Offer, *, mixture: bool) -> tuple[Axis, ...]:
    stages = [
        stage for stage in offer.zero_stages if stage < 2 or offer.sharded_pipeline or not on["pipeline"]
    ]
    if not on["replicas"]:
        stages = [min(stages)]
    hybrid = on["hybrid"] and 3 in stages
    parallel = offer.sequence_parallel
    if mixture and offer.experts_need_sequence_parallel:
        parallel = (True,)
    return (
        _axis(zero_stage=[*stages, *[3] * hybrid], hybrid_shard=[*[0] * len(stages), *[1] * hybrid]),
        _axis(recompute=offer.recompute),
        _axis(sequence_parallel=parallel if on["tensor"] else (False,)),
        _axis(schedule=offer.schedules if on["pipeline"] else offer.schedules[:1]),
        _axis(rank_order=offer.rank_orders if on["order"] else offer.rank_orders[:1]),
        _axis(context_exchange=offer.context_exchanges if on["exchange"] else offer.context_exchanges[:1]),
    )


def _axis(**columns: Sequence[float]) -> Axis:
    return Axis(columns={name: np.array(values, dtype=np.float64) for name, values in columns.items()})
