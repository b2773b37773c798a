"""A cluster in the words of other programs: schedulers, inventories, simulators. Text out, no files.

Not here: reading such files (`readers`), what to give a launcher (`launch`). Read `places.py` first (which
nodes share leaves and pods), then one format; `EXPORTS` names them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from linkwise.network.exports.calculon import calculon_json
from linkwise.network.exports.containerlab import containerlab_yaml
from linkwise.network.exports.kubernetes import kueue_yaml, topograph_json
from linkwise.network.exports.nccl import nccl_xml
from linkwise.network.exports.simulators import astra_sim_yaml
from linkwise.network.exports.slurm import slurm_block_conf, slurm_tree_conf, slurm_yaml

if TYPE_CHECKING:
    from linkwise.cluster import Cluster

__all__ = ["EXPORTS"]

EXPORTS: Mapping[str, Callable[[Cluster], str]] = {
    "nccl-xml": nccl_xml,
    "slurm-tree": slurm_tree_conf,
    "slurm-block": slurm_block_conf,
    "slurm-yaml": slurm_yaml,
    "topograph": topograph_json,
    "kueue": kueue_yaml,
    "containerlab": containerlab_yaml,
    "astra-sim": astra_sim_yaml,
    "calculon": calculon_json,
}
"""What a cluster can be written as, and by which function."""
