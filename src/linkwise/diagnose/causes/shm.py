"""Shared memory under /dev/shm is too small, or is not the same for the processes that share it."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.readers.job_log.values import Sighting

__all__ = ["shm"]

_FULL = ("No space left", "ENOSPC", "(28)")


def shm(facts: Facts) -> Finding | None:
    """Return the finding when creating or attaching a segment fails.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    lines = facts.warned("shm_failed", "shm_call")
    if not lines:
        return None
    is_full = any(word in each.evidence.text for each in lines for word in _FULL)
    attaches = all(each.fields.get("action") == "attaching to" for each in lines)
    if attaches and not is_full:
        return _not_shared(facts, lines)
    sizes = facts.seen("shm_size")
    return finding(
        "shm",
        Severity.BROKEN,
        Confidence.HIGH if is_full else Confidence.MEDIUM,
        proof=[*lines, *sizes],
        explanation=(
            "NCCL cannot create the shared memory through which the ranks of a node talk: /dev/shm is full."
            " Containers have 64 MB there unless they ask for more."
        ),
        fix=(
            "docker run --shm-size=16g (or --ipc=host)",
            "on Kubernetes, mount an emptyDir of medium Memory at /dev/shm",
            "remove leftovers of dead jobs: rm /dev/shm/nccl-*",
        ),
        next_check="df -h /dev/shm, where the job runs",
    )


def _not_shared(facts: Facts, lines: tuple[Sighting, ...]) -> Finding:
    is_whole = any(int(each.fields.get("size", "0")) > 0 for each in lines)
    return finding(
        "shm",
        Severity.BROKEN,
        Confidence.MEDIUM if is_whole and not facts.seen("cumem_host_off") else Confidence.LOW,
        proof=lines,
        explanation=(
            "A rank cannot attach a segment that another rank of its node created. The two see different"
            " /dev/shm, as in containers that do not share it, or chose different kinds of shared memory."
        ),
        fix=("run the ranks of a node in one container, or share /dev/shm between theirs (--ipc=host)",),
        next_check="ls -l /dev/shm in each container while the job starts",
    )
