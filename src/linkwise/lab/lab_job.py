"""A job as a lab runs it: what it is, and what of a job a lab does not run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkwise.errors import InputError
from linkwise.estimate.columns import Evaluation, Table
from linkwise.estimate.job_inputs import checked_layout, fixed_columns, layout_columns
from linkwise.estimate.terms import TERMS
from linkwise.lab.design import LabDesign
from linkwise.lab.traffic import StepCall, calls_of, mesh_of
from linkwise.layout import Layout, Recompute, Schedule
from linkwise.model import AttentionKind, QueryKeyNorm, make_model, parameter_counts

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.job import Job

__all__ = ["LabJob", "job_table", "lab_job", "small_job"]

MOST_PARAMETERS = 20_000_000
"""What several processes on few cores really compute within the time that is slept (assumed) [1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabJob:
    """A job as a lab runs it.

    Parameters
    ----------
    job, cluster
        What is run, and what the lab emulates.
    layout
        Its blanks filled.
    calls
        Of one step.
    forward_s, backward_s, optimizer_s
        What a GPU would compute for a layer and micro-batch, and for the update, times the dilation [s].
    micro_batches
        Of a step and replica [1].
    """

    job: Job
    cluster: Cluster
    layout: Layout
    calls: tuple[StepCall, ...]
    forward_s: float
    backward_s: float
    optimizer_s: float
    micro_batches: int


def small_job(cluster: Cluster) -> Job:
    """Return a job that is small enough for any lab: plain data parallelism, two micro-batches a replica.

    Parameters
    ----------
    cluster
        What the lab emulates.
    """
    from linkwise.job import Job

    model = make_model(
        name="small",
        layers=4,
        hidden=128,
        heads=8,
        kv_heads=4,
        head_dim=16,
        v_head_dim=16,
        vocab=256,
        ffn=352,
    )
    batch, layout = 4 * cluster.gpus, Layout(micro_batch=2)
    return Job(model=model, sequence_length=64, global_batch=batch, framework="ddp", layout=layout)


def lab_job(job: Job, cluster: Cluster, design: LabDesign) -> LabJob:
    """Return a job as a lab runs it.

    Parameters
    ----------
    job
        With a layout.
    cluster
        What the lab emulates.
    design
        The lab.

    Raises
    ------
    InputError
        If the layout or the model is one that the lab does not run.
    """
    if job.layout is None:
        raise InputError("the lab runs one layout; state its degrees in the job as layout: {...}")
    placed = checked_layout(job, cluster, job.layout)
    faults = [*_model_faults(job), *_layout_faults(job, placed)]
    if faults:
        raise InputError("the lab cannot run this job: " + "; ".join(faults))
    table = job_table(job, cluster, placed)
    micro_batches = round(table.fixed("micro_batches"))
    tokens = placed.micro_batch * job.sequence_length
    mesh = mesh_of(placed, design)
    return LabJob(
        job=job,
        cluster=cluster,
        layout=placed,
        calls=calls_of(job.model, placed, mesh, tokens=tokens, micro_batches=micro_batches),
        forward_s=table.fixed("forward_gpu_s") * design.dilation,
        backward_s=table.fixed("backward_gpu_s") * design.dilation,
        optimizer_s=table.fixed("optimizer_s") * design.dilation,
        micro_batches=micro_batches,
    )


def job_table(
    job: Job, cluster: Cluster, layout: Layout, values: dict[str, float] | None = None
) -> Evaluation:
    """Return the terms of the estimate on one layout.

    Parameters
    ----------
    job, cluster, layout
        What is estimated.
    values
        Columns and terms that are known otherwise, by name.
    """
    table = Table(rows=1, fixed=fixed_columns(job, cluster), varying=layout_columns((layout,)))
    columns = {name: np.array([value]) for name, value in (values or {}).items()}
    return Evaluation(table.replaced(columns), TERMS)


def _model_faults(job: Job) -> Iterator[str]:
    model = job.model
    is_plain = (
        model.attention in (AttentionKind.MHA, AttentionKind.GQA)
        and model.gated_mlp
        and not model.experts
        and not (model.tied_embeddings or model.learned_positions or model.attention_bias or model.mlp_bias)
        and not (model.linear_layers or model.sliding_layers or model.mtp_layers)
        and model.query_key_norm is QueryKeyNorm.NONE
    )
    if not is_plain:
        yield f"{model.name} is not of the plain shape of Llama; take a config.json that is"
    total = parameter_counts(model).total
    if total > MOST_PARAMETERS:
        yield (
            f"{model.name} has {total:,.0f} parameters, which this machine cannot train in the time that is "
            f"slept; take a config.json of up to {MOST_PARAMETERS:,}"
        )


def _layout_faults(job: Job, layout: Layout) -> Iterator[str]:
    if layout.zero_stage in (1, 2):
        yield f"zero_stage {layout.zero_stage} is not run; take 0 (DDP) or 3 (FSDP)"
    if layout.sequence_parallel:
        yield "sequence parallelism is not run; state sequence_parallel: false"
    for name in ("context", "expert", "virtual_pipeline"):
        if getattr(layout, name) > 1:
            yield f"{name} {getattr(layout, name)} is not run; leave it out"
    if layout.hybrid_shard:
        yield "hybrid_shard is not run; leave it out"
    if layout.recompute is not Recompute.NONE:
        yield "recompute is not run; leave it out"
    if layout.pipeline > 1:
        yield from _pipeline_faults(job, layout)
    if job.model.kv_heads % layout.tensor or job.model.ffn % layout.tensor:
        yield f"tensor {layout.tensor} does not divide key heads and MLP of {job.model.name}"


def _pipeline_faults(job: Job, layout: Layout) -> Iterator[str]:
    if layout.schedule is not Schedule.ONE_F_1F1B:
        yield f"schedule {layout.schedule.word} is not run; leave it out"
    if job.model.layers % layout.pipeline:
        yield f"pipeline {layout.pipeline} does not divide the {job.model.layers} layers"
    if layout.tensor > 1 or layout.zero_stage == 3:
        yield "a pipeline is run alone or with replicas; leave tensor and zero_stage out"
    if job.global_batch // (layout.micro_batch * (layout.data or 1)) < layout.pipeline:
        yield f"1F1B of torch takes {layout.pipeline} micro-batches at least; raise global_batch"
