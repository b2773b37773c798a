"""Exact parameter counts of a model, by part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from linkwise.model.architecture import AttentionKind, Model, QueryKeyNorm
from linkwise.model.products import (
    MatrixProduct,
    dense_products,
    expert_products,
    linear_attention_products,
    router_products,
    shared_products,
    softmax_attention_products,
)

__all__ = [
    "LayerParameters",
    "ParameterCounts",
    "layer_parameters",
    "mtp_parameters",
    "outer_norm_parameters",
    "parameter_counts",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerParameters:
    """Parameters of one instance of each part a layer may have [1].

    Parameters
    ----------
    softmax_attention, linear_attention
        One attention layer of either kind: projections, their biases, sinks, convolution.
    softmax_attention_norms, linear_attention_norms
        Norms inside one attention layer: of queries, keys, latents and the gated output.
    dense_mlp, expert, shared_experts, router
        One dense MLP; one routed expert; all shared experts of a layer; one router.
    norms
        Norms of residual width in one layer.
    """

    softmax_attention: int
    linear_attention: int
    softmax_attention_norms: int
    linear_attention_norms: int
    dense_mlp: int
    expert: int
    shared_experts: int
    router: int
    norms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCounts:
    """Parameters of a whole model by part [1]; the parts sum to :attr:`total`.

    Parameters
    ----------
    attention
        Projections of all layers, softmax and linear, with biases, sinks and convolutions.
    dense_mlp, experts, shared_experts, router
        All dense MLPs, all routed experts, all shared experts with their gates, all routers.
    norms
        All norms, the final one included.
    embedding, positions
        The token table; the learned position table.
    output_head
        The head with its bias; 0 for the matrix of a tied one.
    experts_inactive
        Routed experts a token does not visit, in all layers; part of `experts`.
    """

    attention: int
    dense_mlp: int
    experts: int
    shared_experts: int
    router: int
    norms: int
    embedding: int
    positions: int
    output_head: int
    experts_inactive: int

    @property
    def total(self) -> int:
        """All parameters; multi-token prediction modules are not among them [1]."""
        mlp = self.dense_mlp + self.experts + self.shared_experts + self.router
        return self.attention + mlp + self.norms + self.embedding + self.positions + self.output_head

    @property
    def active(self) -> int:
        """Parameters that take part in one token: all but the experts not chosen [1]."""
        return self.total - self.experts_inactive

    @property
    def active_without_embedding(self) -> int:
        """Active parameters without the token table where a head stands beside it.

        A lookup multiplies nothing, so some publishers leave the table out; a tied table is counted once,
        as the head [1].
        """
        return self.active - (self.embedding if self.output_head >= self.embedding else 0)

    @property
    def body(self) -> int:
        """Parameters of the layers alone: no embedding, positions nor head [1]."""
        return self.total - self.embedding - self.positions - self.output_head


def parameter_counts(model: Model) -> ParameterCounts:
    """Return the parameters of `model` by part, counted exactly from its matrices.

    Parameters
    ----------
    model
        The model.

    Notes
    -----
    Each part is its count per layer times the layers that have it. The matrices and the sources of their
    shapes are in :mod:`linkwise.model.products`.
    """
    one = layer_parameters(model)
    softmax, linear, mixtures = model.softmax_layers, model.linear_layers, model.moe_layers
    inner_norms = softmax * one.softmax_attention_norms + linear * one.linear_attention_norms
    head = 0 if model.tied_embeddings else model.vocab * model.hidden
    return ParameterCounts(
        attention=softmax * one.softmax_attention + linear * one.linear_attention,
        dense_mlp=model.dense_layers * one.dense_mlp,
        experts=mixtures * model.experts * one.expert,
        shared_experts=mixtures * one.shared_experts,
        router=mixtures * one.router,
        norms=model.layers * one.norms + inner_norms + outer_norm_parameters(model),
        embedding=model.vocab * model.hidden,
        positions=model.learned_positions * model.hidden,
        output_head=head + model.vocab * model.head_bias,
        experts_inactive=mixtures * (model.experts - model.experts_per_token) * one.expert,
    )


def layer_parameters(model: Model) -> LayerParameters:
    """Return the parameters of one instance of each part of a layer.

    Parameters
    ----------
    model
        The model; parts it does not have count 0.
    """
    sinks = model.heads * model.attention_sinks
    return LayerParameters(
        softmax_attention=_elements(softmax_attention_products(model)) + sinks,
        linear_attention=_elements(linear_attention_products(model)) + _linear_extras(model),
        softmax_attention_norms=_softmax_norms(model),
        linear_attention_norms=model.linear_head_dim if model.linear_layers else 0,
        dense_mlp=_elements(dense_products(model)),
        expert=_elements(expert_products(model)),
        shared_experts=_elements(shared_products(model)),
        router=_elements(router_products(model)),
        norms=model.norms_per_layer * _norm(model),
    )


def outer_norm_parameters(model: Model) -> int:
    """Return the parameters of the norms outside the layers: the final one, and one on the embedding.

    Parameters
    ----------
    model
        The model.
    """
    return (2 if model.embedding_norm else 1) * _norm(model)


def mtp_parameters(model: Model) -> int:
    """Return the parameters of the multi-token prediction modules, embedding and head shared.

    Parameters
    ----------
    model
        The model.

    Notes
    -----
    A module is one more layer (a mixture where the model has mixtures), a product of ``2 hidden`` by
    ``hidden`` that joins it to the layer before, and three norms (DeepSeek-AI 2024, "DeepSeek-V3",
    section 2.2).
    """
    one = layer_parameters(model)
    mlp = one.dense_mlp
    if model.experts:
        mlp = model.experts * one.expert + one.shared_experts + one.router
    layer = one.softmax_attention + one.softmax_attention_norms + one.norms + mlp
    return model.mtp_layers * (layer + 2 * model.hidden**2 + 3 * _norm(model))


def _elements(products: Iterable[MatrixProduct]) -> int:
    return sum(product.parameters + product.biases for product in products)


def _norm(model: Model) -> int:
    return model.hidden * (2 if model.norm_bias else 1)


def _softmax_norms(model: Model) -> int:
    index = 2 * model.index_head_dim if model.index_heads else 0
    if model.attention is AttentionKind.MLA:
        return model.q_lora_rank + model.kv_lora_rank + index
    if model.query_key_norm is QueryKeyNorm.HEAD:
        return 2 * model.head_dim
    if model.query_key_norm is QueryKeyNorm.WHOLE:
        return (model.heads + model.kv_heads) * model.head_dim
    return 0


def _linear_extras(model: Model) -> int:
    """Return the short convolution over queries, keys and values, and two scalars per value head."""
    if not model.linear_layers:
        return 0
    channels = (2 * model.linear_key_heads + model.linear_value_heads) * model.linear_head_dim
    return channels * model.linear_conv + 2 * model.linear_value_heads
