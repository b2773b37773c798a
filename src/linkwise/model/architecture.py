"""The shape of one transformer: the value every other module of the room reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from enum import StrEnum
from typing import Any

from linkwise.errors import DocumentError, Fault, nearest_names

__all__ = ["AttentionKind", "Model", "QueryKeyNorm", "field_faults", "make_model", "with_positions"]


class AttentionKind(StrEnum):
    """How the softmax layers hold keys and values."""

    MHA = "mha"
    """One key and one value head per query head."""
    GQA = "gqa"
    """Groups of query heads share a key and a value head."""
    MLA = "mla"
    """Keys and values from one low-rank latent (DeepSeek-AI 2024, "DeepSeek-V2")."""


class QueryKeyNorm(StrEnum):
    """Normalisation of queries and keys before their product."""

    NONE = "none"
    HEAD = "head"
    """One weight vector of a head's size, shared by the heads (Qwen3)."""
    WHOLE = "whole"
    """One weight vector over all heads (MiniMax-M2, OLMo 2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The shape of one transformer; build it with :func:`make_model`, which checks it.

    Parameters
    ----------
    name
        Name in the catalogue, or the one in the configuration.
    layers
        Transformer layers, without multi-token prediction modules [1].
    hidden
        Width of the residual stream [1].
    heads, kv_heads
        Query heads; key (and value) heads [1].
    head_dim, v_head_dim
        Size of a query or key head (latent attention: the part without and the part with rotary
        position together), and of a value head [1].
    vocab
        Rows of the embedding table, padding included [1].
    ffn
        Width of the dense MLP; of a mixture, that of its dense layers, 0 where there are none [1].
    gated_mlp
        Whether MLPs and experts have a gate (three matrices instead of two).
    tied_embeddings
        Whether the output head is the embedding table.
    learned_positions
        Rows of a learned position table; 0 with rotary, ALiBi or no positions [1].
    attention
        Kind of the softmax layers.
    output_gate
        Whether queries carry a gate of the attention output, as wide as they are (Qwen3-Next).
    q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim
        Latent attention: ranks of the query and key-value compression, and the two parts of a query
        head; 0 where there is none (a rank of 0: queries are not compressed) [1].
    sliding_window, sliding_layers
        Keys a windowed layer sees [tokens]; how many layers are windowed [1].
    linear_layers, linear_key_heads, linear_value_heads, linear_head_dim, linear_conv
        Gated delta net layers: count, key and value heads, size of a head, width of the convolution [1].
    experts, experts_per_token, expert_ffn
        Routed experts of a mixture layer (0: a dense model), how many a token goes to, their width [1].
    shared_experts, shared_ffn, shared_gate
        Experts every token goes to, the width of one, whether a gate scales them [1].
    dense_layers
        Layers with a dense MLP: all of a dense model [1].
    mtp_layers
        Multi-token prediction modules; not in `layers` nor in the counts [1].
    index_heads, index_head_dim, index_topk
        Sparse index (DeepSeek-V3.2): heads, their size, keys picked per query; 0 where there is none [1].
    attention_bias, output_bias, mlp_bias, router_bias, head_bias, norm_bias
        Which matrices have a bias: query, key and value; attention output; MLPs and experts; router;
        output head; and whether norms are LayerNorm with a bias.
    query_key_norm
        Normalisation of queries and keys.
    norms_per_layer
        Norms of residual width in a layer, those of queries, keys and latents apart [1].
    attention_sinks
        Whether each head has a learned sink (gpt-oss).
    embedding_norm
        Whether a norm follows the embedding (BLOOM).
    source
        Where the shape was read.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    v_head_dim: int
    vocab: int
    ffn: int = 0
    gated_mlp: bool = True
    tied_embeddings: bool = False
    learned_positions: int = 0
    attention: AttentionKind = AttentionKind.GQA
    output_gate: bool = False
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    qk_nope_head_dim: int = 0
    qk_rope_head_dim: int = 0
    sliding_window: int = 0
    sliding_layers: int = 0
    linear_layers: int = 0
    linear_key_heads: int = 0
    linear_value_heads: int = 0
    linear_head_dim: int = 0
    linear_conv: int = 0
    experts: int = 0
    experts_per_token: int = 0
    expert_ffn: int = 0
    shared_experts: int = 0
    shared_ffn: int = 0
    shared_gate: bool = False
    dense_layers: int = 0
    mtp_layers: int = 0
    index_heads: int = 0
    index_head_dim: int = 0
    index_topk: int = 0
    attention_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    router_bias: bool = False
    head_bias: bool = False
    norm_bias: bool = False
    query_key_norm: QueryKeyNorm = QueryKeyNorm.NONE
    norms_per_layer: int = 2
    attention_sinks: bool = False
    embedding_norm: bool = False
    source: str = ""

    @property
    def moe_layers(self) -> int:
        """Layers whose MLP is a mixture of experts [1]."""
        return self.layers - self.dense_layers

    @property
    def softmax_layers(self) -> int:
        """Layers with softmax attention, full or windowed [1]."""
        return self.layers - self.linear_layers

    @property
    def full_layers(self) -> int:
        """Layers whose attention sees the whole sequence [1]."""
        return self.layers - self.linear_layers - self.sliding_layers


_LIMITS: Mapping[str, int] = {"layers": 10_000, "heads": 100_000, "vocab": 100_000_000, "experts": 100_000}
_LIMIT = 10_000_000
_AT_LEAST_ONE = ("layers", "hidden", "heads", "kv_heads", "head_dim", "v_head_dim", "vocab")
_KINDS: Mapping[str, type] = {
    field.name: {"int": int, "bool": bool, "str": str}.get(str(field.type), StrEnum)
    for field in fields(Model)
}
_REQUIRED = ("name", "layers", "hidden", "heads", "vocab")
_DEFAULTS: Mapping[str, Any] = {
    field.name: field.default for field in fields(Model) if field.default is not MISSING
}


def make_model(**given: object) -> Model:
    """Return a checked :class:`Model`.

    Parameters
    ----------
    **given
        Fields of :class:`Model`. Required: ``name layers hidden heads vocab``. Left out, ``kv_heads`` is
        ``heads``, ``head_dim`` is ``hidden / heads`` (latent attention: the sum of its two parts),
        ``v_head_dim`` is ``head_dim``, ``dense_layers`` is ``layers`` without experts, and ``attention``
        follows from the heads.

    Raises
    ------
    DocumentError
        Listing every field that is unknown, missing, out of range or at odds with another.
    """
    faults = field_faults(given)
    if faults:
        raise DocumentError([Fault(key=key, message=message) for key, message in faults])
    return Model(**_completed(given))


def with_positions(model: Model, sequence_length: int) -> Model:
    """Return `model` with a learned position table as long as the sequence.

    Frameworks that learn positions size the table by the sequence trained on; models without such a table
    come back as they are.

    Parameters
    ----------
    model
        The model.
    sequence_length
        Tokens in a sequence [1].
    """
    return replace(model, learned_positions=sequence_length) if model.learned_positions else model


def field_faults(given: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return what is wrong with the fields of a model, as pairs of field and message.

    Parameters
    ----------
    given
        Fields as :func:`make_model` takes them.
    """
    faults = [*_unknown_fields(given), *_missing_fields(given), *_value_faults(given)]
    if not faults:
        faults = list(_contradictions(_completed(given)))
    return faults


def _unknown_fields(given: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for key in given:
        if key not in _KINDS:
            near = nearest_names(key, _KINDS)
            yield key, "is not a field of a model" + (f"; did you mean {near[0]}?" if near else "")


def _missing_fields(given: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for key in _REQUIRED:
        if key not in given:
            yield key, "is missing"
    heads, hidden = _count(given.get("heads")), _count(given.get("hidden"))
    if "head_dim" in given or given.get("qk_nope_head_dim"):
        return
    if heads and hidden and heads > 0 and hidden % heads:
        yield (
            "heads",
            f"{_shown(heads)} heads do not divide the hidden size {_shown(hidden)}; give head_dim too",
        )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _value_faults(given: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for key, value in given.items():
        kind = _KINDS.get(key)
        if kind is int:
            least, most, count = int(key in _AT_LEAST_ONE), _LIMITS.get(key, _LIMIT), _count(value)
            if count is None:
                yield key, f"must be a whole number, not {_shown(value)}"
            elif not least <= count <= most:
                yield key, f"must be between {least} and {most}, not {_shown(value)}"
        elif kind is bool and not isinstance(value, bool):
            yield key, f"must be true or false, not {_shown(value)}"
        elif kind is str and not isinstance(value, str):
            yield key, f"must be text, not {_shown(value)}"
        elif kind is StrEnum:
            enum: type[StrEnum] = AttentionKind if key == "attention" else QueryKeyNorm
            if value not in tuple(enum):
                yield key, f"must be one of {', '.join(enum)}, not {_shown(value)}"


def _shown(value: object) -> str:
    text = (
        repr(value) if not isinstance(value, int) or abs(value) < 10**20 else "a number over 20 digits long"
    )
    return text if len(text) <= 60 else f"{text[:57]}..."


def _completed(given: Mapping[str, object]) -> dict[str, Any]:
    made: dict[str, Any] = {**_DEFAULTS, **given}
    made.setdefault("kv_heads", made["heads"])
    parts = made["qk_nope_head_dim"] + made["qk_rope_head_dim"]
    made.setdefault("head_dim", parts or made["hidden"] // made["heads"])
    made.setdefault("v_head_dim", made["head_dim"])
    if "attention" not in given:
        made["attention"] = AttentionKind.MHA if made["kv_heads"] == made["heads"] else AttentionKind.GQA
        if made["kv_lora_rank"]:
            made["attention"] = AttentionKind.MLA
    if "dense_layers" not in given and not made["experts"]:
        made["dense_layers"] = made["layers"]
    made["attention"] = AttentionKind(made["attention"])
    made["query_key_norm"] = QueryKeyNorm(made["query_key_norm"])
    return made


def _contradictions(made: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from _attention_contradictions(made)
    yield from _mixture_contradictions(made)
    layers, sliding, linear = made["layers"], made["sliding_layers"], made["linear_layers"]
    if sliding + linear > layers:
        yield "sliding_layers", f"{sliding} windowed and {linear} linear layers are more than {layers} layers"
    if sliding and not made["sliding_window"]:
        yield "sliding_window", f"must be at least 1 with {sliding} windowed layers"
    if not linear:
        return
    for key in ("linear_key_heads", "linear_value_heads", "linear_head_dim"):
        if not made[key]:
            yield key, f"must be at least 1 with {linear} linear layers"
    if made["linear_key_heads"] and made["linear_value_heads"] % made["linear_key_heads"]:
        yield "linear_value_heads", f"must be a multiple of linear_key_heads ({made['linear_key_heads']})"


def _attention_contradictions(made: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    heads, kv_heads, kind = made["heads"], made["kv_heads"], made["attention"]
    if heads % kv_heads:
        yield "kv_heads", f"{kv_heads} key-value heads do not divide {heads} heads"
    if kind is AttentionKind.MHA and kv_heads != heads:
        yield "kv_heads", f"must be {heads} as there are heads, not {kv_heads}, with attention mha"
    parts = made["qk_nope_head_dim"] + made["qk_rope_head_dim"]
    if kind is AttentionKind.MLA:
        if not made["kv_lora_rank"]:
            yield "kv_lora_rank", "must be at least 1 with latent attention"
        if made["head_dim"] != parts:
            yield "head_dim", f"must be qk_nope_head_dim + qk_rope_head_dim = {parts}, not {made['head_dim']}"
    elif made["kv_lora_rank"]:
        yield "kv_lora_rank", f"must be 0 with attention {kind}"
    if made["index_heads"] and not (made["index_head_dim"] and made["index_topk"] and made["q_lora_rank"]):
        yield "index_heads", "needs index_head_dim, index_topk and q_lora_rank of at least 1"


def _mixture_contradictions(made: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    experts, layers, dense = made["experts"], made["layers"], made["dense_layers"]
    if dense and not made["ffn"]:
        yield "ffn", f"must be at least 1 with {dense} dense layers"
    if not experts:
        if dense != layers:
            yield "dense_layers", f"must be {layers} as there are layers, not {dense}, without experts"
        return
    if dense >= layers:
        yield "dense_layers", f"must be fewer than the {layers} layers of a mixture, not {dense}"
    if not 1 <= made["experts_per_token"] <= experts:
        yield "experts_per_token", f"must be between 1 and {experts}, not {made['experts_per_token']}"
    if not made["expert_ffn"]:
        yield "expert_ffn", f"must be at least 1 with {experts} experts"
    if made["shared_experts"] and not made["shared_ffn"]:
        yield "shared_ffn", f"must be at least 1 with {made['shared_experts']} shared experts"
