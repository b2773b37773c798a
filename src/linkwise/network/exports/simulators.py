"""Network files of simulators, so that an answer can be checked against another tool.

References
----------
ASTRA-sim, analytical network backend: input file of its network.
"""

from __future__ import annotations

from linkwise.cluster import Cluster
from linkwise.errors import InputError
from linkwise.network.changed_fabric import leaf_fraction
from linkwise.network.exports.scale_up import ScaleUp, pair_bytes_per_s, scale_up_of

__all__ = ["astra_sim_yaml"]

NVLINK_HOP_NS = 600
"""One NVLink hop of a ring, protocol LL, in NCCL's model of small messages (NVIDIA/nccl: tuning.cc) [ns]."""


def astra_sim_yaml(cluster: Cluster) -> str:
    """Return the network of ASTRA-sim's analytical backend: NVLink domains, and what joins them.

    Parameters
    ----------
    cluster
        What there is. Bandwidths are line rates of one GPU, one direction; the backend knows of no
        oversubscription or routing. NVLink domains are a switch or fully connected; of the latter the
        bandwidth is that of one pair.

    Raises
    ------
    InputError
        When the cluster is one GPU, its GPUs do not fill its NVLink domains, or they are joined by nothing
        the backend has.
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
    forms, sizes, rates, latencies = [], [], [], []
    if domain > 1:
        form, rate = _domain_of(cluster)
        forms.append(form)
        sizes.append(domain)
        rates.append(rate / 1e9)
        latencies.append(NVLINK_HOP_NS)
    if domains > 1 and cluster.fabric.link is not None:
        forms.append("Switch")
        sizes.append(domains)
        rates.append(cluster.gpu_network_bytes_per_s * leaf_fraction(cluster) / 1e9)
        latencies.append(round(cluster.fabric.link.hop_s * 1e9))
    return (
        f"# {cluster.name}: line rates; latency of one hop in NCCL's small-message model (tuning.cc)\n"
        f"topology: [ {', '.join(forms)} ]\n"
        f"npus_count: [ {', '.join(map(str, sizes))} ]\n"
        f"bandwidth: [ {', '.join(f'{rate:g}' for rate in rates)} ]  # GB/s\n"
        f"latency: [ {', '.join(map(str, latencies))} ]  # ns\n"
    )


def _domain_of(cluster: Cluster) -> tuple[str, float]:
    """Return the building block of an NVLink domain, and the bandwidth of its links [bytes/s]."""
    form = scale_up_of(cluster)
    if form is ScaleUp.SWITCH:
        return "Switch", cluster.gpu.nvlink_bytes_per_s or 0.0
    if form is ScaleUp.FULL_MESH:
        return "FullyConnected", pair_bytes_per_s(cluster)
    raise InputError(
        f"{cluster.name}: {cluster.nvlink_domain_gpus} {cluster.gpu.name} of an NVLink domain are known to "
        "be joined by neither a switch nor a full mesh, and the backend has no other form that fits; name a "
        "system whose topology the catalogue has ('linkwise catalog system')"
    )
