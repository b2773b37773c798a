"""GPU or host memory is full."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.readers.job_log.values import Sighting

__all__ = ["oom"]


def oom(facts: Facts) -> Finding | None:
    """Return the finding when an allocation fails or the kernel killed a process for memory.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    *out of memory* from the multicast of NVLS is the word of the fabric, not of the memory, where nothing
    else says so.
    """
    host = facts.seen("host_oom")
    device = [each for each in facts.seen("cuda_failure") if _is_full(each)]
    allocations = facts.warned("cuda_memory", "memory_full")
    lines = [*facts.seen("cuda_oom"), *device, *allocations]
    if not lines and not host:
        return None
    return finding(
        "oom",
        Severity.BROKEN,
        Confidence.HIGH if host or device or facts.seen("cuda_oom") else Confidence.MEDIUM,
        proof=[*host, *lines],
        explanation=_explanation(is_host=bool(host) and not lines, is_nccl=bool(device or allocations)),
        fix=_fix(is_host=bool(host) and not lines),
        next_check="free -g and dmesg | grep -i oom"
        if host and not lines
        else "nvidia-smi while the job starts",
    )


def _is_full(line: Sighting) -> bool:
    return "out of memory" in line.fields.get("text", "") and "nvls" not in line.source


def _explanation(*, is_host: bool, is_nccl: bool) -> str:
    if is_host:
        return (
            "The kernel killed a process of the job because the host, or the memory limit of its container"
            " or Slurm job, was full. The errors of other ranks follow from that."
        )
    if not is_nccl:
        return (
            "A rank's program asks for more memory than its GPU has left. That rank ends, and the lines of"
            " others about sockets and proxies follow from it."
        )
    return (
        "The GPU has no memory left when NCCL allocates its buffers: the framework took it all before."
        " Later lines about sockets and proxies follow from that."
    )


def _fix(*, is_host: bool) -> tuple[str, ...]:
    if is_host:
        return ("ask for more memory (--mem), or use fewer data loader workers and pinned buffers",)
    return (
        "lower the micro-batch, shard more, or recompute",
        (
            "leave NCCL room: torch.cuda.set_per_process_memory_fraction,"
            " PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
        ),
        "make NCCL smaller: NCCL_BUFFSIZE, fewer communicators",
    )
