"""What an all-to-all of all GPUs has left when one part of a fabric of explicit links fails."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from linkwise.network.failures import Failure
from linkwise.network.link_graph import UNREACHED, LinkGraph
from linkwise.network.link_loads import exchange_loads, node_kinds

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

__all__ = ["LINK_PARTS", "parts_tried", "worst_link_failures"]

LINK_PARTS = ("node-switch link", "switch-switch link", "switch", "node")
"""Classes of parts, links before switches."""

_MOST_TRIED, _FEWEST_TRIED = 24, 2
_MOST_WORK = 20_000_000
"""Parts of a class that are tried, times kinds of nodes, times trunks: about a second."""

_WHOSE = "all-to-all of those left"


def parts_tried(graph: LinkGraph) -> int:
    """Return how many parts of a class are tried: those with most to carry for their rate.

    Parameters
    ----------
    graph
        The links.
    """
    work = max(1, len(graph.tail)) * (int(node_kinds(graph, graph.nodes).max()) + 1)
    return min(_MOST_TRIED, max(_FEWEST_TRIED, _MOST_WORK // work))


def worst_link_failures(graph: LinkGraph, *, gpus_per_node: int) -> tuple[Failure, ...]:
    """Return the worst failure of one part of each class.

    Parameters
    ----------
    graph
        The links.
    gpus_per_node
        GPUs of one operating system.

    Notes
    -----
    Each part that is tried is taken out and the traffic laid on shortest paths again. Nodes that then do not
    reach the most nodes that still reach one another are cut off; the others send to one another. Of links
    one cable fails.
    """
    loads = exchange_loads(graph, nodes=graph.nodes, node_gpus=gpus_per_node)
    before = loads.slowest_s(graph)
    half = len(graph.tail) // 2
    tries = parts_tried(graph)
    trunks = _worst(loads.trunk_bytes[:half] / graph.bytes_per_s[:half], tries)
    ends = _worst(np.maximum(loads.out_bytes, loads.in_bytes) / graph.end_bytes_per_s, tries)
    through = np.zeros(len(graph.names))
    np.add.at(through, graph.tail, loads.trunk_bytes)
    np.add.at(through, graph.end_switch, loads.in_bytes)
    switches = _worst(through[: graph.switches], tries)
    tried = {
        "node-switch link": [graph.with_end(end, int(graph.end_cables[end]) - 1) for end in ends],
        "switch-switch link": [graph.with_trunk(each, int(graph.cables[each]) - 1) for each in trunks],
        "switch": [graph.without_switch(switch) for switch in switches],
    }
    counts = {
        "node-switch link": int(graph.end_cables.sum()),
        "switch-switch link": int(graph.cables[:half].sum()),
        "switch": graph.switches,
    }
    return tuple(_failures(graph, tried, counts, before, gpus_per_node))


def _worst(load: Floats, tries: int) -> list[int]:
    """Return the parts with most load, and the last: it is often the one that is unlike the others."""
    order = np.argsort(-load, kind="stable")
    return list(dict.fromkeys((*order[: tries - 1].tolist(), *range(len(load))[-1:])))


def _failures(
    graph: LinkGraph,
    tried: dict[str, list[LinkGraph]],
    counts: dict[str, int],
    before_s: float,
    gpus_per_node: int,
) -> Iterator[Failure]:
    for part, graphs in tried.items():
        found = [_after(each, before_s, gpus_per_node) for each in graphs]
        if not found:
            continue
        cut_off, remaining = max(found, key=lambda each: (each[0], -each[1]))
        yield Failure(
            part=part,
            count=counts[part],
            traffic=_WHOSE,
            gpus=(graph.nodes - cut_off) * gpus_per_node,
            remaining_fraction=remaining,
            cut_off_gpus=cut_off * gpus_per_node,
        )
    yield Failure(
        part="node",
        count=graph.nodes,
        traffic="all of the node",
        gpus=gpus_per_node,
        remaining_fraction=0.0,
        cut_off_gpus=gpus_per_node,
    )


def _after(graph: LinkGraph, before_s: float, gpus_per_node: int) -> tuple[int, float]:
    """Return the nodes cut off, and the rate that is left to the others over that before."""
    joined = _joined(graph)
    cut_off = graph.nodes - len(joined)
    if len(joined) < 2:
        return cut_off, 0.0
    left = graph.without_nodes(tuple(np.setdiff1d(np.arange(graph.nodes), joined).tolist()))
    after = exchange_loads(left, nodes=left.nodes, node_gpus=gpus_per_node).slowest_s(left)
    # The same bytes for each GPU, whose number is smaller: 1/n of its buffer became 1/n' of it.
    same = after * len(joined) / graph.nodes if cut_off else after
    return cut_off, min(1.0, before_s / same) if same else 1.0


def _joined(graph: LinkGraph) -> Ints:
    """Return the nodes that reach the node which reaches most, itself among them."""
    best = np.zeros(0, dtype=np.int64)
    seen = np.zeros(graph.nodes, dtype=np.bool_)
    for node in range(graph.nodes):
        if seen[node]:
            continue
        own = graph.end_switch[graph.end_node == node]
        near = graph.distances(own) < UNREACHED if len(own) else np.zeros(len(graph.names), dtype=np.bool_)
        reached = np.unique(graph.end_node[near[graph.end_switch]])
        seen[reached] = True
        seen[node] = True
        if len(reached) > len(best):
            best = reached
        if 2 * len(best) > graph.nodes:
            break
    return best
