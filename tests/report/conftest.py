"""A plan as it is published, of made-up but plausible numbers."""

import pytest

from linkwise.report.results import ClusterResult, JobResult, LayoutResult, PlanResult

_PARTS = ("compute", "tensor", "context", "expert", "pipeline", "bubble", "data", "optimizer", "overhead")
_SHARES = (0.7421, 0.081, 0.0, 0.0, 0.0123, 0.0711, 0.0233, 0.00456, 0.06564)


def layout(**changed):
    time_s, memory_bytes = changed.get("step_time_s", 9.351), changed.get("memory_bytes", 71.23e9)
    fields = {
        "tensor": 4, "context": 1, "pipeline": 4, "virtual_pipeline": 5, "expert": 1, "data": 16, "micro_batch": 1,
        "zero_stage": 1, "hybrid_shard": False, "recompute": "none", "sequence_parallel": True, "schedule": "1f1b",
        "rank_order": "tensor-context-data-pipeline",
        "context_exchange": "ring", "step_time_s": time_s, "step_time_low_s": 0.85 * time_s,
        "step_time_high_s": 1.18 * time_s, "tokens_per_s_per_gpu": 8388608 / 256 / time_s, "mfu_fraction": 4.4 / time_s,
        "training_time_s": 15e12 / 8388608 * time_s, "memory_bytes": memory_bytes, "memory_available_bytes": 85.52e9,
        "short_bytes": 0.0, "stage": 0, "parts": {n: s * time_s for n, s in zip(_PARTS, _SHARES, strict=True)},
        "memory_parts": {"weights": 0.5 * memory_bytes, "activations": 0.5 * memory_bytes}, "basis": "assumed",
    }  # fmt: skip
    return LayoutResult(**{**fields, **changed})


def plan(layouts, **changed):
    fields = {
        "job": JobResult(
            model="llama-3.1-70b", sequence_length=8192, global_batch=1024, precision="bf16", framework="megatron",
            tokens=15e12,
        ),
        "cluster": ClusterResult(
            name="h100-256", system="dgx-h100", gpu="h100-sxm", gpus=256, nodes=32, nvlink_domain_gpus=8,
            fabric="rail-optimized", link="infiniband-ndr-400", node_bytes_per_s=4e11,
        ),
        "layouts": layouts, "evaluated": 123456, "fitting": 24691, "infeasible": {"memory: activations (first stage)": 98765},
        "assumptions": ["fabric taken from the default of dgx-h100: kind, link, switch and routing"],
    }  # fmt: skip
    return PlanResult(**{**fields, **changed})


@pytest.fixture
def make_layout():
    return layout


@pytest.fixture
def make_plan():
    return plan


@pytest.fixture
def ten_layouts():
    wide = layout(
        tensor=16, context=16, pipeline=128, virtual_pipeline=12, data=65536, expert=256, micro_batch=16,
        schedule="zero-bubble", recompute="selective", step_time_s=123.45, sequence_parallel=False,
        rank_order="tensor-context-pipeline-data",
    )  # fmt: skip
    return [*(layout(step_time_s=9.351 * 1.003**n, data=16 << n) for n in range(9)), wide]
