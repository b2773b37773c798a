"""One node as a topology file of NCCL (``NCCL_TOPO_FILE``), so that NCCL itself can be asked about it.

References
----------
NVIDIA/nccl: src/graph/xml.cc, topo.cc and topo.h (2.32): elements, attributes, units.
NVIDIA, CUDA GPU compute capability (developer.nvidia.com/cuda-gpus) and its list of legacy GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from linkwise import catalog
from linkwise.cluster import Cluster
from linkwise.errors import InputError
from linkwise.network.exports.scale_up import ScaleUp, scale_up_of

__all__ = ["nccl_xml"]

_SM = {
    "v100-sxm3-32gb": 70,
    "a100-sxm-40gb": 80,
    "a100-sxm-80gb": 80,
    "h100-sxm": 90,
    "h100-sxm-96gb-hbm2e-500w": 90,
    "h200-sxm": 90,
    "gh200-96gb": 90,
    "gh200-141gb": 90,
    "b200-sxm": 100,
    "gb200": 100,
    "b300-sxm": 103,
    "gb300": 103,
}
"""Compute capability of the GPUs that are sold with NVSwitch; NCCL takes the rate of a link from it."""
_GRACE = ("gh200", "gb200", "gb300")
"""GPUs of modules whose processor is NVIDIA Grace, an Arm; others are taken to sit beside x86 ones."""
_CARDS = {
    "infiniband": "mlx5_{nic}",
    "roce": "mlx5_{nic}",
    "efa": "rdmap{bus}s0",
    "slingshot": "cxi{nic}",
}
"""Name of a device by protocol; what is not here is a network interface of Linux."""
_LANE_GT_PER_S = ((4e9, "2.5"), (8e9, "5.0"), (16e9, "8.0"), (32e9, "16.0"), (64e9, "32.0"), (128e9, "64.0"))
"""What 16 lanes of PCIe carry in one direction [bytes/s], and the transfers of one lane [GT/s]."""
_BRIDGE, _GPU, _INFINIBAND, _ETHERNET, _NVSWITCH = "0x060400", "0x030200", "0x020700", "0x020000", "0x068000"
"""Classes of PCI devices (PCI Code and ID Assignment Specification)."""
_NUMA_NODES = 2
_ASSUMED = "bus numbers, processors and PCIe switches are assumed"


def nccl_xml(cluster: Cluster) -> str:
    """Return one node of a cluster as NCCL describes nodes.

    Parameters
    ----------
    cluster
        What there is. Bus numbers, the two processors and a PCIe switch for each GPU and its NICs are
        assumed; all NVLinks of a GPU lead to NVSwitch.

    Raises
    ------
    InputError
        When the GPUs of the node are not known to be all joined by NVSwitch: NCCL has to be told each link
        then. When the compute capability of the GPU is not known.
    """
    links, sm = _nvswitch_links(cluster)
    speed = _pcie_gt_per_s(cluster.gpu.pcie_bytes_per_s)
    count = cluster.gpus_per_node
    system = Element("system", version="1")
    processors = [_processor(system, numa, cluster.gpu.name) for numa in range(min(_NUMA_NODES, count))]
    for number in range(count):
        bus = 16 * (number + 1)
        switch = _device(processors[number * len(processors) // count], bus, _BRIDGE, speed)
        card = SubElement(
            _device(switch, bus + 1, _GPU, speed),
            "gpu",
            dev=str(number),
            sm=str(sm),
            rank=str(number),
            gdr="1",
        )
        SubElement(card, "nvlink", target=_bus_id(3), count=str(links), tclass=_NVSWITCH)
        for place, nic in enumerate(_nics_beside(cluster, number)):
            _network_card(switch, bus + 2 + place, nic, speed, cluster)
    indent(system)
    head, rest = tostring(system, encoding="unicode").split("\n", 1)
    return f"{head}\n  <!-- {_ASSUMED} -->\n{rest}\n"


def _nvswitch_links(cluster: Cluster) -> tuple[int, int]:
    """Return the NVLinks of each GPU, all of which lead to NVSwitch, and its compute capability."""
    gpu, count = cluster.gpu, cluster.gpus_per_node
    if count == 1:
        raise InputError(
            f"{cluster.name}: a node has one {gpu.name}; there is no topology for NCCL to search"
        )
    is_joined = cluster.nvlink_domain_gpus >= count and scale_up_of(cluster) is ScaleUp.SWITCH
    if gpu.nvlink_generation is None or not is_joined:
        raise InputError(
            f"{cluster.name}: the {count} {gpu.name} of a node are not known to be joined by "
            "NVSwitch, and NCCL has to be told each link; dump the file on a node with NCCL_TOPO_DUMP_FILE"
        )
    if gpu.name not in _SM:
        raise InputError(
            f"{cluster.name}: the compute capability of {gpu.name} is not known (known: {', '.join(_SM)}), "
            "and NCCL takes the rate of a link from it; dump the file on a node with NCCL_TOPO_DUMP_FILE"
        )
    link = catalog.entry("nvlink", f"nvlink-{gpu.nvlink_generation}").figures["link_bytes_per_s"].value
    return round((gpu.nvlink_bytes_per_s or 0.0) / link), _SM[gpu.name]


def _pcie_gt_per_s(pcie_bytes_per_s: float | None) -> str:
    fitting = [words for rate, words in _LANE_GT_PER_S if rate <= 1.05 * (pcie_bytes_per_s or 64e9)]
    return fitting[-1] if fitting else _LANE_GT_PER_S[0][1]


def _processor(system: Element, numa: int, gpu: str) -> Element:
    place = {"numaid": str(numa), "affinity": ""}
    if gpu.startswith(_GRACE):
        return SubElement(system, "cpu", place, arch="arm64", vendor="ARM")
    kind = {"arch": "x86_64", "vendor": "GenuineIntel", "familyid": "6", "modelid": "143"}
    return SubElement(system, "cpu", place | kind)


def _device(above: Element, bus: int, kind: str, speed: str) -> Element:
    words = {"busid": _bus_id(bus), "class": kind, "link_speed": f"{speed} GT/s PCIe", "link_width": "16"}
    return SubElement(above, "pci", words)


def _bus_id(bus: int) -> str:
    domain, bus = divmod(bus, 256)
    return f"{domain:04x}:{bus:02x}:00.0"


def _nics_beside(cluster: Cluster, gpu: int) -> Iterator[int]:
    """Yield the NICs on the PCIe switch of a GPU: they are dealt to the GPUs in order."""
    for nic in range(cluster.nics_per_node):
        if nic * cluster.gpus_per_node // cluster.nics_per_node == gpu:
            yield nic


def _network_card(switch: Element, bus: int, nic: int, speed: str, cluster: Cluster) -> None:
    link = cluster.fabric.link
    protocol = "" if link is None else link.protocol
    infiniband = protocol == "infiniband"
    card = SubElement(_device(switch, bus, _INFINIBAND if infiniband else _ETHERNET, speed), "nic")
    SubElement(
        card,
        "net",
        name=_CARDS.get(protocol, "eth{nic}").format(nic=nic, bus=bus),
        dev=str(nic),
        speed=str(round(cluster.nic_bytes_per_s * 8 / 1e6)),
        port="1",
        guid=f"0x{nic + 1:x}",
        latency="0.000000",
        maxconn="131072",
        gdr="1" if link is not None and link.rdma else "0",
        rail=str(nic),
        plane="0",
    )
