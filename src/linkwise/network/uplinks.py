"""What the up-links of leaves let through of a collective: the narrowest cut of a fabric."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from linkwise.cluster import Cluster, RoutingKind
from linkwise.cluster.changes import changes_of_fabric, network_fraction
from linkwise.errors import InputError
from linkwise.network.bisection import bisection_bytes_per_s
from linkwise.network.changed_fabric import changed_fabric, leaf_fraction, uplink_fraction
from linkwise.network.clos import parts_of, ports_for, wire
from linkwise.network.contention import (
    PEERS_AT_ONCE,
    exchange_crossing_fraction,
    ring_crossing_fraction,
    slowdown,
)
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
        GPUs of such a set; 0 where the switches are not known [1].
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
    all-to-all takes c (n - c) S / (n U) at least, with U the up-links of the group. Where all nodes take part
    and each is a domain, the bisection holds too: n S / 4 cross it. A group is made of whole NVLink domains,
    as what stays in a domain needs no up-link. Where a hash of each flow chooses its path, what the NICs give
    is divided by the mean load of the fullest link (`linkwise.network.contention`). Where the switches are
    not known, up-links are those of half the ranks over the oversubscription. Changes of
    links up count as if every leaf were the worst.

    References
    ----------
    L. R. Ford, D. R. Fulkerson, Maximal flow through a network, 1956.
    """
    wiring = _wiring(cluster)
    if wiring is None:
        return _unknown(cluster, ranks)
    if not wiring.spines or cluster.fabric.link is None:
        return None
    rate = cluster.fabric.link.bytes_per_s
    domain_nodes = max(1, domain_gpus // cluster.gpus_per_node)
    nodes = math.lcm(wiring.group_nodes, domain_nodes)
    gpus = nodes * cluster.gpus_per_node
    if gpus >= ranks:
        return None
    left = uplink_fraction(cluster)
    up = wiring.networks * wiring.group_leaves * wiring.up_links * rate * (nodes // wiring.group_nodes) * left
    sets = {gpus, ranks % gpus}
    slowest = max(below * (ranks - below) / ranks / up for below in sets)
    if ranks == cluster.gpus and domain_nodes == 1:
        slowest = max(slowest, _halved(ranks) / _bisection(cluster, wiring, rate))
    ring, exchange = _hashed(cluster, ranks=ranks, domain_gpus=domain_gpus)
    share = _gpu_bytes_per_s(cluster, ranks)
    across = share * min(domain_gpus, ranks)
    own = (ranks - domain_gpus) / (ranks * share)
    return Uplinks(
        ring_bytes_per_s=min(up, across / ring) if ring > 1 else up,
        exchange_s_per_byte=max(slowest, own * exchange) if exchange > 1 else slowest,
        leaf_gpus=gpus,
    )


def describe(uplinks: Uplinks | None, cluster: Cluster) -> Iterator[str]:
    """Yield how oversubscription is priced.

    Parameters
    ----------
    uplinks
        As `uplinks_of` gives it.
    cluster
        What there is.
    """
    ratio = f"oversubscription {cluster.fabric.oversubscription:g}"
    if uplinks is None:
        yield f"{ratio} costs nothing: the GPUs do not leave their leaves, or the NVLink domains join them"
    elif uplinks.leaf_gpus:
        yield (
            f"{ratio}: an all-to-all takes no less than what leaves the {uplinks.leaf_gpus:,} GPUs of a leaf "
            "group over its up-links; rings and trees pass those once, in the order of the nodes"
        )
    else:
        yield f"{ratio}: the switches are not known, so half of an all-to-all is taken to cross the up-links"


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


def _wiring(cluster: Cluster) -> Wiring | None:
    """Return the wiring; ``None`` where the switch is not known or its ports do not suffice."""
    try:
        switch, link = parts_of(cluster)
        return wire(
            kind=cluster.fabric.kind,
            nodes=cluster.nodes,
            nics=cluster.nics_per_node,
            ports=ports_for(switch, link.name),
            oversubscription=cluster.fabric.oversubscription,
            planes=cluster.fabric.planes,
        )
    except InputError:
        return None


def _unknown(cluster: Cluster, ranks: int) -> Uplinks:
    rate = _gpu_bytes_per_s(cluster, ranks) / cluster.fabric.oversubscription
    up = ranks / 2.0 * rate
    return Uplinks(exchange_s_per_byte=_halved(ranks) / up if up else 0.0)


def _halved(ranks: int) -> float:
    """Return the bytes of an all-to-all between two halves, over those of the buffer of a rank [1]."""
    half = ranks // 2
    return half * (ranks - half) / ranks
