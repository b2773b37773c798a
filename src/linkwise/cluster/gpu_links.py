"""What joins the GPUs of a node: which links a GPU can have, and how many GPUs they join."""

from __future__ import annotations

from collections.abc import Iterator

from linkwise import catalog
from linkwise.cluster.cluster import GpuLinks

__all__ = [
    "LARGEST_DOMAIN_GPUS",
    "default_domain_gpus",
    "domain_assumptions",
    "gpu_links_misfits",
    "gpu_links_of",
]

LARGEST_DOMAIN_GPUS = 576
"""Most GPUs that NVLink of the fifth generation is announced to join (NVIDIA, GB200 NVL72, product page)."""

_WIDEST_MEASURED_GPUS = 72
"""The widest NVLink domain of which runs are public: racks of GB200 and GB300."""

_BRIDGED_GPUS = (2, 4)
"""GPUs that one bridge joins (NVIDIA: H100 NVL 2, H200 NVL 2 or 4)."""

_OVER_PCIE = (GpuLinks.PCIE, GpuLinks.HOST_MEMORY)


def default_domain_gpus(gpu: str, gpus_per_node: int, links: GpuLinks | None) -> int:
    """Return how many GPUs reach one another without the fabric and without PCIe, where nobody says it.

    Parameters
    ----------
    gpu
        Name in the catalogue.
    gpus_per_node
        GPUs of one operating system.
    links
        What joins them, where that is stated.
    """
    there = catalog.gpu(gpu)
    if links in _OVER_PCIE or there.nvlink_bytes_per_s is None:
        return 1
    if links is GpuLinks.NVLINK_BRIDGE or (links is None and "bridge" in (there.scale_up_form or "")):
        return min(2, gpus_per_node)
    return gpus_per_node


def gpu_links_of(gpu: str, gpus_per_node: int, domain_gpus: int, stated: GpuLinks | None) -> GpuLinks:
    """Return what joins the GPUs of a node.

    Parameters
    ----------
    gpu
        Name in the catalogue.
    gpus_per_node, domain_gpus
        GPUs of one operating system, and of an NVLink domain.
    stated
        What the document says, or ``None``.
    """
    if stated is not None:
        return stated
    if domain_gpus == 1 and gpus_per_node > 1:
        return GpuLinks.PCIE
    if domain_gpus < gpus_per_node:
        return GpuLinks.NVLINK_BRIDGE
    is_amd = "Infinity" in (catalog.gpu(gpu).scale_up or "")
    return GpuLinks.INFINITY_FABRIC if is_amd else GpuLinks.NVSWITCH


def gpu_links_misfits(
    gpu: str, gpus_per_node: int, domain_gpus: int | None, stated: GpuLinks | None
) -> Iterator[tuple[str, str]]:
    """Yield key and message of what cannot join the GPUs of a described node.

    Parameters
    ----------
    gpu
        Name in the catalogue.
    gpus_per_node, domain_gpus, stated
        As the document says.
    """
    if stated is None:
        return
    key, there = "gpu_links", catalog.gpu(gpu)
    domain = default_domain_gpus(gpu, gpus_per_node, stated) if domain_gpus is None else domain_gpus
    if max(gpus_per_node, domain) == 1:
        yield key, "has no effect: a node of one GPU has nothing to join; leave it out"
    elif stated in _OVER_PCIE:
        if domain > 1:
            yield "nvlink_domain_gpus", f"{domain} GPUs do not share NVLink over {stated}; leave the key out"
    elif there.scale_up is None:
        yield key, f"{gpu} has PCIe alone; write pcie or host-memory"
    elif (stated is GpuLinks.INFINITY_FABRIC) != ("Infinity" in there.scale_up):
        yield key, f"the GPUs of {gpu} are joined by {there.scale_up}, not by {stated}"
    elif stated is GpuLinks.NVLINK_BRIDGE and domain not in _BRIDGED_GPUS:
        yield "nvlink_domain_gpus", f"a bridge joins 2 or 4 GPUs, not {domain}; write one of these"
    elif stated is GpuLinks.NVLINK_MESH and domain > gpus_per_node:
        yield key, f"{domain} GPUs span nodes, which takes NVSwitches; write nvswitch"
    elif stated in (GpuLinks.NVSWITCH, GpuLinks.NVLINK_MESH) and domain < gpus_per_node:
        message = f"{stated} joins all {gpus_per_node} GPUs of a node, not {domain}; leave the key out"
        yield "nvlink_domain_gpus", message


def domain_assumptions(domain_gpus: int, sold_gpus: int | None, links: GpuLinks) -> Iterator[str]:
    """Yield what is taken for granted of the links between GPUs.

    Parameters
    ----------
    domain_gpus
        GPUs of an NVLink domain.
    sold_gpus
        How many it has in the system of the catalogue, where it is one.
    links
        What joins the GPUs.
    """
    if links is GpuLinks.HOST_MEMORY:
        yield (
            "host memory: a training step is priced as if GPUs reached each other over PCIe directly; "
            "collectives alone count the way through the host"
        )
    if domain_gpus > _WIDEST_MEASURED_GPUS:
        yield (
            f"NVL{domain_gpus}: no run in a domain of more than {_WIDEST_MEASURED_GPUS} GPUs is public, "
            "and intervals are those of narrower ones; two tiers of NVSwitches are assumed that neither "
            "block nor add latency"
        )
    elif sold_gpus is not None and domain_gpus > sold_gpus:
        yield (
            f"NVL{domain_gpus}: not sold with these nodes, whose domain has {sold_gpus} GPUs; NVSwitches "
            "that do not block are assumed"
        )
