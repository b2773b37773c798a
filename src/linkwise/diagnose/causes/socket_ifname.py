"""The wrong interface: a filter that matches none, loopback, a virtual or management interface."""

from __future__ import annotations

from linkwise.diagnose.addresses import (
    Interface,
    address_of_peer,
    bootstrap_interfaces,
    data_interfaces,
    is_link_local,
)
from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.diagnose.gloo_start import gloo_interface
from linkwise.readers.job_log.values import Sighting

__all__ = ["socket_ifname"]


def socket_ifname(facts: Facts) -> Finding | None:
    """Return the finding when the interfaces that are listed, or the filter, explain why connecting fails.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    return _no_match(facts) or _unreachable(facts) or _on_one_link(facts) or gloo_interface(facts)


def _no_match(facts: Facts) -> Finding | None:
    """Find a filter that matches no interface of a host."""
    filters = facts.settings("NCCL_SOCKET_IFNAME")
    none = facts.warned("interface_none")
    # A family that is no family of addresses is what NCCL 2.27 reads when no interface was found.
    odd = [each for each in facts.warned("address_family") if each.fields["family"] != "0"]
    lines = [*none, *odd]
    if not lines:
        return None
    value = filters[0].fields.get("value", "") if filters else ""
    sure = Confidence.HIGH if filters else Confidence.MEDIUM if odd else Confidence.LOW
    named = f"NCCL_SOCKET_IFNAME={value} matches no interface" if value else "No interface fits"
    return _found(
        sure,
        [*lines, *filters],
        [each.host for each in lines if each.host],
        f"{named} on the hosts named here, so NCCL has no address to start from. Interfaces may have other"
        " names on some hosts.",
    )


def _unreachable(facts: Facts) -> Finding | None:
    """Find an interface that the failing connection shows to be a bad choice."""
    lines = facts.warned("connect_failed")
    if not lines:
        return None
    peers = {address_of_peer(each.fields.get("peer", "")) for each in lines}
    chosen = [*bootstrap_interfaces(facts), *data_interfaces(facts)]
    bad = [each for each in chosen if _is_bad(each) and each.address in peers]
    listed = [each for each in data_interfaces(facts) if is_link_local(each.address)]
    if any(is_link_local(each) for each in peers) and listed and not bad:
        bad = listed
    loops = [each for each in chosen if each.is_loopback]
    if any(peer is not None and peer.startswith("127.") for peer in peers) and loops:
        bad = [*bad, *loops]
    if all("peer" not in each.fields for each in lines):
        # Some releases leave the address out of the last line.
        bad = [each for each in chosen if _is_bad(each)]
    if not bad or (_is_chosen_by_comm_id(facts) and all(each.is_loopback for each in bad)):
        return None
    names = sorted({each.name for each in bad})
    return _found(
        Confidence.HIGH,
        [*lines, *(each.line for each in bad)],
        [each.line.host for each in bad if each.line.host],
        f"NCCL uses the interface {', '.join(names)}, whose address other hosts cannot reach. It takes the"
        " first that is up, and every one that is listed for data.",
    )


def _on_one_link(facts: Facts) -> Finding | None:
    """Find a peer that gave a link-local address, where no line lists its interfaces.

    Notes
    -----
    Routers forward no packet to 169.254.0.0/16: RFC 3927, section 7. Of fe80::/10 another cause tells.
    """
    peers = [(each, address_of_peer(each.fields.get("peer", ""))) for each in facts.warned("connect_failed")]
    lines = [line for line, address in peers if address is not None and address.startswith("169.254.")]
    if not lines:
        return None
    return _found(
        Confidence.MEDIUM,
        lines,
        [],
        "The peer gave a link-local address (169.254.x.y), which is good on one link only: NCCL took an"
        " interface that the hosts do not share.",
    )


def _is_bad(each: Interface) -> bool:
    return each.is_loopback or each.is_virtual or is_link_local(each.address)


def _is_chosen_by_comm_id(facts: Facts) -> bool:
    """Return whether a routable NCCL_COMM_ID should have led to the right interface."""
    value = facts.value_of("NCCL_COMM_ID") or ""
    return bool(value) and not value.startswith(("127.", "localhost"))


def _found(confidence: Confidence, proof: list[Sighting], where: list[str], explanation: str) -> Finding:
    return finding(
        "socket_ifname",
        Severity.BROKEN,
        confidence,
        proof=proof,
        where=where,
        explanation=explanation,
        fix=(
            "NCCL_SOCKET_IFNAME=eth0 (a prefix, or =NAME for one) for the interface that all hosts share",
            "or leave out by ^: NCCL_SOCKET_IFNAME=^lo,docker,veth,usb",
        ),
        next_check="ip -br addr on every host: one name and one subnet must be on all",
    )
