"""An IPv6 or link-local address is chosen that the peer cannot reach."""

from __future__ import annotations

from linkwise.diagnose.addresses import address_of_peer, bootstrap_interfaces, is_link_local
from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding

__all__ = ["ipv6"]


def ipv6(facts: Facts) -> Finding | None:
    """Return the finding when connecting to an IPv6 address fails and the start went over IPv6 too.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    Where the start goes over IPv4 and only a second interface for data has a link-local address, the
    interface is the
    fault and not the family.
    """
    lines = [
        each
        for each in facts.warned("connect_failed")
        if ":" in (address_of_peer(each.fields.get("peer", "")) or "")
    ]
    if not lines:
        return None
    start = bootstrap_interfaces(facts)
    if start and not any(each.is_ipv6 for each in start):
        return None
    link_local = any(is_link_local(address_of_peer(each.fields["peer"])) for each in lines)
    shown = [each.line for each in start if each.is_ipv6]
    return finding(
        "ipv6",
        Severity.BROKEN,
        Confidence.HIGH if link_local and start else Confidence.MEDIUM,
        proof=[*lines, *shown],
        explanation=(
            "NCCL chose an IPv6 address, and the other host cannot reach it. A link-local address (fe80::)"
            " is good on its own link only, and a tunnel interface has nothing else."
        ),
        fix=("NCCL_SOCKET_FAMILY=AF_INET", "NCCL_SOCKET_IFNAME=NAME of the interface with an IPv4 address"),
        next_check="ip -br addr on both hosts; ping -6 the address of the line",
    )
