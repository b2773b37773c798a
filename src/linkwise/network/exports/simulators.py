"""Network files of simulators, so that an answer can be checked against another tool.

References
----------
ASTRA-sim, analytical network backend: input file of its network.
"""

from __future__ import annotations

from linkwise.cluster import Cluster
from linkwise.errors import InputError

__all__ = ["astra_sim_yaml"]

NVLINK_HOP_NS = 600
"""One NVLink hop of a ring, protocol LL, in NCCL's model of small messages (NVIDIA/nccl: tuning.cc) [ns]."""


def astra_sim_yaml(cluster: Cluster) -> str:
    """Return the network of ASTRA-sim's analytical backend: NVLink domains, and a switch that joins them.

    Parameters
    ----------
    cluster
        What there is. Bandwidths are line rates of one GPU, one direction; the backend knows of no
        oversubscription or routing.

    Raises
    ------
    InputError
        When the cluster is one GPU, its GPUs do not fill its NVLink domains, or they are joined by nothing.
    """
    domain, domains = cluster.nvlink_domain_gpus, cluster.domains
    if cluster.gpus == 1:
        raise InputError(f"{cluster.name} is one GPU: there is no network to simulate")
    if domain * domains != cluster.gpus:
        raise InputError(
            f"{cluster.name}: {cluster.gpus} GPUs do not fill {domains} NVLink domains of {domain} GPUs, and "
            f"the backend has no domains of different sizes; use {domain * domains} GPUs"
        )
    if domains > 1 and cluster.fabric.link is None:
        raise InputError(f"{cluster.name} has no fabric that joins its {domains} NVLink domains")
    sizes, rates, latencies = [], [], []
    if domain > 1:
        sizes.append(domain)
        rates.append((cluster.gpu.nvlink_bytes_per_s or 0.0) / 1e9)
        latencies.append(NVLINK_HOP_NS)
    if domains > 1 and cluster.fabric.link is not None:
        sizes.append(domains)
        rates.append(cluster.gpu_network_bytes_per_s / 1e9)
        latencies.append(round(cluster.fabric.link.hop_s * 1e9))
    return (
        f"# {cluster.name}: line rates; latency of one hop in NCCL's small-message model (tuning.cc)\n"
        f"topology: [ {', '.join(['Switch'] * len(sizes))} ]\n"
        f"npus_count: [ {', '.join(map(str, sizes))} ]\n"
        f"bandwidth: [ {', '.join(f'{rate:g}' for rate in rates)} ]  # GB/s\n"
        f"latency: [ {', '.join(map(str, latencies))} ]  # ns\n"
    )
