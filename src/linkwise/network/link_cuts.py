"""The narrowest cut of explicit links into two halves of the nodes.

What one half can send to the other is a maximum flow. It is concave in how many nodes of each kind (of the
same switches and rates) are in the half, so that the narrowest halves have whole kinds but for one that is
split. With few kinds all such halves are tried, else those that grow around one switch, and that in the order
of ranks: then a narrower one may be there.

References
----------
L. R. Ford, D. R. Fulkerson, Maximal flow through a network, 1956.
E. A. Dinic, Algorithm for solution of a problem of maximum flow in networks with power estimation, 1970.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from linkwise.network.link_graph import UNREACHED, LinkGraph
from linkwise.network.link_loads import node_kinds

__all__ = ["Bisection", "halves_flow_bytes_per_s", "link_bisection", "narrowest_kind"]

Ints = NDArray[np.int64]

_MOST_KINDS = 8
"""Kinds of nodes up to which all halves are tried: 8 x 2^7 at most."""

_MOST_WORK = 1_000_000
"""Trunks times halves that are tried, a few seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisection:
    """The narrowest cut that was found.

    Parameters
    ----------
    bytes_per_s
        What crosses it in one direction [bytes/s].
    exact
        Whether no half is left that might be narrower.
    halves
        How many were tried.
    """

    bytes_per_s: float
    exact: bool
    halves: int


def link_bisection(graph: LinkGraph) -> Bisection:
    """Return the least that the nodes of one half can send to those of the other.

    Parameters
    ----------
    graph
        The links.
    """
    kinds = node_kinds(graph, graph.nodes)
    sizes = np.bincount(kinds)
    exact = len(sizes) <= _MOST_KINDS and len(graph.tail) * len(sizes) << len(sizes) <= _MOST_WORK
    found = _all_halves(sizes, graph.nodes) if exact else _some_halves(graph, kinds, sizes)
    tried: dict[tuple[int, ...], float] = {}
    most = max(2, _MOST_WORK // max(1, len(graph.tail)))
    for inside in found:
        if not exact and len(tried) >= most:
            break
        key = tuple(int(each) for each in inside)
        if key not in tried:
            tried[key] = _flow(graph, kinds, sizes, inside)
    return Bisection(bytes_per_s=min(tried.values(), default=0.0), exact=exact, halves=len(tried))


def halves_flow_bytes_per_s(graph: LinkGraph, inside: Ints) -> float:
    """Return what some nodes can send to the others [bytes/s].

    Parameters
    ----------
    graph
        The links.
    inside
        Nodes of one side.
    """
    kinds = np.arange(graph.nodes)
    return _flow(
        graph, kinds, np.ones(graph.nodes, dtype=np.int64), np.bincount(inside, minlength=graph.nodes)
    )


def narrowest_kind(graph: LinkGraph) -> tuple[int, float, float, int]:
    """Return the set of nodes on the same switches that lets least out for what its nodes send.

    Parameters
    ----------
    graph
        The links.

    Returns
    -------
    tuple
        Nodes of the set, what their links carry and what can leave the set [bytes/s], and how many such sets
        there are.
    """
    kinds = node_kinds(graph, graph.nodes)
    sizes = np.bincount(kinds)
    rates = np.bincount(kinds, weights=graph.node_bytes_per_s)
    found = (0, 0.0, 0.0)
    most = max(8, _MOST_WORK // max(1, len(graph.tail)))
    for kind in range(min(len(sizes), most)):
        inside = np.where(np.arange(len(sizes)) == kind, sizes, 0)
        out = _flow(graph, kinds, sizes, inside) if len(sizes) > 1 else 0.0
        if not found[0] or rates[kind] * found[2] > found[1] * out:
            found = (int(sizes[kind]), float(rates[kind]), out)
    return (*found, len(sizes))


def _all_halves(sizes: Ints, nodes: int) -> Iterator[Ints]:
    """Yield how many nodes of each kind are in a half, at most one kind split."""
    half = nodes // 2
    for split in range(len(sizes)):
        others = [range(0, int(size) + 1, int(size)) for size in sizes]
        others[split] = range(1)
        for whole in product(*others):
            rest = half - sum(whole)
            if 0 <= rest <= sizes[split]:
                inside = np.array(whole, dtype=np.int64)
                inside[split] = rest
                yield inside


def _some_halves(graph: LinkGraph, kinds: Ints, sizes: Ints) -> Iterator[Ints]:
    """Yield halves in the order of ranks, and those around the switches of one kind."""
    half = graph.nodes // 2
    yield np.bincount(kinds[:half], minlength=len(sizes))
    first = np.unique(kinds, return_index=True)[1]
    spread = np.random.default_rng(0).permutation(len(sizes))
    for seed in spread:
        own = graph.end_switch[graph.end_node == first[seed]]
        away = graph.distances(own)
        nearest = np.full(graph.nodes, UNREACHED)
        np.minimum.at(nearest, graph.end_node, away[graph.end_switch])
        order = np.argsort(nearest[first], kind="stable")
        yield _filled(sizes, order, half)


def _filled(sizes: Ints, order: Ints, half: int) -> Ints:
    inside = np.zeros(len(sizes), dtype=np.int64)
    for kind in order:
        inside[kind] = min(int(sizes[kind]), half)
        half -= int(inside[kind])
    return inside


def _flow(graph: LinkGraph, kinds: Ints, sizes: Ints, inside: Ints) -> float:
    """Return the maximum flow from so many nodes of each kind to the rest; nodes of a kind are merged."""
    count = len(graph.names)
    network = _Network(count + 2)
    share = inside / sizes
    kind = kinds[graph.end_node]
    for place, split in ((count, share[kind]), (count + 1, 1.0 - share[kind])):
        rates = np.bincount(graph.end_switch, weights=split * graph.end_bytes_per_s, minlength=count)
        for switch in np.flatnonzero(rates):
            ends = (place, int(switch)) if place == count else (int(switch), place)
            network.add(*ends, float(rates[switch]))
    for tail, head, rate in zip(
        graph.tail.tolist(), graph.head.tolist(), graph.bytes_per_s.tolist(), strict=True
    ):
        network.add(tail, head, rate)
    return network.flow(count, count + 1)


class _Network:
    """Directed edges with what is left of their capacity; edge ``i ^ 1`` is the way back of edge ``i``."""

    def __init__(self, vertices: int) -> None:
        self.edges: list[list[int]] = [[] for _ in range(vertices)]
        self.heads: list[int] = []
        self.left: list[float] = []

    def add(self, tail: int, head: int, capacity: float) -> None:
        """Add an edge."""
        for start, end, most in ((tail, head, capacity), (head, tail, 0.0)):
            self.edges[start].append(len(self.heads))
            self.heads.append(end)
            self.left.append(most)

    def flow(self, source: int, sink: int) -> float:
        """Return the maximum flow; uses up the capacities."""
        total, least = 0.0, 1e-9 * max(self.left, default=0.0)
        while (level := self._levels(source, least))[sink] >= 0:
            following = [0] * len(self.edges)
            while pushed := self._push(source, sink, level, following, least):
                total += pushed
        return total

    def _levels(self, source: int, least: float) -> list[int]:
        level = [-1] * len(self.edges)
        level[source] = 0
        todo = [source]
        for vertex in todo:
            for edge in self.edges[vertex]:
                if self.left[edge] > least and level[self.heads[edge]] < 0:
                    level[self.heads[edge]] = level[vertex] + 1
                    todo.append(self.heads[edge])
        return level

    def _push(self, source: int, sink: int, level: list[int], following: list[int], least: float) -> float:
        """Send what one more path of rising levels carries; 0 where there is none."""
        path: list[int] = []
        vertex = source
        while vertex != sink:
            edges = self.edges[vertex]
            while following[vertex] < len(edges):
                edge = edges[following[vertex]]
                if self.left[edge] > least and level[self.heads[edge]] == level[vertex] + 1:
                    break
                following[vertex] += 1
            else:
                if not path:
                    return 0.0
                vertex = self.heads[path.pop() ^ 1]
                following[vertex] += 1
                continue
            path.append(edge)
            vertex = self.heads[edge]
        most = min(self.left[edge] for edge in path)
        for edge in path:
            self.left[edge] -= most
            self.left[edge ^ 1] += most
        return most
