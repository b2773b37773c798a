"""Folded Clos networks of a fabric: how many switches of each tier join its nodes.

References
----------
C. Clos, A study of non-blocking switching networks, 1953.
M. Al-Fares, A. Loukissas, A. Vahdat, A scalable, commodity data center network architecture, 2008.
NVIDIA DGX SuperPOD reference architectures (B200, B300, B300 XDR): the counts that the rules reproduce.
"""

from __future__ import annotations

import math
from dataclasses import asdict

from linkwise import catalog
from linkwise.catalog import Link
from linkwise.cluster import Cluster, FabricKind
from linkwise.cluster.parts import fabric_switch_misfits, switch_ends
from linkwise.errors import InputError, NotKnown
from linkwise.network.dragonfly import dragonfly_tree
from linkwise.network.trunks import Tree, count_line, even_trunks, leaf_line
from linkwise.network.wiring import Wiring

__all__ = [
    "most_down_links",
    "parts_of",
    "priced_wiring",
    "unwired_words",
    "wire",
    "wiring_of",
]


def wiring_of(cluster: Cluster) -> Wiring:
    """Return how the switches of a cluster's fabric are joined.

    Parameters
    ----------
    cluster
        What there is; all its nodes are wired, in use or not.

    Raises
    ------
    InputError
        If there is no fabric, or its ports do not suffice.
    NotKnown
        If its switch is not known.

    Notes
    -----
    Oversubscription is a bound: nodes that fit one switch have no up-links, whatever is allowed.
    """
    return _wiring(cluster, cluster.fabric.kind)


def priced_wiring(cluster: Cluster) -> Wiring:
    """Return the wiring that times are priced with, as `wiring_of` but for leaf-spine fabrics too large.

    Parameters
    ----------
    cluster
        What there is; all its nodes are wired, in use or not.

    Raises
    ------
    InputError, NotKnown
        As `wiring_of`.

    Notes
    -----
    Where the spines of a leaf-spine fabric have no port for each leaf, its leaves get the third tier of a fat
    tree, so that what the leaves let through still counts. `unwired_words` says why.
    """
    try:
        return wiring_of(cluster)
    except NotKnown:
        raise
    except InputError:
        if cluster.fabric.kind is not FabricKind.LEAF_SPINE:
            raise
        return _wiring(cluster, FabricKind.FAT_TREE)


def unwired_words(cluster: Cluster) -> str | None:
    """Return why a fabric is not wired as its document says; ``None`` where it is.

    Parameters
    ----------
    cluster
        What there is.
    """
    reasons: list[str] = []
    for wiring in (wiring_of, priced_wiring):
        try:
            wiring(cluster)
        except NotKnown:
            return "the switches are not known"
        except InputError as error:
            reasons.append(str(error).partition(";")[0].removeprefix(f"{cluster.fabric.kind}: "))
        else:
            break
    return f"its switches cannot be wired so, as {reasons[-1]}" if reasons else None


def _wiring(cluster: Cluster, kind: FabricKind) -> Wiring:
    switch, link = parts_of(cluster)
    counts = sorted({part.nics for part in cluster.parts})
    if len(counts) > 1:
        raise InputError(
            f"{cluster.name}: nodes with {' and '.join(map(str, counts))} NICs are not wired by rule; name "
            "each link in a table (fabric: {kind: links, links: links.csv})"
        )
    return wire(
        kind=kind,
        nodes=cluster.nodes,
        nics=cluster.nics_per_node,
        ports=switch_ends(switch, link.name),
        oversubscription=cluster.fabric.oversubscription,
        planes=cluster.fabric.planes,
        groups=cluster.fabric.groups,
    )


def parts_of(cluster: Cluster) -> tuple[str, Link]:
    """Return the name of the switch and the link that a fabric is built of.

    Parameters
    ----------
    cluster
        What there is.

    Raises
    ------
    InputError
        If there is no fabric.
    NotKnown
        If its switch is not known.
    """
    fabric = cluster.fabric
    if fabric.kind is FabricKind.NONE or fabric.link is None:
        raise InputError(
            f"{cluster.name} has no fabric, so there is nothing to wire; give the cluster a fabric.link"
        )
    if fabric.switch is None:
        raise NotKnown(_unknown_switch(cluster, fabric.link.name))
    return fabric.switch, fabric.link


def _unknown_switch(cluster: Cluster, link: str) -> str:
    """Return what to write where the switch is not known, with a switch that carries the link."""
    boxes = map(catalog.switch, catalog.names("switch"))
    fitting = [box for box in boxes if not [*fabric_switch_misfits(box.name, link)]]
    nearest = min(fitting, key=lambda box: box.port_bytes_per_s, default=None)
    return (
        f"the switch of {cluster.name} is not known, so its ports cannot be counted; write these two lines, "
        "with your switch ('linkwise catalog switch' lists those there are), into a cluster document "
        "('linkwise init cluster' writes one):\n"
        f"  fabric:\n    switch: {nearest.name if nearest is not None else 'NAME'}"
    )


def wire(
    *,
    kind: FabricKind,
    nodes: int,
    nics: int,
    ports: int,
    oversubscription: float = 1.0,
    planes: int = 1,
    groups: int | None = None,
) -> Wiring:
    """Return the fewest switches that join nodes in a fabric of a kind.

    Parameters
    ----------
    kind
        How the switches are wired.
    nodes
        Operating systems, from 1.
    nics
        NICs of one node, from 1.
    ports
        Links that one switch takes.
    oversubscription
        Most links towards nodes for each link towards spines, at a leaf.
    planes
        Links of one NIC, each to a network of its own.
    groups
        Groups of a dragonfly-plus fabric; ``None`` takes the fewest.

    Raises
    ------
    InputError
        If the ports do not suffice; the message says which count breaks.

    Notes
    -----
    With R ports and oversubscription o a leaf has d = floor(R o / (1 + o)) links down at most, and at least
    ceil(d / o) up. Rail-optimised leaves take one rail of up to d nodes (several rails where few nodes leave
    room); other leaves take all NICs of a node. Two tiers reach as far as a spine has a port for each leaf.
    Beyond, leaves form pods whose spines give half their ports to leaves. Of all wirings with even trunks the
    one with the fewest switches is taken, then the one with the fewest pods.
    """
    if kind is FabricKind.LINKS:
        raise InputError("a table of links is not wired by rule: its rows say what is joined")
    alone = kind is FabricKind.RAIL_ONLY
    node_links, networks = (1, planes * nics) if alone else (nics, planes)
    each = "" if networks == 1 else f" in each of {networks} separate networks"
    lines = [f"links of nodes: {nodes:,} x {node_links} = {nodes * node_links:,}{each}"]
    tree = _network(
        kind, nodes, node_links, ports=ports, oversubscription=oversubscription, groups=groups, lines=lines
    )
    return Wiring(
        kind=kind,
        nodes=nodes,
        nics=nics,
        planes=planes,
        node_links=node_links,
        networks=networks,
        ports=ports,
        **asdict(tree),
        arithmetic=(*lines, *_totals(tree, networks)),
    )


def _network(
    kind: FabricKind,
    nodes: int,
    node_links: int,
    *,
    ports: int,
    oversubscription: float,
    groups: int | None,
    lines: list[str],
) -> Tree:
    """Return the counts of one network; appends its arithmetic."""
    links = nodes * node_links
    if links <= ports:
        if groups is not None:
            raise InputError(
                f"groups has no effect: {links:,} links of nodes fit the {ports} ports of one switch; "
                "leave it out"
            )
        lines.append(f"leaves: {links:,} links fit the {ports} ports of one switch; no spine is needed")
        tree = Tree(group_nodes=nodes, group_leaves=1, leaves=1, pod_leaves=1)
    elif kind is FabricKind.SINGLE_SWITCH:
        what = f"{nodes:,} nodes x {node_links} NICs are {links:,} links"
        raise InputError(
            f"single-switch: {what}, more than the {ports} ports of one switch; choose leaf-spine or fat-tree"
        )
    else:
        down = _down_links(kind, ports, oversubscription)
        if kind is FabricKind.DRAGONFLY_PLUS:
            tree = dragonfly_tree(
                nodes=nodes,
                node_links=node_links,
                down=down,
                ports=ports,
                oversubscription=oversubscription,
                groups=groups,
                lines=lines,
            )
        else:
            tree = _tree(
                kind,
                nodes,
                node_links,
                down=down,
                ports=ports,
                oversubscription=oversubscription,
                lines=lines,
            )
    return tree


def most_down_links(ports: int, oversubscription: float) -> int:
    """Return the most links of a leaf towards nodes, floor(R o / (1 + o)).

    Parameters
    ----------
    ports
        Links that one switch takes, R.
    oversubscription
        Most links towards nodes for each link towards spines, o.
    """
    return math.floor(ports * oversubscription / (1.0 + oversubscription) + 1e-9)


def _down_links(kind: FabricKind, ports: int, oversubscription: float) -> int:
    """Return the most links of a leaf towards nodes, where there are any."""
    down = most_down_links(ports, oversubscription)
    if down < 1:
        raise InputError(f"{kind}: {ports} ports of a switch leave none for nodes beside a link to a spine")
    return down


def _tree(
    kind: FabricKind,
    nodes: int,
    node_links: int,
    *,
    down: int,
    ports: int,
    oversubscription: float,
    lines: list[str],
) -> Tree:
    """Return leaves, spines and cores of one network of more than one switch; appends its arithmetic."""
    if kind is FabricKind.RAIL_OPTIMIZED:
        group_nodes, group_leaves = _rail_groups(nodes, node_links, down, lines)
    else:
        group_nodes, group_leaves = _node_groups(kind, nodes, node_links, down, ports, lines)
    groups = -(-nodes // group_nodes)
    leaves = groups * group_leaves
    used = group_nodes * -(-node_links // group_leaves)
    least = math.ceil(used / oversubscription - 1e-9)
    shape = {"group_nodes": group_nodes, "group_leaves": group_leaves, "leaves": leaves}
    if leaves <= ports:
        spines, up_links = even_trunks(leaves, least, ports - used, ports)
        lines.append(leaf_line(ports, used, down, up_links, least, oversubscription))
        lines.append(
            count_line("spines", f"{leaves:,} leaves x {up_links}", leaves * up_links, ports, spines)
        )
        return Tree(**shape, pod_leaves=leaves, pod_spines=spines, up_links=up_links)
    if kind is FabricKind.LEAF_SPINE:
        raise InputError(
            f"leaf-spine: {leaves:,} leaves need {leaves:,} ports of a spine, and a switch has {ports}; "
            "choose fat-tree, which adds a third tier, or a switch with more"
        )
    tree = _three_tiers(shape, least=least, most=ports - used, ports=ports)
    lines.append(leaf_line(ports, used, down, tree.up_links, least, oversubscription))
    lines.extend(_three_tier_lines(tree, ports))
    return tree


def _rail_groups(nodes: int, rails: int, down: int, lines: list[str]) -> tuple[int, int]:
    """Return nodes and leaves of a group in which NIC i of every node is on the same leaf."""
    groups = -(-nodes // down)
    group_nodes = -(-nodes // groups)
    leaf_rails = min(rails, down // group_nodes) if groups == 1 else 1
    group_leaves = -(-rails // leaf_rails)
    on_each = "one for each rail" if leaf_rails == 1 else f"{leaf_rails} rails on one"
    many = f"{nodes:,} nodes / {down} links down = {groups:,}"
    lines.append(
        f"groups: {many}, of {group_nodes} nodes; leaves: {groups:,} x {group_leaves} ({on_each}) = "
        f"{groups * group_leaves:,}"
    )
    return group_nodes, group_leaves


def _node_groups(
    kind: FabricKind, nodes: int, node_links: int, down: int, ports: int, lines: list[str]
) -> tuple[int, int]:
    """Return nodes and leaves of a group in which one leaf takes all links of a node."""
    if node_links > down:
        raise InputError(
            f"{kind}: the {node_links} NICs of a node end on one leaf, but of the {ports} ports of a switch "
            f"only {down} lead to nodes; choose rail-optimized, or a switch with more ports"
        )
    room = down // node_links
    leaves = -(-nodes // room)
    lines.append(
        f"leaves: {down} links down take {room} nodes of {node_links}; {nodes:,} nodes / {room} = {leaves:,}"
    )
    return -(-nodes // leaves), 1


def _three_tiers(shape: dict[str, int], *, least: int, most: int, ports: int) -> Tree:
    half, leaves, group = ports // 2, shape["leaves"], shape["group_leaves"]
    found: list[Tree] = []
    for unit in (group, 1):  # groups stay whole in a pod where that can be
        if unit > half or found:
            continue
        units = leaves // unit
        fewest = -(-units // (half // unit))
        found = [
            _pods(shape, pods, unit=unit, least=least, most=most, ports=ports)
            for pods in range(fewest, min(units, ports) + 1)
        ]
    if not found:
        raise InputError(
            f"{leaves:,} leaves are more than three tiers of {ports} ports join ({ports} pods of {half} "
            "leaves); choose a switch with more ports, a higher oversubscription or rail-only"
        )
    return min(found, key=lambda tree: (tree.switches, tree.pods))


def _pods(shape: dict[str, int], pods: int, *, unit: int, least: int, most: int, ports: int) -> Tree:
    """Return three tiers with at most so many pods."""
    units = shape["leaves"] // unit
    pod_units = -(-units // pods)
    pods, pod_leaves = -(-units // pod_units), pod_units * unit
    spines, up_links = even_trunks(pod_leaves, least, most, ports // 2)
    spine_down = pod_leaves * up_links // spines
    cores, core_links = even_trunks(pods, spine_down, ports - spine_down, ports)
    return Tree(
        **shape,
        up_links=up_links,
        pods=pods,
        pod_leaves=pod_leaves,
        pod_spines=spines,
        core_links=core_links,
        group_cores=cores,
    )


def _three_tier_lines(tree: Tree, ports: int) -> list[str]:
    half = ports // 2
    spine = count_line(
        "spines of a pod",
        f"{tree.pod_leaves} leaves x {tree.up_links}",
        tree.pod_leaves * tree.up_links,
        half,
        tree.pod_spines,
    )
    bound = -(-tree.pods * tree.core_links // ports)
    core = (
        f"cores: {tree.pod_spines} groups, one for spine i of every pod, of {tree.pods} pods x "
        f"{tree.core_links} links up / {ports} ports = {bound}"
    )
    if tree.group_cores != bound:
        core += f"; {tree.group_cores} so that each spine has as many links to every one"
    pods = f"{tree.pods} pods of {tree.pod_leaves} leaves"
    return [
        f"tiers: {tree.leaves:,} leaves are more than the {ports} ports of a spine; three tiers, {pods}",
        f"{spine}; {tree.pods} pods x {tree.pod_spines} = {tree.pods * tree.pod_spines:,}",
        f"{core}; {tree.pod_spines} x {tree.group_cores} = {tree.pod_spines * tree.group_cores:,}",
    ]


def _totals(tree: Tree, networks: int) -> list[str]:
    if networks == 1:
        return []
    counts = {
        "leaves": tree.leaves,
        "spines": tree.pods * tree.pod_spines,
        "cores": tree.pod_spines * tree.group_cores,
    }
    return [
        f"all networks: {networks} x {count:,} {what} = {networks * count:,}"
        for what, count in counts.items()
        if count
    ]
