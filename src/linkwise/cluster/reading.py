"""From a `cluster/1` document or `SYSTEM:NODES` to a `Cluster`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from linkwise import catalog
from linkwise.cluster.changes import change_words
from linkwise.cluster.changes_document import changes_of, gpus_after_changes
from linkwise.cluster.cluster import Cluster, Fabric
from linkwise.cluster.document import HEADER, ClusterDocument, FabricDocument, routing_of
from linkwise.cluster.gpu_links import domain_assumptions
from linkwise.cluster.link_table import LinkTable
from linkwise.cluster.link_table_fit import narrowest_node
from linkwise.cluster.mixed_nodes import least_node_bytes_per_s, mixed_words, node_parts
from linkwise.cluster.parts import Node, fabric_parts_of, gpu_of, node_of, rate_text
from linkwise.documents import parse_document, read_document
from linkwise.errors import InputError

if TYPE_CHECKING:
    from os import PathLike
    from typing import BinaryIO

__all__ = [
    "cluster_from_shorthand",
    "cluster_of_document",
    "load_cluster",
    "load_document",
    "parse_cluster",
    "read_cluster",
]

_SHORTHAND = re.compile(r"([^:/\\]+):([^:/\\]+)")
_LARGEST_NODES = 10_000_000


def load_cluster(text: str, *, stdin: BinaryIO | None = None) -> Cluster:
    """Return the cluster that a command was given.

    Parameters
    ----------
    text
        Path of a `cluster/1` document, ``-`` for standard input, or ``SYSTEM:NODES``.
    stdin
        What to read for ``-``.

    Raises
    ------
    InputError
        If it is none of them, or its parts do not fit together.
    """
    return cluster_of_document(load_document(text, stdin=stdin))


def load_document(text: str, *, stdin: BinaryIO | None = None) -> ClusterDocument:
    """Return the document that a command was given; of ``SYSTEM:NODES`` the one that says the same.

    Parameters
    ----------
    text
        Path of a `cluster/1` document, ``-`` for standard input, or ``SYSTEM:NODES``.
    stdin
        What to read for ``-``.

    Raises
    ------
    InputError
        If it is none of them, or its parts do not fit together.
    """
    is_path = text == "-" or "/" in text or text.endswith((".yaml", ".yml", ".json")) or Path(text).is_file()
    if is_path:
        return read_document(text, ClusterDocument, HEADER, stdin=stdin)
    if ":" in text:
        return _document_of_shorthand(text)
    try:
        system = catalog.system(text)
    except InputError as error:
        raise InputError(
            f"{text!r} is neither a file nor SYSTEM:NODES such as 'dgx-h100:32' ({error})"
        ) from None
    raise InputError(f"{text!r} does not say how many nodes; write '{system.name}:32'")


def cluster_from_shorthand(text: str) -> Cluster:
    """Return the cluster of so many nodes of a system, with the default fabric of that system.

    Parameters
    ----------
    text
        ``SYSTEM:NODES``, such as ``dgx-h100:32``; nodes count operating systems.

    Raises
    ------
    InputError
        If the text has another form, or the number is not at least one.
    UnknownName
        If there is no such system.
    """
    return cluster_of_document(_document_of_shorthand(text))


def _document_of_shorthand(text: str) -> ClusterDocument:
    match = _SHORTHAND.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{text!r} is not SYSTEM:NODES, such as 'dgx-h100:32'")
    system, number = catalog.system(match[1]), match[2]
    if not re.fullmatch(r"\d{1,8}", number) or not 1 <= int(number) <= _LARGEST_NODES:
        raise InputError(
            f"{number!r} in {text!r} is not a number of nodes from 1 to {_LARGEST_NODES:,}; write it as in "
            f"'{system.name}:32'"
        )
    return ClusterDocument(name=text.strip(), nodes=int(number), node=system.name)


def read_cluster(path: str | PathLike[str], *, stdin: BinaryIO | None = None) -> Cluster:
    """Return the cluster that a `cluster/1` document describes.

    Parameters
    ----------
    path
        The file, or ``-`` for standard input.
    stdin
        What to read for ``-``.

    Raises
    ------
    DocumentError
        With all faults of the document.
    """
    return cluster_of_document(read_document(path, ClusterDocument, HEADER, stdin=stdin))


def parse_cluster(text: str, *, path: str | None = None) -> Cluster:
    """Return the cluster that the text of a `cluster/1` document describes.

    Parameters
    ----------
    text
        The document.
    path
        The file it came from, for messages.

    Raises
    ------
    DocumentError
        With all faults of the document.
    """
    return cluster_of_document(parse_document(text, ClusterDocument, HEADER, path=path))


def cluster_of_document(document: ClusterDocument, *, domain_gpus: int | None = None) -> Cluster:
    """Return the cluster that a document describes.

    Parameters
    ----------
    document
        The document as it was read.
    domain_gpus
        GPUs of an NVLink domain, where it is narrower than that of the node.
    """
    node = sold = node_of(document.node)
    if domain_gpus is not None:
        node = replace(node, nvlink_domain_gpus=domain_gpus)
    available, domain = gpus_after_changes(document, node)
    gpus = document.gpus or available
    whole, rest = divmod(node.gpus_per_node, node.nvlink_domain_gpus)
    # Fewer GPUs of a domain are fewer of a node only where a node holds whole domains.
    per_node = whole * domain + rest if whole else min(node.gpus_per_node, domain)
    fabric, nic_bytes_per_s, assumptions = _fabric(document, node)
    cluster = Cluster(
        name=document.name or _name(document, node),
        system=node.system,
        nodes=document.nodes,
        gpus=gpus,
        gpus_per_node=min(per_node, gpus),
        nvlink_domain_gpus=min(domain, gpus),
        full_domain_gpus=domain if domain > per_node else min(domain, gpus),
        gpu=gpu_of(node),
        nic=node.nic,
        nics_per_node=node.nics,
        nic_bytes_per_s=nic_bytes_per_s,
        fabric=fabric,
        gpu_links=node.links_of_gpus,
        parts=node_parts(node),
        power_w=node.power_w,
        prices=document.prices,
        changes=changes_of(document) if document.changes else (),
        assumptions=(
            *assumptions,
            *mixed_words(node),
            *_tray_assumption(node),
            *domain_assumptions(
                min(domain, gpus),
                None if sold.system is None else sold.nvlink_domain_gpus,
                node.links_of_gpus,
            ),
        ),
    )
    return replace(cluster, assumptions=(*cluster.assumptions, *change_words(cluster)))


def _name(document: ClusterDocument, node: Node) -> str:
    kinds = [(each.system or each.gpu, count) for each, count in node.parts]
    return " + ".join(
        f"{name}:{count}" for name, count in kinds or [(node.system or node.gpu, document.nodes)]
    )


def _fabric(document: ClusterDocument, node: Node) -> tuple[Fabric, float, tuple[str, ...]]:
    """Return the fabric, what one NIC carries over it [bytes/s], and what was taken for granted."""
    stated = document.fabric or FabricDocument()
    parts = fabric_parts_of(document.fabric, node)
    link = catalog.link(parts.link) if parts.link is not None else None
    rate = node.nic_bytes_per_s
    table: LinkTable | None = None
    said: tuple[str, ...] = ()
    if stated.links is not None and link is not None:
        table = stated.links.with_default(link.bytes_per_s)
        rate, said = _table_rate(table, document.nodes, node)
    elif node.parts and link is not None and node.nics:
        rate = least_node_bytes_per_s(node, stated.planes * link.bytes_per_s) / node.nics
    elif link is not None and link.name != node.link:
        rate = min(rate, stated.planes * link.bytes_per_s)
    fabric = Fabric(
        kind=parts.kind,
        link=link,
        switch=parts.switch,
        oversubscription=stated.oversubscription,
        routing=routing_of(stated),
        planes=stated.planes,
        groups=stated.groups,
        table=table,
        node_cables=stated.node_cables,
        switch_cables=stated.switch_cables,
    )
    words = f"fabric taken from the default of {node.system or 'the node'}: {', '.join(parts.assumed)}"
    return fabric, rate, (*((words,) if parts.assumed else ()), *said)


def _table_rate(table: LinkTable, nodes: int, node: Node) -> tuple[float, tuple[str, ...]]:
    """Return what one NIC carries with the links of a table [bytes/s], and what that leaves out."""
    least, most, narrowest = narrowest_node(table, nodes)
    rate = min(node.nic_bytes_per_s, least / node.nics)
    if most <= least * 1.001:
        return rate, ()
    least_words, most_words = rate_text(least), rate_text(most)
    words = f"the links of node-{narrowest} carry {least_words}, the least (the most {most_words})"
    return rate, (f"{words}; every node is priced so",)


def _tray_assumption(node: Node) -> tuple[str, ...]:
    if node.nvlink_domain_gpus <= node.gpus_per_node:
        return ()
    trays = node.nvlink_domain_gpus // node.gpus_per_node
    return (f"a node is a tray of {node.gpus_per_node} GPUs; {trays} trays share an NVLink domain",)
