"""An RDMA operation fails and no nearer cause explains it."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.diagnose.limits import locked_memory
from linkwise.diagnose.verbs import (
    LOCAL_PROTECTION,
    RETRY_EXCEEDED,
    calls,
    completions,
    first_failures,
    has_mixed_link_layers,
    is_roce,
    out_of_memory,
)
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["ib_error"]


def ib_error(facts: Facts) -> Finding | None:
    """Return the finding for a failed completion or verbs call; nearer causes win over it.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    events = [
        each
        for each in facts.seen("async_event")
        if any(word in each.fields.get("event", "") for word in ("fatal", "catastrophic", "CQ error"))
    ]
    lines: list[Sighting | Evidence] = [
        *first_failures(facts),
        *_calls(facts),
        *facts.warned("link_layers_differ", "resilient_device_failed"),
        *events,
        *completions(facts),
    ]
    if not lines:
        return None
    confidence, explanation, fix, check = _reading(facts)
    limit = locked_memory(facts)
    if out_of_memory(facts) and limit is not None:
        lines.append(limit.evidence)
    lines += facts.seen("port_losses")
    if is_roce(facts):
        lines += [each for each in facts.seen("pfc_enabled") if "1" not in each.fields["flags"]]
    return finding(
        "ib_error",
        Severity.BROKEN,
        confidence,
        proof=lines,
        explanation=explanation,
        fix=fix,
        next_check=check,
    )


def _calls(facts: Facts) -> list[Sighting]:
    """Return the calls that fail; opening a device is tried and given up, which ends in another network."""
    limit = locked_memory(facts)
    short = out_of_memory(facts) if limit is None or not limit.is_unlimited else ()
    return [
        each
        for each in facts.warned("verbs")
        if not each.fields["call"].startswith(("ibv_open_device", "ibv_reg_dmabuf", "ibv_query_port_speed"))
        and all(each is not other for other in short)
    ]


_Reading = tuple[Confidence, str, tuple[str, ...], str]


def _reading(facts: Facts) -> _Reading:
    if facts.warned("link_layers_differ") or (
        calls(facts, "ibv_modify_qp", "Invalid argument", "22") and has_mixed_link_layers(facts)
    ):
        return _mixed()
    if out_of_memory(facts):
        return (
            Confidence.HIGH,
            (
                "Registering memory fails although the limit of locked memory is unlimited. The kernel, the"
                " RDMA driver or the IOMMU refuses it."
            ),
            ("use a kernel and an RDMA driver that are released for one another", "boot with iommu=pt"),
            "ibv_rc_pingpong, or ib_write_bw with --use_cuda, on the host named here; dmesg | tail",
        )
    if calls(facts, "ibv_modify_qp", "No such device", "19"):
        return (
            Confidence.MEDIUM,
            (
                "A device of the list cannot be used by this process: its port is down, or it belongs to"
                " another network namespace."
            ),
            ("leave the device out with NCCL_IB_HCA", "give the container the interface of the device"),
            "ibstat; show_gids, where the job runs: every listed device needs an Active port and a GID",
        )
    if completions(facts, RETRY_EXCEEDED) and not completions(facts, LOCAL_PROTECTION):
        return _unanswered(facts)
    if not first_failures(facts) and completions(facts):
        return (
            Confidence.LOW,
            (
                "Work requests were flushed, which follows another fault of the same queue. The first fault"
                " is not in these logs."
            ),
            ("give the logs of all ranks",),
            "grep 'Got completion' on every rank for a status other than 5",
        )
    return (
        Confidence.MEDIUM,
        (
            "An RDMA operation fails, and nothing in these logs says why. NIC, cable, firmware, switch and"
            " the platform of the host are all possible."
        ),
        ("bring NIC firmware and driver to one release on all hosts",),
        "ib_write_bw between the two hosts of the failed transfer; perfquery; dmesg | grep mlx5",
    )


def _mixed() -> _Reading:
    return (
        Confidence.HIGH,
        (
            "The list of devices mixes InfiniBand and Ethernet ports, and NCCL pairs them by position. An"
            " InfiniBand port cannot talk to an Ethernet port."
        ),
        ("name devices of one link layer on all hosts: NCCL_IB_HCA==mlx5_0,mlx5_1",),
        "ibstat | grep -E 'CA |Link layer', on every host",
    )


def _unanswered(facts: Facts) -> _Reading:
    fabric = "the switches drop packets (PFC and ECN)" if is_roce(facts) else "a link or switch loses packets"
    return (
        Confidence.LOW if is_roce(facts) else Confidence.MEDIUM,
        (
            f"A peer does not answer (retry count exceeded): it died, its port is down, or {fabric}. Where"
            " many ranks name one peer, look there first."
        ),
        (
            "replace the cable or disable the port that counts errors",
            "NCCL_IB_TIMEOUT=22 bridges short outages",
        ),
        "ibdiagnet or perfquery for symbol errors; on RoCE ethtool -S for discards; dmesg on the peer",
    )
