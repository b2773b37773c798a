"""NCCL takes two hosts for one, or one for two."""

from __future__ import annotations

from linkwise.diagnose.addresses import bootstrap_interfaces, data_interfaces
from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["host_identity"]


def host_identity(facts: Facts) -> Finding | None:
    """Return the finding when processes under one host name have different addresses, or hosts share memory.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    doubled = _addresses_of_one_name(facts)
    crossed = _memory_between_hosts(facts)
    failed = facts.warned("ipc_failed", "shm_failed", "cumem_import", "peer_failed")
    if not failed or not (doubled or crossed):
        return None
    proof: list[Sighting | Evidence] = [*failed, *doubled, *crossed, *facts.settings("NCCL_HOSTID")]
    return finding(
        "host_identity",
        Severity.BROKEN,
        Confidence.HIGH,
        proof=proof,
        explanation=(
            "NCCL takes two machines for one and tries to share memory between them: they have one host"
            " name, names that are alike up to the first dot (NCCL up to 2.4), or one NCCL_HOSTID."
        ),
        fix=(
            "give every host a name of its own before the first dot",
            "unset NCCL_HOSTID, or set it apart on every host; use a newer NCCL",
        ),
        next_check="hostname; cat /proc/sys/kernel/random/boot_id on both",
    )


def _addresses_of_one_name(facts: Facts) -> list[Sighting]:
    """Return lines of one host name and one interface that show two addresses."""
    seen: dict[tuple[str, str], dict[str, Sighting]] = {}
    for each in (*bootstrap_interfaces(facts), *data_interfaces(facts)):
        if each.line.host is not None and not each.is_loopback and not each.is_ipv6:
            seen.setdefault((each.line.host, each.name), {}).setdefault(each.address, each.line)
    return [line for addresses in seen.values() if len(addresses) > 1 for line in addresses.values()]


def _memory_between_hosts(facts: Facts) -> list[Evidence]:
    hosts = facts.host_of
    return [
        each.evidence
        for each in facts.channels
        if each.kind in {"P2P", "SHM"} and "MNNVL" not in each.transport
        for rank, peer in each.pairs
        if rank in hosts and peer in hosts and hosts[rank] != hosts[peer]
    ]
