"""What explicit links carry when traffic takes shortest paths and splits where there are several.

All links of a node send alike, each by its rate. At every switch what is bound for a node splits over the
links that lead nearer to it: by their rates (adaptive routing, spraying, flows placed by hand), or alike for
each cable (a hash of the flow, its mean).

References
----------
C. Hopps, Analysis of an Equal-Cost Multi-Path Algorithm, RFC 2992, 2000.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.network.link_graph import UNREACHED, LinkGraph

__all__ = ["LinkLoads", "descend", "exchange_loads", "node_kinds", "shift_loads"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkLoads:
    """Bytes on every link.

    Parameters
    ----------
    trunk_bytes
        On directed trunks (trunks,) [bytes].
    out_bytes, in_bytes
        On the links of nodes, from and to them (ends,) [bytes].
    lost_bytes
        What no path leads to its node [bytes].
    """

    trunk_bytes: Floats
    out_bytes: Floats
    in_bytes: Floats
    lost_bytes: float

    def slowest_s(self, graph: LinkGraph) -> float:
        """Return the time of the link with most to carry for its rate [s].

        Parameters
        ----------
        graph
            The links.
        """
        ends = np.maximum(self.out_bytes, self.in_bytes) / graph.end_bytes_per_s
        trunks = self.trunk_bytes / graph.bytes_per_s
        return float(max(ends.max(initial=0.0), trunks.max(initial=0.0)))


def exchange_loads(
    graph: LinkGraph, *, nodes: int, node_gpus: int, domain_nodes: int = 1, by_cables: bool = False
) -> LinkLoads:
    """Return the loads of an all-to-all of one byte of full buffer: each GPU sends 1/n to each of n.

    Parameters
    ----------
    graph
        The links.
    nodes
        Nodes that take part, the first.
    node_gpus
        GPUs of one.
    domain_nodes
        Nodes of an NVLink domain, within which nothing takes the fabric.
    by_cables
        Whether traffic splits alike over cables rather than by their rates.
    """
    ranks = nodes * node_gpus
    each = node_gpus * node_gpus / ranks
    classes = node_kinds(graph, nodes)
    domains = np.arange(nodes) // domain_nodes
    sent = np.zeros((classes.max(initial=0) + 1, nodes))
    for number in range(len(sent)):
        there = np.bincount(domains[classes == number], minlength=domains[-1] + 1)
        sent[number] = each * ((classes == number).sum() - there[domains])
    return _loads(graph, classes, sent, by_cables=by_cables)


def shift_loads(graph: LinkGraph, *, nodes: int, shift: int = 1, by_cables: bool = False) -> LinkLoads:
    """Return the loads where every node sends a byte to the one some places further, the last to the first.

    Parameters
    ----------
    graph
        The links.
    nodes
        Nodes that take part, the first.
    shift
        Places.
    by_cables
        As in `exchange_loads`.
    """
    classes = node_kinds(graph, nodes)
    target = (np.arange(nodes) + shift) % nodes
    sent = np.zeros((classes.max(initial=0) + 1, nodes))
    sent[classes[target], np.arange(nodes)] = 1.0
    return _loads(graph, classes, sent, by_cables=by_cables)


def node_kinds(graph: LinkGraph, nodes: int) -> Ints:
    """Return a number for the switches and rates of each node; alike ones have the same (nodes,).

    Parameters
    ----------
    graph
        The links.
    nodes
        The first of its nodes.
    """
    of_node: list[list[tuple[int, float]]] = [[] for _ in range(nodes)]
    for node, switch, rate in zip(graph.end_node, graph.end_switch, graph.end_bytes_per_s, strict=True):
        if node < nodes:
            of_node[node].append((int(switch), float(rate)))
    numbers: dict[tuple[tuple[int, float], ...], int] = {}
    return np.array(
        [numbers.setdefault(tuple(sorted(each)), len(numbers)) for each in of_node], dtype=np.int64
    )


def _loads(graph: LinkGraph, classes: Ints, sent: Floats, *, by_cables: bool) -> LinkLoads:
    """Return the loads where node i sends `sent[c, i]` bytes to the nodes of class c, evenly."""
    nodes = len(classes)
    trunk_bytes = np.zeros(len(graph.tail))
    out_bytes, in_bytes = np.zeros(len(graph.end_node)), np.zeros(len(graph.end_node))
    taking = graph.end_node < nodes
    part = graph.cables.astype(np.float64) if by_cables else graph.bytes_per_s
    lost = 0.0
    for number, wanted in enumerate(sent):
        members = np.flatnonzero(classes == number)
        own = np.flatnonzero(taking & (graph.end_node == members[0]))
        if not len(own):
            lost += float(wanted.sum())
            continue
        near = graph.distances(graph.end_switch[own])
        able = taking & (near[graph.end_switch] < UNREACHED)
        rates = np.where(able, graph.end_bytes_per_s, 0.0)
        total = np.bincount(graph.end_node, weights=rates, minlength=nodes)[:nodes]
        lost += float(wanted[total == 0.0].sum())
        per_rate = np.divide(wanted, total, out=np.zeros(nodes), where=total > 0.0)
        leaving = np.where(able, rates * per_rate[np.minimum(graph.end_node, nodes - 1)], 0.0)
        out_bytes += leaving
        arriving = np.zeros(len(graph.names))
        np.add.at(arriving, graph.end_switch, leaving)
        trunk_bytes += descend(graph, near, arriving, part)
        _deliver(graph, members, own, arriving, in_bytes)
    return LinkLoads(trunk_bytes=trunk_bytes, out_bytes=out_bytes, in_bytes=in_bytes, lost_bytes=lost)


def descend(graph: LinkGraph, near: Ints, at_switch: Floats, part: Floats) -> Floats:
    """Return what trunks carry of the bytes at switches as they go down the distances; moves those bytes.

    Parameters
    ----------
    graph
        The links.
    near
        Distance of each switch from where the bytes go (switches,).
    at_switch
        Bytes at each switch; those that arrived at the end (switches,) [bytes].
    part
        What traffic splits by, for each trunk (trunks,).
    """
    carried = np.zeros(len(graph.tail))
    if not len(graph.tail):
        return carried
    leads = np.flatnonzero((near[graph.head] < near[graph.tail]) & (near[graph.tail] < UNREACHED))
    tail, head, weight = graph.tail[leads], graph.head[leads], part[leads]
    shares = weight / np.bincount(tail, weights=weight, minlength=len(near))[tail]
    for step in range(int(near[tail].max(initial=0)), 0, -1):
        now = near[tail] == step
        moved = at_switch[tail[now]] * shares[now]
        carried[leads[now]] = moved
        at_switch += np.bincount(head[now], weights=moved, minlength=len(near))
    return carried


def _deliver(graph: LinkGraph, members: Ints, own: Ints, at_switch: Floats, in_bytes: Floats) -> None:
    """Add what arrives at the switches of a class of nodes to the links of its nodes, alike for each node."""
    switches = graph.end_switch[own]
    order = np.argsort(switches)
    is_member = np.zeros(graph.nodes, dtype=np.bool_)
    is_member[members] = True
    ends = np.flatnonzero(is_member[graph.end_node])
    place = order[np.searchsorted(switches[order], graph.end_switch[ends])]
    in_bytes[ends] += at_switch[switches[place]] / len(members)
