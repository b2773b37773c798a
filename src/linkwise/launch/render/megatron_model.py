"""The shape of a model as arguments of Megatron-LM.

References
----------
NVIDIA, Megatron-LM, megatron/training/arguments.py; megatron/core/transformer/transformer_config.py, 2026.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from linkwise.launch.render.start import NotExpressed
from linkwise.model.architecture import AttentionKind, QueryKeyNorm

if TYPE_CHECKING:
    from linkwise.model import Model

__all__ = ["model_arguments", "model_gaps"]


def model_arguments(model: Model, sequence_length: int) -> Iterator[str]:
    """Yield the arguments that describe a model.

    Parameters
    ----------
    model
        The model.
    sequence_length
        Tokens of one sequence [1].
    """
    yield f"--num-layers={model.layers}"
    yield f"--hidden-size={model.hidden}"
    yield f"--ffn-hidden-size={model.ffn or model.expert_ffn}"
    yield f"--num-attention-heads={model.heads}"
    yield f"--seq-length={sequence_length}"
    yield f"--max-position-embeddings={max(sequence_length, model.learned_positions)}"
    yield from _attention(model)
    yield from _forms(model)
    yield from _vocabulary(model)
    if model.experts:
        yield from _mixture(model)
    if model.mtp_layers:
        yield f"--mtp-num-layers={model.mtp_layers}"


def _attention(model: Model) -> Iterator[str]:
    if model.attention is AttentionKind.MLA:
        yield "--multi-latent-attention"
        if model.q_lora_rank:
            yield f"--q-lora-rank={model.q_lora_rank}"
        yield f"--kv-lora-rank={model.kv_lora_rank}"
        yield f"--qk-head-dim={model.qk_nope_head_dim}"
        yield f"--qk-pos-emb-head-dim={model.qk_rope_head_dim}"
        yield f"--v-head-dim={model.v_head_dim}"
    else:
        yield f"--kv-channels={model.head_dim}"
        if model.kv_heads != model.heads:
            yield "--group-query-attention"
            yield f"--num-query-groups={model.kv_heads}"
    if model.query_key_norm is QueryKeyNorm.HEAD:
        yield "--qk-layernorm"


def _forms(model: Model) -> Iterator[str]:
    if model.gated_mlp:
        yield "--swiglu"
    yield f"--normalization={'LayerNorm' if model.norm_bias else 'RMSNorm'}"
    yield f"--position-embedding-type={'learned_absolute' if model.learned_positions else 'rope'}"
    if not model.output_bias and not model.mlp_bias:
        yield "--disable-bias-linear"
        if model.attention_bias:
            yield "--add-qkv-bias"
    if not model.tied_embeddings:
        yield "--untie-embeddings-and-output-weights"


def _vocabulary(model: Model) -> Iterator[str]:
    """Yield a table of exactly the rows of the model: the null tokenizer adds one token of its own."""
    yield "--tokenizer-type=NullTokenizer"
    yield f"--vocab-size={model.vocab - 1}"
    yield "--make-vocab-size-divisible-by=1"


def _mixture(model: Model) -> Iterator[str]:
    yield f"--num-experts={model.experts}"
    yield f"--moe-router-topk={model.experts_per_token}"
    yield f"--moe-ffn-hidden-size={model.expert_ffn}"
    yield "--moe-token-dispatcher-type=alltoall"
    yield "--moe-grouped-gemm"
    if model.shared_experts:
        yield f"--moe-shared-expert-intermediate-size={model.shared_experts * model.shared_ffn}"
    if model.dense_layers:
        yield f"--moe-layer-freq=([0]*{model.dense_layers}+[1]*{model.moe_layers})"


def model_gaps(model: Model) -> Iterator[NotExpressed]:
    """Yield what of a model the arguments do not describe.

    Parameters
    ----------
    model
        The model.
    """
    own = "the arguments describe a model without; take the program that has it (--script) and check its size"
    features = {
        "windowed layers": f"{model.sliding_layers} of {model.layers}" if model.sliding_layers else "",
        "linear attention layers": str(model.linear_layers or ""),
        "attention sinks": "yes" if model.attention_sinks else "",
        "sparse index": f"{model.index_heads} heads" if model.index_heads else "",
        "output gate": "yes" if model.output_gate else "",
        "embedding norm": "yes" if model.embedding_norm else "",
        "norms of a layer": str(model.norms_per_layer) if model.norms_per_layer != 2 else "",
        "query and key norm": "over all heads" if model.query_key_norm is QueryKeyNorm.WHOLE else "",
        "gate of the shared expert": "yes" if model.shared_gate else "",
        "biases": _uneven_biases(model),
    }
    for name, value in features.items():
        if value:
            yield NotExpressed(name=name, value=value, reason=own)


def _uneven_biases(model: Model) -> str:
    """Return which matrices have a bias where Megatron gives one to all or to none."""
    wanted = {"attention output": model.output_bias, "MLP": model.mlp_bias}
    if any(wanted.values()):
        wanted["query, key and value"] = model.attention_bias
    has = [name for name, is_there in wanted.items() if is_there]
    return ", ".join(has) + " alone" if has and len(has) < len(wanted) else ""
