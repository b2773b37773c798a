"""What `lldpctl -f json` prints on a node: the switch at the far end of each of its interfaces.

References
----------
Bernat, V., "lldpd", manual page lldpcli(8), 2025. IEEE, "Std 802.1AB: Station and Media Access Control
Connectivity Discovery", 2016.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from linkwise.readers.faults import Faults, excerpt
from linkwise.readers.json_text import looks_like_json, parse_json

__all__ = ["LldpPort", "is_lldp", "parse_lldp"]

MOST_PORTS = 4096
"""Interfaces of one node that are read."""

_RATE = re.compile(r"(\d{1,4})\s*G(?:ig|b)?(?:Base|/s)?", re.IGNORECASE)
_MEGABIT_RATE = re.compile(r"(\d{2,4})\s*(?:M|Base)", re.IGNORECASE)
_SWITCHING = ("Bridge", "Router")


@dataclass(frozen=True, slots=True, kw_only=True)
class LldpPort:
    """One interface and its neighbour.

    Parameters
    ----------
    interface
        The interface of the node.
    neighbour
        Name of the neighbour, or its id.
    port
        The port of the neighbour.
    is_switch
        Whether the neighbour forwards; one that does not say is taken for a switch.
    bytes_per_s
        Rate that was negotiated, one direction [B/s]; ``None`` where not stated.
    """

    interface: str
    neighbour: str
    port: str
    is_switch: bool = True
    bytes_per_s: float | None = None


def is_lldp(text: str) -> bool:
    """Return whether `text` looks like the output of lldpctl.

    Parameters
    ----------
    text
        The file, or its start.
    """
    return looks_like_json(text, "lldp")


def parse_lldp(text: str, *, path: str | None = None) -> tuple[LldpPort, ...]:
    """Return the interfaces in what `lldpctl -f json` printed on a node.

    Parameters
    ----------
    text
        The whole output.
    path
        The file it came from, for messages.

    Raises
    ------
    DocumentError
        With all faults: JSON that is none, no neighbours, neighbours without a name, output of a switch.
    """
    faults = Faults(path=path)
    ports: list[LldpPort] = []
    for name, interface in _interfaces(parse_json(text, faults), faults):
        if len(ports) >= MOST_PORTS:
            raise faults.refusal(f"more than {MOST_PORTS:,} interfaces; give the output of one node")
        port = _port(name, interface)
        if port is None:
            faults.add("has no neighbour with a name and a port", key=f"lldp.interface.{name[:40]}")
        else:
            ports.append(port)
    if ports and not any(port.is_switch for port in ports):
        faults.add("no neighbour is a switch; run lldpctl on a node, not on a switch")
    faults.raise_any()
    return tuple(ports)


def _interfaces(whole: Mapping[str, Any], faults: Faults) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and content of each interface; with one alone, lldpctl leaves the list out."""
    lldp = whole.get("lldp")
    if isinstance(lldp, list):
        raise faults.refusal("is of lldpctl -f json0; give that of lldpctl -f json", key="lldp")
    listed = lldp.get("interface") if isinstance(lldp, dict) else None
    entries = [listed] if isinstance(listed, dict) else listed
    if not isinstance(entries, list) or not entries:
        raise faults.refusal("no interface has a neighbour", key="lldp.interface")
    for entry in entries:
        for name, interface in entry.items() if isinstance(entry, dict) else ():
            if isinstance(interface, dict):
                yield str(name), interface
            else:
                faults.add(f"{excerpt(str(interface))} is no interface", key=f"lldp.interface.{name[:40]}")


def _port(name: str, interface: Mapping[str, Any]) -> LldpPort | None:
    chassis, port = interface.get("chassis"), interface.get("port")
    if not isinstance(chassis, dict) or not isinstance(port, dict):
        return None
    neighbour, facts = _named(chassis)
    far = _id(port)
    if not neighbour or not far:
        return None
    return LldpPort(
        interface=name,
        neighbour=neighbour,
        port=far,
        is_switch=_forwards(facts.get("capability")),
        bytes_per_s=_rate(port.get("auto-negotiation")),
    )


def _named(chassis: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return name and facts of a chassis: its name is a key, and missing where it has none."""
    if len(chassis) == 1:
        name, facts = next(iter(chassis.items()))
        if isinstance(facts, dict) and name != "id":
            return str(name), facts
    return _id(chassis), chassis


def _id(whole: Mapping[str, Any]) -> str:
    given = whole.get("id")
    value = given.get("value") if isinstance(given, dict) else None
    return value if isinstance(value, str) else ""


def _forwards(capabilities: object) -> bool:
    listed = [capabilities] if isinstance(capabilities, dict) else capabilities
    if not isinstance(listed, list) or not listed:
        return True
    return any(
        each.get("type") in _SWITCHING and each.get("enabled") is not False
        for each in listed
        if isinstance(each, dict)
    )


def _rate(negotiation: object) -> float | None:
    """Return the rate in the name of a medium: ``400GBaseDR4``, ``10GigBaseLR``, ``1000BaseTFD``."""
    current = negotiation.get("current") if isinstance(negotiation, dict) else None
    if not isinstance(current, str):
        return None
    if match := _RATE.search(current[:100]):
        return int(match[1]) * 1e9 / 8
    match = _MEGABIT_RATE.search(current[:100])
    return int(match[1]) * 1e6 / 8 if match is not None else None
