"""The data network fell back to TCP sockets although a fast one is there or was meant."""

from __future__ import annotations

import re

from linkwise.diagnose.addresses import data_interfaces
from linkwise.diagnose.facts import Facts, lines_of
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.diagnose.host_class import many_gpu_lines, nvlink_lines
from linkwise.diagnose.verbs import active_ports
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["socket_fallback"]

# Linux calls them ib0, and by the place of the NIC ibp12s0 or ibs65.
_IPOIB = re.compile(r"ib(?:\d|[ps]\d)")


def socket_fallback(facts: Facts) -> Finding | None:
    """Return the finding when data between nodes goes over sockets and something says that it should not.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    Sockets by design are healthy: a host without RDMA devices prints the same *No device found*. What tells
    is a device
    that cannot be opened, a variable that shuts the devices off, a filter that matches none, or the host's
    own word.
    """
    on_sockets = _on_sockets(facts)
    if not on_sockets:
        return None
    why = _why(facts)
    if why is None:
        return None
    confidence, lines, reason, fix, check = why
    return finding(
        "socket_fallback",
        Severity.SLOW,
        confidence,
        proof=[*lines, *on_sockets],
        where=_where(lines, on_sockets),
        explanation=(f"The data between nodes goes over TCP sockets through the kernel. {reason}"),
        fix=fix,
        next_check=check,
    )


_Why = tuple[Confidence, list[Sighting | Evidence], str, tuple[str, ...], str]


def _on_sockets(facts: Facts) -> list[Sighting | Evidence]:
    across = [each for each in facts.net_channels if each.network == "Socket"]
    if across:
        return [*lines_of(across)]
    if facts.net_channels:
        return []
    chosen = [each for each in facts.seen("network") if each.fields["name"] == "Socket"]
    other = [each for each in facts.seen("network") if each.fields["name"] != "Socket"]
    if not chosen or (other and {each.process for each in other} >= {each.process for each in chosen}):
        return []
    return list(chosen)


def _why(facts: Facts) -> _Why | None:
    if facts.is_one_node:
        # Its network carries nothing; only a host whose RDMA is down will be slow once there are more.
        return _stack_down(facts)
    return (
        _devices_not_opened(facts)
        or _switched_off(facts)
        or _filtered_out(facts)
        or _stack_down(facts)
        or _ports_active(facts)
        or _named_socket(facts)
        or _over_infiniband(facts)
        or _some_hosts_only(facts)
        or _of_a_class_with_rdma(facts)
    )


def _devices_not_opened(facts: Facts) -> _Why | None:
    lines = facts.seen("ib_unopened", "ib_open_failed")
    if not lines:
        return None
    named = sorted({each.fields["device"] for each in lines if "device" in each.fields})
    return (
        Confidence.HIGH,
        list(lines),
        (
            f"The RDMA device {', '.join(named) or 'of the host'} is listed in /sys but its verbs device"
            " cannot be opened, as in a container that was not given it."
        ),
        (
            "give the container the devices: --device=/dev/infiniband --cap-add=IPC_LOCK --ulimit memlock=-1",
            "on Kubernetes, request the RDMA resource of the device plug-in",
        ),
        "ls -l /dev/infiniband; ibv_devinfo, inside the container",
    )


def _switched_off(facts: Facts) -> _Why | None:
    lines = [
        each for each in facts.settings("NCCL_IB_DISABLE") if each.fields.get("value") not in {None, "0"}
    ]
    if not lines or facts.seen("ib_devices"):
        return None
    devices = active_ports(facts)
    return (
        Confidence.HIGH,
        [*lines, *devices],
        "NCCL_IB_DISABLE=1 shuts InfiniBand and RoCE off; it is often left over from debugging."
        + (
            ""
            if devices
            else " Where the hosts have no such NICs it changes nothing, and TCP is what there is."
        ),
        ("unset NCCL_IB_DISABLE, also in /etc/nccl.conf and ~/.nccl.conf",),
        "env | grep NCCL_IB_DISABLE; then look for 'NET/IB : Using' in the log",
    )


def _filtered_out(facts: Facts) -> _Why | None:
    filters = [each for each in facts.settings("NCCL_IB_HCA") if each.fields.get("value")]
    none = facts.seen("ib_none")
    if not filters or not none:
        return None
    value = filters[0].fields["value"]
    return (
        Confidence.HIGH,
        [*filters, *none],
        f"NCCL_IB_HCA={value} matches none of the active RDMA devices of the host, so NCCL finds no device.",
        ("name devices that 'ibv_devices' lists, or unset NCCL_IB_HCA",),
        "ibv_devices; ibstat: names and ports that are Active",
    )


def _stack_down(facts: Facts) -> _Why | None:
    lines = [
        each for each in facts.seen("verbs_devices_none") if "not implemented" in each.fields.get("text", "")
    ]
    if not lines:
        return None
    return (
        Confidence.HIGH,
        [*lines, *facts.seen("ib_none")],
        "The kernel's RDMA stack is not loaded on the host: ibv_devinfo cannot list any device.",
        ("systemctl start openibd, or modprobe ib_uverbs mlx5_ib",),
        "ibv_devinfo lists the devices with state PORT_ACTIVE",
    )


def _ports_active(facts: Facts) -> _Why | None:
    """Find ports that the host calls active while NCCL finds no device."""
    lines = active_ports(facts)
    none = facts.seen("ib_none", "ib_verbs_missing")
    if not lines or not none:
        return None
    return (
        Confidence.HIGH,
        [*lines, *none],
        (
            "The host has active RDMA ports, and NCCL finds none where the job runs: libibverbs, or the"
            " device files under /dev/infiniband, are missing in its container."
        ),
        (
            "install libibverbs1 and ibverbs-providers in the image",
            "give the container the devices: --device=/dev/infiniband --cap-add=IPC_LOCK --ulimit memlock=-1",
        ),
        "ldconfig -p | grep ibverbs; ls /dev/infiniband; ibv_devinfo, inside the container",
    )


def _named_socket(facts: Facts) -> _Why | None:
    lines = [each for each in facts.settings("NCCL_NET") if each.fields.get("value") == "Socket"]
    devices = facts.seen("ib_devices")
    if not lines:
        return None
    return (
        Confidence.HIGH if devices else Confidence.MEDIUM,
        [*lines, *devices],
        "NCCL_NET=Socket asks for sockets, whatever devices there are.",
        ("unset NCCL_NET",),
        "the log then says 'Using network IB'",
    )


def _over_infiniband(facts: Facts) -> _Why | None:
    """Find sockets over an interface of IP over InfiniBand, which only a host with such a NIC has."""
    none = facts.seen("ib_none", "ib_verbs_missing")
    over = [each for each in data_interfaces(facts) if _IPOIB.match(each.name)]
    if not none or not over:
        return None
    return (
        Confidence.MEDIUM,
        [*none, *(each.line for each in over)],
        (
            f"They go over {over[0].name}, whose name is that of IP over InfiniBand: the NIC is there, and"
            " NCCL finds no RDMA device. Its verbs library or device files are missing where the job runs."
        ),
        (
            "install libibverbs1 and ibverbs-providers where the job runs",
            "give a container the devices: --device=/dev/infiniband --cap-add=IPC_LOCK --ulimit memlock=-1",
        ),
        "ibv_devinfo, where the job runs; ls -l /dev/infiniband; ip -d link show (link/infiniband)",
    )


def _some_hosts_only(facts: Facts) -> _Why | None:
    """Find the hosts without devices among hosts that have them: they drag all others to sockets."""
    with_devices = {each.host for each in facts.seen("ib_devices") if each.fields.get("devices")}
    without = [each for each in facts.seen("ib_none") if each.host not in with_devices]
    has_other_plugin = any(not name.startswith(("IB", "Socket")) for name in facts.networks)
    if not with_devices or not without or has_other_plugin:
        return None
    return (
        Confidence.HIGH,
        [*without, *(each for each in facts.seen("ib_devices") if each.fields.get("devices"))],
        "Some hosts have RDMA devices and others find none, so those connect over sockets.",
        ("bring the devices up on the hosts named here: drivers, port state, container",),
        "ibv_devinfo on a host that finds none",
    )


def _of_a_class_with_rdma(facts: Facts) -> _Why | None:
    """Find hosts whose class is built with RDMA NICs, though no line shows one: eight GPUs behind NVLink.

    References
    ----------
    NVIDIA, *DGX H100 user guide* and *HGX reference design*: a ConnectX NIC beside each of eight GPUs.
    """
    many, linked = many_gpu_lines(facts), nvlink_lines(facts)
    plugged = any(not name.startswith(("IB", "Socket")) for name in facts.networks)
    if not many or not linked or plugged or (facts.nodes or 1) < 2:
        return None
    return (
        Confidence.MEDIUM,
        [*many, *linked, *facts.seen("ib_none", "ib_verbs_missing")],
        (
            "These hosts have eight GPUs joined by NVLink, a class that is built with a NIC for RDMA beside"
            " each GPU, and NCCL uses none. Where there are such NICs this is many times slower than they"
            " are; where there are none it is what the hosts can do."
        ),
        (
            "install libibverbs1 and ibverbs-providers, or the provider's plug-in, where the job runs",
            "give a container the devices: --device=/dev/infiniband --cap-add=IPC_LOCK --ulimit memlock=-1",
        ),
        "ls /sys/class/infiniband; ibv_devinfo, on the host and where the job runs; lspci | grep -i mellanox",
    )


def _where(lines: list[Sighting | Evidence], on_sockets: list[Sighting | Evidence]) -> list[str]:
    both = [each.host for each in (*lines, *on_sockets) if isinstance(each, Sighting) and each.host]
    return list(dict.fromkeys(both))
