"""A program that trains with PyTorch's DistributedDataParallel, written out.

References
----------
PyTorch, documentation of torch.nn.parallel.DistributedDataParallel, 2025.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files as package_files
from typing import TYPE_CHECKING

from linkwise.errors import InputError
from linkwise.launch.render.start import FOLDER, NotExpressed, Program
from linkwise.layout import RankOrder, Recompute

if TYPE_CHECKING:
    from linkwise.launch.render.start import Start
    from linkwise.model import Model

__all__ = ["FILE", "SCRIPT", "ddp_program", "read_ddp"]

FILE = "ddp.args"
SCRIPT = "train_ddp.py"


def ddp_program(start: Start) -> Program:
    """Return a program of data parallelism alone.

    Parameters
    ----------
    start
        What is to be started.
    """
    files = {FILE: "".join(f"{each}\n" for each in _arguments(start))}
    purposes = {FILE: f"arguments of {start.script or SCRIPT}, one on each line"}
    assumed = ["--learning-rate=1e-4: no document states a learning rate; append yours, the last one counts"]
    if start.script is None:
        source = package_files("linkwise.launch.render").joinpath("programs", SCRIPT)
        files[SCRIPT] = source.read_text(encoding="utf-8")
        purposes[SCRIPT] = "trains a plain transformer of the widths of the model on made-up tokens"
        assumed.append(
            f"{SCRIPT} makes up its tokens and its transformer: it measures what communication and "
            "memory take; "
            "put your model and data into it, or name your program with --script"
        )
    return Program(
        words=(start.script or f"{FOLDER}/{SCRIPT}",),
        arguments_file=FILE,
        files=files,
        purposes=purposes,
        not_expressed=tuple(_gaps(start)),
        assumed=tuple(assumed),
    )


def _arguments(start: Start) -> Iterator[str]:
    model, layout, job = start.job.model, start.layout, start.job
    yield f"--data={layout.data}"
    yield f"--micro-batch={layout.micro_batch}"
    yield f"--accumulate={start.accumulation}"
    yield f"--steps={start.steps}"
    yield f"--sequence-length={job.sequence_length}"
    yield f"--layers={model.layers}"
    yield f"--hidden={model.hidden}"
    yield f"--heads={model.heads}"
    yield f"--ffn={model.ffn or model.expert_ffn}"
    yield f"--vocab={model.vocab}"
    yield f"--precision={job.precision if job.precision in ('bf16', 'fp16', 'tf32') else 'bf16'}"
    if layout.recompute is Recompute.FULL:
        yield "--recompute"
    yield "--learning-rate=1e-4"


_DEGREES = ("tensor", "context", "pipeline", "virtual_pipeline", "expert")


def _gaps(start: Start) -> Iterator[NotExpressed]:
    layout, job = start.layout, start.job
    for name in _DEGREES:
        degree = getattr(layout, name)
        if degree > 1:
            yield NotExpressed(
                name=name,
                value=str(degree),
                reason="data parallelism alone: every GPU holds the whole model; "
                f"{start.script or SCRIPT} stops where data is not the number of processes",
            )
    if layout.zero_stage:
        yield NotExpressed(
            name="zero_stage",
            value=str(layout.zero_stage),
            reason="DDP shards nothing; take target torchtitan",
        )
    for name in ("hybrid_shard", "sequence_parallel"):
        if getattr(layout, name):
            yield NotExpressed(name=name, value="true", reason="DDP shards nothing")
    if layout.recompute is Recompute.SELECTIVE:
        yield NotExpressed(
            name="recompute", value="selective", reason="the program recomputes whole layers, or nothing"
        )
    for name, usual in (
        ("schedule", "1f1b"),
        ("rank_order", RankOrder(0).word),
        ("context_exchange", "ring"),
    ):
        word = getattr(layout, name).word
        if word != usual:
            yield NotExpressed(name=name, value=word, reason="there are data ranks alone")
    if job.precision in ("fp8", "nvfp4"):
        yield NotExpressed(name="precision", value=str(job.precision), reason="rendered is bf16 (autocast)")
    if start.script is None:
        yield from _model_gaps(job.model)


def _model_gaps(model: Model) -> Iterator[NotExpressed]:
    gaps = {
        "gated MLP": "yes" if model.gated_mlp else "",
        "key and value heads": str(model.kv_heads) if model.kv_heads != model.heads else "",
        "experts": str(model.experts or ""),
    }
    found = {name: value for name, value in gaps.items() if value}
    if found:
        yield NotExpressed(
            name="model",
            value=", ".join(f"{name}: {value}" for name, value in found.items()),
            reason=f"{SCRIPT} has a plain transformer of the same widths, and so another parameter count, "
            "which it prints",
        )


def read_ddp(files: Mapping[str, str], *, gpus: int) -> dict[str, object]:
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
        When the data ranks do not divide the ranks.
    """
    pairs = (line.removeprefix("--").partition("=") for line in files[FILE].splitlines())
    given = {name: value for name, _, value in pairs}
    data, micro = int(given["data"]), int(given["micro-batch"])
    if gpus % data:
        raise InputError(f"{FILE}: --data={data} does not divide {gpus} GPUs")
    return {
        **dict.fromkeys(_DEGREES, 1),
        "data": data,
        "micro_batch": micro,
        "global_batch": data * micro * int(given["accumulate"]),
        "zero_stage": 0,
        "hybrid_shard": False,
        "recompute": "full" if "recompute" in given else "none",
        "sequence_parallel": False,
        "schedule": "1f1b",
        "rank_order": RankOrder.TENSOR_CONTEXT_DATA_PIPELINE.word,
        "context_exchange": "ring",
    }
