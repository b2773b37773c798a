"""Google's TCPX or TCPXO stack: the daemon, the plug-in or access of the host is missing."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["tcpx"]


def tcpx(facts: Facts) -> Finding | None:
    """Return the finding when the plug-in warns, or a machine that has the stack goes over plain sockets.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    lines = facts.warned("fastrak_failed", "tcpx_failed")
    if lines:
        return _found(
            Severity.BROKEN,
            Confidence.HIGH,
            [*lines, *_daemons(facts)],
            "The network plug-in cannot work with the receive data path manager: its daemon is not running"
            " in the pod, or the socket and devices they share are not mounted.",
        )
    names = facts.used_networks or facts.networks
    on_sockets = bool(names) and all(name == "Socket" for name in names) and not facts.is_one_node
    machines = _machines(facts)
    if not on_sockets or not machines:
        return None
    return _found(
        Severity.SLOW,
        Confidence.HIGH,
        [*machines, *facts.seen("network")],
        "The machine has NICs for TCPX, and NCCL goes over plain sockets: the plug-in is not in the"
        " container, or not in its library path.",
    )


def _machines(facts: Facts) -> list[Evidence]:
    return [
        output.evidence_at(number)
        for output in facts.log.commands
        for number, line in enumerate(output.lines)
        if any(kind in line for kind in ("a3-megagpu", "a3-highgpu", "a3-edgegpu"))
    ]


def _daemons(facts: Facts) -> list[Evidence]:
    return [
        output.evidence_at(number)
        for output in facts.log.commands
        for number, line in enumerate(output.lines)
        if ("tcpx" in line or "rxdm" in line)
        and any(sign in line for sign in ("terminated", "Error", "Crash"))
    ]


def _found(
    severity: Severity, confidence: Confidence, proof: list[Sighting | Evidence], explanation: str
) -> Finding:
    return finding(
        "tcpx",
        severity,
        confidence,
        proof=proof,
        explanation=explanation,
        fix=(
            "run the daemon (tcpgpudmarxd, or tcpxo-daemon) as a sidecar, started before the job",
            "mount the plug-in's folder and put it first in LD_LIBRARY_PATH; NCCL_NET=FasTrak on A3 Mega",
        ),
        next_check="kubectl logs POD -c tcpxo-daemon; 'Loaded net plugin' in the log of the job",
    )
