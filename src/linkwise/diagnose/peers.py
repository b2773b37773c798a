"""Which GPUs of a host reach each other, from a topology matrix, beside how they talk."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.readers.job_log.values import ChannelUse, Evidence

__all__ = ["has_near_gpus", "nvlinks_per_gpu", "shared_memory_channels", "shared_memory_despite_nvlink"]


def shared_memory_channels(facts: Facts) -> tuple[ChannelUse, ...]:
    """Return the channels through host memory.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    return tuple(each for each in facts.channels if each.kind == "SHM")


def has_near_gpus(facts: Facts) -> bool | None:
    """Return whether any pair of GPUs has NVLink or one PCIe switch; ``None`` where no matrix says.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    cells = [
        matrix.cells[a, b]
        for _, matrix in facts.log.matrices
        for a in matrix.gpus
        for b in matrix.gpus
        if a != b
    ]
    return any(cell.startswith("NV") or cell in {"PIX", "PXB"} for cell in cells) if cells else None


def nvlinks_per_gpu(facts: Facts) -> int | None:
    """Return the most NVLinks that any pair shows; ``None`` where no matrix says.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    counts = [
        int(cell[2:])
        for _, matrix in facts.log.matrices
        for cell in matrix.cells.values()
        if cell.startswith("NV") and cell[2:].isdigit()
    ]
    return max(counts, default=0) if facts.log.matrices else None


def shared_memory_despite_nvlink(facts: Facts) -> list[Evidence]:
    """Return the lines of channels through host memory between GPUs that a matrix joins by NVLink.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    A rank is taken for the GPU of its number in its node, which holds for one process per GPU in order.
    """
    found: list[Evidence] = []
    for _, matrix in facts.log.matrices:
        count = len(matrix.gpus)
        for each in shared_memory_channels(facts):
            pairs = [(matrix.gpus[a % count], matrix.gpus[b % count]) for a, b in each.pairs if count]
            if any(a != b and matrix.cells.get((a, b), "").startswith("NV") for a, b in pairs):
                found.extend(each.lines)
    return found
