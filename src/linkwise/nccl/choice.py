"""Which algorithm and protocol NCCL chooses: the least of its own estimates, with its own constants.

NCCL keeps a latency and a bandwidth for every algorithm and protocol and takes the least latency plus bytes
over bandwidth. The estimates are only there to choose; what the choice then costs is for `network` to say.

References
----------
NVIDIA, NCCL, src/graph/tuning.cc (constants and rules; releases named in `choice.json`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from linkwise.nccl.communicator import NO_LIMITS, PROTOCOLS, Communicator, Limits
from linkwise.nccl.constants import least, release_constants

__all__ = [
    "Candidate",
    "ChoiceTable",
    "candidates",
    "choice_table",
    "ll_cap_bytes_per_s",
    "nvls_tree_cap_bytes_per_s",
    "tree_correction",
]

Floats = NDArray[np.float64]

_CHANNELS = {"volta": 6, "ampere": 12}
"""Channels by generation: one for each NVLink of 25 GB/s, 6 of V100 and 12 of A100 [1]."""
_MOST_CHANNELS = 16
"""Channels of newer generations (assumed) [1]."""
_NVLS_TREE_CHANNELS = 8
"""Channels of NVLS trees: one for each NIC of a box of 8 (assumed) [1]."""
_NVLS_LEAST_RANKS = {"hopper": 5, "blackwell": 6}
"""Fewest GPUs with which published runs take NVLS (assumed from their curves) [1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One algorithm and protocol with NCCL's estimate.

    Attributes
    ----------
    algorithm, protocol
        Names of `ALGORITHMS` and `PROTOCOLS`.
    latency_s
        Time of an empty message [s].
    bytes_per_s
        Bytes of the full buffer over time, of a large message [bytes/s].
    """

    algorithm: str
    protocol: str
    latency_s: float
    bytes_per_s: float


@lru_cache(maxsize=4096)
def candidates(operation: str, group: Communicator, limits: Limits = NO_LIMITS) -> tuple[Candidate, ...]:
    """Return what NCCL could choose for an operation, with its estimates.

    Parameters
    ----------
    operation
        ``all_reduce``, ``all_gather`` or ``reduce_scatter``.
    group
        The ranks.
    limits
        What the variables of the job leave.

    Returns
    -------
    tuple[Candidate, ...]
        Empty where nothing is left.
    """
    return tuple(
        Candidate(
            algorithm=algorithm,
            protocol=protocol,
            latency_s=_latency_s(operation, algorithm, protocol, group),
            bytes_per_s=_bytes_per_s(operation, algorithm, protocol, group),
        )
        for algorithm, protocol in _offered(operation, group)
        if algorithm in limits.algorithms and protocol in limits.protocols
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChoiceTable:
    """What NCCL could choose, as columns.

    Attributes
    ----------
    offered
        The candidates.
    latency_s, bytes_per_s
        Their estimates (candidates, 1).
    correction
        Factor on the bandwidth for 64 bytes x 2^i, 1 but for trees; its last column holds for all larger
        sizes (candidates, entries) [1].
    plateau
        Factor on the latency from `plateau_bytes` on, 1 but for rings over nodes (candidates, 1) [1].
    plateau_bytes
        Where it begins [bytes].
    """

    offered: tuple[Candidate, ...]
    latency_s: Floats
    bytes_per_s: Floats
    correction: Floats
    plateau: Floats
    plateau_bytes: float

    def choose(self, size_bytes: Floats) -> NDArray[np.intp]:
        """Return which candidate NCCL takes for each size, a position in `offered` (rows,).

        Parameters
        ----------
        size_bytes
            Bytes of the full buffer (rows,) [bytes].
        """
        doublings = np.log2(np.maximum(size_bytes, 64.0) / 64.0).astype(np.intp)
        rate = self.bytes_per_s * self.correction[:, np.minimum(doublings, self.correction.shape[1] - 1)]
        latency = self.latency_s * np.where(size_bytes >= self.plateau_bytes, self.plateau, 1.0)
        best: NDArray[np.intp] = np.argmin(latency + size_bytes / rate, axis=0)
        return best


@lru_cache(maxsize=4096)
def choice_table(operation: str, group: Communicator, limits: Limits = NO_LIMITS) -> ChoiceTable:
    """Return what NCCL could choose for an operation as columns.

    Parameters
    ----------
    operation, group, limits
        As for `candidates`.
    """
    offered = candidates(operation, group, limits)
    plateau = release_constants(group.release).ring_plateau_factor
    is_over_nodes = operation == "all_reduce" and group.domains > 1
    return ChoiceTable(
        offered=offered,
        latency_s=_column([one.latency_s for one in offered]),
        bytes_per_s=_column([one.bytes_per_s for one in offered]),
        correction=np.array([_correction(one, group) for one in offered]),
        plateau=_column([plateau if is_over_nodes and _is_ring_simple(one) else 1.0 for one in offered]),
        plateau_bytes=64.0 * group.ranks * _channels(group),
    )


def tree_correction(release: tuple[int, int] | None, protocol: str) -> Floats:
    """Return NCCL's correction of tree bandwidth for 64 bytes x 2^i (entries,) [1]."""
    return np.array(release_constants(release).tree_correction[protocol])


def ll_cap_bytes_per_s(group: Communicator) -> float:
    """Return NCCL's cap of the LL protocol; infinite in early releases [bytes/s]."""
    return least(release_constants(group.release).ll_cap_bytes_per_s, group.generation, _reach(group))


def nvls_tree_cap_bytes_per_s(group: Communicator) -> float:
    """Return NCCL's cap of the bus bandwidth of NVLS trees, over its channels, one per NIC [bytes/s]."""
    caps = release_constants(group.release).nvls_tree_channel_bytes_per_s
    return _NVLS_TREE_CHANNELS * least(caps, group.generation, _reach(group))


def _offered(operation: str, group: Communicator) -> list[tuple[str, str]]:
    protocols = [one for one in PROTOCOLS if one != "ll128" or _has_ll128(operation, group)]
    offered = [("ring", protocol) for protocol in protocols]
    if operation != "all_reduce":
        return offered
    offered += [("tree", protocol) for protocol in protocols]
    least = _NVLS_LEAST_RANKS.get(group.generation, math.inf)
    known = group.generation in release_constants(group.release).nvls_fraction
    if known and group.has_multicast and group.ranks_per_domain >= least:
        if group.domains > 1:
            offered.append(("nvls_tree", "simple"))
        elif group.ranks >= least:
            offered.append(("nvls", "simple"))
    return offered


def _has_ll128(operation: str, group: Communicator) -> bool:
    """Return whether stores of 128 bytes stay whole on every path, as NCCL judges it."""
    if group.generation in ("pcie", "amd"):
        return False
    return operation == "all_reduce" or group.generation != "blackwell"


def _reach(group: Communicator) -> int:
    """Return the place in NCCL's tables for one, two, and more nodes."""
    return min(group.domains, 3) - 1


def _channels(group: Communicator) -> int:
    if group.ranks_per_domain <= 1:
        return 2
    return _CHANNELS.get(group.generation, _MOST_CHANNELS)


def _column(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)[:, np.newaxis]


def _correction(one: Candidate, group: Communicator) -> Floats:
    table = tree_correction(group.release, one.protocol)
    return np.append(table if one.algorithm == "tree" else np.ones_like(table), 1.0)


def _is_ring_simple(one: Candidate) -> bool:
    return one.algorithm == "ring" and one.protocol == "simple"


def _latency_s(operation: str, algorithm: str, protocol: str, group: Communicator) -> float:
    """Return NCCL's latency: a base, and hops inside nodes and between them [s]."""
    known, place = release_constants(group.release), PROTOCOLS.index(protocol)
    base, local = known.base_s[algorithm][place], _local_hop_s(algorithm, protocol, group)
    across = known.network_hop_s["tree" if group.ranks_per_domain <= 1 else algorithm][place]
    levels = 2.0 * math.floor(math.log2(group.domains))
    if algorithm in ("nvls", "nvls_tree"):
        return base + local + levels * across
    if algorithm == "tree":
        return base + 2.0 * (group.ranks_per_domain - 1.0) * local + levels * across
    passes = 2 if operation == "all_reduce" else 1
    crossing = passes * (group.domains - 1)
    return base + (passes * (group.ranks - 1) - crossing) * local + crossing * across


def _local_hop_s(algorithm: str, protocol: str, group: Communicator) -> float:
    known, place = release_constants(group.release), PROTOCOLS.index(protocol)
    hop = (known.pcie_hop_s if group.generation == "pcie" else known.nvlink_hop_s)[algorithm][place]
    if group.domains == 1 or algorithm in ("nvls", "nvls_tree"):
        return hop
    return max(hop * (known.network_local_ll_factor if protocol == "ll" else 1.0), known.post_s[place])


def _bytes_per_s(operation: str, algorithm: str, protocol: str, group: Communicator) -> float:
    """Return NCCL's algorithm bandwidth [bytes/s]."""
    if algorithm == "tree":
        return 0.5 * _tree_bus_bytes_per_s(protocol, group)
    passes = 2 if operation == "all_reduce" else 1
    is_ring = algorithm == "ring"
    bus = _ring_bus_bytes_per_s(protocol, group) if is_ring else _nvls_bus_bytes_per_s(algorithm, group)
    return bus * group.ranks / (passes * (group.ranks - 1))


def _ring_bus_bytes_per_s(protocol: str, group: Communicator) -> float:
    known = release_constants(group.release)
    planned = group.local_bytes_per_s if group.ranks_per_domain > 1 else math.inf
    if group.domains > 1:
        planned = min(planned, group.network_bytes_per_s)
    if protocol == "ll":
        return min(planned * known.ring_ll_fraction, ll_cap_bytes_per_s(group))
    if protocol == "ll128":
        channel = known.ring_ll128_channel_bytes_per_s[group.generation]
        return min(planned * 0.92, channel * _channels(group))
    return planned


def _tree_bus_bytes_per_s(protocol: str, group: Communicator) -> float:
    known, reach = release_constants(group.release), _reach(group)
    planned = group.local_bytes_per_s if group.ranks_per_domain > 1 else group.network_bytes_per_s
    if group.domains > 2:
        planned = min(planned, group.network_bytes_per_s)
    whole = least(known.tree_cap_bytes_per_s, group.generation, reach)
    channel = least(known.tree_channel_bytes_per_s, group.generation, reach)
    bus = min(planned * known.tree_fraction, whole, channel * _channels(group))
    if protocol == "ll":
        return min(bus / known.tree_ll_divisor, ll_cap_bytes_per_s(group))
    if protocol == "ll128":
        channel = least(known.tree_ll128_channel_bytes_per_s, group.generation, reach)
        return min(bus * known.tree_ll128_fraction[min(reach, 1)], channel * _channels(group))
    return bus


def _nvls_bus_bytes_per_s(algorithm: str, group: Communicator) -> float:
    known, channels = release_constants(group.release), _channels(group)
    inside = group.local_bytes_per_s * known.nvls_fraction[group.generation]
    bus = 2.0 * inside * (channels - 1) / channels
    if algorithm == "nvls":
        return bus
    across = group.network_bytes_per_s * (2.0 if group.domains == 2 else 1.0)
    return min(bus, across, nvls_tree_cap_bytes_per_s(group))
