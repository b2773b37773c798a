"""Every link of a fabric: its two ends, with switch and port, and its tier."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from linkwise.network.dragonfly import global_ends
from linkwise.network.wiring import Wiring

__all__ = ["CableRun", "Tier", "cable_runs"]


class Tier(StrEnum):
    """Between which tiers a cable runs."""

    NODE_LEAF = "node-leaf"
    LEAF_SPINE = "leaf-spine"
    SPINE_CORE = "spine-core"
    GLOBAL = "global"
    """Between the spines of two groups of dragonfly-plus."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CableRun:
    """One cable; networks, switches and ports are counted from 1, nodes and NICs from 0.

    Parameters
    ----------
    tier
        Between which tiers it runs.
    network
        The plane, or the rail of rail-only, from 1; rails of the first plane come first.
    lower, upper
        Name of the end nearer to the nodes, and of the other: ``"node-0"``, ``"leaf-1"``.
    lower_port, upper_port
        Where the cable is plugged in there: ``"nic-0"`` at a node, a number at a switch.
    """

    tier: Tier
    network: int
    lower: str
    lower_port: str
    upper: str
    upper_port: str


def cable_runs(wiring: Wiring) -> Iterator[CableRun]:
    """Yield every cable of a fabric: networks in turn, in each from the nodes upwards.

    Parameters
    ----------
    wiring
        How its switches are joined.

    Notes
    -----
    The down-links of a switch have its first ports. Up-link c of a leaf leads to spine c // t of its pod,
    with t the links of that trunk; up-link c of spine i leads to core c // t of group i.
    """
    for network in range(wiring.networks):
        yield from _node_cables(wiring, network)
        yield from _spine_cables(wiring, network)
        yield from _core_cables(wiring, network)
        yield from _global_cables(wiring, network)


def _node_cables(wiring: Wiring, network: int) -> Iterator[CableRun]:
    for node in range(wiring.nodes):
        for link in range(wiring.node_links):
            port = node % wiring.group_nodes * wiring.leaf_node_links + link % wiring.leaf_node_links
            yield CableRun(
                tier=Tier.NODE_LEAF,
                network=network + 1,
                lower=f"node-{node}",
                lower_port=_nic(wiring, network, link),
                upper=f"leaf-{wiring.leaf_of(node, link) + 1}",
                upper_port=str(port + 1),
            )


def _nic(wiring: Wiring, network: int, link: int) -> str:
    """Return the NIC of a link, and which of its ports where it has several."""
    nics = wiring.nics
    nic = network % nics if wiring.node_links < nics else link
    plane = network // (nics // wiring.node_links)
    return f"nic-{nic}" if wiring.planes == 1 else f"nic-{nic}/{plane + 1}"


def _spine_cables(wiring: Wiring, network: int) -> Iterator[CableRun]:
    trunk = wiring.spine_trunk
    for leaf in range(wiring.leaves):
        pod, place = divmod(leaf, wiring.pod_leaves)
        for link in range(wiring.up_links):
            yield CableRun(
                tier=Tier.LEAF_SPINE,
                network=network + 1,
                lower=f"leaf-{leaf + 1}",
                lower_port=str(wiring.down_links + link + 1),
                upper=f"spine-{pod * wiring.pod_spines + link // trunk + 1}",
                upper_port=str(place * trunk + link % trunk + 1),
            )


def _core_cables(wiring: Wiring, network: int) -> Iterator[CableRun]:
    trunk, first = wiring.core_trunk, wiring.pod_leaves * wiring.spine_trunk
    for spine in range(wiring.spines):
        pod, place = divmod(spine, wiring.pod_spines)
        for link in range(wiring.core_links):
            yield CableRun(
                tier=Tier.SPINE_CORE,
                network=network + 1,
                lower=f"spine-{spine + 1}",
                lower_port=str(first + link + 1),
                upper=f"core-{place * wiring.group_cores + link // trunk + 1}",
                upper_port=str(pod * trunk + link % trunk + 1),
            )


def _global_cables(wiring: Wiring, network: int) -> Iterator[CableRun]:
    first = wiring.pod_leaves * wiring.spine_trunk
    for spine, port, other, other_port in global_ends(wiring):
        yield CableRun(
            tier=Tier.GLOBAL,
            network=network + 1,
            lower=f"spine-{spine + 1}",
            lower_port=str(first + port + 1),
            upper=f"spine-{other + 1}",
            upper_port=str(first + other_port + 1),
        )
