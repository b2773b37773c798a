"""What the up-links of leaves let through of a collective: the narrowest cut of a fabric."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from linkwise.cluster import Cluster, FabricKind, RoutingKind
from linkwise.cluster.changes import changes_of_fabric, missing_nodes, network_fraction
from linkwise.errors import InputError
from linkwise.network.bisection import bisection_bytes_per_s
from linkwise.network.changed_fabric import changed_fabric, leaf_fraction, uplink_fraction
from linkwise.network.clos import priced_wiring, unwired_words
from linkwise.network.contention import (
    PEERS_AT_ONCE,
    exchange_crossing_fraction,
    ring_crossing_fraction,
    slowdown,
)
from linkwise.network.link_graph import graph_of
from linkwise.network.link_loads import exchange_loads, shift_loads
from linkwise.network.tiers import tiers_of
from linkwise.network.wiring import Wiring

__all__ = ["Uplinks", "describe", "uplinks_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Uplinks:
    """What leaves let through between the ranks that take part; without a limit by default.

    Attributes
    ----------
    ring_bytes_per_s
        Up-links of the leaves that a set of whole NVLink domains shares, one direction: what all rings and
        trees that leave them have [bytes/s].
    exchange_s_per_byte
        Time of an all-to-all over bytes of the full buffer, at the narrowest cut [s/byte].
    leaf_gpus
        GPUs of such a set; 0 where the switches are not known or do not suffice [1].
    """

    ring_bytes_per_s: float = math.inf
    exchange_s_per_byte: float = 0.0
    leaf_gpus: int = 0


def uplinks_of(cluster: Cluster, *, ranks: int, domain_gpus: int) -> Uplinks | None:
    """Return what the leaves of a fabric let through; ``None`` where the ranks stay below one leaf.

    Parameters
    ----------
    cluster
        What there is.
    ranks
        GPUs that take part, node after node [1].
    domain_gpus
        GPUs that reach each other without the fabric [1].

    Notes
    -----
    Of n ranks the c below the leaves of a group send (n - c) / n of their buffers S to others, so that an
    all-to-all takes c (n - c) S / (n U) at least, with U the up-links of the group. Where all nodes take
    part and each is a domain, the bisection holds too: n S / 4 cross it. A group is made of whole NVLink
    domains, as what stays in a domain needs no up-link. Links between groups of dragonfly-plus are a cut of
    the same kind. Where a hash of each flow chooses its path, what the NICs give is divided by the mean
    load of the fullest link (`linkwise.network.contention`). Where the switches are not known or do not
    suffice, all that an all-to-all sends out of an NVLink domain is taken to cross links up, and rings,
    which leave a leaf once, to find enough of them. Changes of links up count as if every leaf were the
    worst.

    References
    ----------
    L. R. Ford, D. R. Fulkerson, Maximal flow through a network, 1956.
    """
    if cluster.fabric.table is not None:
        return _table_limits(cluster, ranks, domain_gpus)
    try:
        wiring = priced_wiring(cluster)
    except InputError:
        return _unknown(cluster, ranks, domain_gpus)
    if not wiring.spines or cluster.fabric.link is None:
        return None
    found = [
        each
        for each in (
            _leaf_cut(cluster, wiring, ranks, domain_gpus),
            _group_cut(cluster, wiring, ranks, domain_gpus),
        )
        if each is not None
    ]
    if not found:
        return None
    return Uplinks(
        ring_bytes_per_s=min(each.ring_bytes_per_s for each in found),
        exchange_s_per_byte=max(each.exchange_s_per_byte for each in found),
        leaf_gpus=found[0].leaf_gpus,
    )


@lru_cache(maxsize=32)
def _table_limits(cluster: Cluster, ranks: int, domain_gpus: int) -> Uplinks:
    """Return what explicit links let through, on shortest paths and from NVLink domain to NVLink domain.

    Rings send from every domain to the next, the last to the first, all links of a node alike. Nodes that are
    missing take no part.
    """
    graph = graph_of(cluster).without_nodes(missing_nodes(cluster.changes, cluster.nodes))
    nodes = min(graph.nodes, -(-ranks // cluster.gpus_per_node))
    domain_nodes = max(1, domain_gpus // cluster.gpus_per_node)
    by_cables = cluster.fabric.routing.kind is RoutingKind.ECMP
    loads = exchange_loads(
        graph, nodes=nodes, node_gpus=cluster.gpus_per_node, domain_nodes=domain_nodes, by_cables=by_cables
    )
    around = shift_loads(graph, nodes=nodes, shift=domain_nodes, by_cables=by_cables).slowest_s(graph)
    ring, exchange = _hashed_limits(cluster, ranks=ranks, domain_gpus=domain_gpus)
    return Uplinks(
        ring_bytes_per_s=min(ring, domain_nodes / around if around else math.inf),
        exchange_s_per_byte=max(loads.slowest_s(graph), exchange),
    )


def _set_of(cluster: Cluster, nodes: int, domain_gpus: int) -> int:
    """Return the nodes of the smallest set of whole NVLink domains that fills sets of so many nodes."""
    return math.lcm(nodes, max(1, domain_gpus // cluster.gpus_per_node))


def _leaf_cut(cluster: Cluster, wiring: Wiring, ranks: int, domain_gpus: int) -> Uplinks | None:
    """Return what the up-links of leaves let through; ``None`` where the ranks stay below one leaf."""
    rate = _link_rate(cluster)
    nodes = _set_of(cluster, wiring.group_nodes, domain_gpus)
    gpus = nodes * cluster.gpus_per_node
    if gpus >= ranks:
        return None
    left = uplink_fraction(cluster)
    up = wiring.networks * wiring.group_leaves * wiring.up_links * rate * (nodes // wiring.group_nodes) * left
    slowest = max(below * (ranks - below) / ranks / up for below in {gpus, ranks % gpus})
    if ranks == cluster.gpus and domain_gpus <= cluster.gpus_per_node:
        slowest = max(slowest, _halved(ranks) / _bisection(cluster, wiring, rate))
    ring, exchange = _hashed_limits(cluster, ranks=ranks, domain_gpus=domain_gpus)
    return Uplinks(ring_bytes_per_s=min(up, ring), exchange_s_per_byte=max(slowest, exchange), leaf_gpus=gpus)


def _hashed_limits(cluster: Cluster, *, ranks: int, domain_gpus: int) -> tuple[float, float]:
    """Return what hashes leave a ring [bytes/s] and an all-to-all [s/byte]; no limits without hashes."""
    ring, exchange = _hashed(cluster, ranks=ranks, domain_gpus=domain_gpus)
    share = _gpu_bytes_per_s(cluster, ranks)
    across = share * min(domain_gpus, ranks)
    own = (ranks - domain_gpus) / (ranks * share)
    return across / ring if ring > 1 else math.inf, own * exchange if exchange > 1 else 0.0


def _group_cut(cluster: Cluster, wiring: Wiring, ranks: int, domain_gpus: int) -> Uplinks | None:
    """Return what the links between groups of dragonfly-plus let through; ``None`` where there are none.

    On shortest paths two groups have their t direct links, so that the c ranks of each exchange c^2 S / n
    over those. Adaptive routing adds the paths past third groups: all links of a set of groups, and for a
    ring half of g t (`detour_slowdown`).
    """
    if not wiring.pair_links:
        return None
    group_nodes = wiring.pod_leaves * wiring.group_nodes
    nodes = _set_of(cluster, group_nodes, domain_gpus)
    gpus = nodes * cluster.gpus_per_node
    if gpus >= ranks:
        return None
    pair = wiring.networks * wiring.pair_links * _link_rate(cluster)
    taken, adaptive = nodes // group_nodes, cluster.fabric.routing.kind is RoutingKind.ADAPTIVE
    used = wiring.pods if adaptive else -(-ranks // (group_nodes * cluster.gpus_per_node))
    crossing = taken * max(1, used - taken) * pair
    slowest = max(below * (ranks - below) / ranks / crossing for below in {gpus, ranks % gpus})
    if not adaptive and taken == 1 and ranks >= 2 * gpus:
        slowest = max(slowest, gpus * gpus / ranks / pair)
    ring = pair * max(1.0, wiring.pods / 2.0) if adaptive else pair
    return Uplinks(ring_bytes_per_s=ring, exchange_s_per_byte=slowest, leaf_gpus=gpus)


def _link_rate(cluster: Cluster) -> float:
    return 0.0 if cluster.fabric.link is None else cluster.fabric.link.bytes_per_s


def describe(uplinks: Uplinks | None, cluster: Cluster) -> Iterator[str]:
    """Yield how oversubscription is priced, and links between groups of dragonfly-plus.

    Parameters
    ----------
    uplinks
        As `uplinks_of` gives it.
    cluster
        What there is.
    """
    if cluster.fabric.kind is FabricKind.DRAGONFLY_PLUS and uplinks is not None and uplinks.leaf_gpus:
        yield f"dragonfly-plus: no faster than the links between groups, {_paths(cluster)}"
    if cluster.fabric.table is not None and uplinks is not None:
        yield (
            "links: no faster than the most loaded link of the table, on shortest paths that split evenly "
            "(longer ones carry nothing) and with the nodes in the order of their numbers"
        )
    if cluster.fabric.table is None and uplinks is not None:
        yield from _wired_words(uplinks, cluster)
    if cluster.fabric.oversubscription <= 1:
        return
    ratio = f"oversubscription {cluster.fabric.oversubscription:g}"
    if uplinks is None:
        yield f"{ratio} costs nothing: the GPUs do not leave their leaves, or the NVLink domains join them"
    elif uplinks.leaf_gpus:
        yield (
            f"{ratio}: an all-to-all takes no less than what leaves the {uplinks.leaf_gpus:,} GPUs of a leaf "
            "group over its up-links; rings and trees pass those once, in the order of the nodes"
        )
    else:
        yield (
            f"{ratio}: {unwired_words(cluster)}; all that an all-to-all sends out of an NVLink domain is "
            "taken to cross the up-links, and rings and trees to find enough of them"
        )


def _wired_words(uplinks: Uplinks, cluster: Cluster) -> Iterator[str]:
    """Yield why the fabric is priced otherwise than its document says, where the switch is known."""
    why = unwired_words(cluster)
    if why is None or cluster.fabric.switch is None:
        return
    if uplinks.leaf_gpus:
        yield f"network: {why}; priced as fat-tree, which has a third tier"
    elif cluster.fabric.oversubscription <= 1:
        yield f"network: {why}; links up are taken to be as many as needed"


def _paths(cluster: Cluster) -> str:
    if cluster.fabric.routing.kind is RoutingKind.ADAPTIVE:
        return "which adaptive routing uses past third groups, too"
    return "on shortest paths alone; adaptive routing would add those past third groups"


def _gpu_bytes_per_s(cluster: Cluster, ranks: int) -> float:
    """Return the share of a GPU of the NICs beside the changes of the nodes that take part [bytes/s]."""
    built = cluster.nics_per_node * cluster.nic_bytes_per_s / cluster.gpus_per_node
    return built * network_fraction(cluster, ranks) * leaf_fraction(cluster, ranks)


def _bisection(cluster: Cluster, wiring: Wiring, link_bytes_per_s: float) -> float:
    if changes_of_fabric(cluster.changes):
        return changed_fabric(cluster, wiring).bisection_bytes_per_s(link_bytes_per_s=link_bytes_per_s)
    return bisection_bytes_per_s(wiring, link_bytes_per_s=link_bytes_per_s)


def _hashed(cluster: Cluster, *, ranks: int, domain_gpus: int) -> tuple[float, float]:
    """Return how much slower hashes make one ring over all ranks, and an all-to-all; 1 without hashes."""
    routing = cluster.fabric.routing
    if routing.kind is not RoutingKind.ECMP:
        return 1.0, 1.0
    size, local = np.array([float(ranks)]), np.array([float(min(domain_gpus, ranks))])
    pairs = np.array([float(routing.queue_pairs or 1)])
    ring, exchange = 1.0, 1.0
    for tier in tiers_of(cluster, domain_gpus=domain_gpus):
        below, down, up, sets = (
            np.array([float(value)]) for value in (tier.gpus, tier.down_links, tier.up_links, tier.sets)
        )
        around = ring_crossing_fraction(size, size, local, below, size)
        ring = max(ring, float(slowdown(around, down, up, sets, pairs)[0]))
        share = exchange_crossing_fraction(size, size, local, below, size)
        many = slowdown(share, down, up, sets, pairs, at_once=PEERS_AT_ONCE)
        exchange = max(exchange, float(many[0]))
    return ring, exchange


def _unknown(cluster: Cluster, ranks: int, domain_gpus: int) -> Uplinks:
    """Return the limits where leaves are not known: all that leaves a domain meets the oversubscription."""
    share = _gpu_bytes_per_s(cluster, ranks) / cluster.fabric.oversubscription
    return Uplinks(exchange_s_per_byte=(ranks - domain_gpus) / (ranks * share) if share else 0.0)


def _halved(ranks: int) -> float:
    """Return the bytes of an all-to-all between two halves, over those of the buffer of a rank [1]."""
    half = ranks // 2
    return half * (ranks - half) / ranks
