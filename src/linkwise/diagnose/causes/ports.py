"""TCP ports or the listen queue run out."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["ports"]


def ports(facts: Facts) -> Finding | None:
    """Return the finding when no port is left to bind or to connect from.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    NCCL lets the kernel choose its ports, so that *address in use* means that none is left. Two things ask
    for one of a number: the root of an explicit NCCL_COMM_ID, and the status service (RAS), whose port
    another job of the host may have, which is harmless.
    """
    used = [
        each
        for each in facts.warned("bind_failed", "listen_failed")
        if "already in use" in each.evidence.text and not each.source.startswith("ras")
    ]
    none = [
        each for each in facts.warned("connect_failed") if "Cannot assign requested" in each.evidence.text
    ]
    of_gloo = facts.seen("gloo_no_port")
    lines = [*used, *none, *of_gloo]
    if not lines:
        return None
    asked = facts.settings("NCCL_COMM_ID")
    pxn = [each for each in facts.settings("NCCL_PXN_DISABLE") if each.fields.get("value") == "1"]
    proof: list[Sighting | Evidence] = [*lines, *pxn, *_ranges(facts)]
    return finding(
        "ports",
        Severity.BROKEN,
        Confidence.LOW if asked and not none else Confidence.HIGH,
        proof=proof,
        explanation=(
            "A host has no TCP port left for the connections of the job."
            + (
                " NCCL_PXN_DISABLE=1 multiplies them: every rank then connects to all others itself."
                if pxn
                else " gloo opens one for each pair of ranks in each group."
                if of_gloo
                else " All-to-all over many nodes and leftovers of earlier jobs use them up."
            )
        ),
        fix=(
            *(("unset NCCL_PXN_DISABLE",) if pxn else ()),
            "sysctl net.ipv4.ip_local_port_range='1024 65535' net.ipv4.tcp_tw_reuse=1",
        ),
        next_check="ss -s and ss -tan | wc -l on the host while the job starts",
    )


def _ranges(facts: Facts) -> list[Evidence]:
    return [
        output.evidence_at(number)
        for output in facts.commands("port_range")
        for number, _ in enumerate(output.lines[:1])
    ]
