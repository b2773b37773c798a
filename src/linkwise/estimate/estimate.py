"""The value `Estimate`, and how layouts of a job on a cluster get theirs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from linkwise.cluster.changes import step_words
from linkwise.estimate.columns import Evaluation, Table
from linkwise.estimate.constants import shipped_constants
from linkwise.estimate.interval import interval_factors, interval_key, network_class
from linkwise.estimate.job_inputs import (
    checked_layout,
    fixed_columns,
    framework_of_job,
    layout_columns,
    network_columns,
    nvlink_domain,
)
from linkwise.estimate.origins import input_origins, weakest_basis
from linkwise.estimate.terms import MEMORY_PARTS, STEP_PARTS, TERMS
from linkwise.figures import Basis
from linkwise.model import model_flop_per_token
from linkwise.network.changed_fabric import fabric_words
from linkwise.network.tiers import describe

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.job import Job
    from linkwise.job.offers import Offer
    from linkwise.layout import Layout

__all__ = ["Estimate", "assumptions_of", "estimate_layout", "estimate_layouts", "job_interval_factors"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What one layout takes.

    Parameters
    ----------
    layout
        The layout, its blanks filled.
    step_time_s
        Time of one optimizer step [s].
    step_time_low_s, step_time_high_s
        Ends of its 80 % interval [s].
    tokens_per_s_per_gpu
        Throughput [tokens/s].
    mfu_fraction
        Model FLOP (causal attention, nothing counted twice) per second over the dense peak of the precision
        [1].
    memory_bytes, memory_available_bytes
        What the fullest GPU needs, and what it has [bytes].
    fullest_stage
        Pipeline stage of the fullest GPU, from 0.
    parts
        Where the step goes: compute, tensor, context, expert, pipeline, bubble, data, optimizer, overhead;
        they sum to `step_time_s` [s].
    memory_parts
        Where the memory goes: weights, gradients, optimizer, gathered, activations, loss, reserve; they sum
        to `memory_bytes` [bytes].
    basis
        Basis of the weakest figure the estimate rests on.
    """

    layout: Layout
    step_time_s: float
    step_time_low_s: float
    step_time_high_s: float
    tokens_per_s_per_gpu: float
    mfu_fraction: float
    memory_bytes: float
    memory_available_bytes: float
    fullest_stage: int
    parts: Mapping[str, float] = field(hash=False)
    memory_parts: Mapping[str, float] = field(hash=False)
    basis: Basis

    @property
    def fits(self) -> bool:
        """Return whether the fullest GPU has what it needs."""
        return self.memory_bytes <= self.memory_available_bytes

    @property
    def short_bytes(self) -> float:
        """Return what the fullest GPU lacks, 0 where the layout fits [bytes]."""
        return max(self.memory_bytes - self.memory_available_bytes, 0.0)


MEMORY_NAMES: Mapping[str, str] = {
    "weight_memory_bytes": "weights",
    "gradient_memory_bytes": "gradients",
    "optimizer_memory_bytes": "optimizer",
    "gathered_memory_bytes": "gathered",
    "activation_memory_bytes": "activations",
    "loss_memory_bytes": "loss",
    "fragment_memory_bytes": "fragments",
    "reserve_memory_bytes": "reserve",
}
"""What people call the parts of the memory."""


def estimate_layout(job: Job, cluster: Cluster, layout: Layout) -> Estimate:
    """Return what one layout of a job takes on a cluster, whether it fits or not.

    Parameters
    ----------
    job, cluster
        What is run on what.
    layout
        The layout; `data` and `sequence_parallel` may be blank.

    Raises
    ------
    InputError
        When the layout cannot run at all, or the GPU has no rate for the precision.
    """
    return estimate_layouts(job, cluster, (layout,))[0]


def estimate_layouts(
    job: Job, cluster: Cluster, layouts: Sequence[Layout], *, offer: Offer | None = None
) -> tuple[Estimate, ...]:
    """Return what each layout takes, in the same order.

    Parameters
    ----------
    job, cluster
        What is run on what.
    layouts
        The layouts; `data` and `sequence_parallel` may be blank.
    offer
        What they may choose; what the job's framework has unless given.

    Raises
    ------
    InputError
        When a layout cannot run at all, or the GPU has no rate for the precision.
    """
    if not layouts:
        return ()
    placed = tuple(checked_layout(job, cluster, layout, offer=offer) for layout in layouts)
    table = Table(rows=len(placed), fixed=fixed_columns(job, cluster), varying=layout_columns(placed))
    evaluation = Evaluation(table, TERMS)
    factors = job_interval_factors(job, cluster)
    basis = weakest_basis(input_origins(job, cluster))
    flop_per_token = model_flop_per_token(job.model, job.sequence_length)
    return tuple(
        _estimate(
            evaluation, row, layout, job=job, factors=factors, basis=basis, flop_per_token=flop_per_token
        )
        for row, layout in enumerate(placed)
    )


def job_interval_factors(job: Job, cluster: Cluster) -> tuple[float, float]:
    """Return the factors on the step time at the ends of its interval [1].

    Parameters
    ----------
    job, cluster
        What is run on what; its framework, model and network choose the class.
    """
    inside = cluster.gpus <= nvlink_domain(cluster).gpus
    network = network_class(None if inside else cluster.node_bytes_per_s)
    family = framework_of_job(job).family
    return interval_factors(interval_key(family=family, mixture=job.model.experts > 0, network=network))


def assumptions_of(job: Job, cluster: Cluster) -> tuple[str, ...]:
    """Return what an estimate takes for granted, in sentences for a reader.

    Parameters
    ----------
    job, cluster
        What is run on what.
    """
    said = list(cluster.assumptions)
    domain = nvlink_domain(cluster)
    if domain.assumption is not None:
        said.append(domain.assumption)
    said += describe(cluster, domain_gpus=domain.gpus)
    said.extend(_network_words(cluster))
    said.extend(step_words(cluster))
    said.extend(fabric_words(cluster))
    said.extend(framework_of_job(job).assumes)
    if cluster.calibration is not None:
        said.append(cluster.calibration.words)
    if job.model.experts:
        said.append("tokens are spread evenly over the experts")
    if job.model.mtp_layers:
        said.append("the modules that predict further tokens are in neither time nor memory")
    return tuple(said)


def _network_words(cluster: Cluster) -> Iterator[str]:
    """Yield what of the line rate a step is priced with, where that is not fitted as a whole."""
    link, columns = cluster.fabric.link, network_columns(cluster)
    if link is None or isinstance(columns["network_fraction"], str):
        return
    basis = link.figure("achieved_fraction").basis
    reached = (
        f"sends between GPUs reach {link.achieved_fraction:.0%} of the line rate of {link.name} ({basis})"
    )
    said = f"{reached}, collectives what linkwise collective says"
    contention = columns["network_contention"]
    if isinstance(contention, str):
        left = shipped_constants()[contention]
        said += (
            f"; while a step trains, {left.value:.0%} of the rate of the NICs is left for both ({left.basis})"
        )
    yield said


def _estimate(
    evaluation: Evaluation,
    row: int,
    layout: Layout,
    *,
    job: Job,
    factors: tuple[float, float],
    basis: Basis,
    flop_per_token: float,
) -> Estimate:
    def value(name: str) -> float:
        return float(evaluation[name][row])

    step = value("step_time_s")
    gpus = layout.model_parallel * (layout.data or 1)
    rate = job.tokens_per_step / step / gpus
    last = layout.pipeline > 1 and value("loss_memory_bytes") > 0.0
    return Estimate(
        layout=layout,
        step_time_s=step,
        step_time_low_s=step * factors[0],
        step_time_high_s=step * factors[1],
        tokens_per_s_per_gpu=rate,
        mfu_fraction=rate * flop_per_token / value("peak_linear_flop_per_s"),
        memory_bytes=value("memory_bytes"),
        memory_available_bytes=value("memory_available_bytes"),
        fullest_stage=layout.pipeline - 1 if last else 0,
        parts={name.removesuffix("_s"): value(name) for name in STEP_PARTS},
        memory_parts={MEMORY_NAMES[name]: value(name) for name in MEMORY_PARTS},
        basis=basis,
    )
