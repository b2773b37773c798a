"""RoCE addresses do not reach each other: GID index, its type, a VLAN, or no route."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.diagnose.progress import has_progressed
from linkwise.diagnose.verbs import (
    RETRY_EXCEEDED,
    calls,
    completions,
    is_roce,
    port_events,
    unlike_subnets,
)
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["roce_gid"]


def roce_gid(facts: Facts) -> Finding | None:
    """Return the finding when connecting over RoCE fails, or the first message is never answered.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    timed_out = calls(facts, "ibv_modify_qp", "Connection timed out", "110")
    unrouted = calls(facts, "ibv_modify_qp", "Network is unreachable", "No route to host", "101", "113")
    unknown = calls(facts, "ibv_query_gid")
    changed = facts.seen("gid_table_changed") if completions(facts) else ()
    silent = completions(facts, RETRY_EXCEEDED) if _is_index_at_fault(facts) else ()
    lines = [*unrouted, *timed_out, *unknown, *silent]
    if not lines or not (is_roce(facts) or _has_ip_gid(lines)) or port_events(facts):
        return None
    proof: list[Sighting | Evidence] = [*lines, *changed, *facts.settings("NCCL_IB_GID_INDEX")]
    return finding(
        "roce_gid",
        Severity.BROKEN,
        _confidence(
            facts, (*unrouted, *timed_out), unrouted=bool(unrouted), is_asked=bool(unknown or changed)
        ),
        proof=proof,
        explanation=(
            "The RoCE address (GID) that one side uses is not reached from the other: a wrong GID index, a"
            " GID of RoCE v1, a VLAN that only one side has, or no route between the subnets." + _index(facts)
        ),
        fix=_fix(facts),
        next_check="show_gids on both hosts: the index in use must be RoCE v2 with the IPv4 address; then"
        " ping -I",
    )


def _confidence(
    facts: Facts, connecting: tuple[Sighting, ...], *, unrouted: bool, is_asked: bool
) -> Confidence:
    if unrouted or is_asked:
        return Confidence.HIGH
    if connecting:
        return Confidence.LOW if unlike_subnets(connecting) else Confidence.HIGH
    return Confidence.MEDIUM if facts.value_of("NCCL_IB_GID_INDEX") is not None else Confidence.LOW


def _is_index_at_fault(facts: Facts) -> bool:
    """Return whether silence may be the address: its index is fixed, or 0 by default."""
    is_fixed = facts.value_of("NCCL_IB_GID_INDEX") is not None
    is_zero = facts.version is not None and facts.version < (2, 21)
    return is_roce(facts) and (is_fixed or is_zero) and not has_progressed(facts)


def _has_ip_gid(lines: list[Sighting]) -> bool:
    return any(each.fields.get("local", "").startswith("::ffff:") for each in lines)


def _index(facts: Facts) -> str:
    value = facts.value_of("NCCL_IB_GID_INDEX")
    if value is not None:
        return f" NCCL_IB_GID_INDEX={value} is set here."
    if facts.version and facts.version < (2, 21):
        return " NCCL before 2.21 uses index 0, which is RoCE v1 on most hosts."
    return ""


def _fix(facts: Facts) -> tuple[str, ...]:
    if facts.version and facts.version >= (2, 21):
        return (
            "unset NCCL_IB_GID_INDEX: NCCL 2.21 and later find the RoCE v2 address themselves",
            "give the interfaces addresses that reach each other, with one VLAN and MTU on both sides",
        )
    return (
        "NCCL_IB_GID_INDEX=3, or the index of RoCE v2 with the IPv4 address in show_gids, on every host",
        "give the interfaces addresses that reach each other, with one VLAN and MTU on both sides",
    )
