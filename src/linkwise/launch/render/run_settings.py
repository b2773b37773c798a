"""The variables that every rendered job sets beside those that communication needs: logs, and where they go.

References
----------
NVIDIA, NCCL user guide, "Environment Variables". PyTorch, documentation of torch.distributed and torchrun.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from linkwise.figures import Basis
from linkwise.settings.recommended import Setting, recommended

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.job import Job
    from linkwise.layout import Layout
    from linkwise.nccl.variables import Release
    from linkwise.settings.node import NodeFacts

__all__ = ["LOGS", "run_settings"]

LOGS = frozenset(["NCCL_DEBUG_FILE", "TORCH_FR_DUMP_TEMP_FILE"])
"""Settings that are names of files: scripts and manifests put the folder of the logs before them."""
_RECORDER = "PyTorch tutorial, Flight Recorder for debugging stuck jobs"
_GUIDE = "NCCL user guide, env.html"


def run_settings(
    job: Job,
    cluster: Cluster,
    layout: Layout,
    *,
    release: Release,
    node: NodeFacts | None = None,
    dscp: int | None = None,
) -> tuple[tuple[Setting, ...], tuple[str, ...]]:
    """Return the settings of a rendered job, and what hangs on facts that no document holds.

    Parameters
    ----------
    job, cluster, layout
        What runs on what, and how it is cut.
    release
        The release of NCCL.
    node
        Interfaces and RDMA devices of a node, where they are known.
    dscp
        The DSCP that the switches keep lossless, for RoCE.
    """
    found = recommended(cluster, replace(job, layout=layout), release=release, node=node, dscp=dscp)
    return (*found.settings, *_OF_LOGS), found.notes


_OF_LOGS = (
    Setting(
        name="NCCL_DEBUG",
        value="INFO",
        reason="says at the start which transport, NICs and channels are used; to files, not to the console",
        source=f"{_GUIDE}#nccl-debug",
        basis=Basis.DATASHEET,
    ),
    Setting(
        name="NCCL_DEBUG_SUBSYS",
        value="INIT,ENV,NET,GRAPH",
        reason="what is written once, when communicators are made, and nothing of single calls",
        source=f"{_GUIDE}#nccl-debug-subsys",
        basis=Basis.DATASHEET,
    ),
    Setting(
        name="NCCL_DEBUG_FILE",
        value="nccl.%h.%p.log",
        reason="one file for each process: %h is the host, %p the process",
        source=f"{_GUIDE}#nccl-debug-file",
        basis=Basis.DATASHEET,
    ),
    Setting(
        name="TORCH_NCCL_DUMP_ON_TIMEOUT",
        value="1",
        reason="a collective that hangs leaves a record of who waits for whom",
        source="PyTorch documentation torch_nccl_environment_variables",
        basis=Basis.DATASHEET,
    ),
    Setting(
        name="TORCH_FR_BUFFER_SIZE",
        value="2000",
        reason="collectives that this record holds; older releases read TORCH_NCCL_TRACE_BUFFER_SIZE",
        source=_RECORDER,
        basis=Basis.DATASHEET,
    ),
    Setting(
        name="TORCH_FR_DUMP_TEMP_FILE",
        value="flight-recorder-rank-",
        reason="where this record goes, with the rank behind the name; older releases read "
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
        source=_RECORDER,
        basis=Basis.DATASHEET,
    ),
)
"""What is logged, and where."""
