"""Interfaces and RDMA devices of a node, as `ip` and `/sys` show them."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["NodeFacts", "matches", "parse_node_facts"]

_LINK = re.compile(
    r"^\d{1,6}:\s+([^\s:@]{1,64})(?:@\S{1,64})?:\s+<([^>]{0,300})>.*?\bmtu\s+(\d{1,6})", re.MULTILINE
)
_BRIEF = re.compile(r"^([A-Za-z][\w.-]{0,63})(?:@\S{1,64})?\s+(UP|DOWN|UNKNOWN)\s", re.MULTILINE)
_DEVICE = re.compile(r"^/sys/class/infiniband/([\w-]{1,64})/ports/\d+/link_layer[:\s]\s*(\w+)", re.MULTILINE)
_DEVINFO = re.compile(r"^hca_id:\s+([\w-]{1,64})(?:.|\n){0,3000}?link_layer:\s+(\w+)", re.MULTILINE)
_MOST = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """What a node has.

    Attributes
    ----------
    interfaces
        IP interfaces and their MTU [bytes]; ``None`` where it is not shown. Empty where none is known.
    devices
        RDMA devices and their link layer, ``InfiniBand`` or ``Ethernet``; ``None`` where they are not known.
    """

    interfaces: dict[str, int | None]
    devices: dict[str, str] | None = None


def parse_node_facts(text: str) -> NodeFacts:
    """Return the interfaces and devices in what `ip link`, `ip -br addr`, `ibv_devinfo` and /sys print.

    Parameters
    ----------
    text
        Their outputs, in any order.
    """
    found: dict[str, int | None] = {match[1]: None for match in _BRIEF.finditer(text)}
    found |= {match[1]: int(match[3]) for match in _LINK.finditer(text)}
    devices = {match[1]: match[2] for match in _DEVICE.finditer(text)}
    devices |= {match[1]: match[2] for match in _DEVINFO.finditer(text)}
    return NodeFacts(
        interfaces=dict(list(found.items())[:_MOST]), devices=dict(list(devices.items())[:_MOST]) or None
    )


def matches(filter_text: str, names: list[str]) -> list[str]:
    """Return which names a filter such as ``mlx5_0``, ``=eth0`` or ``^docker`` leaves, as NCCL reads it.

    Parameters
    ----------
    filter_text
        The value of NCCL_SOCKET_IFNAME or NCCL_IB_HCA.
    names
        The names of the devices.

    References
    ----------
    NVIDIA, NCCL user guide: a list of prefixes; ``^`` excludes, ``=`` asks for whole names.
    """
    excludes = filter_text.startswith("^")
    rest = filter_text.removeprefix("^")
    is_exact = rest.startswith("=")
    wanted = [each.split(":")[0] for each in rest.removeprefix("=").split(",") if each]
    hit = [
        name for name in names if any(name == each if is_exact else name.startswith(each) for each in wanted)
    ]
    return [name for name in names if name not in hit] if excludes else hit
