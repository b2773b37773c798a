"""What is left of a fabric when one of its parts fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from linkwise.network.wiring import Wiring

__all__ = ["PARTS", "Failure", "worst_failures"]


PARTS = (
    "nic",
    "node-leaf link",
    "leaf-spine link",
    "spine-core link",
    "global link",
    "leaf",
    "spine",
    "core",
    "node",
)
"""Classes of parts, links before switches, from the nodes upwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The worst failure of one part of a class.

    Parameters
    ----------
    part
        The class, one of `PARTS`.
    count
        Parts of the class in the fabric.
    traffic
        Whose bandwidth falls, in words.
    gpus
        GPUs it falls for.
    remaining_fraction
        What those GPUs have left for that traffic, over what they had [1].
    cut_off_gpus
        GPUs that no longer reach others over the fabric.
    """

    part: str
    count: int
    traffic: str
    gpus: int
    remaining_fraction: float
    cut_off_gpus: int = 0


def worst_failures(wiring: Wiring, *, gpus_per_node: int) -> tuple[Failure, ...]:
    """Return the worst single failure of each class of parts that the fabric has.

    Parameters
    ----------
    wiring
        How the switches are joined.
    gpus_per_node
        GPUs of one operating system.

    Notes
    -----
    Parts of a class differ only in how many nodes their group has, so the worst is one of the fullest group.
    What leaves a leaf is at most min(links down, links up); a failure takes links from the latter, and
    traffic spreads evenly over those that are left, as the routing of the fabric does once it knows. With z
    planes one of them is hit and the others are whole: (z - 1 + x) / z. With one rail per leaf a node keeps
    the NICs of its other rails. A spine of dragonfly-plus takes its links to other groups with it; of two
    groups the direct links are looked at, which routing past a third group adds to.
    """
    found = (
        *_node_side(wiring, gpus_per_node),
        *_leaf_side(wiring, gpus_per_node),
        *_core_side(wiring, gpus_per_node),
        *_global_side(wiring, gpus_per_node),
    )
    return tuple(sorted(found, key=lambda failure: PARTS.index(failure.part)))


def _node_side(wiring: Wiring, gpus_per_node: int) -> Iterator[Failure]:
    links = wiring.nics * wiring.planes
    yield Failure(
        part="node",
        count=wiring.nodes,
        traffic="all of the node",
        gpus=gpus_per_node,
        remaining_fraction=0.0,
        cut_off_gpus=gpus_per_node,
    )
    yield Failure(
        part="nic",
        count=wiring.nodes * wiring.nics,
        traffic="between the node and the fabric",
        gpus=gpus_per_node,
        remaining_fraction=1.0 - 1.0 / wiring.nics,
        cut_off_gpus=gpus_per_node if wiring.nics == 1 else 0,
    )
    yield Failure(
        part="node-leaf link",
        count=wiring.node_cables,
        traffic="between the node and the fabric",
        gpus=gpus_per_node,
        remaining_fraction=1.0 - 1.0 / links,
        cut_off_gpus=gpus_per_node if links == 1 else 0,
    )
    group_gpus = wiring.group_nodes * gpus_per_node
    alone = wiring.leaf_node_links == links
    yield Failure(
        part="leaf",
        count=wiring.networks * wiring.leaves,
        traffic="between its nodes and the fabric",
        gpus=group_gpus,
        remaining_fraction=1.0 - wiring.leaf_node_links / links,
        cut_off_gpus=group_gpus if alone else 0,
    )


def _leaf_side(wiring: Wiring, gpus_per_node: int) -> Iterator[Failure]:
    if not wiring.spines:
        return
    yield Failure(
        part="leaf-spine link",
        count=wiring.spine_cables,
        traffic="from its NICs to other leaves",
        gpus=_gpus(wiring, wiring.down_links, gpus_per_node),
        remaining_fraction=_left(wiring, wiring.down_links, wiring.up_links, lost=1),
    )
    remaining = _left(wiring, wiring.down_links, wiring.up_links, lost=wiring.spine_trunk)
    traffic = "between leaves of its pod" if wiring.pods > 1 else "between leaves"
    if wiring.pair_links:
        there = (wiring.pods - 1) * wiring.pair_links
        need = min(wiring.pod_leaves * wiring.down_links, there)
        remaining = min(remaining, _left(wiring, need, there, lost=-(-there // wiring.pod_spines)))
        traffic = "of its group"
    yield Failure(
        part="spine",
        count=wiring.networks * wiring.spines,
        traffic=traffic,
        gpus=_gpus(wiring, _pod_links(wiring), gpus_per_node),
        remaining_fraction=remaining,
    )


def _global_side(wiring: Wiring, gpus_per_node: int) -> Iterator[Failure]:
    if not wiring.pair_links:
        return
    ends = min(2 * _pod_links(wiring), wiring.nodes * wiring.node_links)
    need = min(wiring.pair_links, _pod_links(wiring))
    yield Failure(
        part="global link",
        count=wiring.global_cables,
        traffic="between its groups, directly",
        gpus=_gpus(wiring, ends, gpus_per_node),
        remaining_fraction=_left(wiring, need, wiring.pair_links, lost=1),
    )


def _core_side(wiring: Wiring, gpus_per_node: int) -> Iterator[Failure]:
    if not wiring.cores:
        return
    need = wiring.pod_leaves * min(wiring.down_links, wiring.up_links)
    there = wiring.pod_spines * wiring.core_links
    yield Failure(
        part="spine-core link",
        count=wiring.core_cables,
        traffic="from the pod to other pods",
        gpus=_gpus(wiring, _pod_links(wiring), gpus_per_node),
        remaining_fraction=_left(wiring, need, there, lost=1),
    )
    yield Failure(
        part="core",
        count=wiring.networks * wiring.cores,
        traffic="between pods",
        gpus=_gpus(wiring, wiring.nodes * wiring.node_links, gpus_per_node),
        remaining_fraction=_left(wiring, need, there, lost=wiring.core_trunk),
    )


def _left(wiring: Wiring, need: int, there: int, *, lost: int) -> float:
    """Return the share left when one plane loses some of its links and only so many are needed."""
    share = min(need, there - lost) / min(need, there)
    return (wiring.planes - 1 + share) / wiring.planes


def _pod_links(wiring: Wiring) -> int:
    """Return the links of nodes into the leaves of a full pod."""
    return min(wiring.pod_leaves * wiring.down_links, wiring.nodes * wiring.node_links)


def _gpus(wiring: Wiring, node_links: int, gpus_per_node: int) -> int:
    """Return the GPUs that so many links of nodes into one network serve."""
    return -(-node_links * gpus_per_node // wiring.nics)
