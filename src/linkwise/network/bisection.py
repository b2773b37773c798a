"""Bandwidth between two halves of the nodes of a fabric."""

from __future__ import annotations

from linkwise.network.wiring import Wiring

__all__ = ["bisection_bytes_per_s", "full_bisection_bytes_per_s"]


def bisection_bytes_per_s(wiring: Wiring, *, link_bytes_per_s: float) -> float:
    """Return what the nodes of one half can send to those of the other, one direction [bytes/s].

    Parameters
    ----------
    wiring
        How the switches are joined.
    link_bytes_per_s
        What one link of the fabric carries, one direction [bytes/s].

    Notes
    -----
    The half has floor(n/2) nodes and as many whole groups as it can, since a group passes only its up-links
    on to others. Minimum cut of that half: each whole group gives the lesser of its links down and up; of the
    group that is split either the links of its part are cut, or those of its rest and its up-links. Spines
    and cores pass on what leaves send (`wire`), so no cut above the leaves is narrower.

    References
    ----------
    L. R. Ford, D. R. Fulkerson, Maximal flow through a network, 1956.
    """
    whole, part = divmod(wiring.nodes // 2, wiring.group_nodes)
    up = wiring.group_leaves * wiring.up_links
    rest = min(wiring.group_nodes, wiring.nodes - whole * wiring.group_nodes) - part
    cut = whole * min(wiring.group_nodes * wiring.node_links, up)
    cut += min(part * wiring.node_links, rest * wiring.node_links + up)
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
