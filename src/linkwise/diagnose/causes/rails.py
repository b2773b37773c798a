"""The NICs of the hosts do not pair: isolated rails, a missing one, ports of another network in the list."""

from __future__ import annotations

from collections import Counter

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding, first_of
from linkwise.diagnose.transport import nics_of
from linkwise.diagnose.verbs import calls, unlike_subnets
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["rails"]


def rails(facts: Facts) -> Finding | None:
    """Return the finding when a connection joins different networks, or hosts list different NICs.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    return first_of(_across(facts), _uneven(facts))


def _across(facts: Facts) -> Finding | None:
    lines = calls(facts, "ibv_modify_qp", "Connection timed out", "110")
    told = facts.seen("rails_mismatch")
    if not told and not (lines and unlike_subnets(lines)):
        return None
    return finding(
        "rails",
        Severity.BROKEN,
        Confidence.HIGH,
        proof=[*told, *lines, *facts.settings("NCCL_IB_HCA")],
        explanation=(
            "A NIC of one host tries to reach a NIC of another network on the other host, and the two"
            " networks are not joined. NCCL pairs NICs by their position in the list, and crosses rails"
            " where it may."
        ),
        fix=(
            "name the same rails in the same order on every host: NCCL_IB_HCA==DEVICE,DEVICE",
            "NCCL_CROSS_NIC=0 keeps traffic on its rail; NCCL_PXN_DISABLE must not be 1",
            "or join the rails by routes in the switches",
        ),
        next_check="ping -I LOCAL_ADDRESS REMOTE_ADDRESS for the two GIDs of the line; show_gids on both"
        " hosts",
    )


def _uneven(facts: Facts) -> Finding | None:
    """Find hosts with fewer NICs than most; they cap the rate of all."""
    per_host: dict[str, int] = {}
    lines: dict[str, list[Sighting]] = {}
    for each in facts.seen("ib_devices"):
        if each.host is not None and nics_of(each):
            per_host[each.host] = len(nics_of(each))
            lines.setdefault(each.host, []).append(each)
    counts = Counter(per_host.values())
    if len(counts) < 2 or not facts.is_rdma:
        return None
    most = max(counts)
    short = [host for host, count in per_host.items() if count < most]
    full = next(lines[host][-1] for host, count in per_host.items() if count == most)
    proof: list[Sighting | Evidence] = [lines[host][-1] for host in short]
    proof += [full, *(line for host in short for line in lines[host])]
    return finding(
        "rails",
        Severity.SLOW,
        Confidence.HIGH,
        proof=proof,
        where=short,
        explanation=(
            f"{', '.join(short[:4])} has {min(counts)} NICs in use where others have {most}"
            f"{_without(lines[short[0]][-1], full)}. Every collective runs at the rate of the node with the"
            " fewest."
        ),
        fix=("bring up the ports that are missing on the hosts named here", "replace the cable or the NIC"),
        next_check="ibstat on the hosts named here: which port is not Active, and why",
    )


def _without(short: Sighting, full: Sighting) -> str:
    """Return which NICs of the full list the short one lacks; empty where hosts name theirs differently."""
    there = [name.partition("/")[0] for name in nics_of(full)]
    used = {name.partition("/")[0] for name in nics_of(short)}
    lacked = [name for name in there if name not in used]
    return f": it lacks {', '.join(lacked[:4])}" if used < set(there) else ""
