"""Interfaces and addresses over which NCCL's TCP goes, by host."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass

from linkwise.diagnose.facts import Facts
from linkwise.readers.job_log.values import Sighting

__all__ = [
    "Interface",
    "address_of_peer",
    "bootstrap_interfaces",
    "data_interfaces",
    "is_link_local",
    "known_addresses",
]

_LISTED = re.compile(r"(?:\[\d+\])?([A-Za-z0-9_.@-]+):([0-9A-Fa-f:.]+)(?:%[\w.-]+)?<\d+>")
_PEER = re.compile(r"^([0-9A-Fa-f:.]+?)(?:%[\w.-]+)?(?:<\d+>)?$")
_VIRTUAL = (
    "docker",
    "veth",
    "virbr",
    "br-",
    "cni",
    "flannel",
    "cali",
    "tun",
    "tap",
    "usb",
    "podman",
    "lxc",
    "weave",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """One interface in use.

    Parameters
    ----------
    name, address
        As printed.
    line
        Where.
    """

    name: str
    address: str
    line: Sighting

    @property
    def is_loopback(self) -> bool:
        """Return whether it cannot reach another host."""
        return self.name == "lo" or self.address.startswith("127.") or self.address == "::1"

    @property
    def is_virtual(self) -> bool:
        """Return whether its name is that of a bridge, tunnel or container interface of Linux."""
        return self.name.startswith(_VIRTUAL)

    @property
    def is_ipv6(self) -> bool:
        """Return whether its address is one of IPv6."""
        return ":" in self.address


def bootstrap_interfaces(facts: Facts) -> tuple[Interface, ...]:
    """Return the interface each process starts over.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    return tuple(
        Interface(
            name=each.fields["interface"], address=each.fields.get("address", "").split("%")[0], line=each
        )
        for each in facts.seen("bootstrap")
    )


def data_interfaces(facts: Facts) -> tuple[Interface, ...]:
    """Return the interfaces that the socket network lists.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    return tuple(
        Interface(name=name, address=address, line=each)
        for each in facts.seen("socket_devices")
        for name, address in _LISTED.findall(each.fields["devices"])
    )


def address_of_peer(peer: str) -> str | None:
    """Return the address in what NCCL prints of a peer; ``None`` where it prints a name.

    Parameters
    ----------
    peer
        Such as ``10.0.0.4<51007>``.
    """
    found = _PEER.match(peer)
    if found is None:
        return None
    try:
        return str(ipaddress.ip_address(found[1]))
    except ValueError:
        return None


def is_link_local(address: str | None) -> bool:
    """Return whether an address is good on its own link only: fe80::/10 or 169.254.0.0/16.

    Parameters
    ----------
    address
        The address, or ``None``.
    """
    try:
        return address is not None and ipaddress.ip_address(address).is_link_local
    except ValueError:
        return False


def known_addresses(facts: Facts) -> frozenset[str]:
    """Return the addresses that processes of the job print as their own.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    return frozenset(_addresses(facts))


def _addresses(facts: Facts) -> Iterator[str]:
    for each in (*bootstrap_interfaces(facts), *data_interfaces(facts)):
        yield each.address
