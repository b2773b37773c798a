"""From values (model, GPU, fabric, framework) to the named columns an estimate reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from linkwise.job.framework import Framework, Habit
from linkwise.network.group_times import GENERATIONS as GENERATION_CODES
from linkwise.network.links import generation_of

if TYPE_CHECKING:
    from linkwise.catalog import Gpu
    from linkwise.estimate.term import Floats

GENERATIONS: Mapping[str, str] = {
    "volta": "volta",
    "ampere": "ampere",
    "hopper": "hopper",
    "blackwell": "blackwell",
    "blackwell ultra": "blackwell",
}
"""Generation whose fitted constants a GPU architecture takes; others take `other`."""

FP8_GENERATIONS = ("hopper", "blackwell")
"""Generations whose 8-bit products were fitted apart."""

OPERAND_BYTES: Mapping[str, float] = {
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "nvfp4": 0.6,
    "tf32": 4.0,
    "fp32": 4.0,
}
"""Bytes of one element that a matrix product reads (nvfp4 with its block scales)."""

REFERENCE_W_PER_FLOP_PER_S = 700.0 / 989e12
"""Board power per peak 16-bit FLOP/s at which Hopper runs its rated clock (H100 SXM data sheet)."""


def model_inputs(columns: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the columns of models, with those that terms read summed from them.

    Parameters
    ----------
    columns
        What `linkwise.model.model_columns` gives, (models,) each.
    """
    dense = ("projection", "dense", "shared", "router")

    def total(suffix: str) -> Floats:
        return np.asarray(sum(columns[f"{group}_{suffix}"] for group in dense), dtype=np.float64)

    hidden = columns["hidden"]
    routed_width = columns["moe_fraction"] * columns["experts_per_token"] * columns["expert_ffn"]
    mlp_width = columns["dense_in_cut"] + columns["shared_in_cut"] + routed_width
    heads_width = (columns["heads"] + 2.0 * columns["kv_heads"]) * columns["head_dim"]
    return {
        **columns,
        "linear_parameters": total("parameters"),
        "linear_whole_parameters": total("replicated_parameters"),
        "last_product_fraction": columns["dense_in_cut"] * hidden / total("parameters"),
        "linear_in_cut": total("in_cut"),
        "linear_in_whole": total("in_whole"),
        "linear_out_cut": total("out_cut"),
        "linear_out_whole": total("out_whole"),
        "expert_in_width": columns["expert_in_cut"] + columns["expert_in_whole"],
        "expert_out_width": columns["expert_out_cut"] + columns["expert_out_whole"],
        "key_value_head_width": columns["head_dim"] + columns["v_head_dim"],
        "query_output_width": columns["attention_heads_width"],
        "key_value_width": columns["kv_heads"] * (columns["head_dim"] + columns["v_head_dim"]),
        "elementwise_cut_bytes": 4.0 * mlp_width * (1.0 + 0.5 * columns["gated"])
        + 2.0 * heads_width
        + 12.0 * columns["moe_fraction"] * columns["experts_per_token"] * hidden,
        "norm_elements": 2.0 * hidden,
        "linear_input_whole_elements": 2.0 * hidden,
        "latent_elements": np.maximum(columns["projection_out_whole"] - hidden, 0.0),
        "attention_cut_elements": columns["projection_out_cut"] + columns["projection_in_cut"],
        "linear_input_cut_elements": columns["dense_in_cut"] + columns["shared_in_cut"],
        "mlp_cut_elements": columns["dense_out_cut"] + columns["shared_out_cut"],
        "gate_elements": columns["gated"] * (columns["dense_in_cut"] + columns["shared_in_cut"]),
        "expert_input_elements": hidden + columns["expert_in_cut"],
        "expert_inner_elements": columns["expert_out_cut"],
    }


_SINGLE_PRECISION: Mapping[str, Habit] = {
    "saved_input_bytes": 4.0,
    "weight_element_bytes": 4.0,
    "gather_element_bytes": 4.0,
    "gradient_element_bytes": 4.0,
    "gradient_store_bytes": 4.0,
    "optimizer_state_bytes": 8.0,
}
"""Habits of training in 32 bits: no 16-bit copy of the weights beside a master."""


def gpu_inputs(gpu: Gpu, *, precision: str, framework: Framework) -> dict[str, Habit]:
    """Return the columns of one GPU at one precision: figures, and the names of fitted constants.

    Parameters
    ----------
    gpu
        Of the catalogue.
    precision
        That of the products.
    framework
        Whose habits decide what is fused.

    Raises
    ------
    KeyError
        When the GPU has no rate for the precision; callers check first.
    """
    generation = GENERATIONS.get(gpu.architecture.lower(), "other")
    half = gpu.flop_per_s.get("bf16") or gpu.flop_per_s["fp16"]
    name = "bf16" if precision == "bf16" and "bf16" in gpu.flop_per_s else precision
    linear = half if name in ("bf16", "fp16") else gpu.flop_per_s[name]
    efficiency = f"gemm_efficiency_half_{generation}"
    if name == "fp8":
        efficiency = f"gemm_efficiency_fp8_{generation if generation in FP8_GENERATIONS else 'other'}"
    if name == "nvfp4":
        efficiency = "gemm_efficiency_nvfp4"
    single = precision in {"tf32", "fp32"}
    if single:
        half = linear
    fused = framework.fuses_attention and generation != "volta"
    attention = framework.attention
    early = generation == "hopper" and framework.early_hopper and "kernel_factor" not in framework.habits
    if attention == "pytorch" and generation == "ampere":
        attention = "tuned"
    return {
        "peak_linear_flop_per_s": linear,
        "peak_half_flop_per_s": half,
        "gemm_efficiency": efficiency,
        "half_gemm_efficiency": f"gemm_efficiency_half_{generation}",
        "rate_factor": rate_factor(gpu),
        "attention_efficiency": f"attention_efficiency_{attention}",
        "fused_attention": float(fused),
        "memory_bytes_per_s": gpu.memory_bandwidth_bytes_per_s,
        "memory_available_bytes": gpu.memory_bytes,
        "nvlink_bytes_per_s": gpu.nvlink_bytes_per_s or gpu.pcie_bytes_per_s or 16e9,
        "collective_generation": float(GENERATION_CODES.index(_joined_by(gpu))),
        "nvlink_fraction": f"nvlink_fraction_{generation}",
        "operand_bytes": OPERAND_BYTES[precision],
        "element_bytes": 4.0 if single else 2.0,
        **(_SINGLE_PRECISION if single else {}),
        **({"kernel_factor": "kernel_factor_early_hopper"} if early else {}),
        **({"host_layer_s": "host_layer_volta_s"} if generation == "volta" else {}),
    }


def _joined_by(gpu: Gpu) -> str:
    """Return what joins the GPUs of a domain, as `linkwise.network.group_times` has it."""
    return "pcie" if gpu.nvlink_bytes_per_s is None else generation_of(gpu)


def rate_factor(gpu: Gpu) -> Habit:
    """Return by what a GPU's reached rate differs from its generation's: less power, or the Ultra part.

    Parameters
    ----------
    gpu
        Of the catalogue.
    """
    if gpu.architecture.lower() == "blackwell ultra":
        return "ultra_factor"
    if gpu.tdp_w is None or gpu.architecture.lower() != "hopper":
        return 1.0
    half = gpu.flop_per_s.get("bf16") or gpu.flop_per_s.get("fp16") or 0.0
    if not half:
        return 1.0
    return float(min(1.0, (gpu.tdp_w / half / REFERENCE_W_PER_FLOP_PER_S) ** 0.5))
