"""Bandwidth between two halves of the nodes of a fabric."""

from __future__ import annotations

from collections.abc import Iterator

from linkwise.network.wiring import Wiring

__all__ = ["bisection_bytes_per_s", "full_bisection_bytes_per_s"]


def bisection_bytes_per_s(wiring: Wiring, *, link_bytes_per_s: float) -> float:
    """Return the least that the nodes of one half can send to those of the other, one direction [bytes/s].

    Parameters
    ----------
    wiring
        How the switches are joined.
    link_bytes_per_s
        What one link of the fabric carries, one direction [bytes/s].

    Notes
    -----
    The least of all ways to halve the nodes, floor(n/2) and the rest. With the spines on the side of the
    rest, a leaf with x links to each of its nodes, `a` of s of them in the half, adds min(a x, (s - a) x +
    up-links) to the minimum cut. That is concave in `a`, so in the narrowest cut at most one group is split.
    Spines and cores pass on what leaves send (`wire`), so no cut above the leaves is narrower.
    Each group of dragonfly-plus has its spines on one side: of g groups k and g - k are joined by k (g - k) t
    links, and the nodes that are missing for a half are those of leaves on the other side. That is exact
    where groups are alike; a smaller last group may have a few links less when its spines part, which is left
    out.

    References
    ----------
    L. R. Ford, D. R. Fulkerson, Maximal flow through a network, 1956.
    """
    half = wiring.nodes // 2
    if wiring.pair_links:
        return wiring.networks * _grouped_cut(wiring, half) * link_bytes_per_s
    cut = min(
        sum(_group_cut(wiring, nodes, inside) for nodes, inside in groups)
        for size in {half, wiring.nodes - half}
        for groups in _halves(wiring, size)
    )
    return wiring.networks * cut * link_bytes_per_s


def full_bisection_bytes_per_s(wiring: Wiring, *, link_bytes_per_s: float) -> float:
    """Return what all NICs of half the nodes carry, one direction: the bisection of an ideal fabric.

    Parameters
    ----------
    wiring
        How the switches are joined.
    link_bytes_per_s
        What one link of the fabric carries, one direction [bytes/s].
    """
    return wiring.networks * (wiring.nodes // 2) * wiring.node_links * link_bytes_per_s


def _halves(wiring: Wiring, size: int) -> Iterator[list[tuple[int, int]]]:
    """Yield halves that split at most one group: of each group its nodes and how many are inside."""
    full, group = wiring.nodes // wiring.group_nodes, wiring.group_nodes
    last = wiring.nodes % group
    for taken in {0, min(size, last), min(size % group, last)}:
        whole, part = divmod(size - taken, group)
        if whole < full or (whole == full and not part):
            yield [(group, group)] * whole + [(group, part)] * (part > 0) + [(last, taken)] * (taken > 0)


def _group_cut(wiring: Wiring, nodes: int, inside: int) -> int:
    """Return the links that a group with so many nodes inside the half adds to its cut."""
    most = wiring.leaf_node_links
    of_leaves = (min(most, wiring.node_links - first) for first in range(0, wiring.node_links, most))
    return sum(min(inside * each, (nodes - inside) * each + wiring.up_links) for each in of_leaves)


def _grouped_cut(wiring: Wiring, half: int) -> int:
    """Return the links of the narrowest cut into halves of a dragonfly-plus fabric."""
    last_leaves = wiring.leaves - (wiring.pods - 1) * wiring.pod_leaves
    last = wiring.nodes - (wiring.pods - 1) * wiring.pod_leaves * wiring.group_nodes
    full = wiring.pod_leaves * wiring.group_nodes
    cuts: list[int] = []
    for inside in range(wiring.pods + 1):
        between = inside * (wiring.pods - inside) * wiring.pair_links
        for has_last in {inside == wiring.pods, inside > 0}:
            nodes = (inside - has_last) * full + (last if has_last else 0)
            leaves = (inside - has_last) * wiring.pod_leaves + (last_leaves if has_last else 0)
            cuts.extend(
                between + _moved(wiring, surplus, leaves=leaves, has_last=has_last)
                if surplus >= 0
                else between + _moved(wiring, -surplus, leaves=wiring.leaves - leaves, has_last=not has_last)
                for surplus in (nodes - half, nodes - (wiring.nodes - half))
            )
    return min(cuts)


def _moved(wiring: Wiring, nodes: int, *, leaves: int, has_last: bool) -> int:
    """Return the fewest links that nodes are cut off by, below so many leaves with their spines.

    A leaf with `a` of its s nodes on the other side adds min(a x, (s - a) x + up-links), which is concave in
    `a`: at most one leaf is split. The last leaf of the fabric may have fewer nodes.
    """
    if not nodes:
        return 0
    size, each = wiring.group_nodes, wiring.leaf_node_links
    short = wiring.nodes - (wiring.leaves - 1) * size if has_last else 0
    full = leaves - has_last

    def cut(of: int, moved: int) -> int:
        return min(moved * each, (of - moved) * each + wiring.up_links)

    found = []
    for taken in {0, min(nodes, short), min(nodes % size, short)}:
        whole, part = divmod(nodes - taken, size)
        if whole < full or (whole == full and not part):
            found.append(whole * cut(size, size) + cut(size, part) + cut(short, taken))
    return min(found)
