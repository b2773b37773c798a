"""The configuration of DeepSpeed as JSON.

References
----------
Microsoft, DeepSpeed 0.19.8, deepspeed/runtime/config.py, zero/config.py and tensor_parallel/config.py, 2026.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from linkwise.errors import InputError
from linkwise.launch.render.start import FOLDER, NotExpressed, Program
from linkwise.layout import ContextExchange, RankOrder, Recompute, Schedule

if TYPE_CHECKING:
    from linkwise.launch.render.start import Start
    from linkwise.layout import Layout

__all__ = ["FILE", "deepspeed_program", "read_deepspeed"]

FILE = "ds_config.json"
_SCRIPT = "train.py"


def deepspeed_program(start: Start) -> Program:
    """Return a program that DeepSpeed configures.

    Parameters
    ----------
    start
        What is to be started.
    """
    return Program(
        words=(start.script or _SCRIPT, "--deepspeed", f"--deepspeed_config={FOLDER}/{FILE}"),
        files={FILE: json.dumps(_config(start), indent=2) + "\n"},
        purposes={FILE: "configuration of DeepSpeed"},
        not_expressed=tuple(_gaps(start)),
        assumed=(
            (
                "the optimizer and its learning rate are those of your program: no document states them, and "
                "the file leaves them out"
            ),
        ),
    )


def _config(start: Start) -> dict[str, object]:
    layout, job = start.layout, start.job
    zero: dict[str, object] = {"stage": layout.zero_stage}
    if layout.zero_stage:
        zero |= {"overlap_comm": True, "contiguous_gradients": True, "reduce_scatter": True}
    if layout.hybrid_shard and _hybrid_ranks(start) > 1:
        zero["zero_hpz_partition_size"] = _hybrid_ranks(start)
    config: dict[str, object] = {
        "train_batch_size": job.global_batch,
        "train_micro_batch_size_per_gpu": layout.micro_batch,
        "gradient_accumulation_steps": start.accumulation,
        "zero_optimization": zero,
        "bf16": {"enabled": job.precision in ("bf16", "fp8", "nvfp4")},
        "fp16": {"enabled": job.precision == "fp16"},
        "steps_per_print": 1,
        "wall_clock_breakdown": True,
    }
    if _has_autotp(layout):
        config["tensor_parallel"] = {"autotp_size": layout.tensor}
    return config


def _has_autotp(layout: Layout) -> bool:
    return layout.tensor > 1 and layout.zero_stage < 3


def _hybrid_ranks(start: Start) -> int:
    layout = start.layout
    inside = max(1, start.cluster.nvlink_domain_gpus // layout.tensor)
    data = layout.data or 1
    return max(each for each in range(1, min(inside, data) + 1) if data % each == 0)


def _gaps(start: Start) -> Iterator[NotExpressed]:
    layout = start.layout
    in_code = {
        "pipeline": "PipelineModule(num_stages={})",
        "expert": "deepspeed.moe.layer.MoE(ep_size={})",
        "context": "its sequence parallel groups, of {} ranks",
    }
    for name, where in in_code.items():
        degree = getattr(layout, name)
        if degree > 1:
            yield NotExpressed(
                name=name, value=str(degree), reason=f"is set in your program: {where.format(degree)}"
            )
    if layout.tensor > 1 and not _has_autotp(layout):
        yield NotExpressed(
            name="tensor",
            value=str(layout.tensor),
            reason="its tensor parallelism (autotp_size) does not go with zero_stage 3",
        )
    if layout.hybrid_shard and _hybrid_ranks(start) == 1:
        yield NotExpressed(
            name="hybrid_shard", value="true", reason="an NVLink domain holds one data rank alone"
        )
    if layout.recompute is not Recompute.NONE:
        yield NotExpressed(
            name="recompute",
            value=layout.recompute.word,
            reason="is called in your program: deepspeed.checkpointing.checkpoint, or "
            "gradient_checkpointing of "
            "Hugging Face; the file only says how",
        )
    yield from _choice_gaps(start)


def _choice_gaps(start: Start) -> Iterator[NotExpressed]:
    layout = start.layout
    if layout.virtual_pipeline > 1:
        yield NotExpressed(
            name="virtual_pipeline",
            value=str(layout.virtual_pipeline),
            reason="its pipeline engine does not interleave; plan with virtual_pipeline 1",
        )
    if layout.pipeline > 1 and layout.schedule is not Schedule.ONE_F_1F1B:
        yield NotExpressed(
            name="schedule", value=layout.schedule.word, reason="its pipeline engine runs 1f1b"
        )
    if layout.sequence_parallel:
        yield NotExpressed(
            name="sequence_parallel", value="true", reason="is not in its tensor parallelism; plan without"
        )
    if layout.rank_order is not RankOrder.TENSOR_CONTEXT_DATA_PIPELINE:
        yield NotExpressed(
            name="rank_order",
            value=layout.rank_order.word,
            reason="the topology is set in your program: PipeModelDataParallelTopology, or one of your own",
        )
    if layout.context > 1:
        is_ulysses = layout.context_exchange is ContextExchange.ALL_TO_ALL
        yield NotExpressed(
            name="context_exchange",
            value=layout.context_exchange.word,
            reason="is set in your program (Ulysses)"
            if is_ulysses
            else "DeepSpeed has all-to-all (Ulysses) alone",
        )
    if start.job.precision in ("fp8", "nvfp4", "tf32"):
        yield NotExpressed(
            name="precision",
            value=str(start.job.precision),
            reason="is set in your program (Transformer Engine, or torch); the file says bf16 or neither",
        )


def read_deepspeed(files: Mapping[str, str], *, gpus: int) -> dict[str, object]:
    """Return what a configuration says of the layout.

    Parameters
    ----------
    files
        Texts by name.
    gpus
        Ranks of the job.

    Raises
    ------
    InputError
        When they are not a whole number of its data and tensor groups.
    """
    config: dict[str, Any] = json.loads(files[FILE])
    zero = config["zero_optimization"]
    micro, accumulation = config["train_micro_batch_size_per_gpu"], config["gradient_accumulation_steps"]
    tensor = config.get("tensor_parallel", {}).get("autotp_size", 1)
    data = config["train_batch_size"] // (micro * accumulation)
    if gpus % (tensor * data):
        raise InputError(f"{FILE}: data {data} x tensor {tensor} does not divide {gpus} GPUs")
    return {
        "tensor": tensor,
        "context": 1,
        "pipeline": 1,
        "data": data,
        "virtual_pipeline": 1,
        "expert": 1,
        "micro_batch": micro,
        "global_batch": config["train_batch_size"],
        "zero_stage": zero["stage"],
        "hybrid_shard": zero.get("zero_hpz_partition_size", 1) > 1,
        "recompute": "none",
        "sequence_parallel": False,
        "schedule": "1f1b",
        "rank_order": RankOrder.TENSOR_CONTEXT_DATA_PIPELINE.word,
        "context_exchange": ContextExchange.RING.word,
    }
