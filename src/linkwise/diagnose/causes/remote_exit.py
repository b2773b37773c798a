"""Another process died, for a reason that is not in these logs."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["remote_exit"]

_AFTER = {
    "TIME LIMIT": (
        (
            "ask for more time (--time), or save a checkpoint before the limit (#SBATCH --signal=B:USR1@300)"
            " and start again from it"
        ),
    ),
    "NODE FAILURE": ("keep the failed node out (--exclude=NODE), and start again from the last checkpoint",),
}
"""What to do by the reason that Slurm gives."""


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
    failed = facts.seen("worker_failed") if killed else ()
    lines: list[Sighting | Evidence] = [*died, *killed, *failed, *closed]
    left = [each for each in facts.seen("left") if each.fields["stage"] == "Destroy"]
    ended = facts.seen("job_ended")
    if not lines or (left and not died and not killed and not facts.has_failed):
        return None
    if not died and not killed and not ended and not facts.are_all_ranks_here:
        return None
    if ended and not died and not killed:
        return _ended_by_scheduler([*ended, *lines], ended[0].fields["reason"])
    sure = Confidence.HIGH if died else Confidence.MEDIUM
    peers = sorted({each.fields["peer"] for each in (*closed, *died) if each.fields.get("peer")})
    named = f" The peer is {', '.join(peers[:3])}." if peers else ""
    return finding(
        "remote_exit",
        Severity.BROKEN,
        sure,
        proof=lines,
        explanation=(
            f"A process of the job ended, and the others lost their connections to"
            f" it.{named}{_signal(killed)} Look in the log of that process for what it said first."
        ),
        fix=("mend what the log of the process that died says; NCCL's lines elsewhere are echoes",),
        next_check="the log of the peer that is named, its exit code, and dmesg on its host",
    )


def _signal(killed: list[Sighting]) -> str:
    """Return what signal 9 may mean: nothing is printed by a process that it ends."""
    if not any(each.fields["code"] == "-9" for each in killed):
        return ""
    return " Signal 9 is what the kernel sends where the host's memory is full; dmesg on the host tells."


def _ended_by_scheduler(proof: list[Sighting | Evidence], reason: str) -> Finding:
    """Tell of a job that the scheduler ended: connections that close after that are no fault.

    Notes
    -----
    A job that hangs is ended so too, at its time limit; the finding is therefore no surer than that of an
    echo, and loses to whatever else is broken.
    """
    return finding(
        "remote_exit",
        Severity.BROKEN,
        Confidence.MEDIUM,
        proof=proof,
        explanation=(
            f"Slurm ended the job, and gives the reason: {reason.lower()}. Closed connections are the echo of"
            " that. Where the job made no progress before, it hung, and that is what to look for."
        ),
        fix=_AFTER.get(reason, ("start the job again from its last checkpoint",)),
        next_check="sacct -j JOBID -o JobID,State,ExitCode,Elapsed,Timelimit; when the last step was logged",
    )
