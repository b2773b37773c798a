"""How each mixture-of-experts architecture of Hugging Face transformers spells its shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from linkwise.model.architecture import AttentionKind, QueryKeyNorm
from linkwise.model.config_fields import ConfigFields
from linkwise.model.families import Family, decoder, layer_counts, qwen_windows, windows

__all__ = ["MIXTURE_FAMILIES"]


def _mixture_layers(layers: int, first: int, every: int, dense: Iterable[int] = ()) -> int:
    """Return how many of the layers from `first` on, counted every so many, are mixtures."""
    without = set(dense)
    return sum(
        layer >= first and (layer + 1) % every == 0 and layer not in without for layer in range(layers)
    )


def _layers(fields: Mapping[str, object]) -> int:
    return int(str(fields["layers"]))


def _mixtral(c: ConfigFields) -> dict[str, object]:
    fields = decoder(c, ffn=False)
    return {
        **fields,
        **windows(c, fields["layers"], lambda _: True),
        "experts": c.count("num_local_experts"),
        "experts_per_token": c.count("num_experts_per_tok"),
        "expert_ffn": c.count("intermediate_size"),
    }


def _qwen_mixture(c: ConfigFields) -> dict[str, object]:
    fields = decoder(c, ffn=False)
    every = c.count("decoder_sparse_step", default=1)
    dense = c.layer_numbers("mlp_only_layers") or ()
    layers = _layers(fields)
    fields["dense_layers"] = layers - _mixture_layers(layers, 0, every, dense)
    if fields["dense_layers"]:
        fields["ffn"] = c.count("intermediate_size")
    return {
        **fields,
        "experts": c.count("num_experts", "num_local_experts"),
        "experts_per_token": c.count("num_experts_per_tok"),
        "expert_ffn": c.count("moe_intermediate_size"),
    }


def _shared_expert(c: ConfigFields) -> dict[str, object]:
    width = c.count("shared_expert_intermediate_size", least=0)
    return {"shared_experts": 1, "shared_ffn": width, "shared_gate": True} if width else {}


def _qwen2_moe(c: ConfigFields) -> dict[str, object]:
    fields = {**_qwen_mixture(c), **_shared_expert(c), "attention_bias": True}
    return {**fields, **qwen_windows(c, fields["layers"])}


def _qwen3_moe(c: ConfigFields) -> dict[str, object]:
    bias = c.flag("attention_bias", default=False)
    fields = {**_qwen_mixture(c), "attention_bias": bias, "output_bias": bias}
    return {**fields, **qwen_windows(c, fields["layers"]), "query_key_norm": QueryKeyNorm.HEAD}


def _qwen3_next(c: ConfigFields) -> dict[str, object]:
    fields = {**_qwen_mixture(c), **_shared_expert(c)}
    layers = _layers(fields)
    kinds = c.layer_kinds("layer_types", layers)
    if kinds is None:
        every = c.count("full_attention_interval", default=4)
        kinds = ["linear_attention" if (layer + 1) % every else "full_attention" for layer in range(layers)]
    size = c.count("linear_value_head_dim")
    if c.count("linear_key_head_dim") != size:
        c.fault(
            "linear_key_head_dim",
            f"must be linear_value_head_dim ({size}); heads of two sizes are not covered",
        )
    return {
        **fields,
        "linear_layers": layer_counts(kinds)["linear_layers"],
        "linear_key_heads": c.count("linear_num_key_heads"),
        "linear_value_heads": c.count("linear_num_value_heads"),
        "linear_head_dim": size,
        "linear_conv": c.count("linear_conv_kernel_dim"),
        "output_gate": c.flag("attn_output_gate", default=True),
        "query_key_norm": QueryKeyNorm.HEAD,
        "mtp_layers": c.count("mtp_num_hidden_layers", default=0, least=0),
    }


def _deepseek_mixture(c: ConfigFields, fields: Mapping[str, object]) -> dict[str, object]:
    layers = _layers(fields)
    first = c.count("first_k_dense_replace", default=0, least=0)
    every = c.count("moe_layer_freq", default=1)
    mixtures = sum(layer >= first and layer % every == 0 for layer in range(layers))
    dense = layers - mixtures
    width = c.count("moe_intermediate_size")
    shared = c.count("n_shared_experts", default=0, least=0)
    return {
        "dense_layers": dense,
        "ffn": c.count("intermediate_size") if dense else 0,
        "experts": c.count("n_routed_experts"),
        "experts_per_token": c.count("num_experts_per_tok"),
        "expert_ffn": width,
        "shared_experts": shared,
        "shared_ffn": width if shared else 0,
        "mtp_layers": c.count("num_nextn_predict_layers", default=0, least=0),
    }


def _latent_attention(c: ConfigFields) -> dict[str, object]:
    without, rotary = c.count("qk_nope_head_dim"), c.count("qk_rope_head_dim")
    bias = c.flag("attention_bias", default=False)
    return {
        "attention": AttentionKind.MLA,
        "q_lora_rank": c.count("q_lora_rank", default=0),
        "kv_lora_rank": c.count("kv_lora_rank"),
        "qk_nope_head_dim": without,
        "qk_rope_head_dim": rotary,
        "head_dim": without + rotary,
        "v_head_dim": c.count("v_head_dim"),
        "attention_bias": bias,
        "output_bias": bias,
    }


def _deepseek_v2(c: ConfigFields) -> dict[str, object]:
    fields = decoder(c, ffn=False)
    fields["kv_heads"] = fields["heads"]
    return {**fields, **_latent_attention(c), **_deepseek_mixture(c, fields)}


def _deepseek_v3(c: ConfigFields) -> dict[str, object]:
    # Routing without an auxiliary loss keeps one balance bias per expert.
    return {**_deepseek_v2(c), "router_bias": c.text("topk_method", default="noaux_tc") == "noaux_tc"}


def _deepseek_sparse(c: ConfigFields) -> dict[str, object]:
    index = {name: c.count(name) for name in ("index_head_dim", "index_topk")}
    return {**_deepseek_v3(c), **index, "index_heads": c.count("index_n_heads")}


def _glm4_moe(c: ConfigFields) -> dict[str, object]:
    fields = decoder(c, ffn=False)
    norm = QueryKeyNorm.HEAD if c.flag("use_qk_norm", default=False) else QueryKeyNorm.NONE
    bias = c.flag("attention_bias", default=False)
    fields.update(_deepseek_mixture(c, fields))
    return {**fields, "router_bias": True, "attention_bias": bias, "query_key_norm": norm}


def _gpt_oss(c: ConfigFields) -> dict[str, object]:
    fields = decoder(c, ffn=False)
    bias = c.flag("attention_bias", default=True)
    fields.update(windows(c, fields["layers"], lambda layer: layer % 2 == 0, size=128))
    return {
        **fields,
        "experts": c.count("num_local_experts"),
        "experts_per_token": c.count("num_experts_per_tok", "experts_per_token"),
        "expert_ffn": c.count("intermediate_size"),
        "attention_bias": bias,
        "output_bias": bias,
        "mlp_bias": True,
        "router_bias": True,
        "attention_sinks": True,
    }


def _llama4(c: ConfigFields) -> dict[str, object]:
    fields = decoder(c, ffn=False)
    layers = _layers(fields)
    numbers = c.layer_numbers("moe_layers")
    every = c.count("interleave_moe_layer_step", default=1)
    mixtures = (
        _mixture_layers(layers, 0, every) if numbers is None else len(set(numbers) & set(range(layers)))
    )
    width = c.count("intermediate_size")
    if layers - mixtures:
        fields["ffn"] = c.count("intermediate_size_mlp")
    return {
        **fields,
        **_llama4_chunks(c, layers),
        "dense_layers": layers - mixtures,
        "experts": c.count("num_local_experts"),
        "experts_per_token": c.count("num_experts_per_tok"),
        "expert_ffn": width,
        "shared_experts": 1,
        "shared_ffn": width,
    }


def _llama4_chunks(c: ConfigFields, layers: int) -> dict[str, object]:
    """Return the layers that attend within chunks, taken as windows: those with rotary positions."""
    if not c.has("attention_chunk_size"):
        return {}
    rotary = c.layer_numbers("no_rope_layers")  # 1 where a layer HAS rotary positions
    every = c.count("no_rope_layer_interval", default=4)
    if not rotary:
        rotary = [int((layer + 1) % every != 0) for layer in range(layers)]
    return {"sliding_window": c.count("attention_chunk_size"), "sliding_layers": sum(map(bool, rotary))}


def _minimax_m2(c: ConfigFields) -> dict[str, object]:
    norm = QueryKeyNorm.WHOLE if c.flag("use_qk_norm", default=True) else QueryKeyNorm.NONE
    return {
        **decoder(c, ffn=False),
        "experts": c.count("num_local_experts"),
        "experts_per_token": c.count("num_experts_per_tok"),
        "expert_ffn": c.count("intermediate_size"),
        "router_bias": c.flag("use_routing_bias", default=True),
        "query_key_norm": norm,
        "mtp_layers": c.count("num_mtp_modules", default=0, least=0),
    }


MIXTURE_FAMILIES: Mapping[str, Family] = {
    "deepseek_v2": _deepseek_v2,
    "deepseek_v3": _deepseek_v3,
    "deepseek_v32": _deepseek_sparse,
    "glm4_moe": _glm4_moe,
    "glm_moe_dsa": _deepseek_sparse,
    "gpt_oss": _gpt_oss,
    "kimi_k2": _deepseek_v3,
    "llama4_text": _llama4,
    "minimax_m2": _minimax_m2,
    "mixtral": _mixtral,
    "qwen2_moe": _qwen2_moe,
    "qwen3_5_moe_text": _qwen3_next,
    "qwen3_moe": _qwen3_moe,
    "qwen3_next": _qwen3_next,
}
"""``model_type`` and the reader of its configuration."""
