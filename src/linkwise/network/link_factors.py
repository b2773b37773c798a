"""How much slower or faster the links of a site are than modelled: four factors, and what each scales.

Not here: how they are found (`linkwise.calibrate`), and where they are kept (`linkwise.cluster.calibration`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkwise.network.setting import Setting

__all__ = ["AS_MODELLED", "LOCAL_LATENCIES", "NETWORK_LATENCIES", "LinkFactors", "scaled"]

_GENERATIONS = ("pcie", "volta", "ampere", "hopper", "blackwell", "amd")
_OF_GENERATIONS = ("ll_base", "ll_hop", "simple_hop")
LOCAL_LATENCIES: tuple[str, ...] = (
    *(f"{name}_{generation}" for name in _OF_GENERATIONS for generation in _GENERATIONS),
    "simple_base",
    "simple_fill",
    "ll128_base",
    "ll128_hop",
    "tree_ll_base",
    "tree_ll_least_hop",
    "tree_ll128_base",
    "tree_ll128_local_hop",
    "tree_simple_local_hop",
    "nvls_base",
    "nvls_fill_hopper",
    "direct_fill",
    "direct_step",
    "direct_peer",
    "chain_fill_one_domain",
)
"""Constants of the time of collectives that the latency inside domains scales: starts, hops and fills."""
NETWORK_LATENCIES: tuple[str, ...] = (
    "ll_network_hop",
    "ll128_network_hop",
    "simple_network_hop",
    "tree_ll_network_hop",
    "tree_ll128_network_hop",
    "tree_simple_network_hop",
    "nvls_tree_level",
    "nvls_tree_hop",
    "two_level_fill",
    "chain_fill_domains",
)
"""Constants that the latency of the network scales."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFactors:
    """Factors on what the model gives for the links; 1 is as modelled.

    Attributes
    ----------
    local_latency, network_latency
        On starts, hops and fills inside domains and between them [1].
    local_bandwidth, network_bandwidth
        On the rates of links inside domains and of NICs [1].
    """

    local_latency: float = 1.0
    local_bandwidth: float = 1.0
    network_latency: float = 1.0
    network_bandwidth: float = 1.0


AS_MODELLED = LinkFactors()
"""No calibration."""


def scaled(setting: Setting, constants: Mapping[str, float]) -> tuple[Setting, Mapping[str, float]]:
    """Return a setting with the rates that its links really have, and the constants with their latencies.

    Parameters
    ----------
    setting
        Where a collective runs.
    constants
        Constants by name, SI.

    Notes
    -----
    NCCL chooses by the rates that it expects, so its choice is made on the setting as given.
    """
    factors = setting.factors
    if factors == AS_MODELLED:
        return setting, constants
    group = replace(
        setting.group,
        local_bytes_per_s=setting.group.local_bytes_per_s * factors.local_bandwidth,
        network_bytes_per_s=setting.group.network_bytes_per_s * factors.network_bandwidth,
    )
    slowed = replace(
        setting, group=group, pair_bytes_per_s=setting.pair_bytes_per_s * factors.local_bandwidth
    )
    return slowed, {**constants, **_latencies(constants, factors)}


def _latencies(constants: Mapping[str, float], factors: LinkFactors) -> dict[str, float]:
    found = {name: constants[name] * factors.local_latency for name in LOCAL_LATENCIES}
    return found | {name: constants[name] * factors.network_latency for name in NETWORK_LATENCIES}
