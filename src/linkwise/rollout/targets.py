"""How many nodes and GPUs of a cluster a step touches."""

from __future__ import annotations

import math

from linkwise.cluster import Cluster
from linkwise.errors import InputError, NotKnown
from linkwise.network.built_fabric import BuiltFabric, built_fabric
from linkwise.network.wiring import Wiring
from linkwise.rollout.plan import Target, TargetKind

__all__ = ["target_gpus", "target_nodes", "target_words"]


def target_nodes(target: Target, cluster: Cluster) -> int:
    """Return the nodes that a target touches [1].

    Parameters
    ----------
    target
        As a step names it. Nodes below one leaf are those of its leaf group, where rails have leaves each.
    cluster
        Where.

    Raises
    ------
    InputError
        When the cluster has not so many.
    NotKnown
        When leaves are asked for and the fabric does not say what is below one.
    """
    there = cluster.nodes_in_use
    if target.kind is TargetKind.GPUS:
        if target.amount > cluster.gpus_per_node:
            raise InputError(
                f"{target.amount:g} GPUs are more than the {cluster.gpus_per_node} of a node; say it in nodes"
            )
        return 1
    if target.kind is TargetKind.FRACTION:
        return max(1, math.ceil(target.amount * there - 1e-9))
    each = {TargetKind.NODES: 1, TargetKind.PAIRS: 2}.get(target.kind) or _leaf_nodes(cluster)
    nodes = int(target.amount) * each
    if target.kind is TargetKind.LEAVES:
        # The last group of leaves may have fewer nodes.
        nodes = min(nodes, there) if nodes - each < there else nodes
    if nodes > there:
        words = target_words(target)
        shown = words if target.kind is TargetKind.NODES else f"{words}, {nodes} nodes,"
        raise InputError(f"{shown} are more than the {there} of {cluster.name}; lower the target")
    return nodes


def target_gpus(target: Target, cluster: Cluster) -> int:
    """Return the GPUs that a target touches [1].

    Parameters
    ----------
    target
        As a step names it.
    cluster
        Where.

    Raises
    ------
    InputError
        As `target_nodes`.
    """
    nodes = target_nodes(target, cluster)
    if target.kind is TargetKind.GPUS:
        return int(target.amount)
    return min(nodes * cluster.gpus_per_node, cluster.gpus)


def target_words(target: Target) -> str:
    """Return a target in words.

    Parameters
    ----------
    target
        As a step names it.
    """
    if target.kind is TargetKind.FRACTION:
        return f"{100 * target.amount:g} % of the nodes"
    one, many = _WORDS[target.kind]
    return f"1 {one}" if target.amount == 1 else f"{target.amount:g} {many}"


_WORDS = {
    TargetKind.GPUS: ("GPU", "GPUs"),
    TargetKind.NODES: ("node", "nodes"),
    TargetKind.PAIRS: ("pair of nodes", "pairs of nodes"),
    TargetKind.LEAVES: ("leaf", "leaves"),
}


def _leaf_nodes(cluster: Cluster) -> int:
    built = built_fabric(cluster)
    if not isinstance(built, BuiltFabric) or not isinstance(built.wiring, Wiring):
        reason = getattr(built, "reason", None) or "it has no leaves that are alike"
        raise NotKnown(f"what is below a leaf of {cluster.name} is not known: {reason}; say it in nodes")
    return built.wiring.group_nodes
