"""Another process died, for a reason that is not in these logs."""

from __future__ import annotations

from linkwise.diagnose.ends import Ends, Exit, is_gloo_job
from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.diagnose.progress import has_progressed
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["remote_exit"]

_AFTER = {
    "TIME LIMIT": (
        (
            "ask for more time (--time), or save a checkpoint before the limit (#SBATCH"
            " --signal=B:USR1@300) and start again from it"
        ),
    ),
    "PREEMPTION": (
        (
            "save a checkpoint when the job is told to end (#SBATCH --signal=B:USR1@120), and let it be"
            " queued again (--requeue)"
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
    if is_gloo_job(facts):
        return _of_gloo(facts)
    if (told := _told_alone(facts)) is not None:
        return told
    died = facts.seen("crashed", "task_died", "ras_dead")
    killed = [each for each in facts.seen("worker_exit") if each.fields["code"].startswith("-")]
    # Of torchrun's table: what it ended itself, and aborts, are sequels.
    exits = facts.seen("summary_exit", "launcher_exit")
    killed += [each for each in exits if each.fields["code"] in _CRASHES and not killed]
    by_signal = [each for each in facts.seen("died_by") if each.fields["signal"] not in _SEQUELS]
    closed = [
        *facts.warned("closed", "reset", "proxy_echo"),
        *(each for each in facts.seen("closed") if not each.level),
    ]
    failed = facts.seen("worker_failed") if killed else ()
    gone = [*by_signal, *facts.seen("ray_died")] if not killed else []
    killed += gone
    lines: list[Sighting | Evidence] = [*died, *killed, *failed, *closed]
    left = [each for each in facts.seen("left") if each.fields["stage"] == "Destroy"]
    ended = facts.seen("job_ended")
    if ended and not lines and ended[0].fields["reason"] != "TIME LIMIT":
        return _ended_by_scheduler(list(ended), ended[0].fields["reason"])
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
            "A process of the job ended, and the others lost their connections to"
            f" it.{named}{_signal(killed)} Look in the log of that process for what it said first."
        ),
        fix=("mend what the log of the process that died says; NCCL's lines elsewhere are echoes",),
        next_check="the log of the peer that is named, its exit code, and dmesg on its host",
    )


_CRASHES = {"-4", "-7", "-8", "-9", "-11"}
_SEQUELS = {"SIGTERM", "SIGABRT", "SIGINT", "SIGHUP"}
"""Signals that launchers send, or that a failure elsewhere leads to."""


def _of_gloo(facts: Facts) -> Finding | None:
    """Find the rank of a job over gloo that crashed, or left by itself, while the others lost it.

    Notes
    -----
    Ranks that abort after an error of gloo, or that their agent ended, are sequels.
    """
    ends = Ends(facts=facts)
    if ends.own_errors or facts.seen("interrupted"):
        return None
    crashed = [each for each in ends.kills if each.code not in _SENT]
    left = [each for each in ends.exits if each.code > 0 and each.rank is not None]
    quiet = [each for each in left if each.rank not in ends.errors and not each.is_told]
    told = facts.seen("agent_told")
    if crashed:
        return _gone(
            ends, crashed, f"was ended by signal {-crashed[0].code}, which a crash brings on", "crash"
        )
    if quiet and ends.errors and not ends.timeouts:
        how = f"left with exit code {quiet[0].code} and no error of its connections"
        return _gone(ends, quiet, how, "exit")
    # One launcher of several that was told to end takes its ranks away from the others, who complain.
    if told and ends.is_told and ends.errors and not ends.went_on:
        return _told_to_end([*told, *ends.errors.values()])
    return None


_SENT = (-9, -15)
"""Signals that others send; of these another cause tells."""


def _gone(ends: Ends, gone: list[Exit], how: str, word: str) -> Finding:
    first = gone[0]
    named = f"Rank {first.rank}" if first.rank is not None else f"Process {first.pid}"
    place = f" on {first.host}" if first.host is not None else ""
    return finding(
        "remote_exit",
        Severity.BROKEN,
        Confidence.HIGH if word == "crash" else Confidence.MEDIUM,
        proof=[*(each.line for each in gone), *ends.errors.values()],
        where=[
            *([first.host] if first.host else []),
            *([f"rank {first.rank}"] if first.rank is not None else []),
        ],
        explanation=(
            f"{named}{place} {how}; the connection errors of the others follow from that. Look in its own"
            " output for what it said first."
        ),
        fix=("mend what the output of that rank says; lines of gloo elsewhere are echoes",),
        next_check="python -X faulthandler, and coredumpctl on its host, for the place of a crash"
        if word == "crash"
        else "the last lines of that rank; torchrun --log-dir DIR --redirects 3 keeps them apart",
    )


def _told_alone(facts: Facts) -> Finding | None:
    """Find launchers that were told to end where nothing had failed: by the terminal, or by a scheduler.

    Notes
    -----
    torchrun handles SIGHUP itself, so that nohup does not keep it: pytorch#76894.
    """
    told = {each.fields["signal"].removeprefix("SIG"): each for each in reversed(facts.seen("agent_told"))}
    failed = facts.has_failed or facts.faults or facts.seen("agent_exit", "interrupted")
    if not told or failed or Ends(facts=facts).own_errors:
        return None
    if set(told) <= {"1", "HUP"}:
        return finding(
            "remote_exit",
            Severity.BROKEN,
            Confidence.HIGH,
            proof=list(facts.seen("agent_told")),
            explanation=(
                "The launcher was told to end by SIGHUP: the terminal or the SSH session that it was"
                " started from was closed. torchrun has a handler of its own for it, so that nohup does not"
                " keep it."
            ),
            fix=("start it in tmux or screen, by setsid or systemd-run, or as a job of the scheduler",),
            next_check="last and journalctl -u ssh for the end of the session",
        )
    # A job that ran until a scheduler ended it is well.
    if set(told) <= {"15", "TERM"} and not facts.has_completed and not has_progressed(facts):
        return _told_to_end(list(facts.seen("agent_told")))
    return None


def _told_to_end(proof: list[Sighting | Evidence]) -> Finding:
    return finding(
        "remote_exit",
        Severity.BROKEN,
        Confidence.MEDIUM,
        proof=proof,
        explanation=(
            "The launcher of a node was told to end by a signal from outside, and ended its ranks; ranks of"
            " other nodes lost their connections to them. A scheduler that takes a node away, or a person,"
            " does that."
        ),
        fix=(
            "ask the scheduler why (sacct -j JOBID, kubectl describe pod); start again from the checkpoint",
        ),
        next_check="sacct -j JOBID -o JobID,State,ExitCode,End,NodeList; the events of the pod",
    )


def _signal(killed: list[Sighting]) -> str:
    """Return what signal 9 may mean: nothing is printed by a process that it ends."""
    if not any(each.fields.get("code") == "-9" or each.what == "ray_died" for each in killed):
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
            f"Slurm ended the job, and gives the reason: {reason.lower()}. Closed connections are the echo"
            " of that. Where the job made no progress before, it hung, and that is what to look for."
        ),
        fix=_AFTER.get(reason, ("start the job again from its last checkpoint",)),
        next_check="sacct -j JOBID -o JobID,State,ExitCode,Elapsed,Timelimit; when the last step was logged",
    )
