"""Closed forms of what each algorithm and protocol of NCCL costs on real links.

Symbols: S bytes of the full buffer, n ranks in k domains of g, f the bus factor, B the rate of a ring inside
a domain, W of the NICs of a domain, B' the slower of both where a ring leaves the domain; N hops inside
domains and m between them; x the latency of the network over that of verbs. Every form is a latency count
plus bytes over bandwidth, with a fill that grows with the message and saturates or follows its square root.

The shapes follow published nccl-tests logs; constants and what each was read from stand in
`collective_constants.json`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.nccl.choice import candidates, ll_cap_bytes_per_s, nvls_tree_cap_bytes_per_s, tree_correction
from linkwise.nccl.constants import release_constants
from linkwise.network.link_factors import scaled
from linkwise.network.links import GEN4_MOST_BYTES_PER_S
from linkwise.network.setting import LARGEST_BOX_GPUS, Setting, bus_factor

__all__ = ["FORMS", "Ground", "chain_s", "direct_s", "ground_of", "pair_s"]

Floats = NDArray[np.float64]
Form = Callable[["Ground", Floats], Floats]


_LEAST_LL_HOP_S = 1e-6
"""Least hop inside a domain once a network takes part: what posting to it costs, assumed to be the 1 us of
NVIDIA/nccl src/graph/tuning.cc, getNetOverhead [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The numbers that forms share, made once for an operation in a setting.

    Attributes
    ----------
    operation
        The collective.
    setting
        Where it runs.
    constants
        Constants by name, SI.
    bus
        The bus factor f [1].
    local_hops, network_hops
        N and m [1].
    ring_local_bytes_per_s, ring_bytes_per_s, network_bytes_per_s
        B, B' and W [bytes/s].
    hop_factors
        x of LL, LL128 and Simple [1].
    tree_bytes_per_s
        NCCL's planned rate of a tree by protocol [bytes/s].
    """

    operation: str
    setting: Setting
    constants: Mapping[str, float]
    bus: float
    local_hops: float
    network_hops: float
    ring_local_bytes_per_s: float
    ring_bytes_per_s: float
    network_bytes_per_s: float
    hop_factors: Mapping[str, float]
    tree_bytes_per_s: Mapping[str, float]

    def of_generation(self, name: str) -> float:
        """Return the constant of that name for the generation of the GPUs."""
        return self.constants[f"{name}_{self.setting.group.generation}"]

    @property
    def levels(self) -> float:
        """Return the levels of a tree over domains, log2 k [1]."""
        return math.log2(self.setting.group.domains)

    @property
    def is_early(self) -> bool:
        """Return whether NCCL is older than 2.12, whose trees and LL protocols are slower."""
        release = self.setting.group.release
        return release is not None and release < (2, 12)

    @property
    def wire_bytes_per_s(self) -> float:
        """Return the rate of a tree through the NICs of a domain: half of them from three domains on."""
        group = self.setting.group
        if group.domains == 1:
            return math.inf
        share = self.constants["network_share_tree"] * self.constants[f"network_share_{self.setting.network}"]
        two = self.constants["early_two_domain_share"] if self.is_early else 1.0
        nics = group.network_bytes_per_s * (two if group.domains == 2 else 0.5)
        up = self.setting.uplinks
        return share * (nics if up is None else min(nics, up.ring_bytes_per_s))


def ground_of(operation: str, setting: Setting, constants: Mapping[str, float]) -> Ground:
    """Return the numbers that the forms of an operation share.

    Parameters
    ----------
    operation
        One of `linkwise.network.setting.OPERATIONS`.
    setting
        Where it runs.
    constants
        Constants by name, SI.
    """
    setting, constants = scaled(setting, constants)
    group = setting.group
    passes = 2 if operation == "all_reduce" else 1
    crossing = passes * (group.domains - 1)
    inside = ring_local_bytes_per_s(setting, constants)
    share = constants["network_share_ring"] * constants[f"network_share_{setting.network}"]
    across = share * group.network_bytes_per_s if group.domains > 1 else math.inf
    up = math.inf if setting.uplinks is None else share * setting.uplinks.ring_bytes_per_s
    offered = candidates("all_reduce", group)
    return Ground(
        operation=operation,
        setting=setting,
        constants=constants,
        bus=bus_factor(operation, group.ranks),
        local_hops=float(passes * (group.ranks - 1) - crossing),
        network_hops=float(crossing),
        ring_local_bytes_per_s=inside,
        ring_bytes_per_s=min(across, up) if group.ranks_per_domain <= 1 else min(inside, across, up),
        network_bytes_per_s=across,
        hop_factors={
            protocol: constants[f"hops_{protocol}_{setting.network}"]
            for protocol in ("ll", "ll128", "simple")
        },
        tree_bytes_per_s={one.protocol: one.bytes_per_s for one in offered if one.algorithm == "tree"},
    )


def ring_local_bytes_per_s(setting: Setting, constants: Mapping[str, float]) -> float:
    """Return the rate of a ring inside a domain, B [bytes/s].

    Parameters
    ----------
    setting
        Where it runs.
    constants
        Constants by name, SI.

    Notes
    -----
    NVLink: the rate NCCL plans with, times what rings of the generation reach. PCIe: a pair reaches a share
    of its slots, three GPUs and more cross the link between sockets, and without peer-to-peer access all
    bytes pass host memory.
    """
    group = setting.group
    if group.generation != "pcie":
        return constants[f"ring_fraction_{group.generation}"] * group.local_bytes_per_s
    if setting.bridged:
        return min(constants["bridged_crossing"], setting.pair_bytes_per_s)
    if setting.through_host:  # never faster than what crosses between sockets directly
        through = constants["pcie_host_fraction"] * setting.pair_bytes_per_s
        return through if group.ranks_per_domain <= 2 else min(through, constants["pcie_crossing"])
    if setting.nic_on_switch:
        return constants["pcie_behind_nic_fraction"] * setting.pair_bytes_per_s
    generation = "gen5" if setting.pair_bytes_per_s > GEN4_MOST_BYTES_PER_S else "gen4"
    pair = constants[f"pcie_pair_fraction_{generation}"] * setting.pair_bytes_per_s
    return pair if group.ranks_per_domain <= 2 else min(pair, constants["pcie_crossing"])


def ring_simple_s(at: Ground, size_bytes: Floats) -> Floats:
    """Return 8.4 us + w N (h + kappa sqrt(b)) + 10 us m x + f S/B' + copy S/(n B) [s].

    Notes
    -----
    Chunks grow with the message, and with them the fill of a hop: as the square root of b = f S/B + copy
    S/(n B), what the ring takes inside a domain. Each rank also moves its own share of 1/n once.
    """
    known, group = at.constants, at.setting.group
    over_nvlink = 0.0 if group.generation == "pcie" else known["local_copy"]
    copied = over_nvlink * size_bytes / (group.ranks * at.ring_local_bytes_per_s)
    inside = at.bus * size_bytes / at.ring_local_bytes_per_s + copied
    shared = known["simple_all_reduce_share"] if at.operation == "all_reduce" else 1.0
    fill = shared * at.local_hops * (at.of_generation("simple_hop") + known["simple_fill"] * np.sqrt(inside))
    across = known["simple_network_hop"] * at.network_hops * at.hop_factors["simple"]
    moved: Floats = at.bus * size_bytes / at.ring_bytes_per_s + copied
    return known["simple_base"] + fill + across + moved


def ring_ll_s(at: Ground, size_bytes: Floats) -> Floats:
    """Return (base + N l + 2.7 us m x)(1 + u S/(S + 4 KiB)) + f S/min(B'/2, cap) [s]."""
    known, group = at.constants, at.setting.group
    latency = at.of_generation("ll_base") + at.local_hops * _ll_hop_s(at)
    latency += known["ll_network_hop"] * at.network_hops * at.hop_factors["ll"]
    half = at.ring_bytes_per_s * release_constants(group.release).ring_ll_fraction * _early_ampere(at)
    rate = min(half, ll_cap_bytes_per_s(group))
    return latency * _ll_step(at, size_bytes) + at.bus * size_bytes / rate


def ring_ll128_s(at: Ground, size_bytes: Floats) -> Floats:
    """Return base + 5 us + 2.7 us N + 4 us m x + f S/min(0.92 B or 0.85 B', cap) [s]."""
    known, group = at.constants, at.setting.group
    latency = at.of_generation("ll_base") + known["ll128_base"] + known["ll128_hop"] * at.local_hops
    latency += known["ll128_network_hop"] * at.network_hops * at.hop_factors["ll128"]
    fraction = known["ll128_fraction" if group.domains == 1 else "ll128_fraction_network"]
    return latency + at.bus * size_bytes / (fraction * at.ring_bytes_per_s * _early_ampere(at))


def tree_ll_s(at: Ground, size_bytes: Floats) -> Floats:
    """Return (base + 0.8 us + 2[(g-1) l + 5 us log2(k) x])(1 + u S/(S + 4 KiB)) + S/(c R) [s]."""
    known = at.constants
    local = max(_ll_hop_s(at), known["tree_ll_least_hop"]) * (at.setting.group.ranks_per_domain - 1.0)
    across = known["tree_ll_network_hop"] * at.levels * at.hop_factors["ll"]
    latency = at.of_generation("ll_base") + known["tree_ll_base"] + 2.0 * (local + across)
    return latency * _ll_step(at, size_bytes) + _tree_bytes_s(at, "ll", size_bytes)


def tree_ll128_s(at: Ground, size_bytes: Floats) -> Floats:
    """Return 14 us L + 2[1.25 us L (g-1) + 8.5 us log2(k) x] + S/(c R) [s]."""
    known = at.constants
    local = known["tree_ll128_local_hop"] * (at.setting.group.ranks_per_domain - 1.0)
    across = known["tree_ll128_network_hop"] * at.levels * at.hop_factors["ll128"]
    latency = known["tree_ll128_local_factor"] * (known["tree_ll128_base"] + 2.0 * local) + 2.0 * across
    return latency + _tree_bytes_s(at, "ll128", size_bytes)


def tree_simple_s(at: Ground, size_bytes: Floats) -> Floats:
    """Return 8.4 us + 2[4 us (g-1) + 14 us log2(k) x] + A/2 S/(S + 32 MB) + S/(c R) [s]."""
    known = at.constants
    local = known["tree_simple_local_hop"] * (at.setting.group.ranks_per_domain - 1.0)
    across = known["tree_simple_network_hop"] * at.levels * at.hop_factors["simple"]
    fill = 0.5 * known["two_level_fill"] * _saturating(size_bytes, known["two_level_fill_size"])
    return known["simple_base"] + 2.0 * (local + across) + fill + _tree_bytes_s(at, "simple", size_bytes)


def nvls_s(at: Ground, size_bytes: Floats) -> Floats:
    """Return 25 us + a S/(S + s0) + (n+1)/n S/(eta P), at most the bus bandwidth of large domains [s].

    Notes
    -----
    The switch reduces and multicasts: a rank reads its share of 1/n and writes the whole.
    """
    known, group = at.constants, at.setting.group
    is_blackwell = group.generation == "blackwell"
    ratio = known["nvls_fill_ratio_blackwell"] if is_blackwell else 1.0
    fill = ratio * known["nvls_fill_hopper"] * _saturating(size_bytes, at.of_generation("nvls_fill_size"))
    faster = max(1.0, at.setting.pair_bytes_per_s / known["nvls_bus_cap_link"])
    per_byte = max(_switch_s_per_byte(at, group.ranks), at.bus / (faster * known["nvls_bus_cap"]))
    return known["nvls_base"] + fill + size_bytes * per_byte


def nvls_tree_s(at: Ground, size_bytes: Floats) -> Floats:
    """Return 25 us + 2 log2(k) [20.9 us + 9 us (x - 1)] + A S/(S + 32 MB) + S over the slowest part [s].

    Notes
    -----
    Slowest of: the switch inside a domain, (g+1)/(g eta P); the NICs; NCCL's cap over its channels; the bus
    bandwidth that large domains reach.
    """
    known, group = at.constants, at.setting.group
    level = known["nvls_tree_level"] + known["nvls_tree_hop"] * (at.hop_factors["simple"] - 1.0)
    fill = known["two_level_fill"] * _saturating(size_bytes, known["two_level_fill_size"])
    per_byte = max(
        _switch_s_per_byte(at, group.ranks_per_domain),
        1.0 / at.wire_bytes_per_s,
        at.bus / nvls_tree_cap_bytes_per_s(group),
        at.bus / known["nvls_tree_bus_cap"],
    )
    return known["nvls_base"] + 2.0 * at.levels * level + fill + size_bytes * per_byte


def direct_s(at: Ground, size_bytes: Floats) -> Floats:
    """Return the time of an all-to-all in which each rank sends to each other [s].

    Notes
    -----
    NCCL posts a send and a receive for each peer, p each beyond the first. One domain: base + 2 l + (n-2) p +
    6 us from 64 KiB + phi sqrt(b) + b + S/(n q), b = (n-1)/n S/(share B). Several:
    the same without step and fill, 5 us x, and the slower of S (n-g)/n over the rank's own share of the NICs,
    W/g, and of what stays inside, S (g-1)/n over share B; over PCIe everything passes the GPU's own slot.
    Up-links of leaves add a floor (`linkwise.network.uplinks`), at the share of their rate that NICs reach.
    """
    known, group = at.constants, at.setting.group
    latency = at.of_generation("ll_base") + 2.0 * at.of_generation("ll_hop")
    latency += known["direct_peer"] * (group.ranks - 2)
    inside = at.bus * size_bytes / (known["direct_share"] * at.ring_local_bytes_per_s)
    if group.domains == 1:
        step = np.where(size_bytes >= known["direct_step_size"], known["direct_step"], 0.0)
        copied = size_bytes / (group.ranks * at.of_generation("direct_copy"))
        return latency + step + known["direct_fill"] * np.sqrt(inside) + inside + copied
    staying = 1.0 if group.generation == "pcie" else (group.ranks_per_domain - 1.0) / (group.ranks - 1.0)
    rack = known["rack_network_share"] if group.ranks_per_domain > LARGEST_BOX_GPUS else 1.0
    leaving = (group.ranks - group.ranks_per_domain) / group.ranks
    across = size_bytes * leaving * group.ranks_per_domain / (rack * at.network_bytes_per_s)
    latency += known["tree_ll_network_hop"] * at.hop_factors["ll"]
    slowest = np.maximum(across, staying * inside)
    return latency + np.maximum(slowest, _uplinks_s(at, size_bytes))


def chain_s(at: Ground, size_bytes: Floats) -> Floats:
    """Return the time of a broadcast or reduce down a chain, base + S/B' + (n-1) y sqrt(S/B') [s].

    Notes
    -----
    As nccl-tests times it: calls follow one another without waiting, so that only the base of a small one
    shows, not its hops.
    """
    known, group = at.constants, at.setting.group
    moved = size_bytes / at.ring_bytes_per_s
    fill = known["chain_fill_one_domain" if group.domains == 1 else "chain_fill_domains"]
    return at.of_generation("ll_base") + moved + (group.ranks - 1) * fill * np.sqrt(moved)


def pair_s(at: Ground, size_bytes: Floats) -> Floats:
    """Return the time of a ring of sends, every rank to the next, at the slowest pair [s]."""
    known, group = at.constants, at.setting.group
    rate = known["pair_share"] * at.ring_local_bytes_per_s
    latency = at.of_generation("ll_base") + at.of_generation("ll_hop")
    if group.domains > 1:
        share = known["network_share_tree"] * known[f"network_share_{at.setting.network}"]
        one_nic = share * group.network_bytes_per_s / max(group.ranks_per_domain, 1.0)
        rate = one_nic if group.ranks_per_domain <= 1 else min(rate, one_nic)
        latency += known["tree_ll_network_hop"] * at.hop_factors["ll"]
    return latency + size_bytes / rate


FORMS: Mapping[tuple[str, str], Form] = {
    ("ring", "ll"): ring_ll_s,
    ("ring", "ll128"): ring_ll128_s,
    ("ring", "simple"): ring_simple_s,
    ("tree", "ll"): tree_ll_s,
    ("tree", "ll128"): tree_ll128_s,
    ("tree", "simple"): tree_simple_s,
    ("nvls", "simple"): nvls_s,
    ("nvls_tree", "simple"): nvls_tree_s,
}
"""The form of each algorithm and protocol that NCCL chooses between; to add one, add a line."""


def _uplinks_s(at: Ground, size_bytes: Floats) -> Floats:
    up = at.setting.uplinks
    if up is None:
        return np.zeros_like(size_bytes)
    share = at.network_bytes_per_s / at.setting.group.network_bytes_per_s
    return size_bytes * (up.exchange_s_per_byte / share)


def _ll_hop_s(at: Ground) -> float:
    hop = at.of_generation("ll_hop")
    return hop if at.setting.group.domains == 1 else max(hop, _LEAST_LL_HOP_S)


def _early_ampere(at: Ground) -> float:
    """Return the share of its LL and LL128 rates that Ampere reaches with NCCL before 2.12."""
    is_ampere = at.setting.group.generation == "ampere"
    return at.constants["early_ampere_share"] if at.is_early and is_ampere else 1.0


def _ll_step(at: Ground, size_bytes: Floats) -> Floats:
    step = at.constants["ll_step_one_domain" if at.setting.group.domains == 1 else "ll_step_domains"]
    return 1.0 + step * _saturating(size_bytes, at.constants["ll_step_size"])


def _saturating(size_bytes: Floats, half_bytes: float) -> Floats:
    return size_bytes / (size_bytes + half_bytes)


def _switch_s_per_byte(at: Ground, ranks: float) -> float:
    rate = at.of_generation("nvls_rate") * at.setting.group.local_bytes_per_s
    return (ranks + 1.0) / (ranks * rate)


def _tree_bytes_s(at: Ground, protocol: str, size_bytes: Floats) -> Floats:
    """Return S/(c R); NCCL's table c is joined by lines, so that time never falls with size."""
    rate = at.constants["tree_rate"] * min(at.tree_bytes_per_s[protocol], at.wire_bytes_per_s)
    table = tree_correction(at.setting.group.release, protocol)
    doublings = np.log2(np.maximum(size_bytes, 64.0) / 64.0)
    return size_bytes / (rate * np.interp(doublings, np.arange(len(table)), table))
