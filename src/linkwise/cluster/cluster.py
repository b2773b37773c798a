"""The values `Cluster` and `Fabric`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from linkwise.cluster.changes import network_fraction

if TYPE_CHECKING:
    from linkwise.catalog import Gpu, Link
    from linkwise.cluster.calibration import Calibration
    from linkwise.cluster.changes import Change
    from linkwise.cluster.link_table import LinkTable
    from linkwise.cluster.prices import Prices

__all__ = ["CableKind", "Cluster", "Fabric", "FabricKind", "GpuLinks", "NodePart", "Routing", "RoutingKind"]


class FabricKind(StrEnum):
    """How the switches between nodes are wired."""

    SINGLE_SWITCH = "single-switch"
    """Every NIC on one switch."""
    LEAF_SPINE = "leaf-spine"
    """Two tiers; all NICs of a node on one leaf."""
    FAT_TREE = "fat-tree"
    """Two tiers or three, as many as the ports ask for; all NICs of a node on one leaf."""
    RAIL_OPTIMIZED = "rail-optimized"
    """Two tiers or three; NIC i of every node of a group on leaf i."""
    RAIL_ONLY = "rail-only"
    """NIC i of every node on the switches of rail i, and nothing between rails."""
    DRAGONFLY_PLUS = "dragonfly-plus"
    """Groups of leaves and spines, joined all to all."""
    LINKS = "links"
    """Any: a table names both ends of every link."""
    NONE = "none"
    """No fabric: one NVLink domain, or one node."""


class GpuLinks(StrEnum):
    """What joins the GPUs of a node, or of an NVLink domain that spans nodes."""

    NVSWITCH = "nvswitch"
    """NVLink through switches: each GPU reaches every other at full rate."""
    NVLINK_MESH = "nvlink-mesh"
    """NVLink from GPU to GPU, without switches."""
    NVLINK_BRIDGE = "nvlink-bridge"
    """NVLink bridges over two or four GPUs, and PCIe between those sets."""
    INFINITY_FABRIC = "infinity-fabric"
    """AMD's link from GPU to GPU."""
    PCIE = "pcie"
    """PCIe, from GPU to GPU."""
    HOST_MEMORY = "host-memory"
    """PCIe through the memory of the host: no peer-to-peer access."""


class RoutingKind(StrEnum):
    """How flows are laid on the paths of a fabric."""

    ADAPTIVE = "adaptive"
    """The switch sends each packet or flowlet to the least loaded port."""
    SPRAY = "spray"
    """Packets are spread over all paths."""
    PINNED = "pinned"
    """Flows are placed on paths by hand, without collisions."""
    ECMP = "ecmp"
    """A hash of the flow chooses the path."""


class CableKind(StrEnum):
    """What a cable is, and with it what is bought beside it."""

    OPTICAL = "optical"
    """A fibre, with a transceiver at each end that is bought apart."""
    DAC = "dac"
    """Direct-attach copper: its ends are part of it."""
    AOC = "aoc"
    """An active optical cable: its ends are part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """How flows are laid on paths.

    Parameters
    ----------
    kind
        The method.
    queue_pairs
        Flows that one connection is split over; only with ECMP.
    """

    kind: RoutingKind = RoutingKind.ADAPTIVE
    queue_pairs: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """The network between nodes.

    Parameters
    ----------
    kind
        How its switches are wired.
    link
        The link of the catalogue that a NIC has to it; ``None`` without a fabric.
    switch
        Name of the switch in the catalogue; ``None`` where it is not known (clouds do not say).
    oversubscription
        Bandwidth towards the nodes over bandwidth towards the spines at a leaf, at least 1.
    routing
        How flows are laid on paths.
    planes
        Links of one NIC, each to a network of its own; they are not joined.
    groups
        Groups of a dragonfly-plus fabric; ``None`` for the fewest, and for other kinds.
    table
        All links, each with its rate, where the kind is ``links``.
    node_cables, switch_cables
        What cables between nodes and leaves are, and those between switches.
    """

    kind: FabricKind
    link: Link | None
    switch: str | None = None
    oversubscription: float = 1.0
    routing: Routing = Routing()
    planes: int = 1
    groups: int | None = None
    table: LinkTable | None = None
    node_cables: CableKind = CableKind.OPTICAL
    switch_cables: CableKind = CableKind.OPTICAL


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePart:
    """Nodes of one kind in a cluster of several.

    Parameters
    ----------
    name
        Of the system in the catalogue, or of the GPU.
    nodes
        How many there are.
    gpus_per_node, nics
        GPUs and NICs of one.
    nic_bytes_per_s
        What one NIC carries, one direction [bytes/s].
    """

    name: str
    nodes: int
    gpus_per_node: int
    nics: int
    nic_bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What there is to train on.

    All nodes are alike, or have at least what is said here (`parts`), but for what `changes` says. Counts are
    those in use: `gpus` and `gpus_per_domain` of a document lower them.

    Parameters
    ----------
    name
        What its owner calls it.
    system
        Name of the system in the catalogue, or ``None`` for an inline description.
    nodes
        Operating systems: a tray of four GPUs in an NVL72.
    gpus
        GPUs in use, over all nodes.
    gpus_per_node
        GPUs in use of one operating system.
    nvlink_domain_gpus
        GPUs in use that reach each other without the fabric; 1 without NVLink. It may span nodes.
    full_domain_gpus
        GPUs that an NVLink domain with all its nodes would have; ``None`` where it is not known to be more
        than there are.
    gpu
        The GPU in the catalogue.
    nic
        Name of the NIC in the catalogue, where known.
    nics_per_node
        NICs of one operating system; 0 for a machine that has none.
    nic_bytes_per_s
        What one NIC carries over its links to the fabric, one direction [bytes/s].
    fabric
        The network between nodes.
    gpu_links
        What joins the GPUs of a node or NVLink domain.
    parts
        Kinds of nodes where they differ; everything else is then the least of any.
    power_w
        Power of one system of the catalogue, where known [W].
    prices
        What it costs, or ``None``: then no money is printed.
    changes
        Missing or slow parts; `gpus` and `nvlink_domain_gpus` are without missing nodes, `nodes`,
        `nics_per_node` and `nic_bytes_per_s` as built.
    calibration
        What was measured on it and moves its estimates; ``None`` for the shipped fit alone.
    assumptions
        What was taken for granted, in sentences for a reader.
    """

    name: str
    system: str | None
    nodes: int
    gpus: int
    gpus_per_node: int
    nvlink_domain_gpus: int
    gpu: Gpu
    nic: str | None
    nics_per_node: int
    nic_bytes_per_s: float
    fabric: Fabric
    gpu_links: GpuLinks = GpuLinks.NVSWITCH
    parts: tuple[NodePart, ...] = ()
    power_w: float | None = None
    full_domain_gpus: int | None = None
    prices: Prices | None = None
    changes: tuple[Change, ...] = ()
    calibration: Calibration | None = None
    assumptions: tuple[str, ...] = ()

    @property
    def node_bytes_per_s(self) -> float:
        """Return what all NICs of one node carry, changes counted, one direction [bytes/s]."""
        return self.nics_per_node * self.nic_bytes_per_s * network_fraction(self)

    @property
    def gpu_network_bytes_per_s(self) -> float:
        """Return the share that one GPU has of the NICs of its node, one direction [bytes/s]."""
        return self.node_bytes_per_s / self.gpus_per_node

    @property
    def domains(self) -> int:
        """Return the number of NVLink domains in use; the last may be partly filled."""
        return -(-self.gpus // self.nvlink_domain_gpus)

    @property
    def nodes_in_use(self) -> int:
        """Return the number of operating systems that have a GPU in use."""
        return -(-self.gpus // self.gpus_per_node)
