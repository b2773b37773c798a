"""Topology files of Slurm: ``topology.conf`` as a tree or as blocks, and ``topology.yaml`` with both.

References
----------
SchedMD, topology.conf(5) and topology.yaml(5), Slurm 25.05.
"""

from __future__ import annotations

from collections.abc import Iterator

from linkwise.cluster import Cluster
from linkwise.network.exports.places import Places, node_names, places_of

__all__ = ["slurm_block_conf", "slurm_tree_conf", "slurm_yaml"]


def slurm_tree_conf(cluster: Cluster) -> str:
    """Return ``topology.conf`` for ``TopologyPlugin=topology/tree``.

    Parameters
    ----------
    cluster
        What there is. Nodes that share their leaves are under one switch of the file, though on a
        rail-optimized fabric that is a leaf for each rail.

    Raises
    ------
    InputError
        When its fabric cannot be wired.
    """
    lines = [f"# {cluster.name}: nodes that share leaves, pods that share spines", *_names_are_assumed("# ")]
    lines += [
        f"SwitchName={name} {'Nodes' if of_nodes else 'Switches'}={children}"
        for name, of_nodes, children in _switches(places_of(cluster))
    ]
    return "\n".join(lines) + "\n"


def slurm_block_conf(cluster: Cluster) -> str:
    """Return ``topology.conf`` for ``TopologyPlugin=topology/block``.

    Parameters
    ----------
    cluster
        What there is. A block is an NVLink domain that spans nodes, else the nodes that share their leaves.

    Raises
    ------
    InputError
        When its fabric cannot be wired.
    """
    places = places_of(cluster)
    size, sizes = _blocks(places)
    lines = [f"# {cluster.name}: {_block_words(places)}", *_names_are_assumed("# ")]
    lines += [
        f"BlockName=block-{number} Nodes={node_names(*span)}"
        for number, span in enumerate(places.spans(size))
    ]
    lines.append("BlockSizes=" + ",".join(map(str, sizes)))
    return "\n".join(lines) + "\n"


def slurm_yaml(cluster: Cluster) -> str:
    """Return ``topology.yaml`` with the tree as default and the blocks beside it.

    Parameters
    ----------
    cluster
        What there is.

    Raises
    ------
    InputError
        When its fabric cannot be wired.
    """
    places = places_of(cluster)
    size, sizes = _blocks(places)
    lines = [f"# {cluster.name}", *_names_are_assumed("# ")]
    lines += ["- topology: fabric", "  cluster_default: true", "  tree:", "    switches:"]
    for name, of_nodes, children in _switches(places):
        lines += [f"      - switch: {name}", f"        {'nodes' if of_nodes else 'children'}: {children}"]
    lines += [f"# {_block_words(places)}", "- topology: blocks", "  cluster_default: false", "  block:"]
    lines += ["    block_sizes:", *(f"      - {each}" for each in sizes), "    blocks:"]
    for number, span in enumerate(places.spans(size)):
        lines += [f"      - block: block-{number}", f"        nodes: {node_names(*span)}"]
    return "\n".join(lines) + "\n"


def _switches(places: Places) -> Iterator[tuple[str, bool, str]]:
    """Yield name, whether its children are nodes, and children of each switch, the top first."""
    units_of_pod = places.pod_nodes // places.unit_nodes
    if places.pods > 1:
        yield "core", False, _numbered("pod", 0, places.pods - 1)
    if places.units > 1:
        for pod, (first, last) in enumerate(places.spans(places.pod_nodes)):
            units = first // places.unit_nodes, last // places.unit_nodes
            name = f"pod-{pod}" if places.pods > 1 else "spine"
            yield name, False, _numbered("unit", *units) if units_of_pod > 1 else f"unit-{units[0]}"
    for unit, span in enumerate(places.spans(places.unit_nodes)):
        yield f"unit-{unit}", True, node_names(*span)


def _numbered(name: str, first: int, last: int) -> str:
    return f"{name}-{first}" if first == last else f"{name}-[{first}-{last}]"


def _blocks(places: Places) -> tuple[int, list[int]]:
    """Return the nodes of a block, and the sizes the scheduler may ask for: a block times powers of two."""
    size = places.domain_nodes if places.domain_nodes > 1 else places.unit_nodes
    size = min(size, places.nodes)
    sizes = [size]
    while 2 * sizes[-1] <= places.nodes:
        sizes.append(2 * sizes[-1])
    return size, sizes


def _block_words(places: Places) -> str:
    return "a block is " + ("an NVLink domain" if places.domain_nodes > 1 else "the nodes that share leaves")


def _names_are_assumed(comment: str) -> tuple[str]:
    return (f"{comment}node names are assumed: give yours in the same order",)
