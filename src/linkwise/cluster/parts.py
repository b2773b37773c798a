"""The parts of a `cluster/1` document with the defaults of the catalogue filled in, and whether they fit."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from linkwise import catalog
from linkwise.cluster.cluster import CableKind, FabricKind, GpuLinks
from linkwise.cluster.gpu_links import default_domain_gpus, gpu_links_of
from linkwise.cluster.link_table_fit import has_choice, link_table_misfits
from linkwise.cluster.mixed_nodes import least_node, slowest_gpu
from linkwise.units import format_quantity

if TYPE_CHECKING:
    from linkwise.catalog import Gpu
    from linkwise.cluster.document import ClusterDocument, FabricDocument, NodeDocument, PartDocument

__all__ = [
    "FabricParts",
    "Node",
    "fabric_parts_of",
    "fabric_switch_misfits",
    "gpu_of",
    "gpus_of",
    "misfits",
    "nearest_switch",
    "node_of",
    "rail_fits_a_switch",
    "rate_text",
    "switch_ends",
]

MOST_BREAKOUT = 8
"""Links that one port can be split into: an OSFP or QSFP-DD port has eight lanes (OSFP MSA)."""

SPEAKS = {
    "infiniband": ("infiniband",),
    "ethernet": ("roce", "tcp", "tcpx", "tcpxo", "efa"),
    "slingshot": ("slingshot", "tcp", "roce"),
}
"""Protocols of links by the family of switches that carry them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One operating system as it is sold; the fields are those of a system of the catalogue."""

    system: str | None
    gpu: str
    gpus_per_node: int
    nvlink_domain_gpus: int
    nic: str | None
    nics: int
    nic_bytes_per_s: float
    link: str | None
    switch: str | None
    power_w: float | None
    gpu_links: GpuLinks | None = None
    parts: tuple[tuple[Node, int], ...] = ()

    @property
    def links_of_gpus(self) -> GpuLinks:
        """Return what joins its GPUs, stated or not."""
        return gpu_links_of(self.gpu, self.gpus_per_node, self.nvlink_domain_gpus, self.gpu_links)


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricParts:
    """Names of what a fabric is built of, and which of them nobody stated."""

    kind: FabricKind
    link: str | None
    switch: str | None
    assumed: tuple[str, ...]


def gpu_of(node: Node) -> Gpu:
    """Return the GPU of a node; of mixed nodes the slowest with the least of any.

    Parameters
    ----------
    node
        As `node_of` gives it.
    """
    return slowest_gpu([each for each, _ in node.parts]) if node.parts else catalog.gpu(node.gpu)


def node_of(given: str | NodeDocument | Sequence[PartDocument]) -> Node:
    """Return the node that a document names or describes; of several kinds the least of any.

    Parameters
    ----------
    given
        Name of a system of the catalogue, a description, or kinds of nodes with their numbers.
    """
    if isinstance(given, Sequence) and not isinstance(given, str):
        return least_node([(node_of(part.node), part.nodes) for part in given])
    if isinstance(given, str):
        system = catalog.system(given)
        return Node(
            system=system.name,
            gpu=system.gpu,
            gpus_per_node=system.gpus_per_node,
            nvlink_domain_gpus=system.nvlink_domain_gpus,
            nic=system.nic,
            nics=system.nics,
            nic_bytes_per_s=system.nic_bytes_per_s,
            link=system.link,
            switch=system.switch,
            power_w=system.power_w,
        )
    rate = given.nic_bytes_per_s
    if rate is None:
        rate = catalog.nic(given.nic).bytes_per_s if given.nic is not None else 0.0
    domain = given.nvlink_domain_gpus
    if domain is None:
        domain = default_domain_gpus(given.gpu, given.gpus_per_node, given.gpu_links)
    return Node(
        system=None,
        gpu=given.gpu,
        gpus_per_node=given.gpus_per_node,
        nvlink_domain_gpus=domain,
        nic=given.nic,
        nics=given.nics,
        nic_bytes_per_s=rate,
        link=given.link,
        switch=given.switch,
        power_w=given.power_w,
        gpu_links=given.gpu_links,
    )


def fabric_parts_of(given: FabricDocument | None, node: Node) -> FabricParts:
    """Return the parts of a fabric, those of the node where the document states none.

    Notes
    -----
    A fabric whose kind is not stated is rail-optimised where a node has a NIC for each of its GPUs (NVIDIA's
    SuperPOD designs) and leaf-spine elsewhere. The default switch goes with the default link only.
    """
    kind = given.kind if given is not None else None
    link = given.link if given is not None else None
    switch = given.switch if given is not None else None
    if kind is FabricKind.NONE or (kind is None and link is None and (node.link is None or not node.nics)):
        return FabricParts(kind=FabricKind.NONE, link=None, switch=None, assumed=())
    assumed = []
    if kind is None:
        rails = node.nics >= node.gpus_per_node > 1
        kind = FabricKind.RAIL_OPTIMIZED if rails else FabricKind.LEAF_SPINE
        assumed.append(f"kind {kind}")
    if link is None and given is not None and given.links is not None:
        link = given.links.only_link
    if link is None and node.link is not None:
        link = node.link
        assumed.append(f"link {link}")
    if switch is None and link == node.link and node.switch is not None:
        switch = node.switch
        assumed.append(f"switch {switch}")
    return FabricParts(kind=kind, link=link, switch=switch, assumed=tuple(assumed))


def gpus_of(document: ClusterDocument, node: Node) -> tuple[int, int]:
    """Return how many GPUs there are to use, and how many of each NVLink domain.

    Parameters
    ----------
    document
        The cluster as it was read.
    node
        One of its nodes.
    """
    domain = min(node.nvlink_domain_gpus, document.gpus_per_domain or node.nvlink_domain_gpus)
    whole, rest = divmod(document.nodes * node.gpus_per_node, node.nvlink_domain_gpus)
    return whole * domain + min(rest, domain), domain


def misfits(document: ClusterDocument) -> Iterator[tuple[str, str]]:
    """Return key and message of each part of a document that does not fit to the others.

    Parameters
    ----------
    document
        The cluster as it was read.
    """
    node = node_of(document.node)
    parts = fabric_parts_of(document.fabric, node)
    yield from _gpu_misfits(document, node)
    if parts.kind is FabricKind.NONE:
        if document.nodes * node.gpus_per_node > max(node.nvlink_domain_gpus, node.gpus_per_node):
            yield (
                "fabric",
                "is none, but there is more than one NVLink domain; nothing joins them: name a link",
            )
        return
    if not node.nics:
        yield "node", "has no NIC, but there is a fabric; give nics, or write 'fabric: {kind: none}'"
    if parts.link is None:
        yield "fabric", "has no link and the node no default; name one of the catalogue as fabric.link"
        return
    for each in [one for one, _ in node.parts] or [node]:
        yield from _link_misfits(parts, each)
    yield from _table_misfits(document, parts, node)
    yield from _plane_misfits(document, parts, node)
    yield from _path_misfits(document, parts)
    yield from _cable_misfits(document, parts)
    if parts.kind is FabricKind.SINGLE_SWITCH and parts.switch is not None:
        yield from _port_misfits(document, parts, node)


def _cable_misfits(document: ClusterDocument, parts: FabricParts) -> Iterator[tuple[str, str]]:
    """Yield cables that are stated of a fabric whose cables cannot be counted."""
    if document.fabric is None or parts.switch is not None:
        return
    for key in ("node_cables", "switch_cables"):
        if getattr(document.fabric, key) is not CableKind.OPTICAL:
            yield f"fabric.{key}", "has no effect: the switch is not known; name it as fabric.switch"


def fabric_switch_misfits(switch_name: str, link_name: str) -> Iterator[tuple[str, str]]:
    """Return why a switch cannot carry a link, if it cannot.

    Parameters
    ----------
    switch_name, link_name
        Names in the catalogue.
    """
    switch, link = catalog.switch(switch_name), catalog.link(link_name)
    if link.protocol not in SPEAKS.get(switch.fabric, ()):
        yield "switch", f"{switch.name} is a switch for {switch.fabric}; it does not carry {link.name}"
    elif switch.port_bytes_per_s < link.bytes_per_s * 0.999:
        port, wanted = rate_text(switch.port_bytes_per_s), rate_text(link.bytes_per_s)
        yield "switch", f"a port of {switch.name} carries {port}, less than the {wanted} of {link.name}"


def switch_ends(switch_name: str, link_name: str) -> int:
    """Return how many links one switch ends, its ports split where they are faster than the link.

    Parameters
    ----------
    switch_name, link_name
        Names in the catalogue.
    """
    switch, link = catalog.switch(switch_name), catalog.link(link_name)
    ratio = int(switch.port_bytes_per_s / link.bytes_per_s + 1e-6)
    return switch.ports * max(1, min(MOST_BREAKOUT, ratio))


def nearest_switch(
    link_name: str, switch_name: str, other_link: str, *, preferred: Collection[str] = ()
) -> str | None:
    """Return the switch for a link that ends as many as another does of its own; ``None`` where none fits.

    Parameters
    ----------
    link_name
        The link it is to carry.
    switch_name, other_link
        The switch that would be replaced, and its link.
    preferred
        Names that go before all others, such as those with a price.

    Notes
    -----
    The nearest in links by their ratio; of equals one whose power is known, then the first name.
    """
    if not [*fabric_switch_misfits(switch_name, link_name)]:
        return switch_name
    wanted = switch_ends(switch_name, other_link)
    boxes = map(catalog.switch, catalog.names("switch"))
    fitting = [box for box in boxes if not [*fabric_switch_misfits(box.name, link_name)]]

    def distance(box: catalog.Switch) -> tuple[float, bool, str]:
        return abs(math.log(switch_ends(box.name, link_name) / wanted)), box.power_w is None, box.name

    nearest = min([box for box in fitting if box.name in preferred] or fitting, key=distance, default=None)
    return None if nearest is None else nearest.name


def rate_text(bytes_per_s: float) -> str:
    """Return a rate of a NIC or a port in bits per second, as data sheets print it."""
    return format_quantity(8 * bytes_per_s, "bits_per_s")


def _gpu_misfits(document: ClusterDocument, node: Node) -> Iterator[tuple[str, str]]:
    if document.gpus_per_domain is not None and document.gpus_per_domain > node.nvlink_domain_gpus:
        what = f"an NVLink domain of this node has {node.nvlink_domain_gpus} GPUs"
        yield "gpus_per_domain", f"{document.gpus_per_domain} is more than there are: {what}"
        return
    available, _ = gpus_of(document, node)
    if document.gpus is not None and document.gpus > available:
        yield (
            "gpus",
            f"{document.gpus} GPUs are more than the {available} that {document.nodes} nodes have to use",
        )


def _link_misfits(parts: FabricParts, node: Node) -> Iterator[tuple[str, str]]:
    if parts.link in (None, node.link) or not node.nics:
        return
    link = catalog.link(parts.link or "")
    if link.bytes_per_s > node.nic_bytes_per_s * 1.001:
        carried, filled = rate_text(link.bytes_per_s), rate_text(node.nic_bytes_per_s)
        message = (
            f"{link.name} carries {carried}, more than a NIC of the node ({filled}); choose a slower link"
        )
        yield "fabric.link", message
    spoken = catalog.nic(node.nic).protocols if node.nic is not None else ()
    if spoken and link.protocol != "tcp" and link.protocol not in spoken:
        words = ", ".join(spoken)
        yield "fabric.link", f"{link.name} speaks {link.protocol}; the NIC {node.nic} speaks {words}"


def _plane_misfits(document: ClusterDocument, parts: FabricParts, node: Node) -> Iterator[tuple[str, str]]:
    planes = document.fabric.planes if document.fabric is not None else 1
    link = catalog.link(parts.link or "")
    if planes > 1 and planes * link.bytes_per_s > node.nic_bytes_per_s * 1.001:
        carried, filled = rate_text(planes * link.bytes_per_s), rate_text(node.nic_bytes_per_s)
        what = f"{planes} links of {link.name} carry {carried}, more than a NIC of the node ({filled})"
        yield "fabric.planes", f"{what}; choose a slower link or fewer planes"


def _table_misfits(document: ClusterDocument, parts: FabricParts, node: Node) -> Iterator[tuple[str, str]]:
    if document.fabric is None or document.fabric.links is None or parts.link is None:
        return
    link = catalog.link(parts.link)
    table = document.fabric.links.with_default(link.bytes_per_s)
    ports = None
    if parts.switch is not None:
        ports = {
            rate: _ports_of_rate(parts.switch, rate)
            for rate in {row.bytes_per_s or 0.0 for row in table.links}
        }
        slow = [rate for rate, count in ports.items() if not count]
        if slow:
            yield (
                "fabric.switch",
                f"a port of {parts.switch} is slower than {rate_text(max(slow))} of the table",
            )
            ports = None
    for message in link_table_misfits(
        table,
        nodes=document.nodes,
        nics_of=_nics_of(node),
        ports=ports,
    ):
        yield "fabric.links", message


def _nics_of(node: Node) -> Callable[[int], tuple[int, float]]:
    """Return what gives the NICs of a node by its number, and what one carries; kinds follow one another."""
    if not node.parts:
        return lambda _number: (node.nics, node.nic_bytes_per_s)
    ends = list(accumulate(count for _, count in node.parts))

    def nics_of(number: int) -> tuple[int, float]:
        each = node.parts[min(bisect_right(ends, number), len(ends) - 1)][0]
        return each.nics, each.nic_bytes_per_s

    return nics_of


def _ports_of_rate(switch_name: str, bytes_per_s: float) -> int:
    """Return how many links of a rate a switch takes; 0 where its ports are slower."""
    switch = catalog.switch(switch_name)
    ratio = switch.port_bytes_per_s / bytes_per_s
    return 0 if ratio < 0.999 else switch.ports * max(1, min(MOST_BREAKOUT, int(ratio + 1e-6)))


def rail_fits_a_switch(kind: FabricKind, nodes: int, switch: str | None, link: str | None) -> bool:
    """Return whether each rail of a rail-only fabric is one switch, so that it has no up-links.

    Parameters
    ----------
    kind, switch, link
        Of the fabric; where the switch is not known, one is taken to be enough.
    nodes
        Operating systems.
    """
    if kind is not FabricKind.RAIL_ONLY:
        return False
    return switch is None or link is None or nodes <= switch_ends(switch, link)


def _path_misfits(document: ClusterDocument, parts: FabricParts) -> Iterator[tuple[str, str]]:
    """Yield options of up-links where a rail is one switch, and routing of a table with one path.

    Of other kinds leaves are taken to exist, though fewer would do.
    """
    fabric = document.fabric
    if fabric is None:
        return
    if rail_fits_a_switch(parts.kind, document.nodes, parts.switch, parts.link):
        why = "rail-only has no up-links where a switch has a port for every node"
        if fabric.oversubscription != 1:
            yield "fabric.oversubscription", f"has no effect: {why}; leave it out"
        if fabric.routing != "adaptive":
            yield "fabric.routing", f"has no effect: {why}, and one path; leave it out"
    elif fabric.links is not None and fabric.routing != "adaptive" and not has_choice(fabric.links):
        why = "the table has one path between any two nodes"
        yield "fabric.routing", f"has no effect: {why}; leave it out"


def _port_misfits(document: ClusterDocument, parts: FabricParts, node: Node) -> Iterator[tuple[str, str]]:
    switch = catalog.switch(parts.switch or "")
    ends = switch_ends(switch.name, parts.link or "")
    if document.nodes * node.nics > ends:
        links = f"{document.nodes} nodes with {node.nics} NICs are {document.nodes * node.nics} links"
        more = f"more than the {ends} that one {switch.name} has"
        yield "fabric.kind", f"{links}, {more}; choose leaf-spine or rail-optimized"
