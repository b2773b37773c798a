"""A job as it is launched: hosts, GPUs, network, release, launcher, and where each of its processes runs.

A job is data only; `healthy.write` turns it into the lines that it prints when all is well.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.job_logs.releases import Release

GPU_BUSES = (0x1B000, 0x43000, 0x52000, 0x61000, 0x9D000, 0xC3000, 0xD1000, 0xDF000)
"""PCI bus ids of the eight GPUs of an HGX board, as NCCL prints them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What carries data between hosts.

    Parameters
    ----------
    name : str
        The word after `Using network`: IB, IBext, Socket, AWS Libfabric, FasTrak...
    link : str
        IB, RoCE, or empty where there is no HCA.
    devices : tuple[str, ...]
        Names of HCAs, or of interfaces for sockets.
    speed_mbit_per_s : int
        Of one device.
    gdr : bool
        Whether the NIC reads and writes GPU memory itself.
    plugin : str
        The library of an external network plug-in, or empty.
    """

    name: str = "IB"
    link: str = "IB"
    devices: tuple[str, ...] = ("mlx5_0", "mlx5_1")
    speed_mbit_per_s: int = 400_000
    gdr: bool = True
    plugin: str = ""

    @property
    def is_verbs(self) -> bool:
        return self.name in {"IB", "IBext"}


INFINIBAND = Network()
INFINIBAND_WITHOUT_GDR = Network(gdr=False)
ROCE = Network(link="RoCE")
ETHERNET = Network(name="Socket", link="", devices=("eth0",), speed_mbit_per_s=25_000, gdr=False)
EFA = Network(name="AWS Libfabric", link="", devices=("rdmap79s0", "rdmap80s0"), plugin="libnccl-net.so")
FASTRAK = Network(
    name="FasTrak", link="", devices=("eth1", "eth2"), plugin="libnccl-net.so", speed_mbit_per_s=200_000
)
TCPX = Network(
    name="GPUDirectTCPX_v7",
    link="",
    devices=("eth1", "eth2"),
    plugin="libnccl-net.so",
    speed_mbit_per_s=200_000,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One process of the job with its GPU."""

    rank: int
    node: int
    host: str
    address: str
    device: int
    bus: int
    pid: int
    comm: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as it is launched.

    Parameters
    ----------
    release : Release
        The NCCL that all ranks load, unless `releases_of_hosts` names another for a host.
    hosts : tuple[str, ...]
        Host names, one for each operating system.
    gpus_per_node : int
        Ranks on each host.
    network : Network
        Between hosts.
    intra : str
        NVLink, PCIe (peer to peer without NVLink) or SHM (through host memory).
    multicast : bool
        Whether the board has NVLink SHARP that works.
    rack : bool
        Whether NVLink joins the hosts (a GB200 or GB300 rack).
    framework : str
        pytorch, nccl-tests, or empty for a log of NCCL alone.
    launcher : str
        Which prefix a line gets; a key of `writing.PREFIXES`.
    subsystems : frozenset[str] or None
        NCCL_DEBUG_SUBSYS, or None for the default of the release.
    variables : tuple[tuple[str, str], ...]
        NCCL variables that are set and read.
    interface, subnet : str
        Of the bootstrap: `eth0`, `10.20.0`.
    steps : int
        Training steps, or rows of the table of nccl-tests, that are printed.
    seed : int
        Of pointers, process ids and the order of lines.
    releases_of_hosts : Mapping[str, Release]
        Hosts with another NCCL.
    """

    release: Release
    hosts: tuple[str, ...] = ("gpu-01", "gpu-02")
    gpus_per_node: int = 2
    network: Network = INFINIBAND
    intra: str = "NVLink"
    multicast: bool = True
    rack: bool = False
    framework: str = "pytorch"
    launcher: str = "plain"
    subsystems: frozenset[str] | None = None
    variables: tuple[tuple[str, str], ...] = ()
    interface: str = "eth0"
    subnet: str = "10.20.0"
    steps: int = 4
    seed: int = 1
    releases_of_hosts: Mapping[str, Release] = field(default_factory=dict)

    @property
    def nodes(self) -> int:
        return len(self.hosts)

    @property
    def size(self) -> int:
        return self.nodes * self.gpus_per_node

    @property
    def transport_inside(self) -> str | None:
        """How the ranks of one host reach each other, or None where each host has one rank."""
        if self.gpus_per_node == 1:
            return None
        if self.intra == "SHM":
            return "SHM"
        return "P2P/CUMEM" if self.release.is_from("2.19.3") else "P2P/IPC"

    @property
    def transport_between(self) -> str | None:
        """How hosts reach each other, or None for a job of one host."""
        if self.nodes == 1:
            return None
        return "P2P/MNNVL" if self.rack else f"NET/{self.network.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a reader of the log should find out; None where the log does not show it.

    Parameters
    ----------
    inside, between : str or None
        Transports, `P2P/CUMEM`, `SHM`, `NET/IB`.
    nics_per_node : int or None
        Devices of the network that is used.
    gdr : bool or None
        Whether every NET channel line has GDRDMA (True) or none (False).
    versions : tuple[str, ...]
        Distinct NCCL versions that are shown.
    ranks, nodes : int or None
        Of the job.
    """

    inside: str | None = None
    between: str | None = None
    nics_per_node: int | None = None
    gdr: bool | None = None
    versions: tuple[str, ...] = ()
    ranks: int | None = None
    nodes: int | None = None


def ranks_of(job: Job) -> tuple[Rank, ...]:
    """Return the ranks of a job, host by host."""
    return tuple(
        Rank(
            rank=node * job.gpus_per_node + device,
            node=node,
            host=host,
            address=_address(job.subnet, node),
            device=device,
            bus=GPU_BUSES[device % len(GPU_BUSES)],
            pid=(job.seed * 7919 + node * 104_729) % 800_000 + 1_500 + device,
            comm=f"0x55d0{(job.seed * 0x9E3779B1 + node * 0x85EBCA6B + device * 0xC2B2AE35) % 2**32:08x}",
        )
        for node, host in enumerate(job.hosts)
        for device in range(job.gpus_per_node)
    )


def _address(subnet: str, node: int) -> str:
    """Return the address of a host: `.11` upwards, in the next subnet after 240 hosts."""
    head, third = subnet.rsplit(".", 1)
    return f"{head}.{int(third) + node // 240}.{11 + node % 240}"


def release_at(job: Job, host: str) -> Release:
    """Return the NCCL that a host loads."""
    return job.releases_of_hosts.get(host, job.release)


def comm_id(job: Job) -> str:
    """Return the id that all ranks of the communicator print."""
    return f"0x{(job.seed * 0x9E3779B97F4A7C15 + 0x1234) % 2**63:x}"
