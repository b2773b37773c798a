"""Nodes that differ, as the one node that synchronous training runs at: of everything the least.

All GPUs of a step wait for the slowest one, and rings for the narrowest NICs, so that a cluster of several
kinds of nodes is priced as if all nodes had the least GPUs, memory, rates and links of any.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from linkwise import catalog
from linkwise.cluster.cluster import GpuLinks, NodePart
from linkwise.units import format_quantity

if TYPE_CHECKING:
    from linkwise.catalog import Gpu
    from linkwise.cluster.parts import Node
    from linkwise.figures import Figure

__all__ = ["least_node", "least_node_bytes_per_s", "mixed_words", "node_parts", "slowest_gpu"]

_SLOWEST_FIRST = (
    GpuLinks.HOST_MEMORY,
    GpuLinks.PCIE,
    GpuLinks.NVLINK_BRIDGE,
    GpuLinks.NVLINK_MESH,
    GpuLinks.INFINITY_FABRIC,
    GpuLinks.NVSWITCH,
)

_FIGURES = ("memory_bytes", "memory_bandwidth_bytes_per_s", "nvlink_bytes_per_s", "pcie_bytes_per_s")


def least_node(parts: Sequence[tuple[Node, int]]) -> Node:
    """Return the node that has of everything the least of several.

    Parameters
    ----------
    parts
        Kinds of nodes, and how many there are of each.
    """
    nodes = [node for node, _ in parts]
    gpus = min(node.gpus_per_node for node in nodes)
    narrow = min(nodes, key=lambda node: node.nics * node.nic_bytes_per_s)
    powers = [None if node.power_w is None else node.power_w / _nodes_of(node) for node in nodes]
    known = [power for power in powers if power is not None]
    count = sum(number for _, number in parts)
    domain = math.gcd(*(_domain_gpus(node, gpus) for node in nodes))
    return replace(
        narrow,
        system=None,
        gpu=slowest_gpu(nodes).name,
        gpus_per_node=gpus,
        nvlink_domain_gpus=domain,
        nic=_common([node.nic for node in nodes]),
        link=_common([node.link for node in nodes]),
        switch=_common([node.switch for node in nodes]),
        power_w=(
            sum(power * number for power, (_, number) in zip(known, parts, strict=True)) / count
            if len(known) == len(parts)
            else None
        ),
        gpu_links=min((node.links_of_gpus for node in nodes), key=_SLOWEST_FIRST.index) if gpus > 1 else None,
        parts=tuple(parts),
    )


def slowest_gpu(nodes: Sequence[Node]) -> Gpu:
    """Return the GPU with fewest 16-bit FLOP/s, with the least memory and rates of all.

    Parameters
    ----------
    nodes
        Kinds of nodes.
    """
    gpus = [catalog.gpu(node.gpu) for node in nodes]
    slowest = min(gpus, key=lambda gpu: gpu.flop_per_s.get("bf16", gpu.flop_per_s.get("fp16", math.inf)))
    figures: dict[str, Figure] = dict(slowest.figures)
    flops = {}
    for precision in slowest.flop_per_s:
        if all(precision in gpu.flop_per_s for gpu in gpus):
            least = min(gpus, key=lambda gpu: gpu.flop_per_s[precision])
            flops[precision] = least.flop_per_s[precision]
            _take(figures, least, f"{precision}_flop_per_s")
    values: dict[str, float | None] = {}
    for name in _FIGURES:
        have = [gpu for gpu in gpus if getattr(gpu, name) is not None]
        least = min(have, key=lambda gpu: getattr(gpu, name), default=slowest)
        values[name] = getattr(least, name) if len(have) == len(gpus) else None
        _take(figures, least, name)
    return replace(
        slowest,
        memory_bytes=values["memory_bytes"] or slowest.memory_bytes,
        memory_bandwidth_bytes_per_s=(
            values["memory_bandwidth_bytes_per_s"] or slowest.memory_bandwidth_bytes_per_s
        ),
        nvlink_bytes_per_s=values["nvlink_bytes_per_s"],
        pcie_bytes_per_s=values["pcie_bytes_per_s"],
        flop_per_s=flops,
        figures=figures,
    )


def least_node_bytes_per_s(node: Node, most_bytes_per_s: float) -> float:
    """Return what all NICs of the narrowest kind of nodes carry, one direction [bytes/s].

    Parameters
    ----------
    node
        As `least_node` gives it.
    most_bytes_per_s
        What the link of the fabric lets through of one NIC [bytes/s].
    """
    return min(each.nics * min(each.nic_bytes_per_s, most_bytes_per_s) for each, _ in node.parts)


def node_parts(node: Node) -> tuple[NodePart, ...]:
    """Return the kinds of nodes as a cluster keeps them; none where all are alike.

    Parameters
    ----------
    node
        As the document gives it.
    """
    return tuple(
        NodePart(
            name=each.system or each.gpu,
            nodes=number,
            gpus_per_node=each.gpus_per_node,
            nics=each.nics,
            nic_bytes_per_s=each.nic_bytes_per_s,
        )
        for each, number in node.parts
    )


def mixed_words(node: Node) -> Iterator[str]:
    """Yield what mixed nodes are priced as.

    Parameters
    ----------
    node
        As the document gives it.
    """
    if not node.parts:
        return
    kinds = ", ".join(f"{number:,} {each.system or each.gpu}" for each, number in node.parts)
    network = format_quantity(8 * node.nics * node.nic_bytes_per_s, "bits_per_s")
    gpu = slowest_gpu([each for each, _ in node.parts])
    yield (
        f"mixed nodes ({kinds}): all wait for the slowest, so that each is priced with the least of any: "
        f"{node.gpus_per_node} GPUs at the rates of {gpu.name} or less, "
        f"{format_quantity(gpu.memory_bytes, 'bytes')} of memory, NVLink domains of "
        f"{node.nvlink_domain_gpus}, {network} of NICs"
    )
    if any(each.gpus_per_node > node.gpus_per_node for each, _ in node.parts):
        yield f"mixed nodes: of each node {node.gpus_per_node} GPUs are used, as many as the smallest has"


def _take(figures: dict[str, Figure], gpu: Gpu, name: str) -> None:
    if name in gpu.figures:
        figures[name] = gpu.figures[name]


def _common(values: Sequence[str | None]) -> str | None:
    return values[0] if len(set(values)) == 1 else None


def _nodes_of(node: Node) -> int:
    """Return the nodes of the product whose power is known."""
    if node.system is None:
        return 1
    system = catalog.system(node.system)
    return max(1, system.gpus // system.gpus_per_node)


def _domain_gpus(node: Node, gpus: int) -> int:
    """Return the GPUs of an NVLink domain of which so many of each node are used."""
    if node.nvlink_domain_gpus >= node.gpus_per_node:
        return node.nvlink_domain_gpus // node.gpus_per_node * gpus
    return min(node.nvlink_domain_gpus, gpus)
