"""Two ranks on one GPU."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding

__all__ = ["duplicate_gpu"]


def duplicate_gpu(facts: Facts) -> Finding | None:
    """Return the finding when NCCL itself says that two ranks share a device.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    lines = facts.seen("duplicate_gpu")
    if not lines:
        return None
    named = next((each.fields for each in lines if "rank_a" in each.fields), None)
    who = "Two ranks both use one GPU"
    ranks: list[str] = []
    if named is not None:
        first, second = named["rank_a"], named["rank_b"]
        who = f"Ranks {first} and {second} both use the GPU at PCI bus {named['bus']}"
        ranks = [f"rank {first}", f"rank {second}"]
    return finding(
        "duplicate_gpu",
        Severity.BROKEN,
        Confidence.HIGH,
        proof=lines,
        where=[*ranks, *(each.host for each in lines if each.host)],
        explanation=(
            f"{who}; NCCL refuses that. Each process must choose the device of its local rank before it"
            " makes the process group."
        ),
        fix=(
            "torch.cuda.set_device(int(os.environ['LOCAL_RANK'])) before init_process_group",
            "start no more processes per node than it has GPUs; hide none by CUDA_VISIBLE_DEVICES",
        ),
        next_check="print LOCAL_RANK, CUDA_VISIBLE_DEVICES and torch.cuda.current_device() on every rank",
    )
