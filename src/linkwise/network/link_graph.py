"""A fabric of explicit links as arrays: switches, trunks between them, and where nodes are joined to them.

A cable between two nodes is a switch of two ports that no one buys. Nodes end what they get, so that paths
lead over switches alone. Every trunk is two directed ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from linkwise.cluster import Cluster
from linkwise.cluster.link_table import LinkTable, node_number
from linkwise.errors import InputError

__all__ = ["UNREACHED", "LinkCounts", "LinkGraph", "graph_of", "link_counts", "link_graph"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

UNREACHED = np.iinfo(np.int64).max // 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkGraph:
    """Switches and the links between them and to nodes.

    Parameters
    ----------
    names
        Names of the switches; those after `switches` stand for cables between two nodes.
    switches
        How many are switches.
    nodes
        Operating systems.
    tail, head
        Switch that a directed trunk leaves and enters (trunks,); trunk ``i`` and ``i + trunks / 2`` are the
        two directions of one.
    cables
        Cables of each directed trunk (trunks,).
    bytes_per_s
        What each carries, all its cables (trunks,) [bytes/s].
    end_node, end_switch
        Node and switch of the links of one row between them (ends,).
    end_cables, end_bytes_per_s
        Cables, and what all of them carry in each direction (ends,) [bytes/s].
    """

    names: tuple[str, ...]
    switches: int
    nodes: int
    tail: Ints
    head: Ints
    cables: Ints
    bytes_per_s: Floats
    end_node: Ints
    end_switch: Ints
    end_cables: Ints
    end_bytes_per_s: Floats

    @property
    def node_bytes_per_s(self) -> Floats:
        """Return what all links of each node carry in one direction (nodes,) [bytes/s]."""
        found = np.bincount(self.end_node, weights=self.end_bytes_per_s, minlength=self.nodes)
        return found.astype(np.float64)

    @property
    def tiers(self) -> Ints:
        """Return how many links each switch is away from the nearest node, from 1 (switches,)."""
        found = self.distances(np.unique(self.end_switch)) + 1
        return np.where(found < UNREACHED, found, 1)

    def distances(self, targets: Ints) -> Ints:
        """Return the trunks of the shortest path from each switch to any of some (switches,).

        Parameters
        ----------
        targets
            Switches.
        """
        found = np.full(len(self.names), UNREACHED, dtype=np.int64)
        found[targets] = 0
        step = 0
        while True:
            reached = (found[self.head] == step) & (found[self.tail] == UNREACHED)
            if not reached.any():
                return found
            step += 1
            found[self.tail[reached]] = step

    def networks(self) -> Ints:
        """Return the number of the network of each switch: what links between switches join (switches,)."""
        found = np.arange(len(self.names))
        while True:
            lower = found.copy()
            np.minimum.at(lower, self.head, found[self.tail])
            lower = lower[lower]
            if np.array_equal(lower, found):
                return np.unique(found, return_inverse=True)[1].astype(np.int64)
            found = lower

    def with_trunk(self, trunk: int, cables: int) -> LinkGraph:
        """Return the same with fewer cables in one trunk, both directions.

        Parameters
        ----------
        trunk
            Number of a directed trunk below half of them.
        cables
            How many are left; the trunk goes at 0.
        """
        half = len(self.tail) // 2
        left = self.cables.copy()
        left[[trunk, trunk + half]] = cables
        rates = self.bytes_per_s * (left / self.cables)
        kept = left > 0
        return replace(
            self, tail=self.tail[kept], head=self.head[kept], cables=left[kept], bytes_per_s=rates[kept]
        )

    def with_end(self, end: int, cables: int) -> LinkGraph:
        """Return the same with fewer cables between one node and one switch.

        Parameters
        ----------
        end
            Number of the row.
        cables
            How many are left; the row goes at 0.
        """
        left = self.end_cables.copy()
        left[end] = cables
        return self.with_ends(left > 0, left, self.end_bytes_per_s * (left / self.end_cables))

    def without_switch(self, switch: int) -> LinkGraph:
        """Return the same without the links of a switch.

        Parameters
        ----------
        switch
            Its number.
        """
        kept = (self.tail != switch) & (self.head != switch)
        trunks = replace(
            self,
            tail=self.tail[kept],
            head=self.head[kept],
            cables=self.cables[kept],
            bytes_per_s=self.bytes_per_s[kept],
        )
        return trunks.with_ends(self.end_switch != switch, self.end_cables, self.end_bytes_per_s)

    def with_ends(self, kept: Flags, cables: Ints, bytes_per_s: Floats) -> LinkGraph:
        """Return the same with other links between nodes and switches.

        Parameters
        ----------
        kept
            Which rows stay (ends,).
        cables, bytes_per_s
            Of all rows (ends,) [bytes/s].
        """
        return replace(
            self,
            end_node=self.end_node[kept],
            end_switch=self.end_switch[kept],
            end_cables=cables[kept],
            end_bytes_per_s=bytes_per_s[kept],
        )

    def without_nodes(self, missing: tuple[int, ...]) -> LinkGraph:
        """Return the same without some nodes; the others move up.

        Parameters
        ----------
        missing
            Their numbers.
        """
        if not missing:
            return self
        left = np.delete(np.arange(self.nodes), missing)
        place = np.full(self.nodes, -1)
        place[left] = np.arange(len(left))
        there = self.with_ends(place[self.end_node] >= 0, self.end_cables, self.end_bytes_per_s)
        return there.renumbered(place, len(left))

    def renumbered(self, place: Ints, nodes: int) -> LinkGraph:
        """Return the same with other numbers of nodes.

        Parameters
        ----------
        place
            New number of each node that has a link (nodes,).
        nodes
            How many there are then.
        """
        return replace(self, nodes=nodes, end_node=place[self.end_node])


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkCounts:
    """The pieces of a fabric of explicit links.

    Parameters
    ----------
    switches
        Switches.
    node_cables, switch_cables
        Cables that nodes have, and those between switches.
    is_one_rate
        Whether all links carry the same.
    """

    switches: int
    node_cables: int
    switch_cables: int
    is_one_rate: bool


def link_counts(graph: LinkGraph) -> LinkCounts:
    """Return how many switches and cables there are; one between two nodes is a cable of nodes.

    Parameters
    ----------
    graph
        The links.
    """
    real = graph.end_switch < graph.switches
    rates = np.concatenate((graph.bytes_per_s / graph.cables, graph.end_bytes_per_s / graph.end_cables))
    return LinkCounts(
        switches=graph.switches,
        node_cables=int(graph.end_cables[real].sum() + graph.end_cables[~real].sum() // 2),
        switch_cables=int(graph.cables.sum()) // 2,
        is_one_rate=bool(np.allclose(rates, rates[0], rtol=1e-3)),
    )


def graph_of(cluster: Cluster) -> LinkGraph:
    """Return the links of a cluster.

    Parameters
    ----------
    cluster
        With a table of links.

    Raises
    ------
    InputError
        When it has none.
    """
    if cluster.fabric.table is None:
        raise InputError(f"{cluster.name} has no table of links; write kind: links with one")
    return link_graph(cluster.fabric.table, nodes=cluster.nodes)


def link_graph(table: LinkTable, *, nodes: int) -> LinkGraph:
    """Return a table as arrays.

    Parameters
    ----------
    table
        The links, each with its rate.
    nodes
        Operating systems.
    """
    named = dict.fromkeys(end for row in table.links for end in row.ends if node_number(end) is None)
    number = {name: place for place, name in enumerate(named)}
    names = list(number)
    trunks: dict[tuple[int, int], tuple[int, float]] = {}
    ends: dict[tuple[int, int], tuple[int, float]] = {}
    for row in table.links:
        more = row.count, row.count * (row.bytes_per_s or 0.0)
        here, there = (node_number(end) for end in row.ends)
        if here is None and there is None:
            pair = sorted((number[row.ends[0]], number[row.ends[1]]))
            _add(trunks, (pair[0], pair[1]), more)
        elif here is not None and there is not None:
            names.append(f"{row.ends[0]} to {row.ends[1]}")
            _add(ends, (here, len(names) - 1), more)
            _add(ends, (there, len(names) - 1), more)
        else:
            node, switch = (here, row.ends[1]) if here is not None else (there, row.ends[0])
            _add(ends, (node or 0, number[switch]), more)
    low, high = (np.array([pair[side] for pair in trunks], dtype=np.int64) for side in (0, 1))
    return LinkGraph(
        names=tuple(names),
        switches=len(number),
        nodes=nodes,
        tail=np.concatenate((low, high)),
        head=np.concatenate((high, low)),
        cables=np.tile(np.array([count for count, _ in trunks.values()], dtype=np.int64), 2),
        bytes_per_s=np.tile(np.array([rate for _, rate in trunks.values()], dtype=np.float64), 2),
        end_node=np.array([node for node, _ in ends], dtype=np.int64),
        end_switch=np.array([switch for _, switch in ends], dtype=np.int64),
        end_cables=np.array([count for count, _ in ends.values()], dtype=np.int64),
        end_bytes_per_s=np.array([rate for _, rate in ends.values()], dtype=np.float64),
    )


def _add(
    links: dict[tuple[int, int], tuple[int, float]], key: tuple[int, int], more: tuple[int, float]
) -> None:
    count, rate = links.get(key, (0, 0.0))
    links[key] = count + more[0], rate + more[1]
