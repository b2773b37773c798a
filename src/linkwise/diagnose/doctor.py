"""The diagnosis: what is in use, the verdict, and the findings that stand."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from linkwise.diagnose.causes import RULES
from linkwise.diagnose.ends import is_gloo_job
from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Finding, Severity
from linkwise.diagnose.gloo_reason import gloo_failure, gloo_note
from linkwise.diagnose.gloo_transport import gloo_transport
from linkwise.diagnose.precedence import settle
from linkwise.diagnose.progress import has_progressed
from linkwise.diagnose.slower import gap_note, slower_reason
from linkwise.diagnose.transport import Transport, transport_of
from linkwise.diagnose.waiting import timeout_reason
from linkwise.readers.job_log.values import Evidence, JobLog, Sighting

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.diagnose.against_cluster import Shortfall
    from linkwise.diagnose.baseline import Comparison
    from linkwise.job import Job

__all__ = ["Diagnosis", "Verdict", "diagnose"]

_MOST_UNKNOWN = 20


class Verdict(StrEnum):
    """What is said of the job as a whole."""

    HEALTHY = "healthy"
    SLOW = "slow"
    BROKEN = "broken"
    CANNOT_TELL = "cannot_tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The answer.

    Parameters
    ----------
    verdict
        Of the job as a whole.
    reason
        Why that verdict, where no finding says it.
    transport
        What is in use.
    findings
        Worst first.
    shortfalls
        What the job lacks against the cluster it was said to run on.
    unread
        Inputs that could not be used, one message each.
    comparison
        What differs from a good run; ``None`` where none was given.
    unknown
        Warnings of NCCL that are in the logs and mean nothing to the doctor, the first of each text.
    """

    verdict: Verdict
    reason: str
    transport: Transport
    findings: tuple[Finding, ...]
    shortfalls: tuple[Shortfall, ...] = ()
    unread: tuple[str, ...] = ()
    comparison: Comparison | None = None
    unknown: tuple[Evidence, ...] = ()


def diagnose(
    log: JobLog, *, cluster: Cluster | None = None, job: Job | None = None, baseline: JobLog | None = None
) -> Diagnosis:
    """Return what the job is really running on and what is wrong with it.

    Parameters
    ----------
    log
        What was read.
    cluster
        What the job should run on; what it lacks against that is found too.
    job
        What is run, for the cost of what is lacking.
    baseline
        What was read of a good run, for what differs.
    """
    facts = Facts(log=log)
    transport = _transport(facts)
    found = _found(facts)
    shortfalls: tuple[Shortfall, ...] = ()
    if cluster is not None:
        from linkwise.diagnose.against_cluster import lacking, shortfalls_of

        shortfalls = shortfalls_of(facts, transport, cluster, job=job)
        causes = {each.cause for each in found}
        found += [each for each in lacking(facts, shortfalls) if each.cause not in causes]
    findings = settle(found)
    verdict, reason = _verdict(facts, findings)
    return Diagnosis(
        verdict=verdict,
        reason=reason,
        transport=transport,
        findings=findings,
        shortfalls=shortfalls,
        unread=log.unread,
        comparison=None if baseline is None else _compared(baseline, facts, transport, findings),
        unknown=tuple(each.evidence for each in facts.unknown_warnings[:_MOST_UNKNOWN]),
    )


def _found(facts: Facts) -> list[Finding]:
    return [each for rule in RULES.values() if (each := rule(facts)) is not None]


def _transport(facts: Facts) -> Transport:
    return gloo_transport(facts) or transport_of(facts)


def _compared(
    baseline: JobLog, facts: Facts, transport: Transport, findings: tuple[Finding, ...]
) -> Comparison:
    from linkwise.diagnose.baseline import compare_runs

    good = Facts(log=baseline)
    return compare_runs((good, _transport(good), settle(_found(good))), (facts, transport, findings))


def _verdict(facts: Facts, findings: tuple[Finding, ...]) -> tuple[Verdict, str]:
    worst = {each.severity for each in findings}
    if Severity.BROKEN in worst:
        return Verdict.BROKEN, ""
    if (unexplained := _unexplained(facts)) is not None:
        return Verdict.BROKEN, unexplained
    if Severity.SLOW in worst:
        return Verdict.SLOW, ""
    if facts.stuck:
        ranks = sorted({rank for each in facts.stuck for rank in each.ranks})
        shown = ", ".join(map(str, ranks[:8])) + (" ..." if len(ranks) > 8 else "")
        return Verdict.CANNOT_TELL, f"the log ends before NCCL is initialized on ranks {shown}" + _strange(
            facts
        )
    if not findings and (slower := slower_reason(facts)) is not None:
        return Verdict.CANNOT_TELL, slower
    if facts.has_completed or facts.seen("rings_connected") or has_progressed(facts):
        added = _over_tcp(facts) + gap_note(facts) + gloo_note(facts) + _strange(facts)
        return Verdict.HEALTHY, "nothing slow or broken is seen" + added
    return Verdict.CANNOT_TELL, _nothing_seen(facts) + gloo_note(facts) + _strange(facts)


def _unexplained(facts: Facts) -> str | None:
    """Return what to say of a failure that no finding explains; ``None`` without one."""
    if is_gloo_job(facts):
        return gloo_failure(facts)
    echoes = facts.warned("closed", "reset", "proxy_echo")
    left = [each for each in facts.seen("left") if each.fields["stage"] != "Abort"]
    faults = [each for each in facts.faults if not each.source.startswith("ras")]
    if not facts.has_failed and not faults and (not echoes or left):
        return None
    own = (*faults, *facts.seen("cuda_error", "cuda_oom", "host_oom"), *facts.seen("warning"))
    line = (own or echoes or facts.failures)[0].evidence
    place = f"{line.file}:{line.line}"
    if (timed_out := timeout_reason(facts)) is not None:
        return timed_out
    if refused := facts.warned("usage_refused"):
        text = refused[0].fields["text"]
        return f"NCCL refuses a call of the program ({place}): {text}{_of_launch(refused[0])}"
    if not own and not facts.are_all_ranks_here:
        return f"this is the echo of a fault elsewhere ({place}); give the logs of all ranks"
    return f"an error is seen, and no known cause explains it: {place}"


def _of_launch(refused: Sighting) -> str:
    """Return what to add where the launcher numbers ranks wrongly; empty elsewhere."""
    if "world" not in refused.fields:
        return ""
    return "; ranks count from 0, so check RANK and WORLD_SIZE, or --node_rank, of every launcher"


def _over_tcp(facts: Facts) -> str:
    """Return what to add where data between nodes goes over TCP, which no line says is wrong."""
    if facts.is_one_node or set(facts.used_networks) != {"Socket"}:
        return ""
    return "; nodes talk over TCP, and --cluster says whether a faster network should be there"


def _strange(facts: Facts) -> str:
    """Return what to add of warnings that no message of the table is; empty without one."""
    lines = facts.seen("warning")
    if not lines:
        return ""
    first = lines[0].evidence
    return f"; a warning is there that is not known ({first.file}:{first.line})"


def _nothing_seen(facts: Facts) -> str:
    if facts.channels:
        return "the log shows how ranks connect and not that NCCL came up; give it to its end"
    if facts.hosts or facts.seen("version"):
        return "the log shows too little of NCCL's start; set NCCL_DEBUG=INFO and run again"
    if is_gloo_job(facts):
        return "ranks talk over gloo, and the output shows no two steps of them; give it to its end"
    kinds = sorted({each.kind for each in facts.log.inputs} - {"text", "NCCL log"})
    given = f", which is {' and '.join(kinds)}" if kinds else ""
    return f"no line of NCCL is in this{given}; set NCCL_DEBUG=INFO and give the log of the job"
