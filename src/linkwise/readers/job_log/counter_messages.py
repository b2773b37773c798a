"""Counters and states of ports, NVLinks and PCIe links, as tools on the hosts print them.

Only what is not zero is a sighting: a port that is well prints hundreds of zeros.

References
----------
Linux, Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst (``ethtool -S``);
infiniband-diags, perfquery and ibstatus, https://github.com/linux-rdma/rdma-core; iproute2, rdma-statistic(8);
NVIDIA, *nvidia-smi* manual, nvlink; PCI utilities, ls-caps.c (``lspci -vvv``), https://github.com/pciutils/pciutils.
"""

from __future__ import annotations

from linkwise.readers.job_log.message import Message, message

__all__ = ["COUNTER_MESSAGES"]

COUNTER_MESSAGES: tuple[Message, ...] = (
    # ethtool -S of mlx5, perfquery, and the files below /sys/class/infiniband.
    message("port_downs", "link_down_events_phy", r"link_down_events_phy: *(?P<value>[1-9]\d*)"),
    message("port_downs", "LinkDownedCounter", r"LinkDownedCounter:\.*(?P<value>[1-9]\d*)"),
    message(
        "port_downs",
        "counters/link_downed",
        r"infiniband/(?P<device>[\w.-]+)/ports/\d+/counters/link_downed: *(?P<value>[1-9]\d*)",
    ),
    message(
        "port_losses", "_discards", r"(?P<name>[rt]x_(?:prio\d_)?discards(?:_phy)?): *(?P<value>[1-9]\d*)"
    ),
    message(
        "port_losses", "pause_storm_error", r"(?P<name>\w*pause_storm_error_events): *(?P<value>[1-9]\d*)"
    ),
    message(
        "port_losses",
        "SymbolErrorCounter",
        r"(?P<name>SymbolErrorCounter):\.*(?P<value>[1-9]\d*)",
    ),
    message("port_losses", "PortXmitDiscards", r"(?P<name>PortXmitDiscards):\.*(?P<value>[1-9]\d*)"),
    message("port_losses", "PortRcvErrors", r"(?P<name>PortRcvErrors):\.*(?P<value>[1-9]\d*)"),
    message(
        "port_losses",
        "local_ack_timeout_err",
        r"link (?P<device>[\w.-]+)/\d+ .*\b(?P<name>local_ack_timeout_err) (?P<value>[1-9]\d*)",
    ),
    message(
        "port_losses",
        "/counters/",
        r"infiniband/(?P<device>[\w.-]+)/ports/\d+/counters/"
        r"(?P<name>symbol_error|port_xmit_discards|port_rcv_errors): *(?P<value>[1-9]\d*)",
    ),
    message("pfc_enabled", "enabled     ", r"^\s*enabled +(?P<flags>[01](?: +[01]){7})\s*$"),
    message("port_down", "phys state:", r"phys state:\s+\d: (?P<state>Disabled|Polling|LinkErrorRecovery)"),
    message("nvlink_gpu", "(UUID: ", r"^\s*GPU (?P<index>\d+): .+ \(UUID: "),
    message("nvlink_active", " GB/s", r"^\s*Link (?P<link>\d+): [\d.]+ GB/s\s*$"),
    message("nvlink_inactive", "<inactive>", r"^\s*Link (?P<link>\d+): <inactive>\s*$"),
    message(
        "pci_device",
        "controller: ",
        r"^(?P<bus>(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (?P<kind>[^:]*controller): (?P<name>.+)$",
    ),
    message(
        "pci_device",
        "bridge: ",
        r"^(?P<bus>(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (?P<kind>[^:]*bridge): (?P<name>.+)$",
    ),
    message("pci_narrow", "(downgraded)", r"LnkSta:.*Width x(?P<width>\d+) \(downgraded\)"),
)
"""Lines of such tools, each with the text it is found by."""
