"""Counters of this host's RDMA ports as the kernel shows them, and what they grew by.

References
----------
Linux kernel, Documentation/ABI/stable/sysfs-class-infiniband (port counters; data in units of four bytes).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["ERROR_COUNTERS", "PortCounters", "PortGrowth", "PortsWatch", "read_ports"]

SYSFS = Path("/sys/class/infiniband")
ERROR_COUNTERS: Mapping[str, str] = {
    "symbol_error": "symbols of a bad cable or transceiver",
    "link_error_recovery": "times the link retrained",
    "link_downed": "times the link went down",
    "port_rcv_errors": "packets received with errors",
    "local_link_integrity_errors": "bursts of physical errors",
    "excessive_buffer_overrun_errors": "overruns of receive buffers",
    "VL15_dropped": "management packets dropped",
    "out_of_sequence": "packets out of order",
    "packet_seq_err": "packets lost and asked for again",
    "local_ack_timeout_err": "times no answer came",
    "rnr_nak_retry_err": "retries as the receiver was not ready",
}
"""Counters of which any growth is told, and what each counts; of `counters` and `hw_counters`."""
_DATA_WORD_BYTES = 4
_DATA_COUNTERS = {"port_xmit_data": "sent", "port_rcv_data": "received"}
_LARGEST_TEXT = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class PortCounters:
    """One port at one moment.

    Parameters
    ----------
    port
        Such as ``mlx5_0/1``.
    state
        As the kernel names it, such as ``ACTIVE``; empty where it does not say.
    values
        By the name of the counter.
    """

    port: str
    state: str
    values: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PortGrowth:
    """What a port did since it was last looked at.

    Parameters
    ----------
    port, state
        As of `PortCounters`.
    was_active
        Whether it was up when it was first looked at.
    errors
        Counters of errors that grew, and by how much since the watch began.
    sent_bytes_per_s, received_bytes_per_s
        Since it was last looked at; ``None`` the first time [bytes/s].
    """

    port: str
    state: str
    was_active: bool
    errors: Mapping[str, int]
    sent_bytes_per_s: float | None
    received_bytes_per_s: float | None


def read_ports(root: Path = SYSFS) -> tuple[PortCounters, ...]:
    """Return the counters of all ports; none where there is no RDMA device.

    Parameters
    ----------
    root
        Where the kernel shows them.
    """
    return tuple(
        PortCounters(port=f"{port.parent.parent.name}/{port.name}", state=_state(port), values=_values(port))
        for port in sorted(root.glob("*/ports/*"))
    )


def _state(port: Path) -> str:
    text = _text(port / "state")
    return text.rpartition(":")[2].strip() if text else ""


def _values(port: Path) -> dict[str, int]:
    return dict(_pairs(port))


def _pairs(port: Path) -> Iterator[tuple[str, int]]:
    for folder in ("counters", "hw_counters"):
        for name in (*ERROR_COUNTERS, *_DATA_COUNTERS):
            text = _text(port / folder / name)
            if text and text.isdecimal():
                yield name, int(text)


def _text(file: Path) -> str:
    try:
        with file.open(encoding="ascii", errors="replace") as opened:
            return opened.read(_LARGEST_TEXT).strip()
    except OSError:
        return ""


@dataclass(slots=True)
class PortsWatch:
    """The ports of this host, looked at again and again.

    Parameters
    ----------
    root
        Where the kernel shows them.
    """

    root: Path = SYSFS
    _first: dict[str, PortCounters] = field(default_factory=dict)
    _last: dict[str, tuple[float, PortCounters]] = field(default_factory=dict)

    def look(self, now_s: float) -> tuple[PortGrowth, ...]:
        """Return what each port did.

        Parameters
        ----------
        now_s
            A clock that never goes back [s].
        """
        return tuple(self._growth(each, now_s) for each in read_ports(self.root))

    def _growth(self, now: PortCounters, now_s: float) -> PortGrowth:
        first = self._first.setdefault(now.port, now)
        before_s, before = self._last.get(now.port, (now_s, now))
        self._last[now.port] = (now_s, now)
        errors = {
            name: now.values[name] - first.values.get(name, 0)
            for name in ERROR_COUNTERS
            if now.values.get(name, 0) > first.values.get(name, 0)
        }
        rates = {
            way: _rate(before.values.get(name), now.values.get(name), now_s - before_s)
            for name, way in _DATA_COUNTERS.items()
        }
        return PortGrowth(
            port=now.port,
            state=now.state,
            was_active=first.state == "ACTIVE",
            errors=errors,
            sent_bytes_per_s=rates["sent"],
            received_bytes_per_s=rates["received"],
        )


def _rate(before: int | None, now: int | None, elapsed_s: float) -> float | None:
    if before is None or now is None or elapsed_s <= 0 or now < before:
        return None
    return (now - before) * _DATA_WORD_BYTES / elapsed_s
