"""A job run in a lab: its layout for real, its computing slept, its bytes and steps predicted."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkwise.errors import InputError
from linkwise.estimate.columns import Evaluation, Table
from linkwise.estimate.job_inputs import checked_layout, fixed_columns, layout_columns
from linkwise.estimate.terms import TERMS
from linkwise.lab.bench import TierBytes, host_calls, host_of, payload_of, tier_bytes
from linkwise.lab.calibration import Calibration, calibrated, calibration_calls
from linkwise.lab.design import LabDesign
from linkwise.lab.job import JobEnd, JobRequest
from linkwise.lab.routes import Tier, counter_of, links_of
from linkwise.lab.traffic import (
    ELEMENT_BYTES,
    StepCall,
    calls_of,
    loads_of,
    mesh_of,
    parameters_of,
    step_loads,
)
from linkwise.layout import Layout, Recompute, Schedule
from linkwise.model import AttentionKind, QueryKeyNorm, make_model, parameter_counts

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.job import Job

__all__ = [
    "LabJob",
    "RunResult",
    "StepTime",
    "WorkAlone",
    "lab_job",
    "predicted_step",
    "run_request",
    "run_result",
    "small_job",
    "work_alone",
]

MOST_PARAMETERS = 20_000_000
"""What several processes on few cores really compute within the time that is slept (assumed) [1]."""
_LEAST_HIDDEN = 1e-9
"""What is hidden at least, as a share of 1 in all says that nothing is [1]."""
_SHARDED = 3
_NO_OVERLAP = 1.0
"""Exponent of fully sharded overlap at which traffic adds to computing: without streams, as on a CPU, torch's
fully_shard waits for every gather and scatter [1]."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkAlone:
    """What the small model really computes when nothing is sent, all ranks at once.

    Parameters
    ----------
    forward_s, backward_s
        Of a layer and micro-batch, beside what is slept [s].
    update_s
        Of the optimizer, beside what is slept [s].
    """

    forward_s: float
    backward_s: float
    update_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """A predicted step.

    Parameters
    ----------
    time_s
        All of it [s].
    parts
        Where it goes; they sum to `time_s` [s].
    """

    time_s: float
    parts: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What a run showed.

    Parameters
    ----------
    predicted
        The step, from the figures of the machine that were measured before it.
    steps_s, losses
        Of each measured step, of the slowest rank [s].
    tiers
        Bytes of a step by tier.
    calibration, alone
        What was measured first.
    wall_s
        Of the whole job, its start included [s].
    """

    predicted: StepTime
    steps_s: tuple[float, ...]
    losses: tuple[float, ...]
    tiers: tuple[TierBytes, ...]
    calibration: Calibration
    alone: WorkAlone
    wall_s: float

    @property
    def measured_s(self) -> float:
        """Return the median step [s]."""
        return statistics.median(self.steps_s)


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
    table = _table(job, cluster, placed)
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


def work_alone(run: LabJob, end: JobEnd, *, core_share: float) -> WorkAlone:
    """Return what the small model really computes, measured before the steps.

    Parameters
    ----------
    run
        The job.
    end
        How it ended.
    core_share
        As a calibration has it [1].

    Notes
    -----
    Ranks that wait for one another in every layer compute at about the same time and share the cores, where
    they are more than those. Others drift apart until one computes while another sleeps: of what they wait
    for a core, only what does not fit into sleeping is left.
    """
    told = [each for each in end.events if each["event"] == "alone"]
    steps = [
        [max(ways) for ways in zip(*ranks, strict=True)]
        for ranks in zip(*(each["times_s"] for each in told), strict=True)
    ]
    forward_s, backward_s, update_s = (statistics.median(each[way] for each in steps) for way in range(3))
    share = max(1.0, len(told) / told[0]["cores"])
    passes = run.micro_batches * run.job.model.layers // run.layout.pipeline
    in_step = run.layout.tensor > 1 or run.layout.zero_stage == _SHARDED

    def taken_s(own_s: float, slept_s: float) -> float:
        return min(core_share, share) * own_s if in_step else max(own_s, share * own_s - slept_s)

    return WorkAlone(
        forward_s=taken_s(forward_s / passes, run.forward_s),
        backward_s=taken_s(backward_s / passes, run.backward_s),
        update_s=share * update_s,
    )


def predicted_step(run: LabJob, design: LabDesign, calibration: Calibration, alone: WorkAlone) -> StepTime:
    """Return the step of a job in a lab: the terms of every estimate, on gloo's times instead of NCCL's.

    Parameters
    ----------
    run
        The job.
    design
        The lab.
    calibration
        What its calls cost here.
    alone
        What the small model really computes.

    Notes
    -----
    Computing is what is slept and what the small model really computes; what the host and a framework add on
    GPUs is not emulated and left out. Of calls that several groups make at once, links carry all.
    """
    call_s = {call: calibration.time_s(call, design) for call in run.calls}
    tensor_s = max((call_s[call] for call in run.calls if call.part == "tensor"), default=0.0)
    across_s, inside_s = _hops_s(run, design, call_s)
    backward_s = run.backward_s + alone.backward_s
    stage_layers = run.job.model.layers // run.layout.pipeline
    values = {
        "layer_forward_s": run.forward_s + alone.forward_s,
        "layer_backward_s": backward_s,
        "layer_recompute_s": 0.0,
        "logits_s": 0.0,
        "tensor_collective_s": tensor_s,
        "layer_tensor_s": 4 * tensor_s,
        "layer_context_s": 0.0,
        "layer_expert_s": 0.0,
        "hop_across_s": across_s,
        "hop_inside_s": inside_s,
        "gradient_all_reduce_s": _gradients_s(run, call_s),
        "gradient_exposed_fraction": _last_bucket_fraction(run),
        "gradient_window_s": (stage_layers - 1) * backward_s,
        "sharded_traffic_s": sum(call.count * call_s[call] for call in run.calls if call.part != "tensor"),
        "shard_overlap_exponent": _NO_OVERLAP,
        "expert_gradient_s": 0.0,
        "optimizer_s": run.optimizer_s + alone.update_s,
    }
    placed = _table(run.job, run.cluster, run.layout)
    values["hop_exposed_fraction"] = placed.fixed("hop_turn_fraction")
    table = _table(run.job, run.cluster, run.layout, values)
    parts = ("compute_s", "tensor_s", "bubble_s", "pipeline_s", "data_s", "optimizer_s")
    return StepTime(
        time_s=table.fixed("known_s"),
        parts={name.removesuffix("_s"): table.fixed(name) for name in parts},
    )


def _hops_s(run: LabJob, design: LabDesign, call_s: Mapping[StepCall, float]) -> tuple[float, float]:
    """Return the longest hop between nodes and inside one."""
    hops = {True: 0.0, False: 0.0}
    for call in run.calls:
        if call.part == "hop":
            is_across = any(link.tier is not Tier.INSIDE for link in loads_of(call, design))
            hops[is_across] = max(hops[is_across], call_s[call])
    return hops[True], hops[False]


def _gradients_s(run: LabJob, call_s: Mapping[StepCall, float]) -> float:
    """Return what the gradients of the slowest stage take."""
    stages: dict[object, float] = {}
    for call in run.calls:
        if call.part == "gradients":
            stages[call.groups] = stages.get(call.groups, 0.0) + call.count * call_s[call]
    return max(stages.values(), default=0.0)


def _last_bucket_fraction(run: LabJob) -> float:
    """Return the share of the gradients that are ready only after all computing.

    DistributedDataParallel sends buckets of a layer as they fill; beside tensor parallelism fully_shard
    reduces each layer before it goes on to the next.
    """
    if run.layout.tensor > 1:
        return 1.0
    buckets = max((call.count for call in run.calls if call.part == "gradients"), default=1)
    return min(1.0 / buckets, 1.0 - _LEAST_HIDDEN)


def run_request(run: LabJob, design: LabDesign, *, steps: int, python: str) -> JobRequest:
    """Return what is run.

    Parameters
    ----------
    run
        The job.
    design
        The lab.
    steps
        Measured ones; one more is done before them [1].
    python
        The Python that has torch.
    """
    model, layout = run.job.model, run.layout
    work = {
        "calls": [*host_calls(), *calibration_calls(run.calls, design)],
        "shape": {
            name: getattr(model, name)
            for name in ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab")
        },
        "mesh": mesh_of(layout, design),
        "zero_stage": layout.zero_stage,
        "micro_batch": layout.micro_batch,
        "micro_batches": run.micro_batches,
        "sequence_length": run.job.sequence_length,
        "forward_s": run.forward_s,
        "backward_s": run.backward_s,
        "optimizer_s": run.optimizer_s,
        "bucket_mib": _layer_bytes(run) / 2**20,
        "steps": steps,
        "warmup": 1,
    }
    return JobRequest(kind="training", work=work, python=python, timeout_s=120.0)


def run_result(lab: str, run: LabJob, design: LabDesign, end: JobEnd) -> RunResult:
    """Return what a run showed.

    Parameters
    ----------
    lab
        Name of the lab.
    run
        The job.
    design
        What the lab is.
    end
        How the job ended.
    """
    loopback = host_of(design, end).loopback_bytes_per_s
    first = len(host_calls())
    calibration = calibrated(run.calls, design, end, loopback_bytes_per_s=loopback, first=first)
    alone = work_alone(run, end, core_share=calibration.core_share)
    steps = [each for each in end.events if each["event"] == "step" and each["step"] >= 0]
    counted = {
        str(each["link"]): payload_of(each["bytes"], each["packets"]) / len(steps)
        for each in end.events
        if each["event"] == "counted step"
    }
    payload = {link: counted.get(counter_of(lab, link), 0.0) for link in links_of(design)}
    return RunResult(
        predicted=predicted_step(run, design, calibration, alone),
        steps_s=tuple(float(each["time_s"]) for each in steps),
        losses=tuple(float(each["loss"]) for each in steps),
        tiers=tuple(tier_bytes(step_loads(run.calls, design), payload)),
        calibration=calibration,
        alone=alone,
        wall_s=end.wall_s,
    )


def _table(job: Job, cluster: Cluster, layout: Layout, values: dict[str, float] | None = None) -> Evaluation:
    table = Table(rows=1, fixed=fixed_columns(job, cluster), varying=layout_columns((layout,)))
    columns = {name: np.array([value]) for name, value in (values or {}).items()}
    return Evaluation(table.replaced(columns), TERMS)


def _layer_bytes(run: LabJob) -> float:
    shapes = parameters_of(run.job.model, tensor=run.layout.tensor)["layer"]
    return float(ELEMENT_BYTES * sum(rows * columns for rows, columns in shapes))


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
