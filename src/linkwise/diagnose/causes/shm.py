"""Shared memory under /dev/shm is too small, or is not the same for the processes that share it."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.readers.job_log.values import Sighting

__all__ = ["shm"]

_EXITS = ("worker_exit", "agent_exit", "summary_exit", "launcher_exit")
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
        return _bus_error(facts)
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


def _bus_error(facts: Facts) -> Finding | None:
    """Find a process that SIGBUS ended: memory that was mapped and could not be had when it was touched.

    Notes
    -----
    /dev/shm gives memory when it is touched, not when it is mapped, so that a full one ends the process. So
    do a file that was made shorter while it was mapped, and huge pages; those are rarer.
    """
    told = facts.seen("bus_error")
    exits = [each for each in facts.seen(*_EXITS) if _is_bus(each)]
    lines = [*told, *exits, *(each for each in facts.seen("died_by") if each.fields["signal"] == "SIGBUS")]
    if not lines:
        return None
    return finding(
        "shm",
        Severity.BROKEN,
        Confidence.HIGH if any("certain" in each.fields for each in told) else Confidence.MEDIUM,
        proof=[*lines, *facts.seen("shm_size")],
        explanation=(
            "A process was ended by SIGBUS: memory that it had mapped was not there when it was touched. In"
            " jobs of several processes that is /dev/shm, which is full: workers of data loaders and NCCL"
            " share memory there, and containers have 64 MB of it unless they ask for more."
        ),
        fix=(
            "docker run --shm-size=16g (or --ipc=host)",
            "on Kubernetes, mount an emptyDir of medium Memory at /dev/shm",
            "fewer workers of the data loader (num_workers), where it cannot be larger",
        ),
        next_check="df -h /dev/shm, where the job runs, while it does",
    )


def _is_bus(line: Sighting) -> bool:
    return line.fields["code"] == "-7"


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
