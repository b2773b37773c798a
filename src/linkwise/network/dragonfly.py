"""Dragonfly+ fabrics: groups of leaves and spines, each two of them joined by as many links as any other two.

A group is a leaf-spine network. Its spines give half their ports to its leaves; the others lead to spines of
other groups. Link n of a group, counted over its peers in their order, is on spine n modulo the spines, so
that the links of every two groups are on as many different spines as can be.

References
----------
A. Shpiner et al., Dragonfly+: Low Cost Topology for Scaling Datacenters, HiPINEB 2017.
J. Kim et al., Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA 2008.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from linkwise.errors import InputError
from linkwise.network.trunks import Tree, count_line, even_trunks, leaf_line
from linkwise.network.wiring import Wiring

__all__ = ["detour_slowdown", "direct_slowdown", "dragonfly_reach_nodes", "dragonfly_tree", "global_ends"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    """What a network is asked for, as `wire` has it; `room` is how many nodes a leaf takes."""

    nodes: int
    node_links: int
    down: int
    ports: int
    oversubscription: float

    @property
    def room(self) -> int:
        return self.down // self.node_links

    @property
    def half(self) -> int:
        return self.ports // 2


def dragonfly_tree(
    *,
    nodes: int,
    node_links: int,
    down: int,
    ports: int,
    oversubscription: float,
    groups: int | None,
    lines: list[str],
) -> Tree:
    """Return leaves, spines and links between groups of one network; appends its arithmetic.

    Parameters
    ----------
    nodes, node_links
        Operating systems, and links of one.
    down
        Most links of a leaf towards nodes.
    ports
        Links that one switch takes.
    oversubscription
        Most links towards nodes for each link towards spines, at a leaf.
    groups
        Groups; ``None`` takes the fewest.
    lines
        What arithmetic is appended to.

    Raises
    ------
    InputError
        If the ports do not suffice; the message says which count breaks.

    Notes
    -----
    With R ports a spine has R/2 leaves at most and no more links to other groups than to its leaves: what
    comes from above could not go down. Full groups are k/2 leaves of k/2 links down, (k/2)^2 hosts (Shpiner
    et al.), and the free ports of the spines of a group divided by the other groups are the links of a pair.
    """
    ask = _Ask(nodes=nodes, node_links=node_links, down=down, ports=ports, oversubscription=oversubscription)
    if node_links > down:
        raise InputError(
            f"dragonfly-plus: the {node_links} NICs of a node end on one leaf, but of the {ports} ports of a "
            f"switch only {down} lead to nodes; choose rail-optimized, or a switch with more ports"
        )
    if groups is not None:
        tree = _stated_groups(ask, groups)
    else:
        leaves = -(-nodes // ask.room)
        count = -(-leaves // ask.half)
        tree = _grouped(ask, pod_leaves=-(-leaves // count))
        if (
            tree.pods > 1 and not tree.pair_links
        ):  # alike in size they may have too few spines; full ones more
            tree = _grouped(ask, pod_leaves=ask.half)
    if tree.pods > 1 and not tree.pair_links:
        free = tree.pod_spines * _free_ports(tree, ports)
        raise InputError(
            f"dragonfly-plus: {tree.pods:,} groups need a link to each of {tree.pods - 1:,} others, and the "
            f"spines of one have {free:,} ports for those; choose a switch with more than {ports} ports, or "
            "fat-tree"
        )
    lines.extend(_lines(ask, tree))
    return tree


def _stated_groups(ask: _Ask, groups: int) -> Tree:
    group_nodes = -(-ask.nodes // groups)
    pod_leaves = -(-group_nodes // ask.room)
    if pod_leaves > ask.half:
        most = ask.half * ask.room
        raise InputError(
            f"dragonfly-plus: {groups} groups of {group_nodes:,} nodes need {pod_leaves:,} leaves each, "
            f"and a spine gives {ask.half} of its {ask.ports} ports to leaves; choose "
            f"{-(-ask.nodes // most):,} groups or more"
        )
    tree = _grouped(ask, pod_leaves=pod_leaves, leaf_nodes=-(-group_nodes // pod_leaves))
    if tree.pods != groups:
        raise InputError(
            f"dragonfly-plus: groups of {tree.pod_leaves} leaves with {tree.group_nodes} nodes each take "
            f"{ask.nodes:,} nodes in {tree.pods} groups, not {groups}; write groups: {tree.pods}, or "
            "more nodes"
        )
    return tree


def _grouped(ask: _Ask, *, pod_leaves: int, leaf_nodes: int | None = None) -> Tree:
    """Return the network whose groups have so many leaves; the last may have fewer."""
    if leaf_nodes is None:
        leaf_nodes = -(-ask.nodes // -(-ask.nodes // ask.room))
    leaves = -(-ask.nodes // leaf_nodes)
    used = leaf_nodes * ask.node_links
    least = math.ceil(used / ask.oversubscription - 1e-9)
    spines, up_links = even_trunks(pod_leaves, least, ask.ports - used, ask.half)
    pods = -(-leaves // pod_leaves)
    tree = Tree(
        group_nodes=leaf_nodes,
        group_leaves=1,
        leaves=leaves,
        pod_leaves=pod_leaves,
        up_links=up_links,
        pods=pods,
        pod_spines=spines,
    )
    if pods == 1:
        return tree
    return tree.joined(spines * _free_ports(tree, ask.ports) // (pods - 1))


def _free_ports(tree: Tree, ports: int) -> int:
    """Return the ports of a spine for other groups."""
    down = tree.pod_leaves * tree.up_links // tree.pod_spines
    return min(down, ports - down)


def _lines(ask: _Ask, tree: Tree) -> Iterator[str]:
    used = tree.group_nodes * ask.node_links
    least = math.ceil(used / ask.oversubscription - 1e-9)
    yield (
        f"leaves: {ask.down} links down take {ask.room} nodes of {ask.node_links}; {ask.nodes:,} nodes / "
        f"{tree.group_nodes} = {tree.leaves:,}"
    )
    yield leaf_line(ask.ports, used, ask.down, tree.up_links, least, ask.oversubscription)
    yield f"groups: {tree.leaves:,} leaves / {tree.pod_leaves} ({ask.half} at most) = {tree.pods:,}"
    product = f"{tree.pod_leaves} leaves x {tree.up_links}"
    ends = tree.pod_leaves * tree.up_links
    spines = count_line("spines of a group", product, ends, ask.half, tree.pod_spines)
    yield f"{spines}; {tree.pods:,} x {tree.pod_spines} = {tree.pods * tree.pod_spines:,}"
    if tree.pods > 1:
        free, others = _free_ports(tree, ask.ports), tree.pods - 1
        yield (
            f"links between two groups: {tree.pod_spines} spines x {free} ports / {others:,} other groups = "
            f"{tree.pair_links:,}; {tree.pods:,} x {others:,} / 2 pairs x {tree.pair_links:,} = "
            f"{tree.pods * others // 2 * tree.pair_links:,}"
        )


def dragonfly_reach_nodes(*, node_links: int, down: int, ports: int, oversubscription: float) -> int:
    """Return the most nodes of full groups, each two joined by one link.

    Parameters
    ----------
    node_links
        Links of one node.
    down
        Most links of a leaf towards nodes.
    ports
        Links that one switch takes.
    oversubscription
        Most links towards nodes for each link towards spines, at a leaf.
    """
    ask = _Ask(
        nodes=down // node_links * (ports // 2),
        node_links=node_links,
        down=down,
        ports=ports,
        oversubscription=oversubscription,
    )
    if not ask.nodes:
        return 0
    tree = _grouped(ask, pod_leaves=ask.half)
    return ask.nodes * (tree.pod_spines * _free_ports(tree, ports) + 1)


def global_ends(wiring: Wiring) -> Iterator[tuple[int, int, int, int]]:
    """Yield spine and place among its global links at both ends of every link between groups.

    Parameters
    ----------
    wiring
        A dragonfly-plus fabric.
    """
    for one in range(wiring.pods):
        for other in range(one + 1, wiring.pods):
            for link in range(wiring.pair_links):
                here = (other - 1) * wiring.pair_links + link
                there = one * wiring.pair_links + link
                yield (
                    one * wiring.pod_spines + here % wiring.pod_spines,
                    here // wiring.pod_spines,
                    other * wiring.pod_spines + there % wiring.pod_spines,
                    there // wiring.pod_spines,
                )


def direct_slowdown(wiring: Wiring) -> float:
    """Return how much longer than its NICs a group takes to send to one other on direct links alone [1].

    Parameters
    ----------
    wiring
        A dragonfly-plus fabric of two groups or more.
    """
    return max(1.0, wiring.oversubscription, wiring.pod_leaves * wiring.down_links / wiring.pair_links)


def detour_slowdown(wiring: Wiring) -> float:
    """Return the same where routing is adaptive and may pass through a third group [1].

    Parameters
    ----------
    wiring
        A dragonfly-plus fabric of two groups or more.

    Notes
    -----
    Every group sends to the next. Of the H links of its nodes a part p goes over the t direct links, the rest
    through the g - 2 others: each other link then carries 2 (1 - p) H / ((g - 2) t), first and second hops
    together. Both are alike at p = 2 / g, where all links carry 2 H / (g t).
    """
    ends = wiring.pod_leaves * wiring.down_links
    return max(1.0, wiring.oversubscription, 2.0 * ends / (wiring.pods * wiring.pair_links))
