"""The published results `linkwise.plan/1` and `linkwise.explain/1`: what programs read, and pages show.

The names are a contract: one may be added, none renamed or dropped without a new version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from linkwise.report.against_result import AgainstResult
from linkwise.report.bill import BilledResult, bill_fields
from linkwise.report.cost import CostResult, cost_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise.cluster import Cluster
    from linkwise.estimate import Estimate
    from linkwise.estimate.money import Bill
    from linkwise.estimate.trace import Sensitivity, TracedTerm
    from linkwise.job import Job
    from linkwise.search import Plan

__all__ = [
    "ClusterResult",
    "ExplainResult",
    "InputResult",
    "JobResult",
    "LayoutResult",
    "PlanResult",
    "PublishedResult",
    "SensitivityResult",
    "TermResult",
    "cluster_result",
    "explain_result",
    "job_result",
    "layout_result",
    "layout_results",
    "plan_result",
    "published_json",
]


class PublishedResult(BaseModel):
    """A result, or a part of one, that programs read."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class JobResult(PublishedResult):
    """What was to be run."""

    model: str
    sequence_length: int = Field(description="Tokens of one sequence.")
    global_batch: int = Field(description="Sequences per optimizer step.")
    precision: str
    framework: str
    tokens: float | None = Field(default=None, description="Length of the whole training, where stated.")


class ClusterResult(PublishedResult):
    """What there was to run it on."""

    name: str
    system: str | None = None
    gpu: str
    gpus: int
    nodes: int = Field(description="Operating systems with a GPU in use.")
    nvlink_domain_gpus: int
    fabric: str
    link: str | None = None
    oversubscription: float = Field(default=1.0, description="Down-link over up-link bandwidth at the leaf.")
    node_bytes_per_s: float = Field(description="All NICs of a node, changes counted, one direction.")
    changes: list[str] = Field(default_factory=list, description="Missing and slow parts.")


class LayoutResult(BilledResult):
    """One layout, what it takes and where time and memory go; what it costs, where prices are given."""

    tensor: int
    context: int
    pipeline: int
    virtual_pipeline: int = Field(description="Chunks of layers per stage; 1 is no interleaving.")
    expert: int
    data: int
    micro_batch: int = Field(description="Sequences per pass of one replica.")
    zero_stage: int
    hybrid_shard: bool
    recompute: str = Field(description="none, selective or full.")
    sequence_parallel: bool
    schedule: str
    rank_order: str
    context_exchange: str = Field(description="ring or all-to-all; of no effect with context 1.")
    step_time_s: float
    step_time_low_s: float = Field(description="Lower end of the 80 % interval.")
    step_time_high_s: float = Field(description="Upper end of the 80 % interval.")
    tokens_per_s_per_gpu: float
    mfu_fraction: float = Field(
        description="Model FLOP per second over the dense peak; causal attention, nothing recomputed."
    )
    training_time_s: float | None = Field(
        default=None, description="Steps of the whole training, where its tokens are stated, back to back."
    )
    memory_bytes: float = Field(description="Of the fullest GPU.")
    memory_available_bytes: float
    short_bytes: float = Field(description="What the fullest GPU lacks; 0 where the layout fits.")
    stage: int = Field(description="Pipeline stage of the fullest GPU, from 0.")
    parts: dict[str, float] = Field(description="Seconds of a step by part; they sum to step_time_s.")
    memory_parts: dict[str, float] = Field(description="Bytes by part; they sum to memory_bytes.")
    basis: str = Field(description="Basis of the weakest figure the estimate rests on.")


class PlanResult(PublishedResult):
    """The best layouts of a job on a cluster, and why the others lost."""

    published: Literal["linkwise.plan/1"] = Field(default="linkwise.plan/1", alias="schema")
    job: JobResult
    cluster: ClusterResult
    layouts: list[LayoutResult] = Field(description="Fastest first; empty where nothing fits.")
    evaluated: int = Field(description="Layouts whose memory was computed, and their time where they fit.")
    fitting: int = Field(description="Those of them that fit.")
    infeasible: dict[str, int] = Field(description="Reason to number of layouts.")
    closest: LayoutResult | None = Field(default=None, description="Only where nothing fits.")
    rank_orders: dict[str, float] = Field(
        default_factory=dict,
        description="Seconds of a step of the first layout by rank order; empty where it has one only.",
    )
    bill: CostResult | None = Field(default=None, description="Line by line; only where prices are given.")
    assumptions: list[str]


class InputResult(PublishedResult):
    """One input of a term."""

    name: str
    value: float
    unit: str | None = None
    origin: str = Field(description="term, figure, job, model, layout, cluster, framework or prices.")
    basis: str | None = Field(default=None, description="Of a figure: how it is known.")
    source: str | None = None
    layer: str | None = Field(default=None, description="Layer of figures it came from.")


class TermResult(PublishedResult):
    """One term of an estimate."""

    name: str
    group: str = Field(description="compute, communication, schedule, memory, energy, goodput or money.")
    value: float
    unit: str
    formula: str
    source: str
    inputs: list[InputResult]


class SensitivityResult(PublishedResult):
    """What a tenth more of one figure buys."""

    figure: str
    change: str = Field(description="By how much it was scaled: '10 % more'.")
    columns: list[str] = Field(description="The inputs that were scaled.")
    step_time_s: float
    saved_s: float = Field(description="Negative where the step gets longer.")
    saved_fraction: float = Field(description="Of the step time.")


class ExplainResult(PublishedResult):
    """Every term of one estimate."""

    published: Literal["linkwise.explain/1"] = Field(default="linkwise.explain/1", alias="schema")
    job: JobResult
    cluster: ClusterResult
    layout: LayoutResult
    terms: list[TermResult] = Field(description="In the order they were computed.")
    sensitivities: list[SensitivityResult]
    bill: CostResult | None = Field(default=None, description="Line by line; only where prices are given.")
    against: AgainstResult | None = Field(default=None, description="A measured run beside it.")
    assumptions: list[str]


def published_json(result: BaseModel) -> str:
    """Return a result as the JSON text that is published.

    Parameters
    ----------
    result
        A result of this module.
    """
    return result.model_dump_json(indent=2, by_alias=True)


def plan_result(plan: Plan, *, job: Job, cluster: Cluster) -> PlanResult:
    """Return a plan as it is published.

    Parameters
    ----------
    plan
        What the search found.
    job, cluster
        What was planned.
    """
    from linkwise.estimate.money import bill_assumptions
    from linkwise.search.rank_orders import rank_order_times_s

    orders = rank_order_times_s(job, cluster, plan.layouts[0].layout) if plan.layouts else {}
    shown = [*plan.layouts, *([] if plan.closest is None else [plan.closest])]
    priced = layout_results(shown, job=job, cluster=cluster)
    return PlanResult(
        job=job_result(job),
        cluster=cluster_result(cluster),
        layouts=priced[: len(plan.layouts)],
        evaluated=plan.evaluated,
        fitting=plan.fitting,
        infeasible=dict(sorted(plan.infeasible.items(), key=lambda item: -item[1])),
        closest=None if plan.closest is None else priced[-1],
        rank_orders={order.word: seconds for order, seconds in orders.items()},
        bill=cost_result(job, cluster, plan.layouts[0].step_time_s if plan.layouts else None),
        assumptions=[*plan.assumptions, *bill_assumptions(cluster)],
    )


def layout_results(estimates: Sequence[Estimate], *, job: Job, cluster: Cluster) -> list[LayoutResult]:
    """Return estimates of one job on one cluster as they are published, with their bills.

    Parameters
    ----------
    estimates
        The layouts with their times and memory.
    job, cluster
        What was estimated.
    """
    from linkwise.estimate.money import bills

    found = bills(job, cluster, [estimate.step_time_s for estimate in estimates])
    each_bill = found or (None,) * len(estimates)
    return [
        layout_result(estimate, job=job, bill=bill)
        for estimate, bill in zip(estimates, each_bill, strict=True)
    ]


def layout_result(estimate: Estimate, *, job: Job, bill: Bill | None = None) -> LayoutResult:
    """Return one estimate as it is published.

    Parameters
    ----------
    estimate
        The layout with its time and memory.
    job
        What was estimated; the length of its training sets `training_time_s`.
    bill
        What it costs, where prices are given.
    """
    layout = estimate.layout
    return LayoutResult(
        tensor=layout.tensor,
        context=layout.context,
        pipeline=layout.pipeline,
        virtual_pipeline=layout.virtual_pipeline,
        expert=layout.expert,
        data=layout.data or 1,
        micro_batch=layout.micro_batch,
        zero_stage=layout.zero_stage,
        hybrid_shard=layout.hybrid_shard,
        recompute=layout.recompute.word,
        sequence_parallel=bool(layout.sequence_parallel),
        schedule=layout.schedule.word,
        rank_order=layout.rank_order.word,
        context_exchange=layout.context_exchange.word,
        step_time_s=estimate.step_time_s,
        step_time_low_s=estimate.step_time_low_s,
        step_time_high_s=estimate.step_time_high_s,
        tokens_per_s_per_gpu=estimate.tokens_per_s_per_gpu,
        mfu_fraction=estimate.mfu_fraction,
        training_time_s=None if job.steps is None else job.steps * estimate.step_time_s,
        memory_bytes=estimate.memory_bytes,
        memory_available_bytes=estimate.memory_available_bytes,
        short_bytes=estimate.short_bytes,
        stage=estimate.fullest_stage,
        parts=dict(estimate.parts),
        memory_parts=dict(estimate.memory_parts),
        basis=str(estimate.basis),
        **bill_fields(bill),
    )


def explain_result(
    estimate: Estimate,
    *,
    job: Job,
    cluster: Cluster,
    terms: Sequence[TracedTerm],
    sensitivities: Sequence[Sensitivity],
    assumptions: Sequence[str],
) -> ExplainResult:
    """Return one estimate taken apart, as it is published.

    Parameters
    ----------
    estimate
        The layout with its time and memory.
    job, cluster
        What was estimated.
    terms, sensitivities
        As `linkwise.estimate.trace` gives them.
    assumptions
        What was taken for granted.
    """
    from linkwise.estimate.bill_trace import trace_bill
    from linkwise.estimate.money import bill_assumptions

    traced = (*terms, *trace_bill(job, cluster, estimate.step_time_s))
    (layout,) = layout_results([estimate], job=job, cluster=cluster)
    return ExplainResult(
        job=job_result(job),
        cluster=cluster_result(cluster),
        layout=layout,
        terms=[_term_result(term) for term in traced],
        sensitivities=[
            SensitivityResult(
                figure=each.figure,
                change=each.change,
                columns=list(each.columns),
                step_time_s=each.step_time_s,
                saved_s=each.saved_s,
                saved_fraction=each.saved_fraction,
            )
            for each in sensitivities
        ],
        bill=cost_result(job, cluster, estimate.step_time_s),
        assumptions=[*assumptions, *bill_assumptions(cluster)],
    )


def _term_result(term: TracedTerm) -> TermResult:
    inputs = [
        InputResult(
            name=each.name,
            value=each.value,
            unit=each.unit,
            origin=each.origin,
            basis=each.basis if each.origin == "figure" else None,
            source=_cited(each.source, layer=each.layer),
            layer=each.layer,
        )
        for each in term.inputs
    ]
    return TermResult(
        name=term.name,
        group=term.group,
        value=term.value,
        unit=term.unit,
        formula=term.formula,
        source=term.source,
        inputs=inputs,
    )


def _cited(source: str | None, *, layer: str | None) -> str | None:
    """Return the references behind the source keys of a catalogue figure; other sources as they are."""
    if source is None or layer != "catalogue":
        return source
    from linkwise import catalog
    from linkwise.errors import UnknownName

    try:
        return "; ".join(catalog.source(key).reference for key in source.split(", "))
    except UnknownName:
        return source


def job_result(job: Job) -> JobResult:
    """Return a job as it is published.

    Parameters
    ----------
    job
        What is run.
    """
    return JobResult(
        model=job.model.name,
        sequence_length=job.sequence_length,
        global_batch=job.global_batch,
        precision=str(job.precision),
        framework=job.framework,
        tokens=job.tokens,
    )


def cluster_result(cluster: Cluster) -> ClusterResult:
    """Return a cluster as it is published.

    Parameters
    ----------
    cluster
        What it is run on.
    """
    return ClusterResult(
        name=cluster.name,
        system=cluster.system,
        gpu=cluster.gpu.name,
        gpus=cluster.gpus,
        nodes=cluster.nodes_in_use,
        nvlink_domain_gpus=cluster.nvlink_domain_gpus,
        fabric=str(cluster.fabric.kind),
        link=None if cluster.fabric.link is None else cluster.fabric.link.name,
        oversubscription=cluster.fabric.oversubscription,
        node_bytes_per_s=cluster.node_bytes_per_s,
        changes=[change.words for change in cluster.changes],
    )
