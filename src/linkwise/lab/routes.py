"""The links of a lab: which of them a message crosses, at what rate, and where their bytes are counted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from linkwise.lab.design import LabDesign
from linkwise.lab.wires import node_namespace, switch_namespace
from linkwise.network.gloo import TCP_PAYLOAD_FRACTION

__all__ = ["LabLink", "Tier", "counter_of", "links_of", "path_between", "payload_bytes_per_s"]


class Tier(StrEnum):
    """How far from the ranks a link is."""

    INSIDE = "inside node"
    """The loopback of a node, which stands for NVLink."""
    NIC = "node to leaf"
    LEAF = "leaf to node"
    UP = "leaf to spine"
    DOWN = "spine to leaf"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabLink:
    """One direction of a link.

    Parameters
    ----------
    tier
        Between what.
    namespace, device
        Where what it carries is sent: without the name of the lab, ``n0`` or ``sw``.
    """

    tier: Tier
    namespace: str
    device: str


def links_of(design: LabDesign) -> tuple[LabLink, ...]:
    """Return all links of a lab.

    Parameters
    ----------
    design
        What was built.
    """
    inside = [LabLink(tier=Tier.INSIDE, namespace=f"n{node}", device="lo") for node in range(design.nodes)]
    out = [_out(nic.node, nic.index) for nic in design.nics]
    back = [_back(nic.node, nic.index) for nic in design.nics]
    up = [_up(trunk.switch) for trunk in design.trunks]
    down = [_down(trunk.switch) for trunk in design.trunks]
    return (*inside, *out, *back, *up, *down)


@cache
def path_between(design: LabDesign, source: int, target: int) -> tuple[LabLink, ...]:
    """Return the links that a message from one rank to another crosses.

    Parameters
    ----------
    design
        What was built.
    source, target
        Ranks.

    Notes
    -----
    Of two ranks the one with the lower address listens (gloo/transport/tcp/pair.cc), so that their traffic
    both ways is on the rail of its NIC.
    """
    here, there = design.node_of(source), design.node_of(target)
    if here == there:
        return (LabLink(tier=Tier.INSIDE, namespace=f"n{here}", device="lo"),)
    rail = min(design.nic_of(source), design.nic_of(target))
    leaves = {(nic.node, nic.index): nic.switch for nic in design.nics}
    one, other = leaves[here, rail], leaves[there, rail]
    between = () if one == other else (_up(one), _down(other))
    return (_out(here, rail), *between, _back(there, rail))


def payload_bytes_per_s(design: LabDesign, link: LabLink, *, loopback_bytes_per_s: float) -> float:
    """Return what a link carries beside headers [bytes/s].

    Parameters
    ----------
    design
        What was built.
    link
        One of it.
    loopback_bytes_per_s
        Measured rate of a node's loopback while those of all nodes are used [bytes/s].
    """
    if link.tier is Tier.INSIDE:
        return loopback_bytes_per_s
    if link.tier in (Tier.NIC, Tier.LEAF):
        return design.nic_bytes_per_s * TCP_PAYLOAD_FRACTION
    rates = {trunk.switch: trunk.bytes_per_s for trunk in design.trunks}
    return rates[link.device[:-2]] * TCP_PAYLOAD_FRACTION


def counter_of(lab: str, link: LabLink) -> str:
    """Return the name under which a job in a lab counts what a link carries.

    Parameters
    ----------
    lab
        Name of the lab.
    link
        One of its links.
    """
    return f"{_namespace(lab, link)} {link.device}"


def _namespace(lab: str, link: LabLink) -> str:
    if link.namespace == "sw":
        return switch_namespace(lab)
    return node_namespace(lab, int(link.namespace[1:]))


def _out(node: int, index: int) -> LabLink:
    return LabLink(tier=Tier.NIC, namespace=f"n{node}", device=f"eth{index}")


def _back(node: int, index: int) -> LabLink:
    return LabLink(tier=Tier.LEAF, namespace="sw", device=f"n{node}e{index}")


def _up(switch: str) -> LabLink:
    return LabLink(tier=Tier.UP, namespace="sw", device=f"{switch}up")


def _down(switch: str) -> LabLink:
    return LabLink(tier=Tier.DOWN, namespace="sw", device=f"{switch}dn")
