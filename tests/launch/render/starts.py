"""Jobs to render: real models and systems, with layouts that need every argument a target has."""

from dataclasses import replace

from linkwise.cluster import load_cluster
from linkwise.job import Job, Precision
from linkwise.launch.render import Start
from linkwise.launch.render.run_settings import run_settings
from linkwise.layout import ContextExchange, Layout, RankOrder, Recompute, Schedule
from linkwise.model import load_model
from linkwise.nccl.variables import NEWEST


def start_of(
    layout, *, model="llama-3.1-70b", cluster="dgx-h100:8", framework="megatron", accumulate=8, **changes
):
    there = load_cluster(cluster) if isinstance(cluster, str) else cluster
    layout = replace(layout, sequence_parallel=bool(layout.sequence_parallel)).on(there.gpus)
    job = Job(
        model=load_model(model) if isinstance(model, str) else model,
        sequence_length=8192,
        global_batch=accumulate * layout.data * layout.micro_batch,
        framework=framework,
        precision=changes.pop("precision", Precision.BF16),
    )
    settings, _ = run_settings(job, there, layout, release=NEWEST)
    given = {
        "time_limit_s": 86_400,
        "time_limit_reason": "a day",
        "steps": 100,
        "steps_reason": "enough to measure a step",
        **changes,
    }
    return Start(job=job, cluster=there, layout=layout, settings=settings, **given)


DENSE = Layout(
    tensor=8,
    pipeline=4,
    virtual_pipeline=5,
    zero_stage=1,
    sequence_parallel=True,
    recompute=Recompute.SELECTIVE,
    rank_order=RankOrder.TENSOR_CONTEXT_PIPELINE_DATA,
)
MIXTURE = Layout(
    tensor=2, context=2, pipeline=4, expert=16, zero_stage=1, sequence_parallel=True, micro_batch=2
)
SHARDED = Layout(zero_stage=3, micro_batch=2, recompute=Recompute.FULL, hybrid_shard=True)
LONG = Layout(
    tensor=2,
    context=4,
    zero_stage=3,
    sequence_parallel=True,
    context_exchange=ContextExchange.RING,
)
ZERO_BUBBLE = Layout(
    pipeline=4, virtual_pipeline=2, zero_stage=2, schedule=Schedule.ZERO_BUBBLE, recompute=Recompute.SELECTIVE
)

GOLDEN = {
    "torchrun": ("torchrun", lambda: start_of(DENSE)),
    "slurm": ("slurm", lambda: start_of(DENSE)),
    "kubernetes": ("kubernetes", lambda: start_of(SHARDED, framework="torchtitan", model="llama-3.1-8b")),
    "kubernetes-efa": (
        "kubernetes",
        lambda: start_of(
            SHARDED, framework="deepspeed", model="qwen3-8b", cluster="aws-p5:4", image="mine:1"
        ),
    ),
    "megatron": ("megatron", lambda: start_of(MIXTURE, model="deepseek-v3", cluster="gb200-nvl72:16")),
    "torchtitan": ("torchtitan", lambda: start_of(LONG, framework="torchtitan", model="llama-3.1-8b")),
    "deepspeed": (
        "deepspeed",
        lambda: start_of(
            Layout(tensor=2, zero_stage=2, micro_batch=4), framework="deepspeed", model="qwen3-8b"
        ),
    ),
    "ddp": (
        "ddp",
        lambda: start_of(Layout(micro_batch=4), framework="ddp", model="gpt-2-124m", cluster="dgx-h100:1"),
    ),
    "own-program": ("torchrun", lambda: start_of(ZERO_BUBBLE, framework="jax", cluster="oci-h100:8")),
}
"""Target and job by name of the folder in `tests/golden`."""
