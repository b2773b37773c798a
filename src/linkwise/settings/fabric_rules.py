"""Rules on where the settings apply: interfaces and devices that nodes lack, and what RoCE needs.

References
----------
NVIDIA, NCCL user guide, "Environment Variables". Zhu et al., Congestion Control for Large-Scale RDMA
Deployments (DCQCN), 2015: PFC and ECN together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from linkwise.nccl.allowed import integer_read
from linkwise.readers.environment import Assignment
from linkwise.readers.settings_file import SettingsFile
from linkwise.settings.finding import Finding, Severity, Subject, guide
from linkwise.settings.node import NodeFacts, matches

__all__ = [
    "devices",
    "fewer_devices",
    "inexact_filters",
    "interfaces",
    "replaced_exclusions",
    "roce_settings",
    "roce_unseen",
    "useless_on_fabric",
]

_DCQCN = "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, 2015"
_MTU_BYTES = 4200
"""Least MTU of an interface whose RoCE packets carry 4096 bytes [bytes]."""
_NUMBERED = re.compile(r"_\d+$")
_IB_ONLY = ("NCCL_IB_ADAPTIVE_ROUTING", "NCCL_IB_QPS_PER_CONNECTION", "NCCL_IB_TC", "NCCL_IB_HCA")


def interfaces(subject: Subject) -> Iterator[Finding]:
    """Yield filters that leave no interface of the node, or the loopback alone."""
    for file, each, value in subject.settings():
        if each.name not in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME") or "$" in value:
            continue
        if value.removeprefix("=").split(",") == ["lo"]:
            what = "is the loopback: ranks on other nodes cannot be reached"
        elif subject.node is None or not subject.node.interfaces:
            continue
        else:
            what = _interface_fault(each.name, value, subject.node)
        if what:
            names = [] if subject.node is None else [name for name in subject.node.interfaces if name != "lo"]
            known = f" (the node has {', '.join(names[:6])})" if names else ""
            yield subject.finding(
                file,
                each,
                Severity.HARMFUL,
                rule="interface",
                what=what,
                todo=f"name the interface that reaches the other nodes{known}, or take it out",
                source=guide("NCCL_SOCKET_IFNAME"),
            )


def _interface_fault(name: str, value: str, node: NodeFacts) -> str:
    """Return what is wrong with a filter on a node, or nothing."""
    names = list(node.interfaces)
    left = (
        matches(value, names)
        if name.startswith("NCCL")
        else [each for each in value.split(",") if each in names]
    )
    if not left:
        return "names no interface that the node has"
    if value.startswith("^") and left == ["lo"]:
        return "leaves the loopback alone: a list with ^ replaces NCCL's own, which leaves out lo and docker"
    return ""


def replaced_exclusions(subject: Subject) -> Iterator[Finding]:
    """Yield lists of excluded interfaces that do not exclude the loopback."""
    for file, each, value in subject.settings():
        is_list = each.name == "NCCL_SOCKET_IFNAME" and value.startswith("^") and "$" not in value
        if is_list and matches(value, ["lo"]):
            yield subject.finding(
                file,
                each,
                Severity.ADVICE,
                rule="replaced-exclusions",
                what="replaces NCCL's own list of exclusions (docker, lo, virbr): the loopback may be taken",
                todo=f"write {value[:80]},lo,docker, or name the interface to use",
                source="NVIDIA, NCCL, src/misc/socket.cc",
            )


def devices(subject: Subject) -> Iterator[Finding]:
    """Yield filters that leave no RDMA device of the node, or devices of two kinds of network."""
    known = None if subject.node is None else subject.node.devices
    for file, each, value in subject.settings():
        if each.name != "NCCL_IB_HCA" or known is None or "$" in value:
            continue
        left = matches(value, list(known))
        layers = {known[name] for name in left}
        if not left:
            what = "names no RDMA device that the node has: NCCL falls back to TCP sockets"
        elif len(layers) > 1:
            what = "mixes InfiniBand and Ethernet devices, which cannot reach one another"
        else:
            continue
        yield subject.finding(
            file,
            each,
            Severity.HARMFUL,
            rule="device",
            what=what,
            todo=f"choose of {', '.join(f'{name} ({layer})' for name, layer in list(known.items())[:12])}",
            source=guide("NCCL_IB_HCA"),
        )


def inexact_filters(subject: Subject) -> Iterator[Finding]:
    """Yield names of devices that are prefixes of others: ``mlx5_1`` takes ``mlx5_10`` too."""
    known = None if subject.node is None else subject.node.devices
    for file, each, value in subject.settings():
        if each.name != "NCCL_IB_HCA" or "=" in value[:2] or "$" in value:
            continue
        named = [part.split(":")[0] for part in value.removeprefix("^").split(",")]
        there = list(known) if known is not None else []
        more = [name for name in there if name not in named and any(name.startswith(part) for part in named)]
        is_risky = known is None and any(part.endswith("_1") for part in named)
        if not (more and any(part[-1:].isdigit() for part in named)) and not is_risky:
            continue
        takes = ", ".join(more[:6]) if more else "mlx5_10 to mlx5_19, where there are such"
        exact = ("^=" if value.startswith("^") else "=") + value.removeprefix("^")[:80]
        yield subject.finding(
            file,
            each,
            Severity.HARMFUL if more else Severity.ADVICE,
            rule="device-prefix",
            what=f"names are prefixes: the list takes {takes} too",
            todo=f"write {exact} for exactly these",
            source=guide("NCCL_IB_HCA"),
        )


def fewer_devices(subject: Subject) -> Iterator[Finding]:
    """Yield lists that name fewer devices than a node of the cluster has NICs, each by its full name.

    Notes
    -----
    A name without ``=`` is a prefix. One that ends in ``_`` and a number is taken for one device, and lists
    where it may be more (``mlx5_1``) are left alone.
    """
    cluster = subject.cluster
    if cluster is None or cluster.parts or subject.protocol not in ("infiniband", "roce"):
        return
    for file, each, value in subject.settings():
        named = [part.split(":")[0] for part in value.lstrip("=").split(",")]
        is_exact = value.startswith("=") or not any(part.endswith("_1") for part in named)
        if each.name != "NCCL_IB_HCA" or "$" in value or value.startswith("^") or not is_exact:
            continue
        count = len(set(named))
        if not all(_NUMBERED.search(part) for part in named) or count >= cluster.nics_per_node:
            continue
        yield subject.finding(
            file,
            each,
            Severity.ADVICE,
            rule="fewer-devices",
            what=f"names {count} of the {cluster.nics_per_node} NICs of a node: the others carry nothing",
            todo="name all that belong to the fabric, or take it out where all do",
            source=guide("NCCL_IB_HCA"),
        )


def useless_on_fabric(subject: Subject) -> Iterator[Finding]:
    """Yield settings of InfiniBand and RoCE on a fabric that has neither."""
    protocol = subject.protocol
    if protocol is None or protocol in ("infiniband", "roce"):
        return
    for file, each, _ in subject.settings():
        if each.name in _IB_ONLY:
            yield subject.finding(
                file,
                each,
                Severity.NO_EFFECT,
                rule="not-on-fabric",
                what=f"is of InfiniBand and RoCE; the links of the cluster speak {protocol}",
                todo="take it out",
                source=guide(each.name),
            )


def roce_settings(subject: Subject) -> Iterator[Finding]:
    """Yield what is set, or missing, of the two settings that RoCE hangs on: GID and traffic class."""
    if subject.protocol != "roce":
        return
    for file, settings in _settings_of_jobs(subject):
        yield from _gid(subject, file, settings)
        if "NCCL_IB_TC" not in settings:
            yield _on_file(
                file,
                Severity.ADVICE,
                rule="roce-traffic-class",
                name="NCCL_IB_TC",
                what="is not set: packets carry class 0, which switches seldom keep lossless",
                todo="set it to 4 x the DSCP that the switches keep lossless, if that is not 0",
                source=guide("NCCL_IB_TC"),
            )


def _gid(subject: Subject, file: SettingsFile, settings: Mapping[str, Assignment]) -> Iterator[Finding]:
    at = settings.get("NCCL_IB_GID_INDEX")
    is_automatic = subject.release >= (2, 21, 0)
    index = None if at is None or not at.value else integer_read(at.value)[0]
    if at is None and not is_automatic:
        yield _on_file(
            file,
            Severity.HARMFUL,
            rule="roce-gid",
            name="NCCL_IB_GID_INDEX",
            what="is not set: releases before 2.21 take GID 0, a link-local address of RoCE v1",
            todo="set it to the index of the RoCE v2 GID with an IPv4 address, as show_gids prints it",
            source=guide("NCCL_IB_GID_INDEX"),
        )
    elif at is not None and index is not None and index >= 0 and is_automatic:
        yield subject.finding(
            file,
            at,
            Severity.ADVICE,
            rule="roce-gid",
            what="fixes the GID, whose index may differ between hosts; from 2.21 on NCCL finds it itself",
            todo="take it out; narrow the choice with NCCL_IB_ADDR_RANGE where a NIC has several addresses",
            source=guide("NCCL_IB_GID_INDEX"),
        )
    elif at is not None and index == 0 and not is_automatic:
        yield subject.finding(
            file,
            at,
            Severity.HARMFUL,
            rule="roce-gid",
            what="is usually a link-local address of RoCE v1, which no router passes on",
            todo="set it to the index of the RoCE v2 GID with an IPv4 address, as show_gids prints it",
            source=guide("NCCL_IB_GID_INDEX"),
        )


_UNSEEN = (
    (
        "PFC",
        "priority flow control must be on for the priority of the traffic class, on NICs and switches alike",
        "mlnx_qos -i INTERFACE (row PFC enabled); the switch: show interface priority-flow-control",
    ),
    (
        "ECN",
        "ECN must be on for that priority: it slows senders before PFC stops the link",
        "/sys/class/net/INTERFACE/ecn/roce_np/enable/PRIORITY and roce_rp are 1; the switch marks with ECN",
    ),
    (
        "GID type",
        "the GID in use must be RoCE v2 with a routable address on every node",
        "show_gids, or /sys/class/infiniband/DEVICE/ports/1/gid_attrs/types/INDEX",
    ),
)


def roce_unseen(subject: Subject) -> Iterator[Finding]:
    """Yield what RoCE needs and no setting shows: PFC, ECN, GID type, MTU."""
    if subject.protocol != "roce" or not subject.files:
        return
    for name, what, todo in _UNSEEN:
        yield _check(name, what, todo)
    yield from _mtu(subject)


def _mtu(subject: Subject) -> Iterator[Finding]:
    known = {} if subject.node is None else subject.node.interfaces
    small = [name for name, mtu in known.items() if mtu is not None and name != "lo" and mtu < _MTU_BYTES]
    if small and len(small) == len([name for name, mtu in known.items() if mtu is not None and name != "lo"]):
        yield _check(
            "MTU",
            f"no interface of the node carries RoCE packets of 4096 bytes: {', '.join(small[:6])}",
            "set the MTU to 9000 on NICs and switches: smaller packets cost bandwidth",
        )
    else:
        yield _check(
            "MTU",
            "the MTU must be equal on all NICs and switches, 4200 or more for packets of 4096 bytes",
            "ip link show INTERFACE; ibv_devinfo shows active_mtu 4096 on every node",
        )


def _check(name: str, what: str, todo: str) -> Finding:
    return Finding(
        severity=Severity.CHECK,
        rule="roce-checklist",
        path=None,
        line=None,
        name=name,
        what=what,
        todo=todo,
        source=_DCQCN if name in ("PFC", "ECN") else "linux-rdma/rdma-core, ibv_devinfo(1)",
    )


def _settings_of_jobs(subject: Subject) -> Iterator[tuple[SettingsFile, Mapping[str, Assignment]]]:
    """Yield the settings of each file as one: what a job needs may stand in any of its containers."""
    for file in subject.files:
        yield file, {each.name: each for each in file.assignments if each.value is not None}


def _on_file(
    file: SettingsFile, severity: Severity, *, rule: str, name: str, what: str, todo: str, source: str
) -> Finding:
    return Finding(
        severity=severity,
        rule=rule,
        path=file.path,
        line=None,
        name=name,
        what=what,
        todo=todo,
        source=source,
    )
