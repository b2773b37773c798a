"""Memory cannot be shared through cuMem: ranks choose different kinds, or driver or platform refuse it."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding

__all__ = ["cumem"]


def cumem(facts: Facts) -> Finding | None:
    """Return the finding when attaching fails and cuMem works on some ranks only, or a handle is refused.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    attaching = [each for each in facts.warned("shm_failed") if each.fields.get("action") == "attaching to"]
    fallback = facts.seen("cumem_host_off")
    imported = facts.warned("cumem_import")
    settings = facts.settings("NCCL_CUMEM_ENABLE", "NCCL_CUMEM_HOST_ENABLE")
    values = {(each.fields["name"], each.fields.get("value", "")) for each in settings}
    differ = len(values) > len({name for name, _ in values})
    empty = [each for each in attaching if each.fields.get("size") == "0"]
    uneven = bool(attaching) and (bool(fallback) or differ)
    unsupported = [
        each
        for each in facts.warned("cuda_failure", "cuda_driver_failure")
        if "not supported" in each.fields.get("text", "") and each.source.endswith(("p2p.cc", "shm.cc"))
    ]
    if not uneven and not imported and not empty and not unsupported:
        return None
    return finding(
        "cumem",
        Severity.BROKEN,
        Confidence.HIGH if uneven else Confidence.MEDIUM,
        proof=[*attaching, *imported, *unsupported, *fallback, *settings],
        explanation=(
            "Ranks of one node do not share memory in the same way: on some the cuMem allocations of the"
            " CUDA driver work, on others they do not, as when only some containers have the rights for"
            " NUMA calls."
        ),
        fix=(
            "NCCL_CUMEM_HOST_ENABLE=0 on all ranks",
            "or give all containers the same rights: --cap-add=SYS_NICE",
            "NCCL_CUMEM_ENABLE=0 where importing handles of GPU memory fails",
        ),
        next_check="the line 'cuMem host allocations do not appear to be working': on which ranks it stands",
    )
