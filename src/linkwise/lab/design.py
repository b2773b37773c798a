"""The value `LabDesign`: what a lab builds of a cluster, at rates that one dilation factor scales."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from linkwise.cluster.cluster import FabricKind, RoutingKind
from linkwise.errors import InputError, NotKnown
from linkwise.units import format_quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkwise.cluster import Cluster
    from linkwise.network.wiring import Wiring

__all__ = [
    "MOST_NODES",
    "MOST_RANKS_PER_NODE",
    "LabDesign",
    "Nic",
    "Trunk",
    "auto_dilation",
    "design_of",
    "rate_text",
]

MOST_NODES, MOST_RANKS_PER_NODE = 8, 4
"""What two cores carry: 32 ranks of a training job [1]."""
LEAST_NIC_BYTES_PER_S, MOST_NIC_BYTES_PER_S = 125e3, 125e6
"""1 Mbit/s, at which a burst of 15 kB lasts 0.12 s, to 1 Gbit/s, past which shaping takes whole cores
(assumed) [bytes/s]."""
_AUTO_NIC_BYTES_PER_S, _AUTO_RANKS_BYTES_PER_S = 5e6, 20e6
"""40 Mbit/s for a NIC, and 160 Mbit/s over the number of ranks: there the rates of the links count, and what
is slept, not the turns that processes take on two cores; steps still take seconds (assumed) [bytes/s]."""
SPINE = "spine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Nic:
    """One emulated NIC of a node.

    Parameters
    ----------
    node, index
        Which node, and which of its NICs, from 0.
    switch
        Name of the leaf it is on.
    """

    node: int
    index: int
    switch: str

    @property
    def port(self) -> str:
        """Return the name of its end at the leaf."""
        return f"n{self.node}e{self.index}"

    @property
    def address(self) -> str:
        """Return its IPv4 address, of the range for benchmarks (RFC 2544)."""
        return f"198.18.{self.index}.{self.node + 1}"

    @property
    def hardware_address(self) -> str:
        """Return its Ethernet address, one that is administered locally."""
        return f"02:00:c6:12:{self.index:02x}:{self.node + 1:02x}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trunk:
    """All links of a leaf up to the spines, as one.

    Parameters
    ----------
    switch
        Name of the leaf.
    bytes_per_s
        Its emulated rate, one direction [bytes/s].
    """

    switch: str
    bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LabDesign:
    """What a lab builds.

    Parameters
    ----------
    cluster
        Name of the cluster.
    nodes, ranks, ranks_per_node
        Namespaces, and processes that a job has there [1].
    nics_per_node
        Emulated NICs of a node; each may stand for several [1].
    dilation
        Seconds here for one second of the cluster [1].
    nic_bytes_per_s
        Emulated rate of a NIC, one direction [bytes/s].
    nics, trunks
        All of them.
    notes
        What is emulated otherwise than described, in sentences for a reader.
    source
        The document or shorthand it was built from, as an absolute path; empty where it cannot be read again.
    """

    cluster: str
    nodes: int
    ranks: int
    ranks_per_node: int
    nics_per_node: int
    dilation: float
    nic_bytes_per_s: float
    nics: tuple[Nic, ...]
    trunks: tuple[Trunk, ...]
    notes: tuple[str, ...] = ()
    source: str = ""

    @property
    def switches(self) -> tuple[str, ...]:
        """Return the names of all switches, the spine last."""
        leaves = tuple(dict.fromkeys(nic.switch for nic in self.nics))
        return (*leaves, SPINE) if self.trunks else leaves

    def node_of(self, rank: int) -> int:
        """Return the node of a rank, ranks counted node by node.

        Parameters
        ----------
        rank
            Its number, from 0.
        """
        return rank // self.ranks_per_node

    def nic_of(self, rank: int) -> int:
        """Return which NIC of its node a rank uses.

        Parameters
        ----------
        rank
            Its number, from 0.
        """
        return rank % self.ranks_per_node * self.nics_per_node // self.ranks_per_node

    def first(self, ranks: int) -> LabDesign:
        """Return what a job has that takes the first ranks alone: whole nodes, or a part of one.

        Parameters
        ----------
        ranks
            How many [1].

        Raises
        ------
        InputError
            When there are not so many, or they end within a node that is not the first.
        """
        per_node = min(ranks, self.ranks_per_node)
        nodes = ranks // self.ranks_per_node or 1
        if not 0 < ranks <= self.ranks or nodes * per_node != ranks:
            raise InputError(
                f"{ranks} ranks: the lab has {self.nodes} nodes of {self.ranks_per_node}; take whole nodes, "
                "or a part of one"
            )
        return replace(
            self,
            nodes=nodes,
            ranks=ranks,
            ranks_per_node=per_node,
            nics_per_node=self.nics_per_node if nodes > 1 else 0,
            nics=tuple(nic for nic in self.nics if nic.node < nodes) if nodes > 1 else (),
        )


def design_of(cluster: Cluster, *, dilation: float | None = None) -> LabDesign:
    """Return what a lab builds of a cluster.

    Parameters
    ----------
    cluster
        What is emulated.
    dilation
        Seconds here for one second of the cluster; ``None`` chooses it (`auto_dilation`) [1].

    Raises
    ------
    InputError
        If the cluster is too large or of a kind that is not emulated, or its links would be too fast or slow.
    """
    _check(cluster)
    nodes = cluster.nodes_in_use
    count = _emulated_nics(cluster) if nodes > 1 else 0
    real = cluster.node_bytes_per_s / count if count else 0.0
    factor = _checked_dilation(real, cluster.gpus if count else 0, dilation)
    rate = real / factor
    wiring = _wiring(cluster) if count else None
    nics = tuple(
        Nic(
            node=node, index=index, switch=_leaf(cluster, wiring, node=node, share=index / count, index=index)
        )
        for node in range(nodes)
        for index in range(count)
    )
    return LabDesign(
        cluster=cluster.name,
        nodes=nodes,
        ranks=cluster.gpus,
        ranks_per_node=cluster.gpus_per_node,
        nics_per_node=count,
        dilation=factor,
        nic_bytes_per_s=rate,
        nics=nics,
        trunks=_trunks(cluster, wiring, nics, factor),
        notes=tuple(_notes(cluster, count)),
    )


def auto_dilation(nic_bytes_per_s: float, ranks: int) -> float:
    """Return the dilation at which few cores carry all ranks: the least of 1, 2, 5, 10, 20... that does.

    Parameters
    ----------
    nic_bytes_per_s
        What a NIC of the cluster carries, one direction [bytes/s].
    ranks
        All of them [1].
    """
    most = min(_AUTO_NIC_BYTES_PER_S, _AUTO_RANKS_BYTES_PER_S / ranks)
    wanted = max(1.0, nic_bytes_per_s / most)
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= wanted * (1 - 1e-9))


def rate_text(bytes_per_s: float) -> str:
    """Return a rate in bits per second, as links are named.

    Parameters
    ----------
    bytes_per_s
        The rate, one direction [bytes/s].
    """
    return format_quantity(8 * bytes_per_s, "bits_per_s")


def _check(cluster: Cluster) -> None:
    nodes, ranks = cluster.nodes_in_use, cluster.gpus_per_node
    if nodes > MOST_NODES or ranks > MOST_RANKS_PER_NODE:
        raise InputError(
            f"{cluster.name} has {nodes} nodes of {ranks} GPUs; the lab emulates up to {MOST_NODES} of "
            f"{MOST_RANKS_PER_NODE}. Lower nodes, and state gpus_per_domain: {MOST_RANKS_PER_NODE}"
        )
    if nodes > 1 and cluster.nvlink_domain_gpus > ranks:
        raise InputError(
            f"an NVLink domain of {cluster.name} spans nodes, and the lab joins nodes by their NICs alone; "
            f"state gpus_per_domain: {ranks}"
        )
    if cluster.changes:
        raise InputError(f"{cluster.name} has changes; the lab builds clusters whole. Leave them out")
    if cluster.fabric.kind in (FabricKind.LINKS, FabricKind.DRAGONFLY_PLUS):
        raise InputError(
            f"the lab has no fabric of kind {cluster.fabric.kind}; use single-switch, leaf-spine, fat-tree, "
            "rail-optimized or rail-only"
        )
    if nodes > 1 and not cluster.node_bytes_per_s:
        raise InputError(f"nothing joins the {nodes} nodes of {cluster.name}; name a fabric, or one node")


def _emulated_nics(cluster: Cluster) -> int:
    """Return the most NICs, one per rank at most, of which each stands for as many real ones."""
    ranks = cluster.gpus_per_node
    return max(n for n in range(1, ranks + 1) if ranks % n == 0 and cluster.nics_per_node % n == 0)


def _checked_dilation(nic_bytes_per_s: float, ranks: int, dilation: float | None) -> float:
    if not ranks:
        return 1.0 if dilation is None else dilation
    factor = auto_dilation(nic_bytes_per_s, ranks) if dilation is None else dilation
    least, most = nic_bytes_per_s / MOST_NIC_BYTES_PER_S, nic_bytes_per_s / LEAST_NIC_BYTES_PER_S
    if not least * (1 - 1e-9) <= factor <= most * (1 + 1e-9):
        raise InputError(
            f"--scale {factor:g} makes a NIC of {rate_text(nic_bytes_per_s)} one of "
            f"{rate_text(nic_bytes_per_s / factor)}; the lab shapes {rate_text(LEAST_NIC_BYTES_PER_S)} to "
            f"{rate_text(MOST_NIC_BYTES_PER_S)}, so give {math.ceil(least):,} to {math.floor(most):,}"
        )
    return factor


def _wiring(cluster: Cluster) -> Wiring | None:
    """Return how the switches are wired; ``None`` where they are not known."""
    from linkwise.network.clos import wiring_of

    if cluster.fabric.switch is None:
        return None
    try:
        wiring = wiring_of(cluster)
    except NotKnown:
        return None
    if wiring.cores:
        raise InputError("the lab has two tiers of switches; this fabric takes three. Use fewer nodes")
    return wiring


def _leaf(cluster: Cluster, wiring: Wiring | None, *, node: int, share: float, index: int) -> str:
    """Return the leaf of a NIC; with switches not known as the estimate takes it."""
    kind = cluster.fabric.kind
    if kind is FabricKind.RAIL_ONLY:
        return f"rail{index}"
    if wiring is not None:
        return f"leaf{wiring.leaf_of(node, int(share * wiring.node_links))}"
    if kind is FabricKind.RAIL_OPTIMIZED:
        return f"leaf{index}"
    return f"leaf{node}" if _is_cut(cluster) else "leaf0"


def _is_cut(cluster: Cluster) -> bool:
    """Return whether each node has a leaf of its own, as `network.tiers` takes it of unknown switches."""
    return cluster.fabric.oversubscription > 1 and cluster.fabric.kind is not FabricKind.SINGLE_SWITCH


def _trunks(
    cluster: Cluster, wiring: Wiring | None, nics: tuple[Nic, ...], dilation: float
) -> tuple[Trunk, ...]:
    """Return the links up of every leaf; none below one leaf, or where rails are not joined."""
    leaves = tuple(dict.fromkeys(nic.switch for nic in nics))
    link = cluster.fabric.link
    if len(leaves) < 2 or cluster.fabric.kind is FabricKind.RAIL_ONLY or link is None:
        return ()
    if wiring is not None:
        each = wiring.up_links * wiring.networks * link.bytes_per_s
    else:
        share = len(nics) / len(leaves) / max(1, len(nics) // cluster.nodes_in_use)
        each = cluster.node_bytes_per_s * share / cluster.fabric.oversubscription
    return tuple(Trunk(switch=leaf, bytes_per_s=each / dilation) for leaf in leaves)


def _notes(cluster: Cluster, nics: int) -> Iterator[str]:
    if not nics:
        yield "one node: no link is shaped"
        return
    folded = cluster.nics_per_node // nics
    if folded > 1:
        yield f"each emulated NIC stands for {folded} of the node's {cluster.nics_per_node}, at their sum"
    yield "NVLink is stood for by the loopback of a node, which is not shaped: only its speed is unlike"
    if cluster.fabric.routing.kind is RoutingKind.ECMP:
        yield "all spines are one switch here, so that hash collisions of routing ecmp do not happen"
