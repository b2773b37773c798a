"""The start over TCP fails though the interface is a sensible one."""

from __future__ import annotations

import re

from linkwise.diagnose.addresses import address_of_peer, bootstrap_interfaces, known_addresses
from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.readers.job_log.values import Sighting

__all__ = ["bootstrap"]

_COUNTS = re.compile(r"mismatch in rank count from procs (-?\d+) : (-?\d+)")
_MOST_RANKS = 1 << 20
"""More ranks than any job has; larger numbers are not counts but other bytes [ranks]."""


def bootstrap(facts: Facts) -> Finding | None:
    """Return the finding when foreign traffic, a taken address or a wrong choice of subnet breaks the start.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    rules = (_foreign, _crossed, _looped, _without_address, _rendezvous)
    return next((found for rule in rules if (found := rule(facts)) is not None), None)


def _foreign(facts: Facts) -> Finding | None:
    """Find a connection that is closed by an address that is none of the job's."""
    if facts.channels:
        return None
    known = known_addresses(facts)
    lines = [each for each in facts.warned("closed") if _is_foreign(each, known)]
    if not lines:
        return None
    seen = facts.seen("scan_seen")
    sure = Confidence.HIGH if seen else Confidence.MEDIUM
    return _found(
        sure,
        [*lines, *seen],
        explanation="A connection to the port NCCL starts from came from an address that is no host of the"
        " job, and was closed. Port scanners and monitoring agents do that.",
        fix=(
            "keep scanners off the ports of jobs, or use an interface they do not reach (NCCL_SOCKET_IFNAME)",
        ),
        check="who owns the address in the line; whether it comes at the same time each day",
    )


def _is_foreign(line: Sighting, known: frozenset[str]) -> bool:
    """Return whether the peer is no host of the job: neither known nor in a subnet (/24) of those."""
    address = address_of_peer(line.fields.get("peer", ""))
    if address is None or address in known or ":" in address:
        return False
    subnets = {each.rpartition(".")[0] for each in known}
    return bool(known) and address.rpartition(".")[0] not in subnets


def _crossed(facts: Facts) -> Finding | None:
    lines = facts.warned("wrong_handshake", "bootstrap_mismatch")
    if not lines:
        return None
    if (disagreed := _miscounted(lines)) is not None:
        return disagreed
    return _found(
        Confidence.MEDIUM,
        list(lines),
        explanation="A connection reached a process it was not meant for: its first words are not those"
        " NCCL expects. Two hosts with one address, two NICs with equal addresses, or foreign traffic cross"
        " connections so.",
        fix=("give every interface an address of its own",),
        check="ip -br addr on all hosts, sorted by address: no address twice",
    )


def _miscounted(lines: tuple[Sighting, ...]) -> Finding | None:
    """Find processes that understand each other and disagree on how many they are, or who is who."""
    texts = [each.fields.get("text", "") for each in lines]
    counts = next((found for each in texts if (found := _COUNTS.search(each)) is not None), None)
    is_plausible = counts is not None and all(1 <= int(each) <= _MOST_RANKS for each in counts.groups())
    if counts is not None and is_plausible:
        said = f"One process of the job counts {counts[1]} ranks, another {counts[2]}."
    elif any("already checked in" in each for each in texts):
        said = "Two processes of the job call themselves the same rank."
    else:
        return None
    return _found(
        Confidence.MEDIUM,
        list(lines),
        explanation=f"{said} They were started with unlike numbers, or a process of another job, perhaps an"
        " earlier one that still runs, came to the same address.",
        fix=(
            "give all hosts one WORLD_SIZE (--nnodes, --nproc-per-node), and each process a RANK of its own",
            "end leftovers of earlier jobs, and give each job a MASTER_PORT of its own",
        ),
        check="echo $RANK $WORLD_SIZE $MASTER_ADDR:$MASTER_PORT on every rank; ps -ef | grep python on all"
        " hosts",
    )


def _looped(facts: Facts) -> Finding | None:
    """Find the loopback chosen although a routable NCCL_COMM_ID names the subnet."""
    ids = facts.settings("NCCL_COMM_ID")
    loops = [each for each in bootstrap_interfaces(facts) if each.is_loopback]
    lines = facts.warned("connect_failed")
    if not ids or not loops or not lines or ids[0].fields.get("value", "").startswith(("127.", "localhost")):
        return None
    return _found(
        Confidence.HIGH,
        [*lines, *(each.line for each in loops), *ids],
        explanation="NCCL starts over the loopback although NCCL_COMM_ID names an address of another"
        " interface: its test of the subnet went wrong, as it does in releases around 2.29.",
        fix=("NCCL_SOCKET_IFNAME=NAME of the interface with the address of NCCL_COMM_ID", "use a newer NCCL"),
        check="the line 'Bootstrap: Using' with NCCL_SOCKET_IFNAME set",
    )


def _without_address(facts: Facts) -> Finding | None:
    refused = [each for each in facts.warned("socket_failed") if "Address family" in each.evidence.text]
    none = facts.warned("interface_none")
    if not refused and (not none or facts.settings("NCCL_SOCKET_IFNAME")):
        return None
    return _found(
        Confidence.MEDIUM,
        [*refused, *none],
        explanation="There is no interface with a usable IP address where the process runs, as in a"
        " container without a network or with IPv6 switched off in the kernel.",
        fix=("give the container a network (--network=host)",),
        check="ip -br addr, where the job runs",
    )


def _store_left(facts: Facts) -> Finding | None:
    """Find a launcher whose store ended before it; where ranks failed too, that is the sequel."""
    lines = facts.seen("store_left")
    if not lines or facts.has_failed or facts.seen("agent_exit", "gloo_closed", "gloo_timeout", "agent_told"):
        return None
    return _found(
        Confidence.LOW,
        list(lines),
        explanation="A launcher of torchrun lost the store of the rendezvous while its own ranks were well:"
        " the launcher that holds the store ended first. Several jobs on one host that share one endpoint,"
        " which is port 29400 where none is named, end one another so.",
        fix=(
            "give every job on a host an endpoint of its own: --rdzv-endpoint HOST:PORT, or --standalone",
            "where it is one job, look why the launcher on the host of the endpoint ended",
        ),
        check="ss -ltnp on the host of the endpoint; which other job ended at that time",
    )


def _rendezvous(facts: Facts) -> Finding | None:
    """Find the framework's own start, before NCCL's, that fails."""
    taken, unreached = facts.seen("store_taken"), facts.seen("store_unreached")
    waiting = [each for each in facts.seen("store_waiting") if each.fields["joined"] != each.fields["all"]]
    if not taken and not unreached and not waiting:
        return _store_left(facts)
    return _found(
        Confidence.HIGH if taken else Confidence.LOW,
        [*taken, *waiting, *unreached],
        explanation="The processes do not find each other through PyTorch's store, before NCCL begins: "
        + (
            "another process holds its port."
            if taken
            else _who_came(waiting[0])
            if waiting
            else "nothing answers at the master's address and port, or a filter is in between."
        ),
        fix=(
            "choose a free port for each job: --rdzv-endpoint HOST:PORT, MASTER_PORT",
            "MASTER_ADDR must be the address of rank 0's host on a network that all hosts share",
        ),
        check="ss -ltnp on rank 0's host; nc -vz MASTER_ADDR MASTER_PORT on the others",
    )


def _who_came(line: Sighting) -> str:
    return (
        f"{line.fields['joined']} of {line.fields['all']} came to it in time. The others were not started,"
        " ended before, or do not reach it; their own logs tell."
    )


def _found(
    confidence: Confidence, proof: list[Sighting], *, explanation: str, fix: tuple[str, ...], check: str
) -> Finding:
    return finding(
        "bootstrap",
        Severity.BROKEN,
        confidence,
        proof=proof,
        explanation=explanation,
        fix=fix,
        next_check=check,
    )
