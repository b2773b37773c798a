"""An InfiniBand fabric as its subnet manager sees it: devices, and links as wide and fast as they run.

References
----------
InfiniBand Trade Association, "InfiniBand Architecture Specification, Volume 1", release 1.7, 2023: widths and
speeds of links.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from linkwise.readers.faults import Faults, excerpt

__all__ = [
    "LANE_BYTES_PER_S",
    "LONGEST_LINE",
    "MOST_LINKS",
    "InfinibandDevice",
    "InfinibandFabric",
    "InfinibandLink",
    "LinkCollector",
    "is_adapter_name",
]

MOST_LINKS = 1_000_000
"""Links of one fabric that are read."""

LONGEST_LINE = 1000
"""Characters of a line; names and guids are far shorter."""

LANE_BYTES_PER_S: Mapping[str, float] = {
    "SDR": 0.25e9,
    "DDR": 0.5e9,
    "QDR": 1e9,
    "FDR10": 1.25e9,
    "FDR": 1.705e9,
    "EDR": 3.125e9,
    "HDR": 6.25e9,
    "NDR": 12.5e9,
    "XDR": 25e9,
}
"""What one lane of a speed carries, coding taken off, one direction [B/s]."""

_ADAPTER_NAME = re.compile(
    r"\S+ (?:mlx\d{1,2}_\d{1,3}|HCA-\d{1,3}|hfi\d_\d{1,3}|ibp\S{1,20}|mlx\d{1,2}_bond_?\d{0,2})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InfinibandDevice:
    """A switch or an adapter.

    Parameters
    ----------
    name
        Its node description: ``"gpu001 mlx5_0"``, ``"MF0;leaf01:MQM9700/U1"``.
    is_switch
        Whether it is a switch; routers count as switches.
    """

    name: str
    is_switch: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class InfinibandLink:
    """A cable between two ports.

    Parameters
    ----------
    ends
        Device and port of both ends, in order.
    width
        Lanes that are in use.
    speed
        A key of `LANE_BYTES_PER_S`.
    remark
        What the tool says of it: ``"Could be 106.25 Gbps"``; empty for most.
    """

    ends: tuple[tuple[str, int], tuple[str, int]]
    width: int
    speed: str
    remark: str = ""

    @property
    def bytes_per_s(self) -> float:
        """Return what the link carries, one direction [B/s]."""
        return self.width * LANE_BYTES_PER_S[self.speed]


@dataclass(frozen=True, slots=True, kw_only=True)
class InfinibandFabric:
    """What a scan of the fabric found.

    Parameters
    ----------
    devices
        Devices by the key that links name.
    links
        Each cable once.
    """

    devices: Mapping[str, InfinibandDevice] = field(hash=False)
    links: tuple[InfinibandLink, ...]


def is_adapter_name(name: str) -> bool:
    """Return whether a node description is that of an adapter of a host, as drivers set it.

    Parameters
    ----------
    name
        The node description.
    """
    return _ADAPTER_NAME.fullmatch(name) is not None


@dataclass(slots=True, kw_only=True)
class LinkCollector:
    """Gathers devices and links that are printed once from each end.

    Parameters
    ----------
    faults
        Where ports with two far ends are noted.
    """

    faults: Faults
    devices: dict[str, InfinibandDevice] = field(default_factory=dict)
    links: dict[tuple[tuple[str, int], tuple[str, int]], InfinibandLink] = field(default_factory=dict)
    far_end: dict[tuple[str, int], tuple[tuple[str, int], int]] = field(default_factory=dict)

    def add(
        self,
        near: tuple[str, int],
        far: tuple[str, int],
        *,
        width: int,
        speed: str,
        line: int,
        remark: str = "",
    ) -> None:
        """Keep one link as it is printed at its near end.

        Parameters
        ----------
        near, far
            Device and port of both ends.
        width, speed, remark
            As of `InfinibandLink`.
        line
            Line counted from one.
        """
        for one, other in ((near, far), (far, near)):
            first, where = self.far_end.setdefault(one, (other, line))
            if first != other:
                port = f"port {one[1]} of {excerpt(self.name_of(one[0]))}"
                self.faults.add(f"{port} has another far end here than in line {where}; keep one", line=line)
                return
        ends = (near, far) if near <= far else (far, near)
        if ends not in self.links:
            self.links[ends] = InfinibandLink(ends=ends, width=width, speed=speed, remark=remark)
        if len(self.links) > MOST_LINKS:
            raise self.faults.refusal(f"more than {MOST_LINKS:,} links", line=line)

    def name_of(self, device: str) -> str:
        """Return the name of a device where it is known, or else its key."""
        known = self.devices.get(device)
        return device if known is None else known.name

    def finish(self) -> InfinibandFabric:
        """Return the fabric.

        Raises
        ------
        DocumentError
            With what is wrong with it; also where there is no link.
        """
        if not self.links and not self.faults.found:
            self.faults.add("no port has a link")
        self.faults.raise_any()
        return InfinibandFabric(devices=self.devices, links=tuple(self.links.values()))
