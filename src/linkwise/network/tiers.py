"""The tiers of a fabric as groups of ranks meet them: what is below a set of switches, and its links up."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from linkwise.cluster import Cluster, FabricKind, RoutingKind
from linkwise.errors import InputError
from linkwise.network.changed_fabric import uplink_fraction
from linkwise.network.clos import priced_wiring, unwired_words
from linkwise.network.link_cuts import Bisection, link_bisection, narrowest_kind
from linkwise.network.link_graph import graph_of
from linkwise.network.links import local_links
from linkwise.network.wiring import Wiring

__all__ = ["Tier", "describe", "rail_words", "tiers_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Sets of switches that are alike: the leaves of a group of nodes, or a pod.

    Attributes
    ----------
    gpus
        GPUs below one set, whole NVLink domains [1].
    down_links, up_links
        Links of nodes below one hash, and the links up it chooses from: those of a leaf, or of a pod [1].
    sets
        How many such choices there are in the fabric [1].
    """

    gpus: int
    down_links: float
    up_links: float
    sets: int


def tiers_of(cluster: Cluster, *, domain_gpus: int) -> tuple[Tier, ...]:
    """Return the tiers with links up, from the leaves on; none where the GPUs are below one leaf group.

    Parameters
    ----------
    cluster
        What there is.
    domain_gpus
        GPUs that reach each other without the fabric [1].

    Notes
    -----
    What stays in an NVLink domain needs no link up, so that a set is made of whole domains. Where the
    switches are not known or do not suffice, each domain is taken to be below leaves of its own, with the
    oversubscription of the document. Changes of links up and spines count as if every leaf were the worst.
    The group of a dragonfly-plus fabric is a pod whose links up are those to other groups. Of a table of
    links the nodes of the same switches are a set, with the narrowest cut around the worst of them as its
    links up, and so is half of all.
    """
    if cluster.fabric.link is None or cluster.gpus <= domain_gpus:
        return ()
    if cluster.fabric.table is not None:
        return _table_tiers(cluster, domain_gpus)
    try:
        wiring = priced_wiring(cluster)
    except InputError:
        over = cluster.fabric.oversubscription
        alone = Tier(gpus=domain_gpus, down_links=over, up_links=1.0, sets=1)
        return (alone,) if over > 1 else ()
    domain_nodes = max(1, domain_gpus // cluster.gpus_per_node)
    found = (_leaf_tier(wiring, _left(cluster)), _pod_tier(wiring))
    return tuple(
        Tier(
            gpus=math.lcm(nodes, domain_nodes) * cluster.gpus_per_node,
            down_links=float(down),
            up_links=float(up),
            sets=sets,
        )
        for nodes, down, up, sets in (one for one in found if one is not None)
        if nodes < wiring.nodes
    )


def describe(cluster: Cluster, *, domain_gpus: int) -> Iterator[str]:
    """Yield how routing and links up are priced in the step of a training job.

    Parameters
    ----------
    cluster
        What there is.
    domain_gpus
        GPUs that reach each other without the fabric [1].
    """
    fabric = cluster.fabric
    if fabric.link is None or cluster.gpus <= domain_gpus:
        return
    yield from rail_words(cluster)
    hashed = fabric.routing.kind is RoutingKind.ECMP
    if fabric.table is not None:
        yield from _table_words(cluster, domain_gpus)
        return
    try:
        wiring = priced_wiring(cluster)
    except InputError:
        yield from _unwired_words(cluster)
        return
    if wiring.kind is not fabric.kind:
        yield f"network: {unwired_words(cluster)}; priced as {wiring.kind}, which has a third tier"
    tiers = tiers_of(cluster, domain_gpus=domain_gpus)
    if not tiers:
        yield "network: all GPUs are below one set of leaves; no link up is used"
        return
    names = ("leaf group", "dragonfly group" if wiring.pair_links else "pod")
    below = " and ".join(f"{tier.gpus:,} GPUs a {name}" for tier, name in zip(tiers, names, strict=False))
    how = (
        f"routing ecmp, queue pairs of a connection: {fabric.routing.queue_pairs}; each chooses links by "
        "hash, all groups of a kind send at once, and the step waits for the fullest link (its mean)"
        if hashed
        else f"{fabric.routing.kind} routing spreads flows evenly"
    )
    yield f"network: {wiring.tiers} tiers, {below}; {how}"


def rail_words(cluster: Cluster) -> Iterator[str]:
    """Yield what is not priced of traffic between the rails of a rail-only fabric.

    Parameters
    ----------
    cluster
        What there is; its GPUs are in more than one NVLink domain.

    Notes
    -----
    Of what leaves a node over r rails, (r - 1) / r is meant for another rail and goes to a GPU on it first.
    One after the other that takes (r - 1) / r x NIC rate / rate inside the node longer.

    References
    ----------
    W. Wang et al., Rail-only, 2023: 8.2 to 11.2 % of an all-to-all.
    """
    rails = cluster.nics_per_node
    if cluster.fabric.kind is not FabricKind.RAIL_ONLY or rails < 2:
        return
    inside = local_links(
        cluster.gpu,
        ranks_per_domain=cluster.gpus_per_node,
        joined_by=cluster.gpu_links,
        bridged_gpus=cluster.nvlink_domain_gpus,
    )
    longer = (1.0 - 1.0 / rails) * cluster.gpu_network_bytes_per_s / inside.planned_bytes_per_s
    yield (
        "rail-only: what is meant for another rail is passed to a GPU on it inside the node first (NCCL's "
        f"PXN), which is not priced: where it does not overlap, an all-to-all takes up to {longer:.0%} longer"
    )


def _unwired_words(cluster: Cluster) -> Iterator[str]:
    """Yield what is priced of a fabric whose switches are not known or do not suffice."""
    why, over = unwired_words(cluster), cluster.fabric.oversubscription
    if cluster.fabric.routing.kind is RoutingKind.ECMP:
        yield f"routing ecmp: {why}, so collisions are not priced"
    if over > 1:
        taken = "all that leaves an NVLink domain is taken to cross links up"
        yield f"oversubscription {over:g}: {why}; {taken}"
    elif cluster.fabric.switch is not None:
        yield f"network: {why}; links up are taken to be as many as needed"


def _left(cluster: Cluster) -> float:
    """Return what changes leave of the links up of a leaf; hashes choose among whole links, one at least."""
    left = uplink_fraction(cluster)
    if left == 1.0 or cluster.fabric.routing.kind is not RoutingKind.ECMP:
        return left
    return max(left, 1.0 / priced_wiring(cluster).up_links)


def _leaf_tier(wiring: Wiring, left: float) -> tuple[int, int, float, int] | None:
    """Return nodes of a leaf group, links down and up of a leaf, and leaves; ``None`` without spines."""
    if not wiring.spines:
        return None
    return wiring.group_nodes, wiring.down_links, wiring.up_links * left, wiring.leaves * wiring.networks


def _pod_tier(wiring: Wiring) -> tuple[int, int, int, int] | None:
    """Return nodes of a pod, its links down and up, and pods; ``None`` where there is one."""
    if not (wiring.cores or wiring.pair_links):
        return None
    nodes = max(1, wiring.pod_leaves // wiring.group_leaves) * wiring.group_nodes
    down = wiring.pod_leaves * wiring.down_links
    if wiring.pair_links:
        return nodes, down, (wiring.pods - 1) * wiring.pair_links, wiring.pods * wiring.networks
    return nodes, down, wiring.pod_spines * wiring.core_links, wiring.pods * wiring.networks


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cuts:
    """The narrowest cuts of a table: nodes and links of a set on the same switches, and of a half.

    Down is what links of the nodes inside carry, up what they can send to others, over a link of the fabric.
    """

    kind_nodes: int
    kind_down: float
    kind_up: float
    kinds: int
    half_down: float
    half: Bisection


@lru_cache(maxsize=16)
def _cuts(cluster: Cluster) -> _Cuts:
    graph, rate = graph_of(cluster), 0.0 if cluster.fabric.link is None else cluster.fabric.link.bytes_per_s
    nodes, down, up, kinds = narrowest_kind(graph)
    half = link_bisection(graph)
    return _Cuts(
        kind_nodes=nodes,
        kind_down=down / rate,
        kind_up=up / rate,
        kinds=kinds,
        half_down=cluster.node_bytes_per_s * (graph.nodes // 2) / rate,
        half=half,
    )


def _table_tiers(cluster: Cluster, domain_gpus: int) -> tuple[Tier, ...]:
    cuts, domain_nodes = _cuts(cluster), max(1, domain_gpus // cluster.gpus_per_node)
    rate = 0.0 if cluster.fabric.link is None else cluster.fabric.link.bytes_per_s
    half = cuts.half.bytes_per_s / rate
    found = (
        (cuts.kind_nodes, cuts.kind_down, cuts.kind_up, cuts.kinds),
        (cluster.nodes // 2, cuts.half_down, half, 2),
    )
    return tuple(
        Tier(
            gpus=math.lcm(nodes, domain_nodes) * cluster.gpus_per_node,
            down_links=down,
            up_links=up,
            sets=sets,
        )
        for nodes, down, up, sets in found
        if 0 < nodes < cluster.nodes and up > 0.0 and cuts.kinds > 1
    )


def _table_words(cluster: Cluster, domain_gpus: int) -> Iterator[str]:
    tiers = _table_tiers(cluster, domain_gpus)
    if not tiers:
        yield "network: all GPUs are on the same switches; no link between switches is used"
        return
    below = " and ".join(f"{gpus:,} GPUs" for gpus in dict.fromkeys(tier.gpus for tier in tiers))
    yield (
        f"network: links of a table; the narrowest cuts around sets of {below} are priced, and nodes of the "
        "same switches are taken to follow one another"
    )
