"""Larger clusters of the same shape: more nodes of the same kind on the same kind of fabric."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from linkwise.cluster.changes import changes_of_fabric
from linkwise.cluster.cluster import FabricKind
from linkwise.cluster.parts import switch_ends
from linkwise.errors import InputError

if TYPE_CHECKING:
    from linkwise.cluster.cluster import Cluster

__all__ = ["first_gpus", "grown_cluster", "growth_limit"]


def grown_cluster(cluster: Cluster, times: int) -> Cluster:
    """Return a cluster of so many times the nodes and the GPUs in use; prices and name stay.

    Parameters
    ----------
    cluster
        What to grow.
    times
        At least 1.

    Notes
    -----
    An NVLink domain that too few nodes left partly empty fills up first. Whether the fabric can be wired so
    large is `growth_limit`'s to say. Missing nodes are as large a share of the larger cluster; changes of
    links and switches are left out, as those of a larger fabric are others.
    """
    gpus = cluster.gpus * times
    full = cluster.full_domain_gpus or cluster.nvlink_domain_gpus
    fabric = changes_of_fabric(cluster.changes) if times > 1 else ()
    return replace(
        cluster,
        nodes=cluster.nodes * times,
        gpus=gpus,
        nvlink_domain_gpus=min(full, gpus),
        parts=tuple(replace(part, nodes=part.nodes * times) for part in cluster.parts),
        changes=tuple(change for change in cluster.changes if change not in fabric),
    )


def first_gpus(cluster: Cluster, gpus: int) -> Cluster:
    """Return what a run on the first GPUs of a cluster has, node after node.

    Parameters
    ----------
    cluster
        What there is.
    gpus
        How many it takes [1].

    Raises
    ------
    InputError
        If there are not so many.
    """
    if gpus > cluster.gpus:
        raise InputError(
            f"{gpus} GPUs are more than the {cluster.gpus} of {cluster.name}; name a larger cluster"
        )
    full = cluster.full_domain_gpus or cluster.nvlink_domain_gpus
    return replace(
        cluster,
        nodes=-(-gpus // cluster.gpus_per_node),
        gpus=gpus,
        gpus_per_node=min(cluster.gpus_per_node, gpus),
        nvlink_domain_gpus=min(cluster.nvlink_domain_gpus, gpus),
        full_domain_gpus=full,
    )


def growth_limit(cluster: Cluster) -> tuple[int, str] | None:
    """Return the most nodes the fabric can join, and why no more; ``None`` where no limit is known.

    Parameters
    ----------
    cluster
        What would be grown.

    Notes
    -----
    Without a fabric one NVLink domain is all there can be; a single switch ends as many NICs as it has ports.
    How far fabrics of several tiers can be wired says `linkwise.network.clos`.
    """
    fabric = cluster.fabric
    if fabric.kind is FabricKind.NONE:
        domain = cluster.full_domain_gpus or cluster.nvlink_domain_gpus
        return max(1, domain // cluster.gpus_per_node), "nothing joins NVLink domains without a fabric"
    if fabric.kind is FabricKind.LINKS:
        return cluster.nodes, "its table of links has no more nodes"
    if fabric.kind is FabricKind.SINGLE_SWITCH and fabric.switch is not None and fabric.link is not None:
        most = switch_ends(fabric.switch, fabric.link.name) // cluster.nics_per_node
        return most, f"one {fabric.switch} has no more ports"
    return None
