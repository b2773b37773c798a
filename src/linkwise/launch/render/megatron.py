"""Arguments of Megatron-LM, one `--name=value` on each line.

References
----------
NVIDIA, Megatron-LM, megatron/training/arguments.py and the configurations of megatron/core, 2026.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from linkwise.errors import InputError
from linkwise.job.framework import FRAMEWORKS
from linkwise.launch.render.megatron_model import model_arguments, model_gaps
from linkwise.launch.render.start import NotExpressed, Program
from linkwise.layout import ContextExchange, RankOrder, Recompute, Schedule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from linkwise.launch.render.start import Start

__all__ = ["FILE", "megatron_program", "read_megatron"]

FILE = "megatron.args"
_SCRIPT = "pretrain_gpt.py"
_EXIT_BEFORE_S = 600
"""So long before the limit Megatron leaves by itself, time enough to save; assumed [s]."""
_PRECISIONS: Mapping[str, tuple[str, ...]] = {
    "bf16": ("--bf16",),
    "fp16": ("--fp16",),
    "fp8": ("--bf16", "--fp8-format=hybrid"),
    "nvfp4": ("--bf16", "--fp4-format=e2m1"),
    "tf32": (),
}
_EXCHANGES = {ContextExchange.RING: "p2p", ContextExchange.ALL_TO_ALL: "a2a"}


def megatron_program(start: Start) -> Program:
    """Return Megatron-LM as a program.

    Parameters
    ----------
    start
        What is to be started.
    """
    arguments = [
        *model_arguments(start.job.model, start.job.sequence_length),
        *_degrees(start),
        *_batch(start),
        *_habits(start),
        *_PRECISIONS[start.job.precision],
        *_run(start),
    ]
    return Program(
        words=(start.script or _SCRIPT,),
        arguments_file=FILE,
        files={FILE: "".join(f"{each}\n" for each in arguments)},
        purposes={FILE: "arguments of Megatron-LM, one on each line"},
        not_expressed=tuple(_gaps(start)),
        assumed=(
            (
                "--mock-data with --tokenizer-type=NullTokenizer: no document names data; tokens are made "
                "up until "
                "you append --data-path and your tokenizer, and take these two lines out"
            ),
            "--lr=1e-4: no document states a learning rate; append yours, the last one counts",
            "no checkpoints: no document names a folder; append --save, --load and --save-interval",
        ),
    )


def _degrees(start: Start) -> Iterator[str]:
    layout = start.layout
    yield f"--tensor-model-parallel-size={layout.tensor}"
    yield f"--pipeline-model-parallel-size={layout.pipeline}"
    if layout.virtual_pipeline > 1:
        yield f"--num-virtual-stages-per-pipeline-rank={layout.virtual_pipeline}"
    yield from _uneven_stages(start)
    yield f"--context-parallel-size={layout.context}"
    if layout.context > 1:
        yield f"--cp-comm-type={_EXCHANGES[layout.context_exchange]}"
    if start.job.model.experts:
        yield f"--expert-model-parallel-size={layout.expert}"
        yield f"--expert-tensor-parallel-size={_expert_tensor(start)}"
    if layout.sequence_parallel:
        yield "--sequence-parallel"
    if layout.rank_order is RankOrder.TENSOR_CONTEXT_PIPELINE_DATA:
        yield "--use-tp-pp-dp-mapping"


def _expert_tensor(start: Start) -> int:
    """Return over how many ranks one expert is cut: the tensor ranks, unless experts are spread over them."""
    layout = start.layout
    return layout.tensor if layout.expert <= (layout.data or 1) * layout.context else 1


def _uneven_stages(start: Start) -> Iterator[str]:
    """Yield how layers are dealt to stages that they do not divide by."""
    layers, stages = start.job.model.layers, start.layout.pipeline
    if layers % stages == 0:
        return
    if (layers + 2) % (stages * start.layout.virtual_pipeline) == 0:
        yield "--account-for-embedding-in-pipeline-split"
        yield "--account-for-loss-in-pipeline-split"
        return
    parts = [f"t*{count}" for count in start.layers_of_parts(stages)]
    predicted = "m" * start.job.model.mtp_layers
    parts[0], parts[-1] = f"E{parts[0]}", f"{parts[-1]}{predicted}L"
    yield f"--pipeline-model-parallel-layout={'|'.join(parts)}"


def _batch(start: Start) -> Iterator[str]:
    yield f"--micro-batch-size={start.layout.micro_batch}"
    yield f"--global-batch-size={start.job.global_batch}"
    if start.layout.recompute is Recompute.SELECTIVE:
        yield "--recompute-granularity=selective"
    elif start.layout.recompute is Recompute.FULL:
        yield "--recompute-granularity=full"
        yield "--recompute-method=uniform"
        yield "--recompute-num-layers=1"
    if start.layout.zero_stage == 1:
        yield "--use-distributed-optimizer"


def _habits(start: Start) -> Iterator[str]:
    """Yield what makes Megatron run as the framework of the job is modelled."""
    framework = FRAMEWORKS[start.job.framework]
    if framework.family != "megatron" or framework.columns("bf16")["gradient_exposed_fraction"] == 1.0:
        return  # gradients are reduced when all are there, as without options
    yield "--overlap-grad-reduce"
    if start.layout.zero_stage == 1:
        yield "--overlap-param-gather"
    if start.job.precision != "fp16" and framework.columns("bf16")["gradient_store_bytes"] == 2.0:
        yield "--grad-reduce-in-bf16"


def _run(start: Start) -> Iterator[str]:
    yield f"--train-iters={start.steps}"
    yield "--eval-iters=0"
    yield "--lr=1e-4"
    yield "--log-interval=1"
    yield "--log-throughput"
    minutes = (start.time_limit_s - _EXIT_BEFORE_S) // 60
    if minutes > 0:
        yield f"--exit-duration-in-mins={minutes}"
    yield "--mock-data"


def _gaps(start: Start) -> Iterator[NotExpressed]:
    layout = start.layout
    if layout.zero_stage > 1:
        yield NotExpressed(
            name="zero_stage",
            value=str(layout.zero_stage),
            reason="Megatron's distributed optimizer shards the optimizer state alone (zero_stage 1); plan "
            "with framework megatron",
        )
    if layout.hybrid_shard:
        yield NotExpressed(
            name="hybrid_shard", value="true", reason="parameters are not sharded here, so neither hybridly"
        )
    if layout.pipeline > 1 and layout.schedule is not Schedule.ONE_F_1F1B:
        yield NotExpressed(
            name="schedule",
            value=layout.schedule.word,
            reason="Megatron-LM runs 1f1b; plan with schedule 1f1b",
        )
    if start.job.precision == "tf32":
        yield NotExpressed(
            name="precision",
            value="tf32",
            reason="no argument: without --bf16 Megatron computes in 32 bits, and the program must set "
            "torch.backends.cuda.matmul.allow_tf32",
        )
    yield from model_gaps(start.job.model)


def read_megatron(files: Mapping[str, str], *, gpus: int) -> dict[str, object]:
    """Return what the arguments say of the layout.

    Parameters
    ----------
    files
        Texts by name.
    gpus
        Ranks of the job.

    Raises
    ------
    InputError
        When a line is no argument.
    """
    given: dict[str, str] = {}
    for line in files[FILE].splitlines():
        if not line.startswith("--"):
            raise InputError(f"{FILE}: {line[:60]!r} is no argument; write --name=value")
        name, _, value = line[2:].partition("=")
        given[name] = value
    words = {value: exchange.word for exchange, value in _EXCHANGES.items()}
    tensor, context, pipeline = (
        int(given[f"{name}-size"])
        for name in ("tensor-model-parallel", "context-parallel", "pipeline-model-parallel")
    )
    return {
        "tensor": tensor,
        "context": context,
        "pipeline": pipeline,
        "data": gpus // (tensor * context * pipeline),
        "virtual_pipeline": int(given.get("num-virtual-stages-per-pipeline-rank", "1")),
        "expert": int(given.get("expert-model-parallel-size", "1")),
        "micro_batch": int(given["micro-batch-size"]),
        "global_batch": int(given["global-batch-size"]),
        "zero_stage": int("use-distributed-optimizer" in given),
        "hybrid_shard": False,
        "recompute": given.get("recompute-granularity", "none"),
        "sequence_parallel": "sequence-parallel" in given,
        "schedule": "1f1b",
        "rank_order": RankOrder(int("use-tp-pp-dp-mapping" in given)).word,
        "context_exchange": words[given.get("cp-comm-type", "p2p")],
    }
