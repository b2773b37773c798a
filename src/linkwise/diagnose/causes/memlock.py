"""The limit of locked memory is too low to register memory with the NIC."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.diagnose.limits import locked_memory
from linkwise.diagnose.verbs import out_of_memory

__all__ = ["memlock"]


def memlock(facts: Facts) -> Finding | None:
    """Return the finding when registering memory or making a queue fails for want of memory.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    The same text comes from a kernel that cannot register; an unlimited limit on the host rules this cause
    out.
    """
    lines = out_of_memory(facts)
    limit = locked_memory(facts)
    if not lines or (limit is not None and limit.is_unlimited):
        return None
    return finding(
        "memlock",
        Severity.BROKEN,
        Confidence.MEDIUM if limit is None else Confidence.HIGH,
        proof=[*lines, *([] if limit is None else [limit.evidence])],
        where=[each.host for each in lines if each.host],
        explanation=(
            "The NIC may not pin the memory it needs: the verbs call fails with 'Cannot allocate memory'."
            " Nearly always the limit of locked memory (ulimit -l) is the 64 KiB or 8 MiB of a default."
        ),
        fix=(
            "docker run --ulimit memlock=-1 --cap-add=IPC_LOCK",
            (
                "LimitMEMLOCK=infinity in the unit of slurmd or containerd; '* - memlock unlimited' in"
                " limits.conf"
            ),
        ),
        next_check="ulimit -l in the job itself, on the hosts named here; it must print unlimited",
    )
