"""What a topology matrix and NCCL's XML say of a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from linkwise import catalog
from linkwise.cluster.claims import Claim, counted, groups_joined
from linkwise.cluster.parts import rate_text
from linkwise.cluster.pci_devices import GPU_OF_PCI_ID, NIC_OF_PCI_ID
from linkwise.readers.nccl_topology import NcclGpu, NcclNet, NcclTopology
from linkwise.readers.topology_matrix import TopologyMatrix

__all__ = ["link_of", "matrix_claims", "nccl_claims"]

_NEAR = ("PIX", "PXB")
"""A NIC for training sits behind the PCIe switch of a GPU; others of a node serve storage and management."""

_NVIDIA = "10de:"

_MOST_LINKS = 18
"""NVLinks of one GPU up to Blackwell: more than that over all pairs means that a switch joins them."""


def link_of(protocols: Sequence[str], bytes_per_s: float) -> str | None:
    """Return the link of the catalogue with that rate and one of those protocols, or ``None``.

    Parameters
    ----------
    protocols
        Protocols as the catalogue spells them, the likeliest first.
    bytes_per_s
        Rate of one direction [bytes/s].
    """
    links = [catalog.link(name) for name in catalog.names("link")]
    fitting = (
        link.name
        for protocol in protocols
        for link in links
        if link.protocol == protocol and abs(link.bytes_per_s - bytes_per_s) <= 0.01 * bytes_per_s
    )
    return next(fitting, None)


def matrix_claims(matrix: TopologyMatrix, path: str) -> Iterator[Claim]:
    """Yield what the matrix of one node says.

    Parameters
    ----------
    matrix
        The matrix.
    path
        The file it was read in.
    """
    gpus = matrix.gpus
    yield Claim(
        key="gpus_per_node", value=len(gpus), path=path, why=f"{counted(len(gpus), 'GPU')} in the matrix"
    )
    links = {gpu: [matrix.nvlinks(gpu, other) for other in gpus if other != gpu] for gpu in gpus}
    joined = [(one, other) for one in gpus for other in gpus if one != other and matrix.nvlinks(one, other)]
    yield from _domain_claims(groups_joined(gpus, joined), path)
    if len(gpus) > 1:
        # The GPU with most links is one without a link that is down.
        yield from _nvlink_claims(max(links.values(), key=sum), path)
    near = [nic for nic in matrix.nics if any(matrix.cells[nic, gpu] in _NEAR for gpu in gpus)]
    kept = near or list(matrix.nics)
    if not kept:
        yield Claim(key="note", value=None, path=path, why="the matrix lists no NIC")
        return
    where = "behind the PCIe switch of a GPU (PIX or PXB)" if near else "in the matrix"
    yield Claim(
        key="nics", value=len(kept), path=path, why=f"{counted(len(kept), 'NIC')} {where}", assumed=True
    )
    if len(kept) < len(matrix.nics):
        others = ", ".join(matrix.nic_devices.get(nic, nic) for nic in matrix.nics if nic not in near)
        yield Claim(key="note", value=None, path=path, why=f"not counted, far from every GPU: {others}")


def _domain_claims(groups: Sequence[set[str]], path: str) -> Iterator[Claim]:
    sizes = sorted({len(group) for group in groups})
    why = (
        f"NVLink joins groups of {sizes[0]} GPUs"
        if len(sizes) == 1
        else f"NVLink joins groups of {', '.join(map(str, sizes))} GPUs; the smallest is taken for all"
    )
    if sizes == [1]:
        why = "no NVLink between GPUs"
    yield Claim(key="nvlink_domain_gpus", value=sizes[0], path=path, why=why, assumed=len(sizes) > 1)


def _nvlink_claims(cells: Sequence[int], path: str) -> Iterator[Claim]:
    """Yield how many NVLinks a GPU has: those of all pairs in a mesh, of one pair behind a switch."""
    over_all, most = sum(cells), max(cells)
    if over_all == 0:
        return
    behind_a_switch = min(cells) > 0
    numbers = ({over_all} if over_all <= _MOST_LINKS else set()) | ({most} if behind_a_switch else set())
    if numbers:
        words = " or ".join(map(str, sorted(numbers)))
        yield Claim(key="nvlinks", value=frozenset(numbers), path=path, why=f"{words} NVLinks of a GPU")
    if over_all > _MOST_LINKS and len(set(cells)) > 1:
        why = f"pairs behind one switch have {min(cells)} to {most} NVLinks; some are down"
        yield Claim(key="note", value=None, path=path, why=why)


def nccl_claims(topology: NcclTopology, path: str) -> Iterator[Claim]:
    """Yield what NCCL's topology says of a node, and of the nodes that share an NVLink domain with it.

    Parameters
    ----------
    topology
        The topology.
    path
        The file it was read in.
    """
    per_host = Counter(gpu.host for gpu in topology.gpus)
    counts = sorted(set(per_host.values()))
    why = f"{counted(counts[-1], 'GPU')} in the topology"
    if len(per_host) > 1:
        why = f"{len(per_host)} hosts with {', '.join(map(str, counts))} GPUs"
    yield Claim(key="gpus_per_node", value=counts[-1], path=path, why=why)
    if len(per_host) > 1:
        yield Claim(key="nodes", value=len(per_host), path=path, why=why, assumed=True)
    yield from _gpu_claims(topology.gpus, path)
    if any(gpu.is_outline for gpu in topology.gpus):
        why = "the file lists PCI devices only: NVLinks and rates are not known"
        yield Claim(key="note", value=None, path=path, why=why)
    else:
        yield from _xml_domain_claims(topology.gpus, path)
    yield from _net_claims(_physical(topology.nets), len(per_host), path)


def _gpu_claims(gpus: Sequence[NcclGpu], path: str) -> Iterator[Claim]:
    devices = sorted({gpu.pci_id for gpu in gpus})
    names = sorted({GPU_OF_PCI_ID.get(device, "") for device in devices})
    if len(names) == 1 and names[0]:
        yield Claim(
            key="gpu", value=names[0], path=path, why=f"PCI device {', '.join(devices)} is {names[0]}"
        )
    else:
        unknown = ", ".join(device or "not stated" for device in devices)
        yield Claim(
            key="note", value=None, path=path, why=f"PCI devices of the GPUs not told apart: {unknown}"
        )


def _xml_domain_claims(gpus: Sequence[NcclGpu], path: str) -> Iterator[Claim]:
    names = {(gpu.host, gpu.bus_id): str(place) for place, gpu in enumerate(gpus)}
    pairs = [
        (names[gpu.host, gpu.bus_id], names[gpu.host, target])
        for gpu in gpus
        for target in gpu.nvlinks
        if (gpu.host, target) in names
    ]
    switched = [names[gpu.host, gpu.bus_id] for gpu in gpus if gpu.switched]
    pairs += [(switched[0], other) for other in switched[1:]]
    groups = groups_joined(names.values(), pairs)
    links = max(sum(gpu.nvlinks.values()) for gpu in gpus)
    # NCCL lists the trays of an NVLink domain that one job used, which may be some of them; and in some
    # virtual machines NVLinks lead to no device of the file.
    unsure = len({gpu.host for gpu in gpus}) > 1 or (links > 0 and len(groups) == len(gpus) > 1)
    for claim in _domain_claims(groups, path):
        yield replace(claim, assumed=claim.assumed or unsure)
    if links and all(gpu.pci_id.startswith(_NVIDIA) for gpu in gpus):
        yield Claim(key="nvlinks", value=frozenset({links}), path=path, why=f"{links} NVLinks of a GPU")


def _physical(nets: Sequence[NcclNet]) -> list[NcclNet]:
    """Return the networks without those that NCCL has joined to one that is listed too."""
    parts = {(net.host, part) for net in nets if "+" in net.name for part in net.name.split("+")}
    return [net for net in nets if "+" in net.name or (net.host, net.name) not in parts]


def _net_claims(nets: Sequence[NcclNet], hosts: int, path: str) -> Iterator[Claim]:
    if not nets:
        yield Claim(key="note", value=None, path=path, why="the topology lists no network")
        return
    count = -(-len(nets) // hosts)
    yield Claim(key="nics", value=count, path=path, why=f"{counted(count, 'network port')} that NCCL uses")
    cards = {NIC_OF_PCI_ID.get(net.pci_id) for net in nets}
    rates = {net.bytes_per_s for net in nets}
    card, rate = next(iter(cards)), next(iter(rates))
    if len(cards) == 1 and card is not None:
        yield Claim(key="nic", value=card, path=path, why=f"PCI device {nets[0].pci_id} is {card}")
    if len(rates) > 1:
        speeds = ", ".join(rate_text(each) for each in sorted(filter(None, rates)))
        yield Claim(key="note", value=None, path=path, why=f"networks of several rates: {speeds}")
    if len(rates) > 1 and len(cards) == 1 and None not in rates:
        # Ports of one kind of card that differ: the slower ones are degraded.
        rate = max(filter(None, rates))
        yield from _slow_ports(nets, rate, path)
    elif len(rates) > 1:
        return
    if rate is not None:
        text = rate_text(rate)
        yield Claim(key="nic_bytes_per_s", value=rate, path=path, why=f"each port runs at {text}")
        link = link_of(_protocols(nets), rate)
        if link is not None:
            why = f"ports of {_wire(nets)} at {text}"
            yield Claim(key="link", value=link, path=path, why=why, assumed=True)


def _slow_ports(nets: Sequence[NcclNet], best_bytes_per_s: float, path: str) -> Iterator[Claim]:
    """Yield the ports below the best as changes of the first nodes, one for each host."""
    hosts = {host: number for number, host in enumerate(dict.fromkeys(net.host for net in nets))}
    placed: Counter[str] = Counter()
    for net in nets:
        nic, placed[net.host] = placed[net.host], placed[net.host] + 1
        if net.bytes_per_s is not None and net.bytes_per_s < 0.999 * best_bytes_per_s:
            left = {"nics": f"node {hosts[net.host]} nic {nic}", "rate": rate_text(net.bytes_per_s)}
            why = f"{net.name} at {rate_text(net.bytes_per_s)}; which node it is is assumed"
            yield Claim(key="change", value=left, path=path, why=why, assumed=True)


def _protocols(nets: Sequence[NcclNet]) -> tuple[str, ...]:
    if all(net.pci_id.startswith("1d0f:") for net in nets):
        return ("efa",)
    if all(net.infiniband for net in nets):
        return ("infiniband",)
    # Cards of Mellanox and Broadcom that NCCL drives over verbs; any other device is a socket.
    verbs = all(net.name.startswith(("mlx5", "bnxt_re", "roce", "ionic")) for net in nets)
    return ("roce",) if verbs and not any(net.infiniband for net in nets) else ()


def _wire(nets: Sequence[NcclNet]) -> str:
    return {"infiniband": "InfiniBand", "roce": "Ethernet", "efa": "EFA"}[_protocols(nets)[0]]
