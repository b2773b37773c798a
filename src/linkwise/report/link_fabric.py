"""The published result `linkwise.fabric/1` of a fabric that is given as a table of its links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from linkwise.report.fabric import (
    CablesResult,
    CollisionsResult,
    FabricResult,
    SwitchesResult,
    drawn_collisions,
    electricity_of,
    failure_results,
    installed_gpus,
    installed_gpus_per_node,
    optics_result,
    price_words,
)
from linkwise.report.fabric_bill import fabric_bill

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.network.built_fabric import BuiltFabric
    from linkwise.network.link_cuts import Bisection
    from linkwise.network.link_graph import LinkGraph

__all__ = ["link_fabric_result"]


def link_fabric_result(cluster: Cluster) -> FabricResult:
    """Return a fabric of explicit links as it is published.

    Parameters
    ----------
    cluster
        What there is, with a table of links.

    Raises
    ------
    InputError
        If its switch is not known.
    """
    from linkwise.cluster.parts import switch_ends
    from linkwise.network.built_fabric import build
    from linkwise.network.clos import parts_of
    from linkwise.network.link_cuts import link_bisection
    from linkwise.network.link_failures import worst_link_failures
    from linkwise.network.link_graph import graph_of, link_counts
    from linkwise.network.optics import switch_power_w

    switch, link = parts_of(cluster)
    graph = graph_of(cluster)
    counts = link_counts(graph)
    built = build(cluster, counts)
    each_w, _ = switch_power_w(switch)
    bisection = link_bisection(graph)
    full = float(np.sort(graph.node_bytes_per_s)[: graph.nodes // 2].sum())
    collisions, collision_words = _collisions(cluster, graph)
    gpus_per_node = installed_gpus_per_node(cluster)
    return FabricResult(
        name=cluster.name,
        kind=str(cluster.fabric.kind),
        link=link.name,
        switch=switch,
        nodes=graph.nodes,
        gpus=installed_gpus(cluster),
        tiers=int(graph.tiers.max()),
        networks=len(np.unique(graph.networks())),
        ports=switch_ends(switch, link.name),
        switches=_switches(graph),
        cables=_cables(graph, counts.node_cables),
        optics=optics_result(built.optics),
        power_w=built.power_w,
        switch_power_w=None if each_w is None else graph.switches * each_w,
        electricity_usd_per_year=electricity_of(cluster, built.power_w),
        bill=fabric_bill(cluster, built, gpus=installed_gpus(cluster)),
        reach_nodes=[],
        oversubscription=_oversubscription(graph),
        bisection_bytes_per_s=bisection.bytes_per_s,
        bisection_fraction=bisection.bytes_per_s / full if full else None,
        collisions=collisions,
        failures=failure_results(worst_link_failures(graph, gpus_per_node=gpus_per_node)),
        arithmetic=list(_arithmetic(cluster, graph)),
        assumptions=list(_assumptions(cluster, built, graph, bisection, collision_words)),
    )


def _assumptions(
    cluster: Cluster,
    built: BuiltFabric,
    graph: LinkGraph,
    bisection: Bisection,
    collision_words: tuple[str, ...],
) -> Iterator[str]:
    """Yield what was taken for granted, in sentences for a reader."""
    from linkwise.network.optics import switch_power_w

    yield from cluster.assumptions
    yield f"power: {switch_power_w(cluster.fabric.switch or '')[1]}"
    yield built.optics.words
    yield from price_words(cluster)
    if cluster.changes:
        yield "changes: all is that of the table; nodes that are missing are counted"
    yield _cut_words(bisection)
    yield from collision_words
    yield from _failure_words(graph)


def _cables(graph: LinkGraph, node_cables: int) -> CablesResult:
    """Return cables by the tiers they run between."""
    half = len(graph.tail) // 2
    tiers = np.sort(np.stack((graph.tiers[graph.tail[:half]], graph.tiers[graph.head[:half]])), axis=0)
    between = Counter[str]()
    for low, high, count in zip(*tiers.tolist(), graph.cables[:half].tolist(), strict=True):
        name = "same_tier" if low == high else ("leaf_spine" if low == 1 else "spine_core")
        between[name] += count
    return CablesResult(
        node_leaf=node_cables,
        leaf_spine=between["leaf_spine"],
        spine_core=between["spine_core"],
        same_tier=between["same_tier"],
    )


def _switches(graph: LinkGraph) -> SwitchesResult:
    tiers = graph.tiers[: graph.switches]
    return SwitchesResult(
        leaf=int((tiers == 1).sum()), spine=int((tiers == 2).sum()), core=int((tiers > 2).sum())
    )


def _oversubscription(graph: LinkGraph) -> float:
    """Return links of nodes over links of switches, at the switch where that is most; at least 1."""
    down = np.bincount(graph.end_switch, weights=graph.end_bytes_per_s, minlength=len(graph.names))
    up = np.bincount(graph.tail, weights=graph.bytes_per_s, minlength=len(graph.names))
    joined = up > 0.0
    return float(max(1.0, (down[joined] / up[joined]).max(initial=1.0)))


def _arithmetic(cluster: Cluster, graph: LinkGraph) -> Iterator[str]:
    table = cluster.fabric.table
    if table is None:
        return
    rows = f"{len(table.links):,} rows"
    yield f"links: {rows} of {table.path}" if table.path else f"links: {rows} of the document"
    yield (
        "tiers: switches with nodes are leaves, those next to them spines, all others cores; cables between "
        "switches that are as far from the nodes are within a tier"
    )
    used = np.zeros(len(graph.names), dtype=np.int64)
    np.add.at(used, graph.tail, graph.cables)
    np.add.at(used, graph.end_switch, graph.end_cables)
    if graph.switches:
        most = int(np.argmax(used[: graph.switches]))
        yield f"ports: {graph.names[most]} has most links, {int(used[most])}"


def _cut_words(found: Bisection) -> str:
    if found.exact:
        return f"bisection: the narrowest half of the nodes, a maximum flow each ({found.halves} tried)"
    return (
        f"bisection: the narrowest of {found.halves:,} halves that were tried, a maximum flow each; a "
        "narrower one may be there"
    )


def _collisions(cluster: Cluster, graph: LinkGraph) -> tuple[CollisionsResult, tuple[str, ...]]:
    routing = cluster.fabric.routing
    if routing.queue_pairs is None:
        none = CollisionsResult(
            routing=str(routing.kind), seeds=0, mean=1.0, p95=1.0, up_mean=1.0, exact_mean=1.0, exact_p95=1.0
        )
        return none, (f"collisions: routing {routing.kind} is taken to spread flows evenly",)
    from linkwise.network.link_collisions import link_collisions

    found = link_collisions(graph, queue_pairs=routing.queue_pairs)
    words = (
        "collisions: every NIC sends at once to a NIC on another switch; each queue pair draws, at every "
        "switch, one of the cables on shortest paths. Set over traffic that spreads evenly"
    )
    return drawn_collisions(str(routing.kind), found), (words,)


def _failure_words(graph: LinkGraph) -> Iterator[str]:
    from linkwise.network.link_failures import parts_tried

    yield (
        "failures: one part at a time, an all-to-all of all GPUs that are left on shortest paths; each "
        "switch splits by the links it has itself"
    )
    tries = parts_tried(graph)
    if max(len(graph.end_node), len(graph.tail) // 2, graph.switches) > tries:
        yield f"failures: of each class the {tries} parts that carry most for their rate were tried"
