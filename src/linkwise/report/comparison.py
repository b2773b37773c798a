"""The published result `linkwise.compare/1`: one job on several clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from linkwise.report.cost import CostResult, cost_result
from linkwise.report.plan_table import lacking_words, layout_words
from linkwise.report.results import (
    ClusterResult,
    JobResult,
    LayoutResult,
    PublishedResult,
    cluster_result,
    job_result,
    layout_result,
    layout_results,
)

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.estimate import Estimate
    from linkwise.job import Job
    from linkwise.search.comparison import Comparison, Contender
    from linkwise.search.network_wall import Scaling, Wall, WallPoint

__all__ = [
    "BreakEvenResult",
    "CompareResult",
    "ComparedResult",
    "WallPointResult",
    "WallResult",
    "compare_result",
]

_HOUR_S = 3600.0


class ComparedResult(PublishedResult):
    """One cluster with its best layout; where nothing fits only what it lacks."""

    name: str
    cluster: ClusterResult
    step_time_s: float | None = None
    step_time_low_s: float | None = Field(default=None, description="Lower end of the 80 % interval.")
    step_time_high_s: float | None = Field(default=None, description="Upper end of the 80 % interval.")
    step_time_ratio: float | None = Field(default=None, description="To that of the reference.")
    tokens_per_s_per_gpu: float | None = None
    speed_ratio: float | None = Field(
        default=None, description="Tokens per second per GPU over those of the reference."
    )
    verdict: str | None = Field(
        default=None,
        description="GPU for GPU beside the reference: faster, slower, equal, too close to call.",
    )
    mfu_fraction: float | None = None
    exposed_s: dict[str, float] | None = Field(
        default=None, description="Communication that a step waits for, by kind."
    )
    exposed_fraction: float | None = Field(default=None, description="Their sum over the step time.")
    energy_j_per_token: float | None = Field(
        default=None, description="Upper bound of nodes and fabric, without cooling."
    )
    energy_leaves_out: list[str] = Field(
        default_factory=list, description="What draws power that is not known: the energy lacks it."
    )
    price_usd_per_token: float | None = Field(default=None, description="Only where prices are given.")
    price_usd_per_run: float | None = Field(
        default=None, description="Only where prices and the tokens of the whole training are given."
    )
    usd_per_gpu_hour: float | None = Field(
        default=None, description="Everything included that is priced: the lines of the bill."
    )
    bill: CostResult | None = Field(default=None, description="Line by line; only where prices are given.")
    training_time_s: float | None = None
    layout: LayoutResult | None = None
    layout_words: str | None = None
    lacks: str | None = Field(default=None, description="Only where nothing fits or can run: why.")
    closest: LayoutResult | None = Field(default=None, description="Only where nothing fits.")


class BreakEvenResult(PublishedResult):
    """What the faster of two clusters may cost before its tokens cost as much as on the slower."""

    faster: str
    slower: str
    verdict: str = Field(description="Of the faster beside the slower; too close to call makes it a guess.")
    price_ratio: float = Field(description="Price of a GPU-hour of the faster over that of the slower.")
    slower_usd_per_gpu_hour: float | None = None
    faster_usd_per_gpu_hour: float | None = None
    most_usd_per_gpu_hour: float | None = Field(
        default=None, description="Of the faster: at this price its tokens cost the same."
    )
    faster_fabric_usd: float | None = Field(
        default=None, description="What the fabric of the faster costs to buy, where it has a price."
    )
    most_fabric_usd: float | None = Field(
        default=None,
        description="Of that fabric, all else as priced: at this price tokens cost the same. Below zero: no "
        "price of the fabric makes up for the rest.",
    )


class WallPointResult(PublishedResult):
    """One size of a growing cluster; nulls where nothing fits."""

    gpus: int
    global_batch: int
    step_time_s: float | None = None
    tokens_per_s_per_gpu: float | None = None
    exposed_fraction: float | None = None
    layout_words: str | None = None


class WallResult(PublishedResult):
    """How exposed communication grows with one cluster."""

    name: str
    gpus: int | None = Field(description="The first size above the share; null where none is.")
    stopped: str | None = Field(default=None, description="Why the cluster cannot grow further.")
    points: list[WallPointResult]


class CompareResult(PublishedResult):
    """One job with its best layout on each of several clusters."""

    published: Literal["linkwise.compare/1"] = Field(default="linkwise.compare/1", alias="schema")
    job: JobResult
    reference: str | None = Field(description="The cluster that ratios refer to: the first that is fit.")
    clusters: list[ComparedResult] = Field(description="In the order they were given.")
    break_even: list[BreakEvenResult] = Field(description="Each of the others beside the reference.")
    wall_share_fraction: float
    scaling: str = Field(description="weak: the global batch grows with the cluster; strong: it stays.")
    wall: list[WallResult] = Field(description="One for each cluster.")
    assumptions: list[str]

    @property
    def has_curves(self) -> bool:
        """Return whether a layout fits at some size of some cluster, so that there is a curve to show."""
        return any(point.exposed_fraction is not None for wall in self.wall for point in wall.points)


def compare_result(
    comparison: Comparison, walls: Sequence[Wall], *, wall_share_fraction: float, scaling: Scaling
) -> CompareResult:
    """Return a comparison as it is published.

    Parameters
    ----------
    comparison
        The clusters with their best layouts.
    walls
        How each of them grows, in the same order.
    wall_share_fraction
        The share of the step that is called the wall [1].
    scaling
        Whether the global batch grew with them.

    Notes
    -----
    Clusters of one name are told apart by a number behind it.
    """
    named = _distinctly_named(comparison)
    contenders, first, job = named.contenders, named.reference, named.job
    return CompareResult(
        job=job_result(job),
        reference=None if first is None else first.cluster.name,
        clusters=[_compared(each, reference=first, job=job) for each in contenders],
        break_even=list(_break_evens(named)),
        wall_share_fraction=wall_share_fraction,
        scaling=str(scaling),
        wall=[
            _wall(wall, name=each.cluster.name, job=job) for wall, each in zip(walls, contenders, strict=True)
        ],
        assumptions=[*_assumptions(contenders), *_OF_COMPARISONS, _OF_GROWTH[str(scaling)]],
    )


_OF_COMPARISONS = (
    (
        "of a fabric count the rate and latency of its link, what of the rate is reached, and where the "
        "switch is known its tiers, with oversubscription and routing where traffic leaves its leaves; not "
        "modelled are congestion, other jobs and failures"
    ),
    (
        "exposed communication is what no computing hides; the wait for slow ranks and the pipeline bubble "
        "are not in it"
    ),
    (
        "a cluster is called faster only where it is so whichever way the errors fall: that of computing is "
        "common to clusters of one GPU, that of exposed communication is each cluster's own, and both are as "
        "wide as the interval of the step"
    ),
    "break-even is of GPUs that are in use all the time",
)
"""What every comparison takes for granted."""

_OF_GROWTH = {
    "weak": "clusters grow by doubling nodes and global batch (weak scaling), each size with its best layout",
    "strong": "clusters grow by doubling nodes at one global batch (strong scaling), each size with its best "
    "layout",
}
"""What the way clusters grow takes for granted."""


def _distinctly_named(comparison: Comparison) -> Comparison:
    named: dict[str, Contender] = {}
    for each in comparison.contenders:
        name, number = each.cluster.name, 1
        while name in named:
            number += 1
            name = f"{each.cluster.name} ({number})"
        named[name] = replace(each, cluster=replace(each.cluster, name=name))
    return replace(comparison, contenders=tuple(named.values()))


def _compared(each: Contender, *, reference: Contender | None, job: Job) -> ComparedResult:
    cluster = cluster_result(each.cluster)
    name = cluster.name
    if each.best is None:
        if each.closest is None:
            return ComparedResult(name=name, cluster=cluster, lacks=each.refused)
        (closest,) = layout_results([each.closest], job=job, cluster=each.cluster)
        words = f"no layout fits; the closest {lacking_words(closest)}: {layout_words(closest)}"
        return ComparedResult(name=name, cluster=cluster, lacks=words, closest=closest)
    return _fitting(each, each.best, cluster, reference=reference, job=job)


def _fitting(
    each: Contender, best: Estimate, cluster: ClusterResult, *, reference: Contender | None, job: Job
) -> ComparedResult:
    from linkwise.estimate.energy import energy_of_token_j, power_draw
    from linkwise.search.comparison import exposed_s, verdict

    (layout,) = layout_results([best], job=job, cluster=each.cluster)
    beside = best if reference is None or reference.best is None else reference.best
    exposed = exposed_s(best)
    bill = cost_result(job, each.cluster, best.step_time_s)
    per_million = None if bill is None else bill.usd_per_million_tokens
    said = None if reference is None else verdict(each, reference)
    draw = power_draw(each.cluster)
    return ComparedResult(
        name=cluster.name,
        cluster=cluster,
        step_time_s=best.step_time_s,
        step_time_low_s=best.step_time_low_s,
        step_time_high_s=best.step_time_high_s,
        step_time_ratio=best.step_time_s / beside.step_time_s,
        tokens_per_s_per_gpu=best.tokens_per_s_per_gpu,
        speed_ratio=best.tokens_per_s_per_gpu / beside.tokens_per_s_per_gpu,
        verdict=None if said is None else str(said),
        mfu_fraction=best.mfu_fraction,
        exposed_s=dict(exposed),
        exposed_fraction=sum(exposed.values()) / best.step_time_s,
        energy_j_per_token=energy_of_token_j(job, each.cluster, best.step_time_s),
        energy_leaves_out=[] if draw is None else list(draw.left_out),
        price_usd_per_token=None if per_million is None else per_million / 1e6,
        price_usd_per_run=layout.cost_usd_per_run,
        usd_per_gpu_hour=None if bill is None else bill.usd_per_gpu_hour,
        bill=bill,
        training_time_s=layout.training_time_s,
        layout=layout,
        layout_words=layout_words(layout),
    )


def _per_hour(usd_per_s: float | None) -> float | None:
    return None if usd_per_s is None else usd_per_s * _HOUR_S


def _break_evens(comparison: Comparison) -> Iterator[BreakEvenResult]:
    from linkwise.search.break_even import break_even
    from linkwise.search.comparison import verdict

    first = comparison.reference
    for each in comparison.contenders:
        found = None if first is None or each is first else break_even(first, each)
        if found is None:
            continue
        yield BreakEvenResult(
            faster=found.faster.cluster.name,
            slower=found.slower.cluster.name,
            verdict=str(verdict(found.faster, found.slower)),
            price_ratio=found.price_ratio,
            slower_usd_per_gpu_hour=_per_hour(found.slower_usd_per_gpu_s),
            faster_usd_per_gpu_hour=_per_hour(found.faster_usd_per_gpu_s),
            most_usd_per_gpu_hour=_per_hour(found.most_usd_per_gpu_s),
            faster_fabric_usd=found.faster_fabric_usd,
            most_fabric_usd=found.most_fabric_usd,
        )


def _wall(wall: Wall, *, name: str, job: Job) -> WallResult:
    points = [_wall_point(each, job) for each in wall.points]
    return WallResult(name=name, gpus=wall.gpus, stopped=wall.stopped, points=points)


def _wall_point(point: WallPoint, job: Job) -> WallPointResult:
    best = point.best
    return WallPointResult(
        gpus=point.gpus,
        global_batch=point.global_batch,
        step_time_s=None if best is None else best.step_time_s,
        tokens_per_s_per_gpu=None if best is None else best.tokens_per_s_per_gpu,
        exposed_fraction=point.exposed_fraction,
        layout_words=None if best is None else layout_words(layout_result(best, job=job)),
    )


def _assumptions(contenders: Sequence[Contender]) -> Iterator[str]:
    """Yield what was taken for granted of the clusters, each sentence once, with the clusters it is of."""
    said: dict[str, list[int]] = {}
    for place, each in enumerate(contenders, start=1):
        for sentence in dict.fromkeys([*each.assumptions, *_of_money(each.cluster)]):
            said.setdefault(sentence, []).append(place)
    for sentence, places in said.items():
        if len(places) == len(contenders):
            yield sentence
        else:
            yield f"cluster{'s' * (len(places) > 1)} {', '.join(map(str, places))}: {sentence}"


def _of_money(cluster: Cluster) -> tuple[str, ...]:
    from linkwise.estimate.energy import energy_assumption
    from linkwise.estimate.money import bill_assumptions

    return bill_assumptions(cluster) or (energy_assumption(cluster),)
