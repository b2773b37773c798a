"""Models as columns: what an estimate reads, one number per model and name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from linkwise.model.architecture import Model
from linkwise.model.flop import matmul_parameters_active
from linkwise.model.parameters import (
    layer_parameters,
    mtp_parameters,
    outer_norm_parameters,
    parameter_counts,
)
from linkwise.model.products import (
    Cut,
    MatrixProduct,
    dense_products,
    expert_products,
    linear_attention_products,
    router_products,
    shared_products,
    softmax_attention_products,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["COLUMN_MEANINGS", "model_columns"]

_GROUPS = ("projection", "dense", "shared", "router")
_PRODUCT_COLUMNS: Mapping[str, str] = {
    "parameters": "sum of n*k",
    "replicated_parameters": "the part of it that tensor parallelism does not cut",
    "in_cut": "sum of k over the products whose k the tensor degree divides (row-parallel)",
    "in_whole": "sum of k over the products whose k it does not divide (column-parallel and whole)",
    "out_cut": "sum of n over the products whose n it divides (column-parallel)",
    "out_whole": "sum of n over the products whose n it does not divide (row-parallel and whole)",
}
_SHAPE_COLUMNS: Mapping[str, str] = {
    "layers": "transformer layers",
    "hidden": "width of the residual stream",
    "heads": "query heads",
    "kv_heads": "key-value heads",
    "head_dim": "size of a query or key head",
    "v_head_dim": "size of a value head",
    "vocab": "rows of the embedding table",
    "gated": "1 where MLPs have a gate",
    "moe_fraction": "layers with experts / layers",
    "experts": "routed experts of a mixture layer",
    "experts_per_token": "routed experts a token goes to",
    "expert_ffn": "width of one routed expert",
    "index_width": "heads * size of the sparse index",
    "index_topk": "keys the sparse index picks per query (0: all)",
    "mtp_layers": "multi-token prediction modules",
}
_ATTENTION_COLUMNS: Mapping[str, str] = {
    "attention_heads_width": "heads * (head_dim + v_head_dim) * softmax layers / layers; forward FLOP of "
    "scores and values per token and average layer = 2 * keys * this, if all softmax layers see as many keys",
    "full_attention_width": "the same over the layers that see the whole sequence only",
    "sliding_attention_width": "the same over the windowed layers only; the two sum to attention_heads_width",
    "full_layers_fraction": "layers that see the whole sequence / layers",
    "sliding_layers_fraction": "windowed layers / layers",
    "sliding_window": "keys a windowed layer sees",
    "linear_state_width": "value heads * (size of a head)^2 * gated delta net layers / layers; forward FLOP "
    "per token and average layer = 6 * this",
}
_SIZE_COLUMNS: Mapping[str, str] = {
    "layer_parameters": "an average layer without its routed experts",
    "layer_expert_parameters": "all routed experts of an average layer",
    "norm_parameters": "all norms of an average layer; part of layer_parameters",
    "max_layer_parameters": "the largest single layer, its experts included",
    "embedding_parameters": "the token and position tables (whole model)",
    "head_parameters": "the output head (whole model), 0 if tied",
    "outer_norm_parameters": "norms outside the layers (whole model)",
    "mtp_parameters": "multi-token prediction modules (whole model), in no other column",
    "total_parameters": "layers * (layer_parameters + layer_expert_parameters) + embedding_parameters + "
    "head_parameters + outer_norm_parameters",
    "active_parameters": "the same without the experts a token does not visit",
    "model_flop_per_token_linear": "6 * parameters in matrix products a token visits, head included, "
    "embedding lookup not: forward and backward of one token (whole model)",
}
COLUMN_MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        **_SHAPE_COLUMNS,
        **_ATTENTION_COLUMNS,
        **{f"{group}_{name}": text for group in _GROUPS for name, text in _PRODUCT_COLUMNS.items()},
        **{f"expert_{name}": f"{text}; one expert" for name, text in _PRODUCT_COLUMNS.items()},
        **_SIZE_COLUMNS,
    }
)
"""What each column of :func:`model_columns` holds."""


def model_columns(models: Sequence[Model]) -> dict[str, NDArray[np.float64]]:
    """Return what an estimate reads of `models`: per name of :data:`COLUMN_MEANINGS`, one value each.

    Parameters
    ----------
    models
        The models.

    Returns
    -------
    dict
        Arrays of shape ``(len(models),)``.

    Notes
    -----
    Everything is per layer, averaged over all layers, unless its meaning says otherwise. A linear layer is
    ``y[m, n] = x[m, k] W[k, n]``; groups of them are summed:

    - ``projection``: softmax and linear attention, each weighed by its share of the layers;
    - ``dense``: the dense MLP, times the share of dense layers;
    - ``shared`` and ``router``: times the share of mixture layers;
    - ``expert``: ONE routed expert, not averaged over anything.

    Per group g: forward FLOP per token = ``2 * g_parameters``; elements read and written beside the weights =
    ``g_in_cut / t + g_in_whole + g_out_cut / t + g_out_whole`` on a rank of tensor degree t; weights there =
    ``(g_parameters - g_replicated_parameters) / t + g_replicated_parameters``. Biases are counted in
    ``layer_parameters``, not in ``g_parameters``.
    """
    rows = [dict(_row(model)) for model in models]
    return {name: np.array([row[name] for row in rows], dtype=np.float64) for name in COLUMN_MEANINGS}


def _row(model: Model) -> Iterator[tuple[str, float]]:
    yield from _shape(model)
    yield from _attention(model)
    yield from _products(model)
    yield from _sizes(model)


def _shape(model: Model) -> Iterator[tuple[str, float]]:
    same = ("layers", "hidden", "heads", "kv_heads", "head_dim", "v_head_dim", "vocab")
    for name in (*same, "experts", "experts_per_token", "expert_ffn", "index_topk", "mtp_layers"):
        yield name, getattr(model, name)
    yield "gated", model.gated_mlp
    yield "moe_fraction", model.moe_layers / model.layers
    yield "index_width", model.index_heads * model.index_head_dim


def _attention(model: Model) -> Iterator[tuple[str, float]]:
    width, layers = model.heads * (model.head_dim + model.v_head_dim), model.layers
    yield "attention_heads_width", width * model.softmax_layers / layers
    yield "full_attention_width", width * model.full_layers / layers
    yield "sliding_attention_width", width * model.sliding_layers / layers
    yield "full_layers_fraction", model.full_layers / layers
    yield "sliding_layers_fraction", model.sliding_layers / layers
    yield "sliding_window", model.sliding_window if model.sliding_layers else 0
    yield (
        "linear_state_width",
        model.linear_value_heads * model.linear_head_dim**2 * model.linear_layers / layers,
    )


def _products(model: Model) -> Iterator[tuple[str, float]]:
    mixtures = model.moe_layers
    groups: Mapping[str, Iterable[tuple[int, Iterable[MatrixProduct]]]] = {
        "projection": (
            (model.softmax_layers, softmax_attention_products(model)),
            (model.linear_layers, linear_attention_products(model)),
        ),
        "dense": ((model.dense_layers, dense_products(model)),),
        "shared": ((mixtures, shared_products(model)),),
        "router": ((mixtures, router_products(model)),),
    }
    for group, kinds in groups.items():
        sums = dict.fromkeys(_PRODUCT_COLUMNS, 0)
        for layers, products in kinds:
            for name, value in _summed(products).items():
                sums[name] += layers * value
        yield from ((f"{group}_{name}", value / model.layers) for name, value in sums.items())
    yield from ((f"expert_{name}", value) for name, value in _summed(expert_products(model)).items())


def _summed(products: Iterable[MatrixProduct]) -> dict[str, int]:
    sums = dict.fromkeys(_PRODUCT_COLUMNS, 0)
    for product in products:
        sums["parameters"] += product.parameters
        sums["replicated_parameters"] += product.parameters * (product.cut is Cut.WHOLE)
        sums["in_cut" if product.cut is Cut.ROW else "in_whole"] += product.inputs
        sums["out_cut" if product.cut is Cut.COLUMN else "out_whole"] += product.outputs
    return sums


def _sizes(model: Model) -> Iterator[tuple[str, float]]:
    counts, one, outer = parameter_counts(model), layer_parameters(model), outer_norm_parameters(model)
    yield "layer_parameters", (counts.body - counts.experts - outer) / model.layers
    yield "layer_expert_parameters", counts.experts / model.layers
    yield "norm_parameters", (counts.norms - outer) / model.layers
    attentions = []
    if model.softmax_layers:
        attentions.append(one.softmax_attention + one.softmax_attention_norms)
    if model.linear_layers:
        attentions.append(one.linear_attention + one.linear_attention_norms)
    mixture = model.experts * one.expert + one.shared_experts + one.router
    yield "max_layer_parameters", max(attentions) + max(one.dense_mlp, mixture) + one.norms
    yield "embedding_parameters", counts.embedding + counts.positions
    yield "head_parameters", counts.output_head
    yield "outer_norm_parameters", outer
    yield "mtp_parameters", mtp_parameters(model)
    yield "total_parameters", counts.total
    yield "active_parameters", counts.active
    yield "model_flop_per_token_linear", 6 * matmul_parameters_active(model)
