"""The links of a GPU as NCCL plans with them, from figures of the catalogue."""

from __future__ import annotations

from dataclasses import dataclass

from linkwise.catalog import Gpu
from linkwise.nccl.communicator import Communicator
from linkwise.network.collective_constants import collective_values

__all__ = [
    "GEN4_MOST_BYTES_PER_S",
    "WITH_MULTICAST",
    "LocalLinks",
    "borrowed_generation",
    "generation_of",
    "is_behind_nic",
    "local_links",
    "network_kind",
    "planned_bytes_per_s",
]

_GENERATIONS = {
    "pascal": "volta",
    "volta": "volta",
    "ampere": "ampere",
    "hopper": "hopper",
    "blackwell": "blackwell",
    "rubin": "blackwell",
    "cdna": "amd",
    "turing": "volta",
}
"""Generation by the first word of an architecture; the nearest one where there is no measurement."""
_MEASURED = ("volta", "ampere", "hopper", "blackwell", "cdna2", "cdna3", "cdna4")
"""How architectures begin that have healthy runs in tests/data/collective_runs.csv."""
_NAMES = {"amd": "MI250X to MI355X"}
"""Generations that are not called by their architecture."""
_NEWEST = "blackwell"
"""What a GPU of an architecture that is not listed is taken for: the newest that was measured."""
WITH_MULTICAST = ("hopper", "blackwell")
"""Generations whose NVLink switch reduces and multicasts."""
_SMALLEST_PCIE_BYTES_PER_S = 16e9
"""Taken for a GPU whose slot is not known: 16 lanes of PCIe 3.0, 15.75 GB/s (PCI-SIG), rounded [bytes/s]."""
GEN4_MOST_BYTES_PER_S = 40e9
"""Between 16 lanes of PCIe 4.0, 31.5 GB/s, and of PCIe 5.0, 63 GB/s (PCI-SIG) [bytes/s]."""
_EFA_V3_LEAST_BYTES_PER_S, _EFA_V4_LEAST_BYTES_PER_S = 20e9, 40e9
"""Between ports of 100, 200 and 400 Gbit/s: 12.5, 25 and 50 GB/s (AWS p5, p5en, p6) [bytes/s]."""
_SWITCH_NIC_BYTES_PER_S = 50e9
"""Slowest NIC whose PCIe switch takes GPUs, 400 Gbit/s (ConnectX-8 servers; assumed) [bytes/s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalLinks:
    """What joins the GPUs of a domain.

    Attributes
    ----------
    generation
        As `linkwise.nccl.communicator.Communicator` has it.
    planned_bytes_per_s
        The rate of a GPU that NCCL plans with [bytes/s].
    pair_bytes_per_s
        Line rate of the link, one direction [bytes/s].
    has_multicast
        Whether its switch reduces and multicasts.
    bridged
        Whether bridges join pairs and PCIe joins those.
    through_host
        Whether GPUs reach each other through host memory only, without peer-to-peer access.
    """

    generation: str
    planned_bytes_per_s: float
    pair_bytes_per_s: float
    has_multicast: bool
    bridged: bool = False
    through_host: bool = False

    def communicator(
        self, *, ranks: int, domains: int, network_bytes_per_s: float, release: tuple[int, int] | None = None
    ) -> Communicator:
        """Return the ranks as NCCL sees them.

        Parameters
        ----------
        ranks, domains
            GPUs, and NVLink domains (hosts without NVLink) they span [1].
        network_bytes_per_s
            All NICs of a domain, one direction [bytes/s].
        release
            NCCL release; ``None`` takes today's.
        """
        return Communicator(
            ranks=ranks,
            domains=domains,
            generation=self.generation,
            local_bytes_per_s=self.planned_bytes_per_s,
            network_bytes_per_s=network_bytes_per_s,
            release=release,
            has_multicast=self.has_multicast,
        )


def local_links(
    gpu: Gpu, *, ranks_per_domain: int, joined_by: str = "nvswitch", bridged_gpus: int = 2
) -> LocalLinks:
    """Return what joins GPUs of a kind inside a domain.

    Parameters
    ----------
    gpu
        The GPU of the catalogue.
    ranks_per_domain
        GPUs of a domain that take part [1].
    joined_by
        ``nvswitch``, ``nvlink-mesh``, ``infinity-fabric``, ``nvlink-bridge`` (pairs), or a word with
        ``pcie``, and with ``shm`` where there is no peer-to-peer access; or a `linkwise.cluster.GpuLinks`.
    bridged_gpus
        GPUs that one bridge joins [1].
    """
    is_bridge = joined_by == "nvlink-bridge"
    bridged = is_bridge and ranks_per_domain > bridged_gpus
    is_pcie = "pcie" in joined_by or joined_by == "host-memory"
    line = gpu.nvlink_bytes_per_s
    if line is None or is_pcie or bridged:
        slot = gpu.pcie_bytes_per_s or _SMALLEST_PCIE_BYTES_PER_S
        return LocalLinks(
            generation="pcie",
            planned_bytes_per_s=planned_bytes_per_s("pcie", slot),
            pair_bytes_per_s=slot,
            has_multicast=False,
            bridged=bridged,
            through_host="shm" in joined_by or joined_by == "host-memory",
        )
    generation = generation_of(gpu)
    return LocalLinks(
        generation=generation,
        planned_bytes_per_s=planned_bytes_per_s(generation, line),
        pair_bytes_per_s=line,
        has_multicast=generation in WITH_MULTICAST and joined_by == "nvswitch",
    )


def borrowed_generation(gpu: Gpu) -> str | None:
    """Return the generation whose constants stand in for those of a GPU; ``None`` where it has its own.

    Parameters
    ----------
    gpu
        The GPU of the catalogue.
    """
    if gpu.architecture.lower().startswith(_MEASURED):
        return None
    generation = generation_of(gpu)
    return _NAMES.get(generation, generation.capitalize())


def planned_bytes_per_s(generation: str, line_bytes_per_s: float) -> float:
    """Return the rate of a GPU inside its domain that NCCL plans with [bytes/s].

    Parameters
    ----------
    generation
        As `linkwise.nccl.communicator.Communicator` has it.
    line_bytes_per_s
        Line rate of its link, one direction [bytes/s].
    """
    kind = "pcie_planned_fraction" if generation == "pcie" else f"planned_fraction_{generation}"
    return collective_values()[kind] * line_bytes_per_s


def generation_of(gpu: Gpu) -> str:
    """Return the generation whose constants a GPU's NVLink (or xGMI) takes.

    Parameters
    ----------
    gpu
        The GPU of the catalogue.
    """
    architecture = gpu.architecture.lower()
    named = (value for name, value in _GENERATIONS.items() if architecture.startswith(name))
    return next(named, _NEWEST)


def network_kind(protocol: str, nic_bytes_per_s: float, nics_per_node: int) -> str:
    """Return the kind of network that latencies are known by.

    Parameters
    ----------
    protocol
        ``infiniband``, ``roce``, ``efa``, ``tcpx``, ``tcpxo``, ``slingshot``, ``sockets`` or ``tcp``.
    nic_bytes_per_s
        Line rate of one NIC, one direction [bytes/s].
    nics_per_node
        NICs of one operating system [1].

    Notes
    -----
    EFA: 4 ports of 100 Gbit/s are version 1, more of them 2, 200 Gbit/s 3 and 400 Gbit/s 4 (AWS p4, p5, p5en,
    p6). TCPX with more than 4 NICs is TCPXO (Google A3 Mega). What is not known is taken for verbs.
    """
    if protocol == "efa":
        if nic_bytes_per_s < _EFA_V3_LEAST_BYTES_PER_S:
            return "efa_v1" if nics_per_node <= 4 else "efa_v2"
        return "efa_v3" if nic_bytes_per_s < _EFA_V4_LEAST_BYTES_PER_S else "efa_v4"
    if protocol == "tcpx" and nics_per_node > 4:
        return "tcpxo"
    if protocol in ("sockets", "tcp"):
        return "sockets"
    return protocol if protocol in ("infiniband", "roce", "tcpx", "tcpxo", "slingshot") else "infiniband"


def is_behind_nic(links: LocalLinks, nic_bytes_per_s: float) -> bool:
    """Return whether GPUs sit behind the PCIe switch of their NIC, as in ConnectX-8 servers.

    Parameters
    ----------
    links
        What joins the GPUs of a node.
    nic_bytes_per_s
        Line rate of one NIC, one direction [bytes/s].

    Notes
    -----
    Taken from the rates: PCIe of the fifth generation and NICs of 400 Gbit/s. Traffic to the NIC then does
    not cross the link between sockets.
    """
    is_gen5 = links.generation == "pcie" and links.pair_bytes_per_s > GEN4_MOST_BYTES_PER_S
    return is_gen5 and nic_bytes_per_s >= _SWITCH_NIC_BYTES_PER_S
