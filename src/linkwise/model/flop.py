"""Floating-point operations per token, by part, with causal and full attention apart.

A multiply and an add are two operations. Softmax, norms, activations and the embedding lookup are not
counted, as is usual (Narayanan et al. 2021, "Efficient Large-Scale Language Model Training", appendix).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from linkwise.model.architecture import Model
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
    "ForwardFlop",
    "attention_keys",
    "forward_flop_per_token",
    "matmul_parameters_active",
    "model_flop_per_token",
]

_DELTA_RULE_FLOP = 6
"""Per element of the state and token: read by the key, rank-one update, read by the query, two each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardFlop:
    """Forward operations of one token through the whole model [FLOP]; the parts sum to :attr:`total`.

    Parameters
    ----------
    projection
        Matrix products of attention, softmax and linear.
    attention
        Scores and their product with the values, and the scores of a sparse index.
    linear_attention
        State update and read-out of linear layers.
    dense_mlp, experts, shared_experts, router
        The MLPs: dense ones, the experts a token visits, shared ones, the router.
    output_head
        The product with the vocabulary.
    """

    projection: float
    attention: float
    linear_attention: float
    dense_mlp: float
    experts: float
    shared_experts: float
    router: float
    output_head: float

    @property
    def linear(self) -> float:
        """All matrix products with weights: what does not depend on the sequence [FLOP]."""
        mlp = self.dense_mlp + self.experts + self.shared_experts + self.router
        return self.projection + mlp + self.output_head

    @property
    def total(self) -> float:
        """All parts [FLOP]."""
        return self.linear + self.attention + self.linear_attention


def forward_flop_per_token(model: Model, sequence_length: int, *, causal: bool = True) -> ForwardFlop:
    """Return the forward operations of one token, averaged over a sequence.

    Parameters
    ----------
    model
        The model.
    sequence_length
        Tokens in the sequence [1].
    causal
        Whether only the pairs the causal mask leaves are counted; otherwise the whole square, as
        publishers do who quote ``12 * layers * hidden * sequence`` for training.

    Notes
    -----
    A product with an ``n`` by ``k`` weight costs ``2 n k`` per token. Scores and values cost
    ``2 keys heads (head_dim + v_head_dim)`` with the keys of :func:`attention_keys`. A gated delta net layer
    costs ``6 value_heads head_dim^2`` in its recurrent form (Yang et al. 2024, "Gated Delta Networks"); the
    chunked form costs somewhat more, by an amount that depends on the chunk. A sparse index scores all keys
    and leaves the attention at most ``index_topk`` of them (DeepSeek-AI 2025, "DeepSeek-V3.2").
    """
    mixtures = model.moe_layers
    attended = model.full_layers * _sparse_keys(model, sequence_length, causal=causal)
    attended += model.sliding_layers * attention_keys(sequence_length, model.sliding_window, causal=causal)
    indexed = model.softmax_layers * attention_keys(sequence_length, 0, causal=causal)
    index_width = model.index_heads * model.index_head_dim
    state = model.linear_value_heads * model.linear_head_dim**2
    projection = model.softmax_layers * _elements(softmax_attention_products(model))
    projection += model.linear_layers * _elements(linear_attention_products(model))
    return ForwardFlop(
        projection=2.0 * projection,
        attention=2.0
        * (attended * model.heads * (model.head_dim + model.v_head_dim) + indexed * index_width),
        linear_attention=float(_DELTA_RULE_FLOP * model.linear_layers * state),
        dense_mlp=2.0 * model.dense_layers * _elements(dense_products(model)),
        experts=2.0 * mixtures * model.experts_per_token * _elements(expert_products(model)),
        shared_experts=2.0 * mixtures * _elements(shared_products(model)),
        router=2.0 * mixtures * _elements(router_products(model)),
        output_head=2.0 * model.vocab * model.hidden,
    )


def attention_keys(sequence_length: int, window: int, *, causal: bool) -> float:
    """Return the keys a query sees, averaged over a sequence [1].

    Parameters
    ----------
    sequence_length
        Tokens in the sequence [1].
    window
        Keys a query sees at most, itself included; 0 without a window [1].
    causal
        Whether a query sees no later key.

    Notes
    -----
    Causal, the mean over the queries of ``min(position, w)`` with ``w = min(window, s)``, taken continuous so
    that the whole sequence gives the usual ``s / 2``: ``w - w^2 / (2 s)``. Otherwise ``w``.
    """
    seen = min(window, sequence_length) if window else sequence_length
    return seen - seen**2 / (2 * sequence_length) if causal else float(seen)


def matmul_parameters_active(model: Model) -> int:
    """Return the weights one token is multiplied with [1].

    Biases, norms and the embedding lookup are left out; the output head is counted, tied or not.

    Parameters
    ----------
    model
        The model.
    """
    return round(forward_flop_per_token(model, 1).linear / 2)


def model_flop_per_token(model: Model, sequence_length: int, *, causal: bool = True) -> float:
    """Return the operations of forward and backward for one token, the numerator of MFU [FLOP].

    Parameters
    ----------
    model
        The model.
    sequence_length
        Tokens in the sequence [1].
    causal
        Whether attention counts half the square (what is needed) or all of it (what some publish).

    Notes
    -----
    Three times the forward: ``6 * (weights a token meets) + attention``, recomputation not counted (Chowdhery
    et al. 2022, "PaLM", appendix B, which counts the whole square; so do Narayanan et al. 2021).
    """
    return 3.0 * forward_flop_per_token(model, sequence_length, causal=causal).total


def _sparse_keys(model: Model, sequence_length: int, *, causal: bool) -> float:
    return attention_keys(sequence_length, model.index_topk if model.index_heads else 0, causal=causal)


def _elements(products: Iterable[MatrixProduct]) -> int:
    return sum(product.parameters for product in products)
