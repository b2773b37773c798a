"""The configuration of torchtitan as TOML.

References
----------
PyTorch, torchtitan 0.2.2, torchtitan/config/job_config.py and torchtitan/distributed, 2026. Release 0.3
reads no TOML any more.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from linkwise.errors import InputError
from linkwise.launch.render.start import FOLDER, NotExpressed, Program
from linkwise.launch.render.words import printable, toml_text
from linkwise.layout import ContextExchange, RankOrder, Recompute, Schedule

if TYPE_CHECKING:
    from linkwise.launch.render.start import Start
    from linkwise.layout import Layout

__all__ = ["FILE", "read_torchtitan", "torchtitan_program"]

FILE = "torchtitan.toml"
_MODULE = "torchtitan.train"

_FLAVORS: Mapping[str, tuple[str, str]] = {
    "llama-3-8b": ("llama3", "8B"),
    "llama-3-70b": ("llama3", "70B"),
    "llama-3.1-8b": ("llama3", "8B"),
    "llama-3.1-70b": ("llama3", "70B"),
    "llama-3.1-405b": ("llama3", "405B"),
    "qwen3-8b": ("qwen3", "8B"),
    "qwen3-32b": ("qwen3", "32B"),
    "qwen3-30b-a3b": ("qwen3", "30B-A3B"),
    "qwen3-235b-a22b": ("qwen3", "235B-A22B"),
    "deepseek-v3": ("deepseek_v3", "671B"),
    "deepseek-r1": ("deepseek_v3", "671B"),
    "deepseek-v2": ("deepseek_v3", "236B"),
    "gpt-oss-20b": ("gpt_oss", "20b"),
    "gpt-oss-120b": ("gpt_oss", "120b"),
}
"""Model and flavor of torchtitan by name in the catalogue."""
_MODES = {Recompute.NONE: "none", Recompute.SELECTIVE: "selective", Recompute.FULL: "full"}
_RESHARD = {2: "never", 3: "always"}
_SINGLE = {Schedule.ONE_F_1F1B: "1F1B", Schedule.GPIPE: "GPipe"}
_LOOPED = {Schedule.ONE_F_1F1B: "Interleaved1F1B", Schedule.ZERO_BUBBLE: "InterleavedZeroBubble"}
_SCHEDULES = {word: each.word for table in (_SINGLE, _LOOPED) for each, word in table.items()}


def torchtitan_program(start: Start) -> Program:
    """Return torchtitan as a program.

    Parameters
    ----------
    start
        What is to be started.
    """
    heading = (
        "Configuration of torchtitan 0.2 for "
        f"{printable(start.job.model.name)} on {printable(start.cluster.name)}, written by Linkwise."
    )
    words = ("-m", _MODULE) if start.script is None else (start.script,)
    return Program(
        words=(*words, f"--job.config_file={FOLDER}/{FILE}"),
        files={FILE: toml_text(_tables(start), heading=heading)},
        purposes={FILE: "configuration of torchtitan 0.2"},
        not_expressed=tuple(_gaps(start)),
        assumed=(
            (
                "dataset c4_test, which comes with torchtitan: no document names data; append "
                "--training.dataset and --model.hf_assets_path (the tokenizer)"
            ),
        ),
    )


def _tables(start: Start) -> dict[str, dict[str, object]]:
    job, layout = start.job, start.layout
    model, flavor = _FLAVORS.get(job.model.name, ("llama3", printable(job.model.name)))
    precision = "float32" if job.precision == "tf32" else "bfloat16"
    tables: dict[str, dict[str, object]] = {
        "job": {"description": f"{start.name}, layout by Linkwise", "dump_folder": "./outputs"},
        "model": {"name": model, "flavor": flavor},
        "training": {
            "dataset": "c4_test",
            "seq_len": job.sequence_length,
            "local_batch_size": layout.micro_batch * (start.accumulation if layout.pipeline > 1 else 1),
            "global_batch_size": job.global_batch,
            "steps": start.steps,
            "mixed_precision_param": precision,
        },
        "parallelism": _parallelism(start),
        "activation_checkpoint": {"mode": _MODES[layout.recompute]},
        "metrics": {"log_freq": 1},
    }
    if layout.recompute is Recompute.SELECTIVE:
        tables["activation_checkpoint"]["selective_ac_option"] = "op"
    if job.precision == "fp8":
        tables["model"]["converters"] = ["quantize.linear.float8"]
        tables["quantize.linear.float8"] = {"recipe_name": "tensorwise"}
        tables["compile"] = {"enable": True}
    return tables


def _parallelism(start: Start) -> dict[str, object]:
    layout = start.layout
    replicate, shard = _replicas(start)
    table: dict[str, object] = {
        "data_parallel_replicate_degree": replicate,
        "data_parallel_shard_degree": shard,
        "fsdp_reshard_after_forward": _RESHARD.get(layout.zero_stage, "default"),
        "tensor_parallel_degree": layout.tensor,
        "context_parallel_degree": layout.context,
        "pipeline_parallel_degree": layout.pipeline,
    }
    if layout.context > 1:
        table["context_parallel_rotate_method"] = "alltoall"
    if layout.pipeline > 1:
        table["pipeline_parallel_microbatch_size"] = layout.micro_batch
        if layout.virtual_pipeline > 1:
            table["pipeline_parallel_schedule"] = _LOOPED.get(layout.schedule, "Interleaved1F1B")
        else:
            table["pipeline_parallel_schedule"] = _SINGLE.get(layout.schedule, "1F1B")
        table["module_fqns_per_model_part"] = list(_modules(start))
    if start.job.model.experts:
        table["expert_parallel_degree"] = layout.expert
        spread = layout.expert > (layout.data or 1) * layout.context
        table["expert_tensor_parallel_degree"] = 1 if spread or layout.expert == 1 else layout.tensor
    return table


def _modules(start: Start) -> Iterator[list[str]]:
    """Yield the modules of each chunk of the pipeline, by the names they have in torchtitan."""
    counts = start.layers_of_parts(start.layout.pipeline * start.layout.virtual_pipeline)
    first = 0
    for number, count in enumerate(counts):
        modules = [f"layers.{layer}" for layer in range(first, first + count)]
        first += count
        before = ["tok_embeddings"] if number == 0 else []
        yield [*before, *modules, *(["norm", "output"] if number == len(counts) - 1 else [])]


def _replicas(start: Start) -> tuple[int, int]:
    """Return replicas of the parameters, and over how many data ranks each is sharded."""
    layout = start.layout
    data = layout.data or 1
    if layout.zero_stage < 2:
        return data, 1
    if not layout.hybrid_shard:
        return 1, data
    inside = max(1, start.cluster.nvlink_domain_gpus // (layout.tensor * layout.context))
    shard = max(each for each in range(1, min(inside, data) + 1) if data % each == 0)
    return data // shard, shard


def _gaps(start: Start) -> Iterator[NotExpressed]:
    layout, job = start.layout, start.job
    yield NotExpressed(
        name="torchtitan 0.3",
        value="and later",
        reason="reads no TOML: its options stand on the command line, beside --module and --config; install "
        "torchtitan 0.2",
    )
    if job.model.name not in _FLAVORS:
        yield NotExpressed(
            name="model",
            value=printable(job.model.name),
            reason="torchtitan has no flavor of this shape and stops at the one that is written; "
            "register it, "
            "and put its name under model.flavor",
        )
    if layout.zero_stage == 1:
        yield NotExpressed(
            name="zero_stage",
            value="1",
            reason="torchtitan shards parameters and gradients too (FSDP), or nothing; rendered is "
            "nothing (DDP)",
        )
    if layout.hybrid_shard and 1 in _replicas(start):
        yield NotExpressed(
            name="hybrid_shard",
            value="true",
            reason="an NVLink domain holds no whole part of the data ranks; rendered is "
            + ("replication" if _replicas(start)[1] == 1 else "sharding over all of them"),
        )
    yield from _pipeline_gaps(start)
    yield from _choice_gaps(layout)
    if job.precision in ("fp16", "nvfp4"):
        yield NotExpressed(
            name="precision",
            value=str(job.precision),
            reason="torchtitan computes in bfloat16 or float8; rendered is bfloat16",
        )


def _pipeline_gaps(start: Start) -> Iterator[NotExpressed]:
    layout = start.layout
    if layout.pipeline == 1:
        return
    table = _LOOPED if layout.virtual_pipeline > 1 else _SINGLE
    if layout.schedule not in table:
        instead = "Interleaved1F1B" if layout.virtual_pipeline > 1 else "1F1B"
        yield NotExpressed(
            name="schedule",
            value=layout.schedule.word,
            reason=f"torch has it for two chunks per stage and more alone; rendered is {instead}",
        )


def _choice_gaps(layout: Layout) -> Iterator[NotExpressed]:
    if layout.rank_order is not RankOrder.TENSOR_CONTEXT_DATA_PIPELINE:
        yield NotExpressed(
            name="rank_order",
            value=layout.rank_order.word,
            reason="torchtitan lays out tensor-context-data-pipeline alone",
        )
    if layout.context > 1 and layout.context_exchange is ContextExchange.ALL_TO_ALL:
        yield NotExpressed(
            name="context_exchange",
            value=layout.context_exchange.word,
            reason="torchtitan passes keys and values around (ring); heads stay where they are",
        )
    if layout.tensor > 1 and not layout.sequence_parallel:
        yield NotExpressed(
            name="sequence_parallel",
            value="false",
            reason="torchtitan 0.2 always shards the sequence beside tensor parallelism",
        )


def read_torchtitan(files: Mapping[str, str], *, gpus: int) -> dict[str, object]:
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
        When the degrees are not those of as many ranks.
    """
    tables: dict[str, Any] = tomllib.loads(files[FILE])
    degrees, training = tables["parallelism"], tables["training"]
    shard, replicate = degrees["data_parallel_shard_degree"], degrees["data_parallel_replicate_degree"]
    tensor, context = degrees["tensor_parallel_degree"], degrees["context_parallel_degree"]
    pipeline = degrees["pipeline_parallel_degree"]
    if shard * replicate * tensor * context * pipeline != gpus:
        raise InputError(f"{FILE}: its degrees are not those of {gpus} GPUs")
    word = degrees.get("pipeline_parallel_schedule", "1F1B")
    stages = {word: stage for stage, word in _RESHARD.items()}
    parts = len(degrees.get("module_fqns_per_model_part", [()]))
    return {
        "tensor": tensor,
        "context": context,
        "pipeline": pipeline,
        "data": shard * replicate,
        "virtual_pipeline": parts // pipeline,
        "expert": degrees.get("expert_parallel_degree", 1),
        "micro_batch": degrees.get("pipeline_parallel_microbatch_size", training["local_batch_size"]),
        "global_batch": training["global_batch_size"],
        "zero_stage": stages.get(degrees["fsdp_reshard_after_forward"], 0),
        "hybrid_shard": shard > 1 and replicate > 1,
        "recompute": tables["activation_checkpoint"]["mode"],
        "sequence_parallel": tensor > 1,
        "schedule": _SCHEDULES[word],
        "rank_order": RankOrder.TENSOR_CONTEXT_DATA_PIPELINE.word,
        "context_exchange": "ring",
    }
