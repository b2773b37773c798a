"""Another process died, for a reason that is not in these logs."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["remote_exit"]


def remote_exit(facts: Facts) -> Finding | None:
    """Return the finding when connections were closed by a peer, or a process crashed.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    Every other cause wins over it: it is what remains. A peer that leaves after its communicators were
    destroyed is
    the end of a job. Where logs of ranks are missing, a closed connection tells of nothing but a cause
    elsewhere.
    """
    died = facts.seen("crashed", "task_died", "ras_dead")
    killed = [each for each in facts.seen("worker_exit") if each.fields["code"].startswith("-")]
    closed = [
        *facts.warned("closed", "reset", "proxy_echo"),
        *(each for each in facts.seen("closed") if not each.level),
    ]
    lines: list[Sighting | Evidence] = [*died, *killed, *closed]
    left = [each for each in facts.seen("left") if each.fields["stage"] == "Destroy"]
    if not lines or (left and not died and not killed and not facts.has_failed):
        return None
    if not died and not killed and not facts.are_all_ranks_here:
        return None
    sure = Confidence.HIGH if died else Confidence.MEDIUM
    peers = sorted({each.fields["peer"] for each in (*closed, *died) if each.fields.get("peer")})
    named = f" The peer is {', '.join(peers[:3])}." if peers else ""
    return finding(
        "remote_exit",
        Severity.BROKEN,
        sure,
        proof=lines,
        explanation=(
            f"A process of the job ended, and the others lost their connections to it.{named} Look in the"
            " log of that process for what it said first."
        ),
        fix=("mend what the log of the process that died says; NCCL's lines elsewhere are echoes",),
        next_check="the log of the peer that is named, its exit code, and dmesg on its host",
    )
