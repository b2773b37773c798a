"""Registering GPU memory with the NIC as DMA-BUF fails."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.diagnose.verbs import calls

__all__ = ["dmabuf"]


def dmabuf(facts: Facts) -> Finding | None:
    """Return the finding when the call that registers a DMA-BUF fails.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    lines = calls(facts, "ibv_reg_dmabuf_mr")
    if not lines:
        return None
    return finding(
        "dmabuf",
        Severity.BROKEN,
        Confidence.HIGH,
        proof=[*lines, *facts.seen("dmabuf")],
        where=[each.host for each in lines if each.host],
        explanation=(
            "NCCL hands GPU memory to the NIC as a DMA-BUF, and the kernel, rdma-core or the driver cannot"
            " take it. The GPU offers the way, the InfiniBand stack of the host is too old for it."
        ),
        fix=(
            "NCCL_DMABUF_ENABLE=0 with nvidia_peermem loaded works at once",
            "Linux 5.12 or later, rdma-core 34 or MLNX_OFED 5.4 or later, and NVIDIA's open kernel modules",
        ),
        next_check="uname -r; ofed_info -s; run once with NCCL_DMABUF_ENABLE=0",
    )
