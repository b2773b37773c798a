"""Models from rows of a table: the catalogue's shapes, and the shape columns of measured runs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Protocol

from linkwise.errors import DocumentError, Fault, InputError
from linkwise.model.architecture import AttentionKind, Model, QueryKeyNorm, field_faults, make_model
from linkwise.model.parameters import parameter_counts

__all__ = ["ShapeEntry", "model_from_columns", "model_from_entry"]


class ShapeEntry(Protocol):
    """What is needed of a model's entry in the catalogue."""

    @property
    def name(self) -> str:
        """Name in the catalogue."""

    @property
    def shape(self) -> Mapping[str, object]:
        """Columns of the shape, empty where it is not known."""

    @property
    def source(self) -> str:
        """Where the shape was read."""


_INTEGERS: Mapping[str, str] = {
    **{name: name for name in ("layers", "hidden", "heads", "kv_heads", "head_dim", "v_head_dim", "vocab")},
    **{name: name for name in ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim")},
    **{name: name for name in ("sliding_window", "expert_ffn", "shared_experts", "shared_ffn", "mtp_layers")},
    **{name: name for name in ("linear_key_heads", "linear_value_heads", "linear_head_dim", "linear_conv")},
    **{name: name for name in ("index_heads", "index_head_dim", "index_topk", "learned_positions")},
    "moe_experts": "experts",
    "moe_topk": "experts_per_token",
}
"""Column and field of every whole number that is taken as it stands."""

_GPT_BIASES: Mapping[str, object] = dict.fromkeys(
    ("attention_bias", "output_bias", "mlp_bias", "norm_bias"), True
)
_CORRECTED_ROUTER: Mapping[str, object] = {"router_bias": True}
_TRAITS: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("gpt-2", {"learned_positions": 1024}),  # Radford et al. 2019
    ("opt", {"learned_positions": 2050}),  # Zhang et al. 2022; metaseq keeps two rows of padding
    ("bloom", {"learned_positions": 0, "embedding_norm": True}),  # ALiBi; BigScience 2022, section 3.2
    ("bigscience-a100", {"learned_positions": 0, "embedding_norm": True}),  # trials for BLOOM
    (
        "gpt-neox",  # rotary, head of its own ("no-weight-tying"); EleutherAI/gpt-neox, configs/20B.yml
        {**_GPT_BIASES, "learned_positions": 0, "tied_embeddings": False},
    ),
    ("nemotron", {"attention_bias": False, "output_bias": False, "mlp_bias": False}),  # Parmar et al. 2024
    ("glm-130b", _GPT_BIASES),  # Zeng et al. 2022
    ("grok-1", {"norms_per_layer": 4, "tied_embeddings": True}),  # xai-org/grok-1, model.py, InOutEmbed
    ("qwen2", {}),  # biases of query, key and value are a column
    ("qwen3.5", {"query_key_norm": QueryKeyNorm.HEAD, "shared_gate": True}),  # as Qwen3-Next
    ("qwen3", {"query_key_norm": QueryKeyNorm.HEAD}),  # Qwen 2025, "Qwen3"
    ("minimax", {"query_key_norm": QueryKeyNorm.WHOLE, **_CORRECTED_ROUTER}),
    (
        "gpt-oss",  # OpenAI 2025, model card
        {"output_bias": True, "mlp_bias": True, "router_bias": True, "attention_sinks": True},
    ),
    ("deepseek-v2", {}),
    ("deepseekv2", {}),
    ("deepseek", _CORRECTED_ROUTER),  # the balance bias of DeepSeek-AI 2024, "DeepSeek-V3", section 2.1.2
    ("kimi", _CORRECTED_ROUTER),
    ("glm-5", _CORRECTED_ROUTER),
)
"""What the columns do not say, or say wrongly, by the start of the name; the first that fits is taken."""

_GPT_POSITIONS = 2048
"""Context of GPT-3 and of the runs of Megatron-LM (Brown et al. 2020; Narayanan et al. 2021)."""


def model_from_entry(entry: ShapeEntry) -> Model:
    """Return the model of a catalogue entry.

    Parameters
    ----------
    entry
        The entry.

    Raises
    ------
    InputError
        When the shape of the model is not known, or is contradictory.
    """
    if not any(value not in (None, "", "unknown") for value in entry.shape.values()):
        raise InputError(f"the shape of model {entry.name!r} is not known, so nothing can be computed of it")
    return model_from_columns({**entry.shape, "model_name": entry.name, "source": entry.source})


def model_from_columns(row: Mapping[str, object]) -> Model:
    """Return the model whose shape stands in the columns of one row of a table.

    Parameters
    ----------
    row
        Column to value (number or text; empty, ``None`` and NaN are missing). Read are ``model_name``,
        ``layers hidden heads kv_heads head_dim ffn vocab gated_mlp tied_embeddings``, ``moe_experts``,
        ``moe_topk`` and the further columns of the catalogue's shapes; others are ignored.

    Raises
    ------
    DocumentError
        Listing every column that is missing or not usable.

    Notes
    -----
    Missing columns: ``gated_mlp`` is true; ``head_dim`` is ``hidden / heads``; embeddings are tied where
    that brings the count of a dense model nearer to ``params_b`` (billions), or without it where the MLP
    has no gate; experts are as wide as ``ffn``. An MLP without gate and tied embeddings mean the GPT
    family: biases, LayerNorm and learned positions, as many as ``seq`` says or 2048, unless the name says
    otherwise.
    """
    given = {key: value for key, value in row.items() if not _is_empty(value)}
    if "tied_embeddings" not in given and "params_b" in given:
        given.update(_tied_by_size(given))
    fields: dict[str, object] = {"name": str(given.get("model_name", given.get("name", "unnamed")))}
    fields["source"] = str(given.get("source", ""))
    for column, field in _INTEGERS.items():
        if column in given:
            fields[field] = _whole(given[column])
    gated = _flag(given.get("gated_mlp", True))
    tied = _flag(given.get("tied_embeddings", not gated))
    fields.update(gated_mlp=gated, tied_embeddings=tied)
    if not gated:
        fields.update(_ungated(given, tied=tied is True))
    fields.update(_traits(str(fields["name"])))
    if "attention_bias" in given:
        fields["attention_bias"] = _flag(given["attention_bias"])
    if "learned_positions" in given:
        fields["learned_positions"] = _whole(given["learned_positions"])
    fields.update(_mixture(given, fields))
    fields.update(_attention(given, fields))
    faults = [(_COLUMNS.get(key, key), message) for key, message in field_faults(fields)]
    if faults:
        raise DocumentError([Fault(key=key, message=message) for key, message in faults])
    return make_model(**fields)


def _tied_by_size(given: Mapping[str, object]) -> dict[str, object]:
    """Return whether embeddings are tied, as far as the published size of a dense model tells."""
    size = _whole(given["params_b"])
    if not isinstance(size, int | float | str) or "moe_experts" in given:
        return {}
    try:
        published = float(size) * 1e9
        rest = {key: value for key, value in given.items() if key != "params_b"}
        counts = [
            parameter_counts(model_from_columns({**rest, "tied_embeddings": tied})).total for tied in (0, 1)
        ]
    except ValueError:
        return {}
    return {"tied_embeddings": abs(counts[1] - published) < abs(counts[0] - published)}


_COLUMNS: Mapping[str, str] = {"experts": "moe_experts", "experts_per_token": "moe_topk"}


def _is_empty(value: object) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _whole(value: object) -> object:
    """Return a whole number where the value is one, else the value, which the check then refuses."""
    try:
        number = float(value)  # type: ignore[arg-type]  # the check names what is no number
    except (TypeError, ValueError, OverflowError):
        return value
    return int(number) if number.is_integer() else value


def _flag(value: object) -> object:
    if isinstance(value, bool):
        return value
    known = {"0": False, "1": True, "false": False, "true": True}
    return known.get(str(_whole(value)).strip().casefold(), value)


def _ungated(given: Mapping[str, object], *, tied: bool) -> dict[str, object]:
    if not tied:
        return {"norm_bias": True}
    return {**_GPT_BIASES, "learned_positions": _whole(given.get("seq", _GPT_POSITIONS))}


def _traits(name: str) -> Mapping[str, object]:
    plain = name.casefold().replace("_", "-").replace(" ", "-")
    return next((known for start, known in _TRAITS if plain.startswith(start)), {})


def _mixture(given: Mapping[str, object], fields: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    width = _whole(given.get("ffn", 0))
    if fields.get("experts", 0) in (0, 1):
        yield from (("experts", 0), ("experts_per_token", 0), ("ffn", width), ("expert_ffn", 0))
        return
    yield "dense_layers", _whole(given.get("dense_layers", 0))
    yield "ffn", _whole(given.get("dense_ffn", 0))
    yield "expert_ffn", fields.get("expert_ffn", width)
    yield "shared_ffn", fields.get("shared_ffn", fields.get("expert_ffn", width))


def _attention(given: Mapping[str, object], fields: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    kind = str(given.get("attention", ""))
    if kind.startswith("mla") or fields.get("kv_lora_rank"):
        yield "attention", AttentionKind.MLA
    yield "output_gate", "output gate" in kind
    layers = fields.get("layers")
    if isinstance(layers, int):
        yield from _layer_pattern(str(given.get("window_pattern", "")), min(layers, 10_000), fields)


def _layer_pattern(pattern: str, layers: int, fields: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield how many layers are windowed and linear by a text such as "3 linear, 1 full"."""
    cycle = [
        kind
        for count, kind in re.findall(r"(\d{1,4}) (linear|sliding|full)", pattern)
        for _ in range(int(count))
    ]
    if not cycle:
        cycle = ["sliding"] if fields.get("sliding_window") else ["full"]
    kinds = [cycle[layer % len(cycle)] for layer in range(layers)]
    yield "sliding_layers", kinds.count("sliding")
    yield "linear_layers", kinds.count("linear")
