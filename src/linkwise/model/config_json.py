"""Models from a Hugging Face ``config.json``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from linkwise.errors import DocumentError, Fault, InputError, nearest_names
from linkwise.model.architecture import Model, field_faults, make_model
from linkwise.model.config_fields import ConfigFields, shown
from linkwise.model.families import DENSE_FAMILIES, Family
from linkwise.model.mixture_families import MIXTURE_FAMILIES

__all__ = ["FAMILIES", "model_from_config_json", "read_config_json"]

FAMILIES: Mapping[str, Family] = {**DENSE_FAMILIES, **MIXTURE_FAMILIES}
"""Every ``model_type`` that is read."""

_MOST_BYTES = 4 * 1024**2
_GENERAL_KEYS = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size")
_KEYS: Mapping[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model", "n_embed"),
    "heads": ("num_attention_heads", "n_head", "n_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv"),
    "vocab": ("vocab_size",),
    "ffn": ("intermediate_size", "n_inner", "ffn_dim", "expansion_ratio", "ffn_hidden_size"),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts"),
    "experts_per_token": ("num_experts_per_tok", "experts_per_token"),
    "expert_ffn": ("moe_intermediate_size", "intermediate_size"),
    "dense_layers": ("first_k_dense_replace", "mlp_only_layers", "decoder_sparse_step"),
    "index_heads": ("index_n_heads",),
    "linear_value_heads": ("linear_num_value_heads",),
    "learned_positions": ("max_position_embeddings", "n_positions", "max_seq_len"),
}


def read_config_json(path: Path) -> Model:
    """Return the model of a ``config.json``.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    InputError
        When the file cannot be read, is no JSON or no configuration of a known architecture; faults of the
        values are gathered in a DocumentError.
    """
    try:
        if not path.is_file():
            raise InputError(
                f"{path}: {'is a folder without config.json' if path.is_dir() else 'no such file'}"
            )
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if len(raw) > _MOST_BYTES:
        raise InputError(f"{path}: over {_MOST_BYTES // 1024**2} MiB, so it is no model configuration")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not text in UTF-8 (byte {error.start})") from error
    return model_from_config_json(text, path=str(path))


def model_from_config_json(text: str, *, path: str | None = None) -> Model:
    """Return the model of the text of a ``config.json``.

    Parameters
    ----------
    text
        The text.
    path
        Where it was read, for messages and the model's name.

    Raises
    ------
    DocumentError
        Listing every fault with its line and key.
    """
    config = _parsed(text, path)
    if not isinstance(config, dict):
        raise _document_error(path, f"must be an object with the keys of a model, not {_kind(config)}")
    part, prefix = _text_part(config)
    family, model_type = _family(config, part, path)
    reader = ConfigFields(part, outer=config)
    fields = {"name": _name(config, path), "source": path or "config.json", **family(reader)}
    faults = reader.faults or [(_key(field, part), message) for field, message in field_faults(fields)]
    if faults:
        placed = _Placer(text, prefix)
        raise DocumentError(placed.fault(path, key, f"{message} ({model_type})") for key, message in faults)
    return make_model(**fields)


def _parsed(text: str, path: str | None) -> object:
    try:
        return json.loads(text, object_pairs_hook=_without_twins)
    except _TwinKeyError as error:
        raise _document_error(path, "stands twice in one object", key=str(error)) from error
    except RecursionError as error:
        raise _document_error(path, "is nested too deeply for a model configuration") from error
    except json.JSONDecodeError as error:
        rest = text[error.pos :].strip()
        what = f"is not JSON: {error.msg}" if rest else "ends in the middle; is the file cut off?"
        raise DocumentError([Fault(path=path, line=error.lineno, message=what)]) from error
    except ValueError as error:
        raise _document_error(path, "has a number too long to be one") from error


class _TwinKeyError(Exception):
    """A key stands twice in one object."""


def _without_twins(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise _TwinKeyError(key)
        found[key] = value
    return found


def _kind(value: object) -> str:
    return {"list": "a list", "str": "a text", "NoneType": "null"}.get(type(value).__name__, shown(value))


def _text_part(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Return the part that describes the text model, and the key it is under."""
    for key in ("text_config", "llm_config", "language_config"):
        part = config.get(key)
        if isinstance(part, dict):
            return part, key
    return config, ""


def _family(config: Mapping[str, Any], part: Mapping[str, Any], path: str | None) -> tuple[Family, str]:
    for model_type in _type_names(part) + _type_names(config):
        if model_type in FAMILIES:
            return FAMILIES[model_type], model_type
    names = _type_names(part) + _type_names(config)
    if names:
        raise _document_error(path, _unknown(names[0], part), key="model_type")
    if "model_type" in part:
        raise _document_error(path, f"must be text, not {shown(part['model_type'])}", key="model_type")
    present = [key for key in _GENERAL_KEYS if key in part]
    hint = "; it looks like a tokenizer's" if any("token" in key for key in part) and not present else ""
    raise _document_error(path, f"is no model configuration: {_missing(part)} missing{hint}")


def _type_names(config: Mapping[str, Any]) -> list[str]:
    """Return what the configuration calls its architecture, the most direct name first."""
    given = config.get("model_type")
    names = [given] if isinstance(given, str) and given else []
    classes = config.get("architectures")
    for name in classes if isinstance(classes, list) else ():
        for known in FAMILIES:
            plain = known.removesuffix("_text").replace("_", "")
            if isinstance(name, str) and name.casefold() in (f"{plain}forcausallm", f"{plain}lmheadmodel"):
                names.append(known)
    return names


def _unknown(name: str, part: Mapping[str, Any]) -> str:
    near = nearest_names(name, FAMILIES)
    known = f"nearest known: {', '.join(near)}" if near else f"known: {', '.join(sorted(FAMILIES))}"
    return (
        f"architecture {shown(name)} is not known, and a guess would count wrongly ({known}). "
        f"Missing: {_missing(part, model_type=False)}the rule for its MLP (gated or not), biases, norms and "
        "tied embeddings. If it is built like a known one, write that one's model_type"
    )


def _missing(part: Mapping[str, Any], *, model_type: bool = True) -> str:
    keys = [key for key in ((("model_type",) if model_type else ()) + _GENERAL_KEYS) if key not in part]
    return ", ".join(keys) + ("" if model_type or not keys else ", ")


def _name(config: Mapping[str, Any], path: str | None) -> str:
    given = config.get("_name_or_path")
    if isinstance(given, str) and given.strip():
        return given.strip().rsplit("/", 1)[-1][:200]
    if path is None:
        return "config.json"
    file = Path(path)
    return file.resolve().parent.name if file.name == "config.json" else file.stem


def _key(field: str, part: Mapping[str, Any]) -> str:
    spellings = _KEYS.get(field, (field,))
    return next((key for key in spellings if key in part), spellings[0])


class _Placer:
    """Finds the line of a key in the text."""

    def __init__(self, text: str, prefix: str) -> None:
        self._text, self._prefix = text, prefix
        self._start = max(text.find(f'"{prefix}"'), 0) if prefix else 0

    def fault(self, path: str | None, key: str, message: str) -> Fault:
        position = self._text.find(f'"{key}"', self._start)
        line = self._text.count("\n", 0, position) + 1 if position >= 0 else None
        return Fault(path=path, line=line, key=f"{self._prefix}.{key}".lstrip("."), message=message)


def _document_error(path: str | None, message: str, *, key: str = "") -> DocumentError:
    return DocumentError([Fault(path=path, key=key, message=message)])
