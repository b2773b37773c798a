"""The commands that build a lab, as values: nothing here runs them.

Every interface is created inside a namespace of the lab, with its peer in another of them: the namespace that
the tool runs in never has one. Shaping is htb with a small burst at both ends of each link; larger bursts let
small messages pass for nothing, tbf slows two-way traffic down.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from linkwise.lab.design import SPINE, LabDesign, Nic, Trunk

__all__ = [
    "Batch",
    "batches_of",
    "namespaces_of",
    "node_name",
    "node_namespace",
    "switch_namespace",
    "tc_lines",
]

_PREFIX = "lw-"
_MOMENT_S = 1e-3
_LEAST_BURST_BYTES, _MOST_BURST_BYTES = 4_000, 15_000
_LEAST_SEGMENT_BYTES, _MOST_SEGMENT_BYTES = 3_000, 65_536
"""What passes for nothing after every pause: the burst, and then one more packet as the kernel hands it on,
of up to 64 kB (htb lets a whole one go while it has anything left). Both are a millisecond of the rate,
little beside any message that counts, and two packets of the wire at least."""
_QUEUE_PACKETS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Lines that one program reads.

    Parameters
    ----------
    argv
        The program and its arguments.
    lines
        What it reads on standard input.
    """

    argv: tuple[str, ...]
    lines: tuple[str, ...] = ()


def node_namespace(lab: str, node: int) -> str:
    """Return the name of the namespace of a node.

    Parameters
    ----------
    lab
        Name of the lab.
    node
        Its number, from 0.
    """
    return f"{_PREFIX}{lab}-{node_name(node)}"


def node_name(node: int) -> str:
    """Return what a node calls itself.

    Parameters
    ----------
    node
        Its number, from 0.
    """
    return f"n{node}"


def switch_namespace(lab: str) -> str:
    """Return the name of the namespace of all switches.

    Parameters
    ----------
    lab
        Name of the lab.
    """
    return f"{_PREFIX}{lab}-sw"


def namespaces_of(lab: str, present: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the namespaces present that are of a lab.

    Parameters
    ----------
    lab
        Name of the lab.
    present
        Names of all namespaces.
    """
    return tuple(name for name in present if lab_of(name) == lab)


def lab_of(namespace: str) -> str | None:
    """Return the lab a namespace is of, or ``None`` where it is of none.

    Parameters
    ----------
    namespace
        Its name.
    """
    lab, _, part = namespace.removeprefix(_PREFIX).rpartition("-")
    is_part = part == "sw" or (part.startswith("n") and part[1:].isdecimal())
    return lab if namespace.startswith(_PREFIX) and lab and is_part else None


def batches_of(lab: str, design: LabDesign) -> Iterator[Batch]:
    """Yield what builds a lab, in order.

    Parameters
    ----------
    lab
        Its name.
    design
        What is built.
    """
    switches = switch_namespace(lab)
    nodes = [node_namespace(lab, node) for node in range(design.nodes)]
    yield from (Batch(argv=("ip", "netns", "add", name)) for name in (*nodes, switches))
    yield Batch(argv=("ip", "-batch", "-"), lines=tuple(_created(lab, design)))
    yield Batch(argv=("ip", "-n", switches, "-batch", "-"), lines=tuple(_switch_lines(design)))
    for node, name in enumerate(nodes):
        lines = tuple(_node_lines(design, node))
        yield Batch(argv=("ip", "-n", name, "-batch", "-"), lines=lines)
    yield from _shaping(lab, design)


def tc_lines(device: str, bytes_per_s: float, *, replace: bool = False) -> Iterator[str]:
    """Yield the lines of tc that shape what leaves a device.

    Parameters
    ----------
    device
        Its name.
    bytes_per_s
        The rate [bytes/s].
    replace
        Whether it is shaped already: then only the rate changes, and what it counted stays.
    """
    if replace:
        yield f"class change dev {device} parent 1: classid 1:1 {_htb(bytes_per_s)}"
        return
    yield f"qdisc add dev {device} root handle 1: htb default 1"
    yield f"class add dev {device} parent 1: classid 1:1 {_htb(bytes_per_s)}"
    yield f"qdisc add dev {device} parent 1:1 handle 10: pfifo limit {_QUEUE_PACKETS}"


def _htb(bytes_per_s: float) -> str:
    rate = f"{round(8 * bytes_per_s)}bit"
    burst = round(min(max(_MOMENT_S * bytes_per_s, _LEAST_BURST_BYTES), _MOST_BURST_BYTES))
    return f"htb rate {rate} ceil {rate} burst {burst} cburst {burst} quantum 60000"


def _created(lab: str, design: LabDesign) -> Iterator[str]:
    """Yield the links between namespaces."""
    switches = switch_namespace(lab)
    for nic in design.nics:
        node = node_namespace(lab, nic.node)
        own = f"link add eth{nic.index} netns {node} address {nic.hardware_address} type veth"
        yield f"{own} peer name {nic.port} netns {switches}"


def _switch_lines(design: LabDesign) -> Iterator[str]:
    yield "link set lo up"
    for name in design.switches:
        yield f"link add {name} type bridge mcast_snooping 0 stp_state 0 forward_delay 0"
        yield f"link set {name} addrgenmode none up"
    for trunk in design.trunks:
        yield f"link add {_up(trunk)} type veth peer name {_down(trunk)}"
        for end, switch in ((_up(trunk), trunk.switch), (_down(trunk), SPINE)):
            yield f"link set {end} addrgenmode none master {switch} up"
    for nic in design.nics:
        yield f"link set {nic.port} addrgenmode none master {nic.switch} up"


def _up(trunk: Trunk) -> str:
    return f"{trunk.switch}up"


def _down(trunk: Trunk) -> str:
    return f"{trunk.switch}dn"


def _node_lines(design: LabDesign, node: int) -> Iterator[str]:
    """Yield addresses and neighbours of a node; they are stated, so that nothing else is on the links."""
    yield "link set lo up"
    moment_bytes = _MOMENT_S * design.nic_bytes_per_s
    segment = round(min(max(moment_bytes, _LEAST_SEGMENT_BYTES), _MOST_SEGMENT_BYTES))
    for nic in _nics(design, node):
        device = f"eth{nic.index}"
        yield f"addr add {nic.address}/24 dev {device}"
        yield f"link set {device} addrgenmode none gso_max_size {segment} up"
        for other in design.nics:
            if other.index == nic.index and other.node != node:
                neighbour = f"neigh add {other.address} lladdr {other.hardware_address}"
                yield f"{neighbour} nud permanent dev {device}"


def _nics(design: LabDesign, node: int) -> Iterator[Nic]:
    return (nic for nic in design.nics if nic.node == node)


def _shaping(lab: str, design: LabDesign) -> Iterator[Batch]:
    """Yield the shaping of both ends of every link."""
    for node in range(design.nodes):
        lines = [
            line
            for nic in _nics(design, node)
            for line in tc_lines(f"eth{nic.index}", design.nic_bytes_per_s)
        ]
        if lines:
            yield Batch(argv=("tc", "-n", node_namespace(lab, node), "-batch", "-"), lines=tuple(lines))
    ends = [(nic.port, design.nic_bytes_per_s) for nic in design.nics]
    ends += [(end, trunk.bytes_per_s) for trunk in design.trunks for end in (_up(trunk), _down(trunk))]
    lines = [line for device, rate in ends for line in tc_lines(device, rate)]
    if lines:
        yield Batch(argv=("tc", "-n", switch_namespace(lab), "-batch", "-"), lines=tuple(lines))
