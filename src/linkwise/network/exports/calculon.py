"""A cluster as a system of Calculon, the model of training time by Isaev, McDonald and others.

References
----------
M. Isaev, N. McDonald, L. Dennison, R. Vuduc, Calculon: a methodology and tool for high-level co-design of
systems and large language models, SC 2023; github.com/calculon-ai/calculon: calculon/system.py, network.py,
memory.py, processor.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

from linkwise.catalog import Gpu
from linkwise.cluster import Cluster
from linkwise.errors import InputError
from linkwise.network.changed_fabric import leaf_fraction
from linkwise.network.cluster_setting import setting_of
from linkwise.network.collective_time import collective_times
from linkwise.network.exports.simulators import NVLINK_HOP_NS

__all__ = ["calculon_json"]

_PRECISIONS = {"float8": "fp8", "float16": "fp16", "bfloat16": "bf16", "float32": "tf32"}
"""Types of Calculon and the rates of the catalogue that products in them have."""
_LARGE_BYTES = 2.0**34
"""Where bandwidth alone decides."""
_RING: Mapping[str, list[float | None]] = {
    "p2p": [1.0, None],
    "reduce_scatter": [1.0, -1.0],
    "all_gather": [1.0, -1.0],
    "all_reduce": [2.0, -1.0],
}
"""Bytes that a rank sends over those of the buffer: scalar x (1 + offset / ranks), in rings [1]."""
_IN_SWITCH: Mapping[str, list[float | None]] = {**_RING, "all_reduce": [1.0, 1.0]}
"""The same where the NVLink switch reduces and multicasts."""
_NOTES = (
    "matrix, vector, mem1: peaks of the catalogue, efficiency 1; put curves of your own in",
    "vector: the rate of 32-bit floats outside the tensor cores, for all types (assumed)",
    "mem2: no memory for offloading (not known); its rate is that of PCIe, one direction",
    "networks: line rates of one GPU, one direction, and the latency of one hop",
    "networks: efficiency of NVLink as large all-gathers reach it, of the fabric as its link reaches alone",
    "networks: bytes as in rings; an all-reduce of NVLink switches that reduce as in the switch",
    "networks: processor_usage 0 (not known)",
)


def calculon_json(cluster: Cluster) -> str:
    """Return the system file of a cluster: processors, memories, and a network for each level.

    Parameters
    ----------
    cluster
        What there is. The fabric is one level that joins all GPUs in use; Calculon knows of no
        oversubscription or routing.

    Raises
    ------
    InputError
        When the cluster is one GPU, its NVLink domains are joined by nothing, or a rate of the GPU is not
        known.
    """
    if cluster.gpus == 1:
        raise InputError(f"{cluster.name} is one GPU: there is no network to model")
    if cluster.domains > 1 and (cluster.fabric.link is None or not cluster.node_bytes_per_s):
        raise InputError(f"{cluster.name} has no fabric that joins its {cluster.domains} NVLink domains")
    gpu = cluster.gpu
    matrix = _matrix(cluster)
    vector = _rate(gpu, "fp32", cluster)
    system = {
        "matrix": {name: _processor(rate) for name, rate in matrix.items()},
        "vector": {name: _processor(vector) for name in matrix},
        "mem1": _memory(gpu.memory_bytes, gpu.memory_bandwidth_bytes_per_s),
        "mem2": _memory(0.0, _known(gpu.pcie_bytes_per_s, "PCIe", cluster)),
        "processing_mode": "roofline",
        "networks": _networks(cluster),
        "notes": [f"{cluster.name}: written by Linkwise", *_NOTES],
    }
    return json.dumps(system, indent=2) + "\n"


def _matrix(cluster: Cluster) -> dict[str, float]:
    """Return the rate of products by type of Calculon [FLOP/s]."""
    rates = cluster.gpu.flop_per_s
    found = {name: rates[ours] for name, ours in _PRECISIONS.items() if ours in rates}
    if "float16" not in found and "bfloat16" not in found:
        raise InputError(f"{cluster.name}: the 16-bit rate of {cluster.gpu.name} is not known")
    return found


def _rate(gpu: Gpu, name: str, cluster: Cluster) -> float:
    return _known(gpu.flop_per_s.get(name), name, cluster)


def _known(value: float | None, what: str, cluster: Cluster) -> float:
    if value is None:
        raise InputError(
            f"{cluster.name}: the {what} rate of {cluster.gpu.name} is not known, and a system of Calculon "
            "has to have one; name a GPU whose rates the catalogue has ('linkwise catalog gpu')"
        )
    return value


def _processor(flop_per_s: float) -> dict[str, object]:
    return {"tflops": _round(flop_per_s / 1e12), "gflops_efficiency": [[0, 1.0]]}


def _memory(size_bytes: float, bytes_per_s: float) -> dict[str, object]:
    return {
        "GiB": _round(size_bytes / 2**30),
        "GBps": _round(bytes_per_s / 1e9),
        "MB_efficiency": [[0, 1.0]],
    }


def _networks(cluster: Cluster) -> list[dict[str, object]]:
    found = []
    domain, gpu = cluster.nvlink_domain_gpus, cluster.gpu
    if domain > 1 and gpu.nvlink_bytes_per_s is not None:
        setting = setting_of(cluster, gpus=domain)
        reached = collective_times("all_gather", setting, np.array([_LARGE_BYTES])).busbw_bytes_per_s[0]
        found.append(
            _network(
                bytes_per_s=gpu.nvlink_bytes_per_s,
                efficiency=min(1.0, float(reached) / gpu.nvlink_bytes_per_s),
                gpus=domain,
                latency_s=NVLINK_HOP_NS * 1e-9,
                operations=_IN_SWITCH if setting.group.has_multicast else _RING,
                is_inner=True,
            )
        )
    link = cluster.fabric.link
    if cluster.domains > 1 and link is not None:
        found.append(
            _network(
                bytes_per_s=cluster.gpu_network_bytes_per_s * leaf_fraction(cluster),
                efficiency=min(1.0, link.achieved_fraction),
                gpus=cluster.gpus,
                latency_s=link.hop_s,
                operations=_RING,
                is_inner=False,
            )
        )
    return found


def _network(
    *,
    bytes_per_s: float,
    efficiency: float,
    gpus: int,
    latency_s: float,
    operations: Mapping[str, object],
    is_inner: bool,
) -> dict[str, object]:
    return {
        "bandwidth": _round(bytes_per_s / 1e9),
        "efficiency": _round(efficiency),
        "size": gpus,
        "latency": _round(latency_s),
        "ops": dict(operations),
        "must_be_filled": is_inner,
        "processor_usage": 0.0,
    }


def _round(value: float) -> float:
    return float(f"{value:.6g}")
