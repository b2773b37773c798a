"""A step of a job in a lab, predicted from what its calls and its computing were measured to cost."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from linkwise.lab.calibration import Calibration
from linkwise.lab.design import LabDesign
from linkwise.lab.job import JobEnd
from linkwise.lab.lab_job import LabJob, job_table
from linkwise.lab.routes import Tier
from linkwise.lab.traffic import StepCall, loads_of

__all__ = ["StepTime", "WorkAlone", "predicted_step", "work_alone"]

_LEAST_HIDDEN = 1e-9
"""What is hidden at least, as a share of 1 in all says that nothing is [1]."""
_SHARDED = 3
"""The ZeRO stage that FSDP2 is [1]."""
_NO_OVERLAP = 1.0
"""Exponent of fully sharded overlap at which traffic adds to computing: without streams, as on a CPU, torch's
fully_shard waits for every gather and scatter [1]."""


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
    cores: int = told[0]["cores"]
    share = max(1.0, len(told) / cores)
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
        "gradient_window_s": run.layout.pipeline * (stage_layers - 1) * backward_s,
        "sharded_traffic_s": sum(call.count * call_s[call] for call in run.calls if call.part != "tensor"),
        "shard_overlap_exponent": _NO_OVERLAP,
        "expert_gradient_s": 0.0,
        "optimizer_s": run.optimizer_s + alone.update_s,
    }
    placed = job_table(run.job, run.cluster, run.layout)
    values["hop_exposed_fraction"] = placed.fixed("hop_turn_fraction")
    table = job_table(run.job, run.cluster, run.layout, values)
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
    """Return what the gradients of all stages take.

    A stage sums its own before it sends the last gradient to the stage before it: one stage after the other.
    """
    return sum((call.count * call_s[call] for call in run.calls if call.part == "gradients"), 0.0)


def _last_bucket_fraction(run: LabJob) -> float:
    """Return the share of the gradients that are ready only after all computing.

    DistributedDataParallel sends buckets of a layer as they fill; beside tensor parallelism fully_shard
    reduces each layer before it goes on to the next.
    """
    if run.layout.tensor > 1:
        return 1.0
    buckets = max((call.count for call in run.calls if call.part == "gradients"), default=1)
    return min(1.0 / buckets, 1.0 - _LEAST_HIDDEN)
