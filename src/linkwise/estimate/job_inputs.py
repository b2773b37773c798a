"""From a job and a cluster to the columns an estimate reads, by the same rules as for measured runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from linkwise.cluster.changes import gpu_speed_fraction
from linkwise.errors import InputError, UnknownName
from linkwise.estimate.calibrated import NO_LATENCY_FACTORS, calibrated_columns, calibrated_factors
from linkwise.estimate.constants import bind_columns, constant_values
from linkwise.estimate.crossing import tier_columns
from linkwise.estimate.inputs import gpu_inputs, model_inputs
from linkwise.job.framework import FRAMEWORKS
from linkwise.job.legality import layout_misfits
from linkwise.job.offers import offer_of
from linkwise.layout import Schedule
from linkwise.model import model_columns
from linkwise.network.changed_fabric import leaf_fraction
from linkwise.network.cluster_setting import network_of
from linkwise.network.group_times import GENERATIONS, NETWORKS
from linkwise.network.placement import ranks_per_domain

if TYPE_CHECKING:
    from linkwise.catalog import Gpu
    from linkwise.cluster import Cluster
    from linkwise.estimate.term import Floats
    from linkwise.job import Job
    from linkwise.job.framework import Framework, Habit
    from linkwise.job.offers import Offer
    from linkwise.layout import Layout
    from linkwise.model import Model

__all__ = [
    "LAYOUT_COLUMNS",
    "NvlinkDomain",
    "checked_layout",
    "fixed_columns",
    "framework_of_job",
    "job_columns",
    "layout_columns",
    "network_columns",
    "nvlink_domain",
    "stack_columns",
]

LAYOUT_COLUMNS = (
    "tensor",
    "context",
    "pipeline",
    "virtual_pipeline",
    "expert",
    "data",
    "micro_batch",
    "zero_stage",
    "hybrid_shard",
    "recompute",
    "sequence_parallel",
    "schedule",
    "rank_order",
    "context_exchange",
)
"""Columns that say how the work is cut; every other input is fixed for a job and a cluster."""

_ONE_STREAM_BYTES_PER_S = 6.25e9  # 50 Gbit/s, the fastest TCP network that a training step was measured on
_PCIE_FLOOR_BYTES_PER_S = 16e9  # generation 3 with 16 lanes, the oldest server that holds a listed GPU


def stack_columns(*, model: Model, gpu: Gpu, precision: str, framework: Framework) -> dict[str, Habit]:
    """Return the columns of a GPU that runs a model under a framework: figures, and names of constants.

    Parameters
    ----------
    model, gpu
        What runs on what.
    precision
        Number format of the matrix products.
    framework
        Whose habits apply.

    Notes
    -----
    Heads whose size is no multiple of 8 lose the tensor cores in unfused products (BigScience chronicles,
    2022).
    """
    figures = gpu_inputs(gpu, precision=precision, framework=framework)
    eager_unaligned = not figures["fused_attention"] and model.head_dim % 8
    eight_bit_inputs = precision in ("fp8", "nvfp4") and framework.eight_bit_inputs
    return {
        **framework.columns(precision),
        **figures,
        "unaligned_head_factor": 8.0 if eager_unaligned else 1.0,
        "saved_input_bytes": 1.0 if eight_bit_inputs else figures["element_bytes"],
        "offloaded_activation_fraction": 0.0,
    }


_OVER_PCIE: Mapping[str, Habit] = {
    "nvlink_fraction": "pcie_fraction",
    "collective_generation": float(GENERATIONS.index("pcie")),
    "tensor_exposed_fraction": 1.0,
}
"""What a node whose GPUs meet over PCIe does differently: no shared memory to overlap through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NvlinkDomain:
    """GPUs that reach each other without the fabric.

    Attributes
    ----------
    gpus
        How many of them a group can count on.
    bytes_per_s
        Rate between them, one direction, per GPU [bytes/s].
    is_pcie
        Whether it is the PCIe of a node rather than NVLink.
    assumption
        What was taken for granted, in a sentence, or ``None``.
    """

    gpus: int
    bytes_per_s: float
    is_pcie: bool = False
    assumption: str | None = None


def nvlink_domain(cluster: Cluster) -> NvlinkDomain:
    """Return the domain that groups of a cluster are placed in.

    Notes
    -----
    A node whose NVLink joins none of its GPUs, or pairs, is one domain at the rate of its PCIe, the slowest
    hop of a ring through it. A domain that the GPUs do not fill evenly is used up to the largest size that
    does, as people do with racks of 72 (64 of each).
    """
    gpu = cluster.gpu
    pcie = gpu.pcie_bytes_per_s or _PCIE_FLOOR_BYTES_PER_S
    joined, node = cluster.nvlink_domain_gpus, min(cluster.gpus_per_node, cluster.gpus)
    if (joined < node and joined <= 2) or gpu.nvlink_bytes_per_s is None:
        said = (
            f"the {node} GPUs of a node reach each other over PCIe; NVLink bridges of pairs are not counted"
        )
        return NvlinkDomain(gpus=node, bytes_per_s=pcie, is_pcie=True, assumption=said if node > 1 else None)
    used = max(size for size in range(1, joined + 1) if cluster.gpus % size == 0)
    said = f"{used} GPUs of each NVLink domain of {joined} are used, so that they divide {cluster.gpus} GPUs"
    return NvlinkDomain(
        gpus=used, bytes_per_s=gpu.nvlink_bytes_per_s, assumption=None if used == joined else said
    )


def network_columns(cluster: Cluster) -> dict[str, Habit]:
    """Return the columns of the fabric: one GPU's share of the NICs, what of it is reached, and the latency.

    Notes
    -----
    What groups lose on the links up of leaves and pods is `linkwise.estimate.crossing`'s. A link reaches what
    the catalogue says it does alone, less what a training step leaves of that, fitted on RDMA and taken for
    every transport that spares the CPU; plain TCP up to 50 Gbit/s reaches a fitted fraction, and above that
    what its streams do in the catalogue. Without a fabric nothing crosses it; the columns then hold the
    domain's rate, which no group reads.
    """
    domain = nvlink_domain(cluster)
    link = cluster.fabric.link
    if link is None or not cluster.node_bytes_per_s:
        return {
            "nic_bytes_per_s": domain.bytes_per_s,
            "network_fraction": 1.0,
            "hop_network_fraction": 1.0,
            "network_contention": 1.0,
            "network_latency_s": 0.0,
            "collective_network": 0.0,
        }
    fraction: Habit = link.achieved_fraction
    hop: Habit = fraction
    contention: Habit = "network_contention_rdma"
    if link.protocol == "tcp":
        contention = 1.0
        if link.bytes_per_s <= _ONE_STREAM_BYTES_PER_S:
            hop = "network_fraction_tcp_single"
            fraction = "network_fraction_tcp_many" if domain.gpus > 1 else hop
    return {
        "nic_bytes_per_s": cluster.gpu_network_bytes_per_s * leaf_fraction(cluster),
        "network_fraction": fraction,
        "hop_network_fraction": hop,
        "network_contention": contention,
        "network_latency_s": link.hop_s,
        "collective_network": float(NETWORKS.index(network_of(cluster))),
    }


def framework_of_job(job: Job) -> Framework:
    """Return the framework a job names.

    Raises
    ------
    UnknownName
        When there is none of that name.
    """
    try:
        return FRAMEWORKS[job.framework]
    except KeyError:
        raise UnknownName.among(FRAMEWORKS, kind="framework", given=job.framework) from None


def job_columns(job: Job, cluster: Cluster) -> dict[str, Habit]:
    """Return every column that the layout does not set: a number, or the name of a fitted constant.

    Parameters
    ----------
    job, cluster
        What is run on what.

    Raises
    ------
    InputError
        When the GPU has no rate for the precision.
    """
    _check_precision(job, cluster.gpu)
    domain = nvlink_domain(cluster)
    model = {name: float(values[0]) for name, values in model_inputs(model_columns([job.model])).items()}
    stack = stack_columns(
        model=job.model, gpu=cluster.gpu, precision=str(job.precision), framework=framework_of_job(job)
    )
    return {
        **model,
        **stack,
        **network_columns(cluster),
        **tier_columns(cluster, gpus=cluster.gpus, domain_gpus=domain.gpus),
        "nvlink_bytes_per_s": domain.bytes_per_s,
        **(_OVER_PCIE if domain.is_pcie else {}),
        "domain_gpus": float(domain.gpus),
        "gpus": float(cluster.gpus),
        **NO_LATENCY_FACTORS,
        "sequence_length": float(job.sequence_length),
        "global_batch": float(job.global_batch),
    }


def fixed_columns(
    job: Job, cluster: Cluster, *, constants: Mapping[str, float] | None = None
) -> dict[str, Floats]:
    """Return `job_columns` as arrays of length one, constants resolved.

    Parameters
    ----------
    job, cluster
        What is run on what.
    constants
        Value by name of the constants; the shipped fit unless given.

    Raises
    ------
    InputError
        When the GPU has no rate for the precision.
    """
    bound = bind_columns([job_columns(job, cluster)])
    columns = bound.resolve(constant_values() if constants is None else constants)
    # A synchronous step ends with its slowest GPU.
    slowed = {**columns, "rate_factor": columns["rate_factor"] * gpu_speed_fraction(cluster)}
    factors = calibrated_factors(cluster.calibration, precision=str(job.precision))
    return calibrated_columns(slowed, factors) if factors else slowed


def layout_columns(layouts: Sequence[Layout]) -> dict[str, Floats]:
    """Return the columns of layouts whose blanks are filled, (layouts,) each.

    Parameters
    ----------
    layouts
        As `checked_layout` gives them.
    """
    return {
        name: np.array([float(getattr(layout, name)) for layout in layouts], dtype=np.float64)
        for name in LAYOUT_COLUMNS
    }


def checked_layout(job: Job, cluster: Cluster, layout: Layout, *, offer: Offer | None = None) -> Layout:
    """Return a layout with its blanks filled: the data degree, and the habit of sequence parallelism.

    Parameters
    ----------
    job, cluster
        What is run on what.
    layout
        As the job gives it.
    offer
        What may be chosen; what the job's framework has unless given.

    Raises
    ------
    InputError
        When it cannot run at all: with everything that does not divide.
    """
    framework = framework_of_job(job)
    parallel = layout.sequence_parallel
    if parallel is None:
        parallel = layout.tensor > 1 and framework.sequence_parallel
    schedule = layout.schedule
    if framework.schedule == "gpipe" and schedule is Schedule.ONE_F_1F1B:
        schedule = Schedule.GPIPE
    placed = replace(layout.on(cluster.gpus), sequence_parallel=parallel, schedule=schedule)
    faults = list(layout_misfits(job, placed, offer or offer_of(framework)))
    faults += _hybrid_misfits(placed, nvlink_domain(cluster))
    if faults:
        raise InputError("the layout cannot run: " + "; ".join(faults))
    return placed


def _hybrid_misfits(layout: Layout, domain: NvlinkDomain) -> Iterator[str]:
    if not layout.hybrid_shard:
        return
    inside, ranks = _shards_inside(layout, domain), (layout.data or 1) * layout.context
    if not 1 < inside < ranks:
        yield (
            f"hybrid_shard has no effect: {inside} of the {ranks} ranks that share parameters are in one "
            "NVLink domain; leave it out"
        )


def _shards_inside(layout: Layout, domain: NvlinkDomain) -> int:
    gpus, tensor = np.array([float(domain.gpus)]), np.array([float(layout.tensor)])
    context, data = np.array([float(layout.context)]), np.array([float(layout.data or 1)])
    inside = ranks_per_domain(context, tensor, gpus) * ranks_per_domain(data, tensor * context, gpus)
    return int(inside[0])


def _check_precision(job: Job, gpu: Gpu) -> None:
    rates = gpu.flop_per_s
    if not (rates.get("bf16") or rates.get("fp16")):
        raise InputError(f"the 16-bit rate of {gpu.name} is not known, so no step on it can be estimated")
    if str(job.precision) not in rates:
        have = ", ".join(name for name in ("bf16", "fp16", "fp8", "nvfp4", "tf32") if name in rates)
        raise InputError(
            f"{gpu.name} has no {job.precision} (or its rate is not known); choose one of: {have}"
        )
