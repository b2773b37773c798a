"""The matrix products of one layer: the single description from which counts, FLOPs and columns follow.

A product is ``y[m, n] = x[m, k] W[k, n]``. Matrices that read the same input and are cut alike (query,
key and value; gate and up) are one product, as frameworks fuse them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from linkwise.model.architecture import AttentionKind, Model

__all__ = [
    "Cut",
    "MatrixProduct",
    "dense_products",
    "expert_products",
    "linear_attention_products",
    "router_products",
    "shared_products",
    "softmax_attention_products",
]


class Cut(StrEnum):
    """How tensor parallelism cuts a weight (Shoeybi et al. 2019, "Megatron-LM")."""

    COLUMN = "column"
    """The outputs are divided; every rank reads the whole input."""
    ROW = "row"
    """The inputs are divided; the outputs are summed over the ranks."""
    WHOLE = "whole"
    """Not divided: every rank does it all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixProduct:
    """One weight matrix and its use.

    Parameters
    ----------
    name
        What it computes.
    outputs, inputs
        Its width and depth, ``n`` and ``k`` [1].
    cut
        How tensor parallelism cuts it.
    biases
        Elements of its bias, 0 without one [1].
    """

    name: str
    outputs: int
    inputs: int
    cut: Cut
    biases: int = 0

    @property
    def parameters(self) -> int:
        """Elements of the matrix, its bias apart [1]."""
        return self.outputs * self.inputs


def softmax_attention_products(model: Model) -> tuple[MatrixProduct, ...]:
    """Return the projections of a layer with softmax attention.

    Parameters
    ----------
    model
        The model.

    Notes
    -----
    Grouped queries: Ainslie et al. 2023, "GQA". Latent attention, where queries and keys pass a low rank
    that no rank cuts: DeepSeek-AI 2024, "DeepSeek-V2", section 2.1. Sparse index: DeepSeek-AI 2025,
    "DeepSeek-V3.2"; its three small products are not cut.
    """
    output = MatrixProduct(
        name="attention output",
        outputs=model.hidden,
        inputs=model.heads * model.v_head_dim,
        cut=Cut.ROW,
        biases=model.hidden * model.output_bias,
    )
    if model.attention is AttentionKind.MLA:
        return (*_latent_products(model), *_index_products(model), output)
    queries = model.heads * model.head_dim * (2 if model.output_gate else 1)
    width = queries + model.kv_heads * (model.head_dim + model.v_head_dim)
    fused = MatrixProduct(
        name="query, key and value",
        outputs=width,
        inputs=model.hidden,
        cut=Cut.COLUMN,
        biases=width * model.attention_bias,
    )
    return (fused, output)


def _latent_products(model: Model) -> tuple[MatrixProduct, ...]:
    latent = model.kv_lora_rank + model.qk_rope_head_dim
    queries = model.heads * model.head_dim
    keys_values = model.heads * (model.qk_nope_head_dim + model.v_head_dim)
    down_biases, depth = model.attention_bias, model.q_lora_rank or model.hidden
    down = (_product("query down", model.q_lora_rank, model.hidden, Cut.WHOLE, biased=down_biases),)
    return (
        *(down if model.q_lora_rank else ()),
        _product("query up", queries, depth, Cut.COLUMN),
        _product("key and value down", latent, model.hidden, Cut.WHOLE, biased=down_biases),
        _product("key and value up", keys_values, model.kv_lora_rank, Cut.COLUMN),
    )


def _index_products(model: Model) -> tuple[MatrixProduct, ...]:
    if not model.index_heads:
        return ()
    return (
        _product("index query", model.index_heads * model.index_head_dim, model.q_lora_rank, Cut.WHOLE),
        _product("index key", model.index_head_dim, model.hidden, Cut.WHOLE),
        _product("index weight", model.index_heads, model.hidden, Cut.WHOLE),
    )


def linear_attention_products(model: Model) -> tuple[MatrixProduct, ...]:
    """Return the projections of a gated delta net layer.

    Parameters
    ----------
    model
        The model.

    Notes
    -----
    Queries and keys of the key heads, values and output gates of the value heads, a decay and a step size
    per value head (Yang et al. 2024, "Gated Delta Networks"; Qwen3-Next in transformers).
    """
    if not model.linear_layers:
        return ()
    keys = model.linear_key_heads * model.linear_head_dim
    values = model.linear_value_heads * model.linear_head_dim
    width = 2 * keys + 2 * values + 2 * model.linear_value_heads
    return (
        _product("query, key, value, gate, decay and step", width, model.hidden, Cut.COLUMN),
        _product("linear attention output", model.hidden, values, Cut.ROW),
    )


def dense_products(model: Model) -> tuple[MatrixProduct, ...]:
    """Return the products of the MLP of a dense layer, none where there is no such layer.

    Parameters
    ----------
    model
        The model.
    """
    return _mlp(model, model.ffn) if model.dense_layers else ()


def expert_products(model: Model) -> tuple[MatrixProduct, ...]:
    """Return the products of one routed expert, none for a dense model.

    Parameters
    ----------
    model
        The model.
    """
    return _mlp(model, model.expert_ffn) if model.experts else ()


def shared_products(model: Model) -> tuple[MatrixProduct, ...]:
    """Return the products of all shared experts of a mixture layer, which are run as one MLP.

    Parameters
    ----------
    model
        The model.
    """
    if not model.shared_experts:
        return ()
    gate = (_product("shared expert gate", 1, model.hidden, Cut.WHOLE),) if model.shared_gate else ()
    return (*_mlp(model, model.shared_experts * model.shared_ffn), *gate)


def router_products(model: Model) -> tuple[MatrixProduct, ...]:
    """Return the product that scores the experts for a token, none for a dense model.

    Parameters
    ----------
    model
        The model.
    """
    if not model.experts:
        return ()
    return (_product("router", model.experts, model.hidden, Cut.WHOLE, biased=model.router_bias),)


def _mlp(model: Model, width: int) -> tuple[MatrixProduct, ...]:
    first, name = (2 * width, "gate and up") if model.gated_mlp else (width, "up")
    return (
        _product(name, first, model.hidden, Cut.COLUMN, biased=model.mlp_bias),
        _product("down", model.hidden, width, Cut.ROW, biased=model.mlp_bias),
    )


def _product(name: str, outputs: int, inputs: int, cut: Cut, *, biased: bool = False) -> MatrixProduct:
    return MatrixProduct(name=name, outputs=outputs, inputs=inputs, cut=cut, biases=outputs * biased)
