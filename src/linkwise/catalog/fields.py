"""What kinds of entries the catalogue has, which figures they may bear, and when two names are the same."""

from __future__ import annotations

import re
from collections.abc import Mapping

from linkwise.errors import InputError

__all__ = ["COUNTS", "FOLDERS", "SHAPE_COLUMNS", "UNITS", "dimension_of", "plain_name", "unit_of"]

FOLDERS: Mapping[str, str] = {
    "gpu": "gpus",
    "system": "systems",
    "nic": "nics",
    "link": "links",
    "switch": "switches",
    "cable": "cables",
    "model": "models",
    "nvlink": "nvlink",
    "nvswitch": "nvswitch",
    "pcie": "pcie",
    "cpu-link": "cpu-links",
    "c2c": "c2c",
    "latency": "latency",
    "efficiency": "efficiency",
    "budget": "budget",
}
"""Folder of `data/` that holds the entries of each kind."""

UNITS: Mapping[str, str] = {
    "bytes_per_s": "B/s",
    "flop_per_s": "FLOP/s",
    "usd_per_s": "USD/s",
    "s_per_m": "s/m",
    "bytes": "B",
    "usd": "USD",
    "fraction": "1",
    "w": "W",
    "m": "m",
    "s": "s",
}
"""Unit of a figure by the end of its name; the longest ending counts."""

COUNTS = frozenset(
    {
        "cables",
        "chips",
        "chips_per_hgx_b200",
        "chips_per_nvl72",
        "chips_per_system",
        "computed_active_parameters",
        "computed_parameters",
        "dies",
        "gpus",
        "gpus_per_node",
        "lanes",
        "lanes_per_link",
        "links",
        "nics",
        "nics_per_node",
        "nics_per_node_high",
        "nics_per_node_low",
        "nodes",
        "nvlink_domain_gpus",
        "nvlink_generation",
        "nvlink_links",
        "nvswitch_chips",
        "pcie_generation",
        "pcie_lanes",
        "per_rack",
        "ports",
        "published_active_parameters",
        "published_parameters",
        "switch_trays",
    }
)
"""Figures that are plain numbers: everything else bears a unit at the end of its name."""

SHAPE_COLUMNS = (
    "layers",
    "hidden",
    "heads",
    "kv_heads",
    "head_dim",
    "ffn",
    "vocab",
    "gated_mlp",
    "tied_embeddings",
    "attention",
    "window_pattern",
    "sliding_window",
    "q_lora_rank",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim",
    "moe_experts",
    "moe_topk",
    "expert_ffn",
    "shared_experts",
    "shared_ffn",
    "dense_layers",
    "dense_ffn",
    "mtp_layers",
    "linear_key_heads",
    "linear_value_heads",
    "linear_head_dim",
    "linear_conv",
    "index_heads",
    "index_head_dim",
    "index_topk",
    "attention_bias",
)
"""Columns that describe the shape of a model, in the order of the measured data."""

_BETWEEN_DIGITS = re.compile(r"(?<=\d)[-_ ]+(?=\d)")
_SEPARATORS = re.compile(r"[-_ ]+")


def dimension_of(field: str) -> str | None:
    """Return the ending of `field` that says its unit, or ``None`` for a plain number.

    Parameters
    ----------
    field
        Name of a figure: ``"memory_bandwidth_bytes_per_s"``.

    Raises
    ------
    InputError
        If the name has no such ending and is no known count.
    """
    if field in COUNTS:
        return None
    for ending in UNITS:
        if field == ending or field.endswith("_" + ending):
            return ending
    raise InputError(
        f"figure {field!r} says no unit: end its name in one of {', '.join('_' + each for each in UNITS)}, "
        "or list it among the counts of linkwise.catalog.fields"
    )


def unit_of(field: str) -> str:
    """Return the SI unit of the figure called `field`; ``"1"`` for a count or a ratio.

    Parameters
    ----------
    field
        Name of a figure.

    Raises
    ------
    InputError
        If the name does not say it.
    """
    ending = dimension_of(field)
    return "1" if ending is None else UNITS[ending]


def plain_name(name: str) -> str:
    """Return what all spellings of `name` share: case, hyphens, underscores and spaces do not count.

    A separator between two digits does count, so that ``gpt-3-5b`` and ``gpt-35b`` stay apart.

    Parameters
    ----------
    name
        A name as somebody spelled it.
    """
    marked = _BETWEEN_DIGITS.sub("\0", name.strip().casefold())
    return _SEPARATORS.sub("", marked).replace("\0", "-")
