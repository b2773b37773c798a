"""A rank was ended from outside: by a signal that no launcher of the job sent."""

from __future__ import annotations

from linkwise.diagnose.ends import Ends, Exit, is_gloo_job
from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding

__all__ = ["rank_killed"]

_SENT = (-9, -15)
"""Signals that others send: SIGKILL and SIGTERM. Those of a crash a process brings on itself."""
_NAMES = {-9: "SIGKILL", -15: "SIGTERM"}
_MOST_NAMED = 8


def rank_killed(facts: Facts) -> Finding | None:
    """Return the finding when an agent tells of such a signal, or one rank fell silent and all lost it.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    A process that SIGKILL ends says nothing, and the kernel closes its connections at once: the others say
    that within milliseconds. Where a host goes away, nothing is closed, and the others wait until their
    timeout.
    """
    if not is_gloo_job(facts):
        return None
    ends = Ends(facts=facts)
    killed = [each for each in ends.kills if each.code in _SENT]
    if killed:
        return _by_agent(ends, killed)
    return None if ends.is_told else _by_silence(ends)


def _by_agent(ends: Ends, killed: list[Exit]) -> Finding:
    ranks = sorted({each.rank for each in killed if each.rank is not None})
    hosts = list(dict.fromkeys(each.host for each in killed if each.host is not None))
    signals = " and ".join(dict.fromkeys(_NAMES[each.code] for each in killed))
    named = _named(ranks, hosts) or f"Process {killed[0].pid}"
    again = " The job was started again after that and went on." if ends.went_on else ""
    return _found(
        Confidence.HIGH,
        [each.line for each in killed] + list(ends.errors.values()),
        where=[*hosts, *(f"rank {rank}" for rank in ranks)],
        first=f"{named} was ended by {signals}, which the launcher did not send.{again}",
        severity=Severity.SLOW if ends.went_on else Severity.BROKEN,
    )


def _by_silence(ends: Ends) -> Finding | None:
    """Find the one rank that said nothing while all others lost their connections and none waited in vain."""
    silent = ends.silent
    if len(silent) != 1 or ends.timeouts or not ends.errors or ends.own_errors or ends.kills:
        return None
    if len(ends.errors) < len(ends.ranks) - 1:
        return None
    rank = min(silent)
    host = ends.host_of.get(rank)
    if any(each.rank == rank for each in ends.exits):
        return None
    return _found(
        Confidence.MEDIUM,
        list(ends.errors.values()),
        where=ends.where(silent),
        first=f"{_named([rank], [host] if host else [])} said nothing, and all others lost their"
        " connections at once: its process ended without a word, as it does by SIGKILL.",
    )


def _named(ranks: list[int], hosts: list[str]) -> str:
    if not ranks:
        return ""
    word = "Rank" if len(ranks) == 1 else "Ranks"
    shown = ", ".join(map(str, ranks[:_MOST_NAMED])) + (" ..." if len(ranks) > _MOST_NAMED else "")
    return f"{word} {shown}" + (f" on {' and '.join(hosts)}" if hosts else "")


def _found(
    confidence: Confidence,
    proof: list,  # type: ignore[type-arg]
    *,
    where: list[str],
    first: str,
    severity: Severity = Severity.BROKEN,
) -> Finding:
    return finding(
        "rank_killed",
        severity,
        confidence,
        proof=proof,
        where=where,
        explanation=(
            f"{first} The connection errors of the others follow from that. The kernel sends SIGKILL where"
            " the memory of the host or of its container is full; a scheduler or a person may as well."
        ),
        fix=(
            "where dmesg tells of memory: ask for more (--mem), or use fewer workers of the data loader",
            "otherwise ask who ended it: the scheduler's log (sacct -j JOBID), an eviction, a colleague",
            "start again from the last checkpoint; torchrun --max-restarts does so by itself",
        ),
        next_check="dmesg -T | grep -i -e oom -e 'killed process' on the host, at the time of the first"
        " error",
    )
