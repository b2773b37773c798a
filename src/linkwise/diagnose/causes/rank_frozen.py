"""A rank neither goes on nor ends: it is stopped, or hangs in the kernel or a device."""

from __future__ import annotations

from linkwise.diagnose.ends import Ends, is_gloo_job
from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.readers.job_log.values import Sighting

__all__ = ["rank_frozen"]


def rank_frozen(facts: Facts) -> Finding | None:
    """Return the finding when the others waited in vain for a rank that said nothing and whose host is alive.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    A rank that is late, in a long task of its own, ends when it is told to; one that is frozen does not
    obey, and its agent says that it had to use force.
    """
    if not is_gloo_job(facts):
        return None
    ends = Ends(facts=facts)
    forced = frozenset(each.rank for each in ends.forced if each.rank is not None)
    if not ends.timeouts or ends.own_errors or ends.kills:
        return None
    if forced:
        return _found(ends, forced, Confidence.HIGH)
    silent = ends.silent
    alive = {rank for rank in silent if ends.host_of.get(rank) in ends.heard_hosts}
    if not silent or alive != silent or 2 * len(silent) >= len(ends.ranks):
        return None
    return _found(ends, silent, Confidence.MEDIUM)


def _found(ends: Ends, ranks: frozenset[int], confidence: Confidence) -> Finding:
    shown = ", ".join(map(str, sorted(ranks)))
    hosts = list(dict.fromkeys(ends.host_of[rank] for rank in sorted(ranks) if rank in ends.host_of))
    proof: list[Sighting] = [*ends.facts.seen("agent_forced"), *ends.timeouts, *ends.errors.values()]
    obeyed = " It did not end when it was told to." if confidence is Confidence.HIGH else ""
    place = f" on {' and '.join(hosts)}" if hosts else ""
    return finding(
        "rank_frozen",
        Severity.BROKEN,
        confidence,
        proof=proof,
        where=ends.where(ranks),
        explanation=(
            f"Rank {shown}{place} neither went on nor ended, while the others waited for it until their"
            f" timeout.{obeyed} Its connections stayed open, so that the host and its network were alive."
        ),
        fix=(
            "where the process is stopped (state T), find who stopped it: a debugger, Ctrl-Z, a job manager",
            "where it hangs in the kernel (state D), look after the device or the file system it waits for",
            "a shorter timeout of init_process_group ends the wait sooner; start again from the checkpoint",
        ),
        next_check="ps -o pid,stat,wchan:30,cmd -C python on the host; py-spy dump --pid PID; dmesg -T |"
        " tail",
    )
