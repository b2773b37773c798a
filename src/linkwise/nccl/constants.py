"""The constants NCCL chooses with, by series of releases, in SI units."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["ReleaseConstants", "least", "release_constants"]

_US = 1e-6
_GB_PER_S = 1e9

Triple = tuple[float, float, float]
"""One number each for LL, LL128 and Simple, or for one, two and more nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseConstants:
    """The constants of a series of releases.

    Attributes
    ----------
    since
        The first release they hold for.
    source
        Where they were read.
    base_s, nvlink_hop_s, pcie_hop_s, network_hop_s
        By algorithm, for LL, LL128 and Simple [s].
    post_s
        Least local hop once there is a network, for LL, LL128 and Simple [s].
    network_local_ll_factor
        What a local hop of LL is multiplied by once there is a network [1].
    ring_ll_fraction, tree_fraction, tree_ll_divisor
        Shares of the planned rate [1].
    tree_ll128_fraction
        The same of LL128 in trees, on one node and on several [1].
    ring_plateau_factor
        What the latency of large all-reduces in rings over nodes is multiplied by [1].
    ll_cap_bytes_per_s
        Most of LL by generation, for one, two and more nodes; empty for none [bytes/s].
    tree_cap_bytes_per_s
        Most of a tree by generation, likewise [bytes/s]; empty where the caps are per channel.
    ring_ll128_channel_bytes_per_s
        Most of LL128 in rings by generation, of a channel [bytes/s].
    tree_channel_bytes_per_s, tree_ll128_channel_bytes_per_s, nvls_tree_channel_bytes_per_s
        Most of a channel by generation, for one, two and more nodes; empty for no cap [bytes/s].
    nvls_fraction
        Share of the planned rate that NVLS reaches, by generation; empty before NVLS [1].
    tree_correction
        Factors on the bandwidth of trees for 64 bytes x 2^i, by protocol [1].
    """

    since: tuple[int, int]
    source: str
    base_s: Mapping[str, Triple]
    nvlink_hop_s: Mapping[str, Triple]
    pcie_hop_s: Mapping[str, Triple]
    network_hop_s: Mapping[str, Triple]
    post_s: Triple
    network_local_ll_factor: float
    ring_ll_fraction: float
    tree_fraction: float
    tree_ll_divisor: float
    tree_ll128_fraction: tuple[float, float]
    ring_plateau_factor: float
    ll_cap_bytes_per_s: Mapping[str, Triple]
    tree_cap_bytes_per_s: Mapping[str, Triple]
    ring_ll128_channel_bytes_per_s: Mapping[str, float]
    tree_channel_bytes_per_s: Mapping[str, Triple]
    tree_ll128_channel_bytes_per_s: Mapping[str, Triple]
    nvls_tree_channel_bytes_per_s: Mapping[str, Triple]
    nvls_fraction: Mapping[str, float]
    tree_correction: Mapping[str, tuple[float, ...]]


def release_constants(release: tuple[int, int] | None) -> ReleaseConstants:
    """Return the constants of a release; the newest for ``None``, the oldest for one before them all.

    Parameters
    ----------
    release
        Major and minor number, such as ``(2, 27)``.
    """
    newest_first = _series()
    if release is None:
        return newest_first[0]
    return next((one for one in newest_first if one.since <= release), newest_first[-1])


@cache
def _series() -> tuple[ReleaseConstants, ...]:
    text = files("linkwise.nccl").joinpath("choice.json").read_text(encoding="utf-8")
    series = [_constants(entry) for entry in json.loads(text).values()]
    return tuple(sorted(series, key=lambda one: one.since, reverse=True))


def _constants(entry: Mapping[str, Any]) -> ReleaseConstants:
    """Return the constants of an entry of `choice.json`, which is in the units of NCCL (us, GB/s)."""
    return ReleaseConstants(
        since=(entry["since"][0], entry["since"][1]),
        source=entry["source"],
        base_s=_triples(entry["base_us"], _US),
        nvlink_hop_s=_triples(entry["nvlink_hop_us"], _US),
        pcie_hop_s=_triples(entry["pcie_hop_us"], _US),
        network_hop_s=_triples(entry["network_hop_us"], _US),
        post_s=_triple(entry["post_us"], _US),
        network_local_ll_factor=entry["network_local_ll_factor"],
        ring_ll_fraction=entry["ring_ll_fraction"],
        tree_fraction=entry["tree_fraction"],
        tree_ll_divisor=entry["tree_ll_divisor"],
        tree_ll128_fraction=(entry["tree_ll128_fraction"][0], entry["tree_ll128_fraction"][1]),
        ring_plateau_factor=entry["ring_plateau_factor"],
        ll_cap_bytes_per_s=_triples(entry["ll_cap_gbytes_per_s"], _GB_PER_S),
        tree_cap_bytes_per_s=_triples(entry["tree_cap_gbytes_per_s"], _GB_PER_S),
        ring_ll128_channel_bytes_per_s={
            name: value * _GB_PER_S
            for name, value in entry["ring_ll128_cap_gbytes_per_s_per_channel"].items()
        },
        tree_channel_bytes_per_s=_triples(entry["tree_cap_gbytes_per_s_per_channel"], _GB_PER_S),
        tree_ll128_channel_bytes_per_s=_triples(entry["tree_ll128_cap_gbytes_per_s_per_channel"], _GB_PER_S),
        nvls_tree_channel_bytes_per_s=_triples(entry["nvls_tree_cap_gbytes_per_s_per_channel"], _GB_PER_S),
        nvls_fraction=entry["nvls_fraction"],
        tree_correction={name: tuple(factors) for name, factors in entry["tree_correction"].items()},
    )


def _triples(entry: Mapping[str, Any], unit: float) -> Mapping[str, Triple]:
    return {name: _triple(values, unit) for name, values in entry.items()}


def _triple(values: list[float], unit: float) -> Triple:
    first, second, third = (value * unit for value in values)
    return first, second, third


def least(caps: Mapping[str, Triple], generation: str, place: int) -> float:
    """Return the cap of a generation for one, two or more nodes, infinite where there is none.

    Parameters
    ----------
    caps
        Caps by generation [bytes/s].
    generation
        The generation of the GPUs.
    place
        0 for one node, 1 for two, 2 for more.
    """
    return caps[generation][place] if generation in caps else math.inf
