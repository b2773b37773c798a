"""What lists of nodes and of the neighbours of a node say of a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from linkwise import catalog
from linkwise.cluster.claims import Claim, counted
from linkwise.cluster.node_claims import link_of
from linkwise.cluster.parts import rate_text
from linkwise.errors import UnknownName
from linkwise.readers.lldp import LldpPort
from linkwise.readers.placed_nodes import PlacedNode

__all__ = ["lldp_claims", "placement_claims"]

_LISTED = 20
_SLOW_BYTES_PER_S = 1.25e9
"""Interfaces below 10 Gbit/s are for management [B/s]."""

_PARTS_OF_A_GPU = "-MIG-"
_SHARED = "-SHARED"


def placement_claims(nodes: Sequence[PlacedNode], path: str) -> Iterator[Claim]:
    """Yield what a list of nodes says: those with GPUs are counted, and all of a cluster are alike.

    Parameters
    ----------
    nodes
        The nodes.
    path
        The file it was read in.
    """
    able = [node for node in nodes if node.gpus != 0]
    if not able:
        yield Claim(key="note", value=None, path=path, why=f"{counted(len(nodes), 'node')}, none with a GPU")
        return
    kinds = Counter((node.gpu, node.gpus, node.instance_type) for node in able)
    usual = kinds.most_common(1)[0][0]
    alike = [node for node in able if (node.gpu, node.gpus, node.instance_type) == usual]
    mixed = len(kinds) > 1
    why = f"{counted(len(alike), 'node')}{'' if len(alike) == len(nodes) else f' of {len(nodes)}'}"
    yield Claim(key="nodes", value=len(alike), path=path, why=why, assumed=mixed)
    if mixed:
        others = [f"{count} with {_shape(*kind)}" for kind, count in kinds.most_common() if kind != usual]
        why = f"nodes that are not counted, those of a document are all alike: {'; '.join(others[:_LISTED])}"
        yield Claim(key="note", value=None, path=path, why=why)
    yield from _node_claims(alike[0], path)
    yield from _place_notes(alike, path)


def _shape(gpu: str | None, gpus: int | None, instance_type: str | None) -> str:
    words = [
        str(gpus) if gpus is not None else "",
        gpu or "GPUs",
        f"({instance_type})" if instance_type else "",
    ]
    return " ".join(filter(None, words))


def _node_claims(node: PlacedNode, path: str) -> Iterator[Claim]:
    if node.gpus is not None:
        why = counted(node.gpus, "GPU")
        yield Claim(key="gpus_per_node", value=node.gpus, path=path, why=f"{why} of a node")
    if node.gpu is not None:
        yield from _gpu_claims(node.gpu, path)
    if node.nics is not None:
        yield Claim(
            key="nics", value=node.nics, path=path, why=f"{counted(node.nics, 'EFA device')} of a node"
        )
    if node.instance_type is None:
        return
    try:
        system = catalog.system(node.instance_type).name
    except UnknownName:
        why = f"the instance type {node.instance_type} is not in the catalogue"
        yield Claim(key="note", value=None, path=path, why=why)
    else:
        yield Claim(key="system", value=system, path=path, why=f"instance type {node.instance_type}")


def _gpu_claims(product: str, path: str) -> Iterator[Claim]:
    if _PARTS_OF_A_GPU in product:
        why = f"the GPUs are cut into parts ({product}); whole ones are counted"
        yield Claim(key="note", value=None, path=path, why=why)
    name = product.partition(_PARTS_OF_A_GPU)[0].removesuffix(_SHARED)
    try:
        found = catalog.gpu_alias(name)
    except UnknownName as error:
        yield Claim(key="note", value=None, path=path, why=str(error))
        return
    vague = f", {found.note}" if found.note else ""
    yield Claim(key="gpu", value=found.name, path=path, why=f"{product}{vague}", assumed=not found.exact)


def _place_notes(nodes: Sequence[PlacedNode], path: str) -> Iterator[Claim]:
    """Yield in how many domains and on how many leaves the nodes are: no key of a document holds it."""
    domains = Counter(node.domain for node in nodes if node.domain is not None)
    if domains:
        sizes = _range(sorted(domains.values()))
        why = f"{counted(len(domains), 'NVLink domain')} of {sizes} nodes"
        yield Claim(key="note", value=None, path=path, why=why)
    leaves = Counter(node.layers[0] for node in nodes if node.layers)
    if leaves:
        tiers = max(len(node.layers) for node in nodes)
        where = f"{counted(len(leaves), 'leaf', 'leaves')} of {_range(sorted(leaves.values()))} nodes"
        why = f"{counted(tiers, 'tier')} of switches, {where}; the file does not say rails or links"
        yield Claim(key="note", value=None, path=path, why=why)


def _range(sizes: Sequence[int]) -> str:
    return str(sizes[0]) if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"


def lldp_claims(ports: Sequence[LldpPort], path: str) -> Iterator[Claim]:
    """Yield what the neighbours of one node say: its fastest interfaces are those of the compute fabric.

    Parameters
    ----------
    ports
        The interfaces of the node.
    path
        The file it was read in.

    Notes
    -----
    Fast ports often have no negotiated rate; then all that are not known to be slow count.
    """
    fast = [
        port
        for port in ports
        if port.is_switch and (port.bytes_per_s or _SLOW_BYTES_PER_S) >= _SLOW_BYTES_PER_S
    ]
    known = [port.bytes_per_s for port in fast if port.bytes_per_s is not None]
    rate = max(known, default=None) if len(known) == len(fast) else None
    kept = {port.interface: port for port in fast if rate is None or port.bytes_per_s == rate}
    others = dict.fromkeys(port.interface for port in ports if port.interface not in kept)
    if others:
        why = f"interfaces that are slower or not to a switch, not counted: {', '.join([*others][:_LISTED])}"
        yield Claim(key="note", value=None, path=path, why=why)
    if not kept:
        return
    speed = f" at {rate_text(rate)}" if rate is not None else ", not all with a rate"
    why = f"{counted(len(kept), 'interface')} to switches{speed}"
    yield Claim(key="nics", value=len(kept), path=path, why=why, assumed=True)
    if rate is not None:
        yield Claim(key="nic_bytes_per_s", value=rate, path=path, why=why, assumed=True)
        yield from _ethernet_claims(rate, path)
    switches = counted(len({port.neighbour for port in kept.values()}), "switch", "switches")
    why = f"{counted(len(kept), 'interface')} on {switches}"
    yield Claim(key="note", value=None, path=path, why=why)


def _ethernet_claims(rate: float, path: str) -> Iterator[Claim]:
    link = link_of(("roce", "tcp"), rate)
    if link is not None:
        why = f"Ethernet at {rate_text(rate)}, taken to carry RoCE where the catalogue has it"
        yield Claim(key="link", value=link, path=path, why=why, assumed=True)
