"""How each architecture of Hugging Face transformers spells its shape: dense families.

One small function per family reads the keys of its configuration class and adds what the class does not
write down: biases, norms, the default of tied embeddings. Mixtures are in ``mixture_families``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from linkwise.model.architecture import QueryKeyNorm
from linkwise.model.config_fields import ConfigFields

__all__ = [
    "DENSE_FAMILIES",
    "Family",
    "attention_layers",
    "decoder",
    "layer_counts",
    "qwen_windows",
    "windows",
]

Family = Callable[[ConfigFields], dict[str, object]]
"""Reads a configuration into fields of :class:`~linkwise.model.architecture.Model`."""

_MOST_VOCAB = 100_000_000


def decoder(c: ConfigFields, *, tied: bool = False, ffn: bool = True) -> dict[str, object]:
    """Return the fields most families spell as Llama does.

    Parameters
    ----------
    c
        The configuration.
    tied
        The default of ``tie_word_embeddings`` in the family's configuration class.
    ffn
        Whether there are dense MLPs of ``intermediate_size``.
    """
    fields = attention_layers(c)
    fields["tied_embeddings"] = c.flag("tie_word_embeddings", default=tied)
    if ffn:
        fields["ffn"] = c.count("intermediate_size")
    return fields


def attention_layers(c: ConfigFields) -> dict[str, object]:
    """Return layers, width, heads and vocabulary, and check that they divide.

    Parameters
    ----------
    c
        The configuration.
    """
    hidden, heads = c.count("hidden_size"), c.count("num_attention_heads")
    kv_heads = c.count("num_key_value_heads", default=heads)
    fields: dict[str, object] = {
        "layers": c.layers("num_hidden_layers"),
        "hidden": hidden,
        "heads": heads,
        "kv_heads": kv_heads,
        "vocab": c.count("vocab_size", most=_MOST_VOCAB),
    }
    if c.has("head_dim"):
        fields["head_dim"] = c.count("head_dim")
    _check_heads(c, hidden=hidden, heads=heads, kv_heads=kv_heads)
    return fields


def _check_heads(c: ConfigFields, *, hidden: int, heads: int, kv_heads: int) -> None:
    known = not c.is_faulty("hidden_size", "num_attention_heads")
    if known and not c.has("head_dim") and not c.has("qk_nope_head_dim") and hidden % heads:
        c.fault(
            "num_attention_heads",
            f"{heads} heads do not divide hidden_size {hidden}, and no head_dim is given",
        )
    if not c.is_faulty("num_attention_heads", "num_key_value_heads") and heads % kv_heads:
        c.fault("num_key_value_heads", f"{kv_heads} does not divide the {heads} attention heads")


def layer_counts(kinds: Sequence[str]) -> dict[str, int]:
    """Return how many layers are windowed and how many linear.

    Parameters
    ----------
    kinds
        Kind of each layer, as ``layer_types`` spells it; chunked attention counts as windowed.
    """
    windowed = sum(kind in ("sliding_attention", "chunked_attention") for kind in kinds)
    return {"sliding_layers": windowed, "linear_layers": sum(kind == "linear_attention" for kind in kinds)}


def windows(
    c: ConfigFields, layers: object, default: Callable[[int], bool], *, size: int = 0
) -> dict[str, object]:
    """Return the window and the windowed layers.

    Parameters
    ----------
    c
        The configuration.
    layers
        Number of layers.
    default
        Which layers are windowed where ``layer_types`` does not say.
    size
        The window where ``sliding_window`` is absent, 0 for none; null turns it off.
    """
    count = layers if isinstance(layers, int) else 1
    window = c.count("sliding_window", default=0 if c.is_null("sliding_window") else size)
    kinds = c.layer_kinds("layer_types", count)
    if kinds is None:
        kinds = ["sliding_attention" if default(layer) else "full_attention" for layer in range(count)]
    sliding = layer_counts(kinds)["sliding_layers"] if window else 0
    return {"sliding_window": window if sliding else 0, "sliding_layers": sliding}


def _llama(c: ConfigFields) -> dict[str, object]:
    bias = c.flag("attention_bias", default=False)
    mlp = c.flag("mlp_bias", default=False)
    return {**decoder(c), "attention_bias": bias, "output_bias": bias, "mlp_bias": mlp}


def _mistral(c: ConfigFields) -> dict[str, object]:
    fields = decoder(c)
    return {**fields, **windows(c, fields["layers"], lambda _: True, size=4096)}


def _phi3(c: ConfigFields) -> dict[str, object]:
    fields = decoder(c)
    return {**fields, **windows(c, fields["layers"], lambda _: True)}


def qwen_windows(c: ConfigFields, layers: object) -> dict[str, object]:
    """Return the windows of a Qwen model, which only ``use_sliding_window`` turns on.

    Parameters
    ----------
    c
        The configuration.
    layers
        Number of layers.
    """
    if not c.flag("use_sliding_window", default=False):
        return {}
    first = c.count("max_window_layers", default=28, least=0)
    return windows(c, layers, lambda layer: layer >= first, size=4096)


def _qwen2(c: ConfigFields) -> dict[str, object]:
    fields = decoder(c)
    return {**fields, **qwen_windows(c, fields["layers"]), "attention_bias": True}


def _qwen3(c: ConfigFields) -> dict[str, object]:
    fields = decoder(c)
    bias = c.flag("attention_bias", default=False)
    fields.update(qwen_windows(c, fields["layers"]))
    return {**fields, "attention_bias": bias, "output_bias": bias, "query_key_norm": QueryKeyNorm.HEAD}


def _gemma(c: ConfigFields) -> dict[str, object]:
    fields = decoder(c, tied=True)
    return {**fields, "head_dim": c.count("head_dim", default=256)}


def _gemma2(c: ConfigFields) -> dict[str, object]:
    fields = {**_gemma(c), "norms_per_layer": 4}
    return {**fields, **windows(c, fields["layers"], lambda layer: layer % 2 == 0, size=4096)}


def _gemma3(c: ConfigFields) -> dict[str, object]:
    # The text part of the larger Gemma 3 leaves these to the defaults of Gemma3TextConfig.
    defaults = {"vocab": 262_208, "heads": 8, "kv_heads": 4}
    keys = {"vocab": "vocab_size", "heads": "num_attention_heads", "kv_heads": "num_key_value_heads"}
    fields: dict[str, object] = {name: c.count(keys[name], default=value) for name, value in defaults.items()}
    fields.update(layers=c.layers("num_hidden_layers"), hidden=c.count("hidden_size"))
    fields.update(ffn=c.count("intermediate_size"), head_dim=c.count("head_dim", default=256))
    fields.update(tied_embeddings=c.flag("tie_word_embeddings", default=True))
    every = c.count("sliding_window_pattern", default=6)
    fields.update(windows(c, fields["layers"], lambda layer: (layer + 1) % every != 0, size=4096))
    return {**fields, "norms_per_layer": 4, "query_key_norm": QueryKeyNorm.HEAD}


def _olmo2(c: ConfigFields) -> dict[str, object]:
    return {**_llama(c), "query_key_norm": QueryKeyNorm.WHOLE}


_GPT_BIASES: Mapping[str, object] = dict.fromkeys(
    ("attention_bias", "output_bias", "mlp_bias", "norm_bias"), True
)


def _gpt2(c: ConfigFields) -> dict[str, object]:
    hidden = c.count("n_embd")
    return {
        **_GPT_BIASES,
        "layers": c.layers("n_layer"),
        "hidden": hidden,
        "heads": c.count("n_head"),
        "vocab": c.count("vocab_size", most=_MOST_VOCAB),
        "ffn": c.count("n_inner", default=4 * hidden),
        "gated_mlp": False,
        "tied_embeddings": c.flag("tie_word_embeddings", default=True),
        "learned_positions": c.count("n_positions", default=1024),
    }


def _gpt_neox(c: ConfigFields) -> dict[str, object]:
    bias = c.flag("attention_bias", default=True)
    fields = {**decoder(c), **_GPT_BIASES, "gated_mlp": False}
    return {**fields, "attention_bias": bias, "output_bias": bias}


def _opt(c: ConfigFields) -> dict[str, object]:
    fields = {**attention_layers(c), **_GPT_BIASES, "gated_mlp": False}
    if c.count("word_embed_proj_dim", default=int(str(fields["hidden"]))) != fields["hidden"]:
        c.fault("word_embed_proj_dim", "embeddings narrower than hidden_size are not covered")
    if not c.flag("do_layer_norm_before", default=True):
        c.fault("do_layer_norm_before", "only models with the norm before a block are covered")
    return {
        **fields,
        "ffn": c.count("ffn_dim"),
        "tied_embeddings": c.flag("tie_word_embeddings", default=True),
        "learned_positions": c.count("max_position_embeddings") + 2,
    }


def _mpt(c: ConfigFields) -> dict[str, object]:
    hidden, attention = c.count("d_model"), c.inner("attn_config")
    heads = c.count("n_heads")
    biases = dict.fromkeys(_GPT_BIASES, not c.flag("no_bias", default=True))
    learned = c.flag("learned_pos_emb", default=True) and not attention.flag("alibi", default=True)
    return {
        **biases,
        "layers": c.layers("n_layers"),
        "hidden": hidden,
        "heads": heads,
        "kv_heads": attention.count("kv_n_heads", default=heads),
        "vocab": c.count("vocab_size", most=_MOST_VOCAB),
        "ffn": round(hidden * c.ratio("expansion_ratio", default=4)),
        "gated_mlp": False,
        "tied_embeddings": c.flag("tie_word_embeddings", default=True),
        "learned_positions": c.count("max_seq_len") if learned else 0,
    }


def _bloom(c: ConfigFields) -> dict[str, object]:
    hidden = c.count("hidden_size", "n_embed")
    return {
        **_GPT_BIASES,
        "layers": c.layers("n_layer", "num_hidden_layers"),
        "hidden": hidden,
        "heads": c.count("n_head", "num_attention_heads"),
        "vocab": c.count("vocab_size", most=_MOST_VOCAB),
        "ffn": 4 * hidden,
        "gated_mlp": False,
        "tied_embeddings": c.flag("tie_word_embeddings", default=True),
        "embedding_norm": True,
    }


def _falcon(c: ConfigFields) -> dict[str, object]:
    new = c.flag("new_decoder_architecture", default=False)
    one_key = c.flag("multi_query", default=True) and not new
    hidden, heads = c.count("hidden_size"), c.count("num_attention_heads", "n_head")
    bias = c.flag("bias", default=False)
    parallel = c.flag("parallel_attn", default=True)
    norms = c.count("num_ln_in_parallel_attn", default=2 if new else 1) if parallel else 2
    return {
        "layers": c.layers("num_hidden_layers", "n_layer"),
        "hidden": hidden,
        "heads": heads,
        "kv_heads": 1 if one_key else c.count("num_kv_heads", "n_head_kv", default=heads),
        "vocab": c.count("vocab_size", most=_MOST_VOCAB),
        "ffn": c.count("ffn_hidden_size", default=4 * hidden),
        "gated_mlp": False,
        "tied_embeddings": c.flag("tie_word_embeddings", default=True),
        **dict.fromkeys(("attention_bias", "output_bias", "mlp_bias"), bias),
        "norm_bias": True,
        "norms_per_layer": norms,
    }


def _nemotron(c: ConfigFields) -> dict[str, object]:
    return {**_llama(c), "gated_mlp": False, "norm_bias": True}


def _starcoder2(c: ConfigFields) -> dict[str, object]:
    fields = {**decoder(c, tied=True), "gated_mlp": False, "norm_bias": True}
    fields.update(
        dict.fromkeys(("attention_bias", "output_bias", "mlp_bias"), c.flag("use_bias", default=True))
    )
    return {**fields, **windows(c, fields["layers"], lambda _: True)}


def _phi(c: ConfigFields) -> dict[str, object]:
    return {**decoder(c), **_GPT_BIASES, "gated_mlp": False, "head_bias": True, "norms_per_layer": 1}


DENSE_FAMILIES: Mapping[str, Family] = {
    "bloom": _bloom,
    "falcon": _falcon,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "gpt2": _gpt2,
    "gpt_neox": _gpt_neox,
    "granite": _llama,
    "internlm2": decoder,
    "llama": _llama,
    "mistral": _mistral,
    "mpt": _mpt,
    "nemotron": _nemotron,
    "olmo2": _olmo2,
    "opt": _opt,
    "phi": _phi,
    "phi3": _phi3,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "starcoder2": _starcoder2,
}
"""``model_type`` and the reader of its configuration."""
