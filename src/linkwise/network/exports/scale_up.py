"""How the GPUs of an NVLink domain are joined, of which the catalogue says ``switch or mesh``."""

from __future__ import annotations

from enum import StrEnum

from linkwise import catalog
from linkwise.cluster import Cluster

__all__ = ["ScaleUp", "pair_bytes_per_s", "scale_up_of"]


class ScaleUp(StrEnum):
    """What joins the GPUs of one NVLink domain."""

    SWITCH = "switch"
    FULL_MESH = "full mesh"
    OTHER = "neither switch nor full mesh"


_FULL_MESH = ("full mesh", "per pair")
"""Words that say so in the topology of a system."""
_SMALLEST_SWITCHED_GPUS = 8
"""Boards of fewer GPUs are sold with and without NVSwitch (NVIDIA HGX A100 and H100 4-GPU have none)."""
_WITHOUT_SWITCH = ("v100-sxm2",)
"""NVSwitch came with the SXM3 module of V100; SXM2 boards are hybrid cube meshes (NVIDIA DGX-1 and DGX-2)."""


def scale_up_of(cluster: Cluster) -> ScaleUp:
    """Return what joins the GPUs of an NVLink domain; `ScaleUp.OTHER` also where that is not known.

    Parameters
    ----------
    cluster
        What there is.

    Notes
    -----
    Two GPUs with links are a full mesh unless the GPU has a switch. Systems of the catalogue whose GPU
    allows a switch and whose text names no other topology have one; of an inline description that is known
    from 8 GPUs on.
    """
    form = cluster.gpu.scale_up_form or ""
    if form == "switch or mesh":
        return _switch_or_mesh(cluster)
    if form == "switch":
        return ScaleUp.SWITCH
    is_pair = cluster.nvlink_domain_gpus == 2 and bool(form)
    return ScaleUp.FULL_MESH if form == "full mesh" or is_pair else ScaleUp.OTHER


def pair_bytes_per_s(cluster: Cluster) -> float:
    """Return what one pair of a full mesh has, one direction [bytes/s]; 0 without links.

    Parameters
    ----------
    cluster
        What there is; links to GPUs that are not in use are not shared out among the others.
    """
    gpus = cluster.nvlink_domain_gpus
    if cluster.system is not None:
        gpus = max(gpus, catalog.system(cluster.system).nvlink_domain_gpus)
    return (cluster.gpu.nvlink_bytes_per_s or 0.0) / max(1, gpus - 1)


def _switch_or_mesh(cluster: Cluster) -> ScaleUp:
    if cluster.system is None:
        topology, known = "", cluster.nvlink_domain_gpus >= _SMALLEST_SWITCHED_GPUS
    else:
        topology, known = str(catalog.entry("system", cluster.system).text.get("topology", "")), True
    if any(words in topology for words in _FULL_MESH):
        return ScaleUp.FULL_MESH
    if topology or not known or cluster.gpu.name.startswith(_WITHOUT_SWITCH):
        return ScaleUp.OTHER
    return ScaleUp.SWITCH
