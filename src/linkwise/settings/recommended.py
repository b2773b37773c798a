"""The settings that a cluster and a job need, as few as possible: nothing that NCCL does by itself.

References
----------
NVIDIA, NCCL user guide, "Environment Variables", 2026. NVIDIA, Megatron-LM, megatron/training/arguments.py.
AWS, awsome-distributed-training, 1.architectures/efa-cheatsheet.md. Google, container-engine-accelerators,
gpudirect-tcpxo. CSCS, documentation of NCCL on Alps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkwise.cluster.cluster import FabricKind, RoutingKind
from linkwise.figures import Basis
from linkwise.job.framework import FRAMEWORKS
from linkwise.nccl.variables import Release
from linkwise.settings.finding import guide
from linkwise.settings.node import NodeFacts

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.job import Job

__all__ = ["Recommendation", "Setting", "recommended"]

_MEGATRON = "NVIDIA/Megatron-LM megatron/training/arguments.py"
_EFA = "aws-samples/awsome-distributed-training 1.architectures/efa-cheatsheet.md"
_TCPXO = "GoogleCloudPlatform/container-engine-accelerators gpudirect-tcpxo/nccl-test-latest.yaml"
_ALPS = "CSCS documentation, software/communication/nccl"
_FAST_ETHERNET_BYTES_PER_S = 12.5e9
"""100 Gbit/s: from there on one TCP connection does not fill a link [bytes/s]."""
_BEFORE_BLACKWELL = ("Pascal", "Volta", "Turing", "Ampere", "Ada", "Hopper")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting that is needed.

    Attributes
    ----------
    name, value
        The variable and its value.
    reason
        Why it is needed here.
    source
        Where that can be read.
    basis
        How the value is known: derived from the documents, read in the source, or assumed.
    """

    name: str
    value: str
    reason: str
    source: str
    basis: Basis


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """What a cluster and a job need.

    Attributes
    ----------
    settings
        The settings; empty where NCCL does all by itself.
    notes
        What hangs on facts that no document holds, in sentences.
    """

    settings: tuple[Setting, ...]
    notes: tuple[str, ...]


def recommended(
    cluster: Cluster,
    job: Job | None = None,
    *,
    release: Release,
    node: NodeFacts | None = None,
    dscp: int | None = None,
) -> Recommendation:
    """Return the settings that a cluster and a job need.

    Parameters
    ----------
    cluster
        The cluster.
    job
        The job, where one is known.
    release
        The release of NCCL.
    node
        Interfaces and RDMA devices of a node, where they are known.
    dscp
        The DSCP that the switches keep lossless, for RoCE.
    """
    settings: list[Setting] = []
    notes: list[str] = []
    if cluster.nodes_in_use > 1 and cluster.fabric.link is not None:
        settings += _of_fabric(cluster, release, node, dscp)
        notes += _fabric_notes(cluster, release, node, dscp)
    if job is not None:
        settings += _of_job(cluster, job)
        notes += _job_notes(cluster, job)
    return Recommendation(settings=tuple(settings), notes=tuple(notes))


def _protocol(cluster: Cluster) -> str:
    return cluster.fabric.link.protocol if cluster.fabric.link is not None else ""


def _of_fabric(
    cluster: Cluster, release: Release, node: NodeFacts | None, dscp: int | None
) -> Iterator[Setting]:
    protocol = _protocol(cluster)
    if protocol in ("infiniband", "roce"):
        yield from _of_verbs(cluster, node)
    if protocol == "roce":
        yield from _of_roce(release, dscp)
    elif protocol == "efa":
        yield from _of_efa(release)
    elif protocol == "tcpxo":
        yield Setting(
            name="NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY",
            value="/dev/aperture_devices",
            reason="where the TCPXO plugin finds the devices that its containers mount",
            source=_TCPXO,
            basis=Basis.DATASHEET,
        )
    elif protocol == "slingshot":
        yield from _of_slingshot()
    elif protocol == "tcp" and cluster.nic_bytes_per_s >= _FAST_ETHERNET_BYTES_PER_S:
        yield from _of_sockets()


def _of_verbs(cluster: Cluster, node: NodeFacts | None) -> Iterator[Setting]:
    fabric = cluster.fabric
    known = {} if node is None or node.devices is None else node.devices
    layer = "InfiniBand" if _protocol(cluster) == "infiniband" else "Ethernet"
    wanted = [name for name, found in known.items() if found == layer]
    if len(wanted) == cluster.nics_per_node < len(known):
        yield Setting(
            name="NCCL_IB_HCA",
            value="=" + ",".join(wanted),
            reason=f"of the {len(known)} RDMA devices of a node, {len(wanted)} are of the fabric ({layer})",
            source=guide("NCCL_IB_HCA"),
            basis=Basis.DERIVED,
        )
    if fabric.kind is FabricKind.RAIL_ONLY and cluster.nics_per_node > 1:
        yield Setting(
            name="NCCL_CROSS_NIC",
            value="0",
            reason="nothing joins the rails: a ring must leave and arrive on one rail (default 2 may cross)",
            source=guide("NCCL_CROSS_NIC"),
            basis=Basis.DERIVED,
        )
    pairs = fabric.routing.queue_pairs
    if fabric.routing.kind is RoutingKind.ECMP and pairs is not None and 1 < pairs <= 128:
        yield Setting(
            name="NCCL_IB_QPS_PER_CONNECTION",
            value=str(pairs),
            reason=f"routing is ECMP with {pairs} queue pairs: more flows for the hash to spread (default 1)",
            source=guide("NCCL_IB_QPS_PER_CONNECTION"),
            basis=Basis.DERIVED,
        )


def _of_roce(release: Release, dscp: int | None) -> Iterator[Setting]:
    if release < (2, 21, 0):
        yield Setting(
            name="NCCL_IB_GID_INDEX",
            value="3",
            reason="releases before 2.21 take GID 0, which is RoCE v1; 3 is RoCE v2 over IPv4 on most mlx5 "
            "hosts: compare with show_gids on every node",
            source=guide("NCCL_IB_GID_INDEX"),
            basis=Basis.ASSUMED,
        )
    if dscp is not None:
        yield Setting(
            name="NCCL_IB_TC",
            value=str(4 * dscp),
            reason=f"puts the traffic into the lossless class of the switches: 4 x DSCP {dscp}",
            source=guide("NCCL_IB_TC"),
            basis=Basis.DERIVED,
        )


def _of_efa(release: Release) -> Iterator[Setting]:
    if release < (2, 18, 0):
        why = "plugins of the time of this release (aws-ofi-nccl up to 1.6) do not choose it"
        for name, value in (("FI_PROVIDER", "efa"), ("FI_EFA_USE_DEVICE_RDMA", "1")):
            yield Setting(name=name, value=value, reason=why, source=_EFA, basis=Basis.ASSUMED)
    yield Setting(
        name="FI_EFA_USE_HUGE_PAGE",
        value="0",
        reason="huge pages make the fork of data loaders fail with 'Cannot allocate memory'",
        source=_EFA,
        basis=Basis.DATASHEET,
    )


def _of_slingshot() -> Iterator[Setting]:
    yield Setting(
        name="NCCL_NET",
        value="AWS Libfabric",
        reason="aws-ofi-nccl alone reaches Slingshot; with it named, NCCL does not fall back to TCP",
        source=_ALPS,
        basis=Basis.DATASHEET,
    )
    for name, value, reason in (
        (
            "FI_MR_CACHE_MONITOR",
            "userfaultfd",
            "hears of freed memory from the kernel, not from hooks in the allocator",
        ),
        ("FI_CXI_DISABLE_HOST_REGISTER", "1", "libfabric does not register its own buffers with the GPU"),
    ):
        yield Setting(name=name, value=value, reason=reason, source=_ALPS, basis=Basis.DATASHEET)


def _of_sockets() -> Iterator[Setting]:
    why = "one TCP connection does not fill a link of 100 Gbit/s and more (default 1)"
    for name in ("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD"):
        yield Setting(name=name, value="4", reason=why, source=guide(name), basis=Basis.DATASHEET)


def _fabric_notes(
    cluster: Cluster, release: Release, node: NodeFacts | None, dscp: int | None
) -> Iterator[str]:
    protocol = _protocol(cluster)
    if protocol in ("infiniband", "roce") and (node is None or node.devices is None):
        yield (
            "NCCL_IB_HCA: NCCL takes every active RDMA device. Where a node has others, as for storage, name "
            "those of the fabric; --node with the output of 'linkwise collect' finds them."
        )
    if protocol == "roce" and dscp is None:
        yield ("NCCL_IB_TC: 4 x the DSCP that the switches keep lossless. Give that as --dscp.")
    if protocol == "roce" and cluster.fabric.routing.kind is RoutingKind.ADAPTIVE:
        yield (
            "NCCL_IB_ADAPTIVE_ROUTING=1: only if the switches route RoCE adaptively, which is off by default."
        )
    if protocol == "efa":
        yield "The plugin aws-ofi-nccl must be on LD_LIBRARY_PATH; the log of NCCL then says 'NET/OFI'."
    if protocol in ("tcpx", "tcpxo"):
        yield (
            "Take the other settings from the profile that the plugin's installer leaves on the host "
            "(nccl-env-profile.sh): they belong to its version, and its checker compares them."
        )
    if cluster.nvlink_domain_gpus > cluster.gpus_per_node and release >= (2, 21, 0):
        yield (
            "NCCL_MNNVL_ENABLE=1: makes it an error that NVLink between nodes cannot be used (IMEX down); "
            "without it NCCL takes the network in silence."
        )


def _of_job(cluster: Cluster, job: Job) -> Iterator[Setting]:
    layout = job.layout
    if layout is None or not _is_megatron(job) or not _needs_one_queue(cluster):
        return
    if max(layout.tensor or 1, layout.context or 1) > 1:
        yield Setting(
            name="CUDA_DEVICE_MAX_CONNECTIONS",
            value="1",
            reason="Megatron orders communication before computing by it with tensor or context parallelism, "
            "and does not start without it before Blackwell",
            source=_MEGATRON,
            basis=Basis.DATASHEET,
        )


def _job_notes(cluster: Cluster, job: Job) -> Iterator[str]:
    if job.layout is None and _is_megatron(job) and _needs_one_queue(cluster):
        yield (
            "CUDA_DEVICE_MAX_CONNECTIONS=1: if the layout has tensor or context parallelism; the job leaves "
            "the layout open ('linkwise plan' finds one)."
        )


def _is_megatron(job: Job) -> bool:
    known = FRAMEWORKS.get(job.framework)
    return known is not None and known.family == "megatron"


def _needs_one_queue(cluster: Cluster) -> bool:
    """Return whether the GPU is NVIDIA's and older than Blackwell."""
    return cluster.gpu.architecture in _BEFORE_BLACKWELL
