"""How many nodes a fabric can grow to before it needs another tier."""

from __future__ import annotations

from linkwise.cluster import FabricKind
from linkwise.network.clos import most_down_links
from linkwise.network.dragonfly import dragonfly_reach_nodes

__all__ = ["reach_nodes"]


def reach_nodes(*, kind: FabricKind, nics: int, ports: int, oversubscription: float = 1.0) -> tuple[int, ...]:
    """Return the most nodes that one tier of switches joins, two tiers, and three.

    Parameters
    ----------
    kind
        How the switches are wired; a single switch has one tier, leaf-spine two.
    nics
        NICs of one node.
    ports
        Links that one switch takes.
    oversubscription
        Most links towards nodes for each link towards spines, at a leaf.

    Notes
    -----
    With R ports, k links of a node and d links down of a leaf (`wire`): R / k nodes on one switch; R leaves
    with two tiers; R pods of R/2 leaves with three. A leaf takes d / k nodes; a group of k rail-optimised
    leaves takes d. Each division is rounded down. Dragonfly+ has one group more
    than a group has links to others.

    References
    ----------
    M. Al-Fares, A. Loukissas, A. Vahdat, A scalable, commodity data center network architecture, 2008.
    """
    links = 1 if kind is FabricKind.RAIL_ONLY else nics
    one = ports // links
    if kind is FabricKind.SINGLE_SWITCH:
        return (one,)
    down = most_down_links(ports, oversubscription)
    if kind is FabricKind.DRAGONFLY_PLUS:
        more = dragonfly_reach_nodes(
            node_links=links, down=down, ports=ports, oversubscription=oversubscription
        )
        return (one, max(one, more))
    group_leaves, group_nodes = (links, down) if kind is FabricKind.RAIL_OPTIMIZED else (1, down // links)
    two = ports // group_leaves * group_nodes
    if kind is FabricKind.LEAF_SPINE:
        return (one, max(one, two))
    three = ports // 2 * ports // group_leaves * group_nodes
    return (one, max(one, two), max(one, two, three))
