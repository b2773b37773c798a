"""How much slower explicit links get when a hash of each flow chooses its path, by drawing hashes.

The traffic is that of `collisions`: every NIC sends at once to a NIC on another switch, over as many queue
pairs as one connection has. Each switch draws one of the cables that lead nearer to the target.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise.network.collisions import SEEDS, Collisions, leaving_permutation
from linkwise.network.link_graph import UNREACHED, LinkGraph
from linkwise.network.link_loads import descend

__all__ = ["link_collisions"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_MOST_FLOWS = 400_000
"""Flows of all seeds together: about two seconds."""

_FEWEST_SEEDS = 4
_MOST_TARGETS = 1000
"""Switches with nodes whose distances are kept."""


def link_collisions(graph: LinkGraph, *, queue_pairs: int, seeds: int = SEEDS) -> Collisions:
    """Return the slowdown by hash collisions when every NIC sends to another switch.

    Parameters
    ----------
    graph
        The links.
    queue_pairs
        Flows of one connection.
    seeds
        How often hashes are drawn; less often where all draws would be too many flows.

    Notes
    -----
    A flow carries 1/q of a cable of its node. The most loaded cable between switches is set over the most
    loaded where every NIC sends alike to all those on other switches, or over the cable of a node.
    """
    flows = int(graph.end_cables.sum()) * queue_pairs
    targets = np.unique(graph.end_switch)
    drawn = min(seeds, _MOST_FLOWS // max(1, flows))
    if not len(graph.tail):
        return _collisions(queue_pairs, flows, [1.0], seeds=0)
    if drawn < _FEWEST_SEEDS or len(targets) > _MOST_TARGETS:
        return _collisions(queue_pairs, flows, [], seeds=0)
    near = np.stack([graph.distances(targets[[place]]) for place in range(len(targets))])
    paths = _Paths(graph, near)
    leaf = np.searchsorted(targets, graph.end_switch)
    even = max(1.0, paths.even())
    found = [max(1.0, paths.slowest(leaf, queue_pairs, seed) / even) for seed in range(drawn)]
    return _collisions(queue_pairs, flows, found, seeds=drawn)


def _collisions(queue_pairs: int, flows: int, found: list[float], *, seeds: int) -> Collisions:
    one = 1.0 if found and not seeds else None
    return Collisions(
        queue_pairs=queue_pairs,
        flows=flows,
        exact_mean=one,
        exact_p95=one,
        up_mean=one,
        mean=float(np.mean(found)) if found else None,
        p95=float(np.quantile(found, 0.95, method="higher")) if found else None,
        seeds=seeds,
    )


class _Paths:
    """The cables that leave each switch, and how far each switch is from every target."""

    def __init__(self, graph: LinkGraph, near: Ints) -> None:
        self.graph = graph
        self.near = near
        order = np.argsort(graph.tail, kind="stable")
        self.trunk = np.repeat(order, graph.cables[order])
        count = np.bincount(graph.tail, weights=graph.cables, minlength=len(graph.names)).astype(np.int64)
        self.count = count
        self.first = np.concatenate(([0], np.cumsum(count)[:-1]))
        self.rate = (graph.bytes_per_s / graph.cables)[self.trunk]

    def slowest(self, leaf: Ints, queue_pairs: int, seed: int) -> float:
        """Return the time of the most loaded cable over that of a NIC, with one draw."""
        rng = np.random.default_rng(seed)
        source, target, rate = self._pairs(leaf, rng)
        return self._drawn(source, target, rate, queue_pairs, rng)

    def _pairs(self, leaf: Ints, rng: np.random.Generator) -> tuple[Ints, Ints, Floats]:
        """Return the targets at both ends of each flow, and the rate of its cable; within its network."""
        graph = self.graph
        network = np.repeat(graph.networks()[graph.end_switch], graph.end_cables)
        cable = np.repeat(leaf, graph.end_cables)
        rate = np.repeat(graph.end_bytes_per_s / graph.end_cables, graph.end_cables)
        partner = np.arange(len(cable))
        for each in np.unique(network):
            members = np.flatnonzero(network == each)
            partner[members] = members[leaving_permutation(cable[members], rng)]
        return cable, cable[partner], rate

    def _drawn(
        self, source: Ints, target: Ints, rate: Floats, queue_pairs: int, rng: np.random.Generator
    ) -> float:
        switch = np.repeat(np.unique(self.graph.end_switch)[source], queue_pairs)
        goal, part = np.repeat(target, queue_pairs), np.repeat(rate / queue_pairs, queue_pairs)
        load = np.zeros(len(self.trunk))
        going = np.flatnonzero((self.near[goal, switch] > 0) & (self.near[goal, switch] < UNREACHED))
        while len(going):
            cable = self._next(switch[going], goal[going], rng)
            np.add.at(load, cable, part[going])
            switch[going] = self.graph.head[self.trunk[cable]]
            going = going[self.near[goal[going], switch[going]] > 0]
        return float(np.max(load / self.rate, initial=0.0))

    def _next(self, switch: Ints, goal: Ints, rng: np.random.Generator) -> Ints:
        """Return for each flow a cable that leads nearer, each as likely: drawn until it does."""
        chosen = np.zeros(len(switch), dtype=np.int64)
        todo = np.arange(len(switch))
        while len(todo):
            cable = self.first[switch[todo]] + rng.integers(self.count[switch[todo]])
            beyond = self.graph.head[self.trunk[cable]]
            nearer = self.near[goal[todo], beyond] < self.near[goal[todo], switch[todo]]
            chosen[todo[nearer]] = cable[nearer]
            todo = todo[~nearer]
        return chosen

    def even(self) -> float:
        """Return the time of the most loaded cable where every NIC sends alike to all on other switches."""
        graph, targets = self.graph, np.unique(self.graph.end_switch)
        place = np.searchsorted(targets, graph.end_switch)
        nics = np.bincount(place, weights=graph.end_cables, minlength=len(targets))
        rates = np.bincount(place, weights=graph.end_bytes_per_s, minlength=len(targets))
        network = graph.networks()[targets]
        others = np.bincount(network, weights=nics)[network] - nics
        load = np.zeros(len(graph.tail))
        for goal in range(len(targets)):
            sends = (network == network[goal]) & (targets != targets[goal])
            at_switch = np.zeros(len(graph.names))
            at_switch[targets[sends]] = rates[sends] * nics[goal] / others[sends]
            load += descend(graph, self.near[goal], at_switch, graph.cables.astype(np.float64))
        return float(np.max(load / graph.bytes_per_s, initial=0.0))
