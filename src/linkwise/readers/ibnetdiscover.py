"""What `ibnetdiscover` prints: each device of a fabric with the links of its ports.

References
----------
linux-rdma, "rdma-core", manual page ibnetdiscover(8), section on the topology file format, 2025.
"""

from __future__ import annotations

import re
from io import StringIO

from linkwise.readers.faults import Faults, excerpt
from linkwise.readers.infiniband_fabric import (
    LANE_BYTES_PER_S,
    LONGEST_LINE,
    InfinibandDevice,
    InfinibandFabric,
    LinkCollector,
)

__all__ = ["is_ibnetdiscover", "parse_ibnetdiscover"]

_DEVICE = re.compile(r'(Switch|Ca|Rt)\s+\d{1,4}\s+"([SHR]-[0-9a-fA-F]{1,32})"(?:\s*#\s*"(.{0,200}?)")?')
_PORT = re.compile(
    r'\[(\d{1,4})\](?:\[ext \d{1,4}\])?(?:\([0-9a-fA-F]{1,32}\))?\s+"([SHR]-[0-9a-fA-F]{1,32})"\[(\d{1,4})\]'
)
_RATE = re.compile(r"\b(\d{1,2})x(SDR|DDR|QDR|FDR10|FDR|EDR|HDR|NDR|XDR)\b")
_LOOKS = re.compile(r'^(?:Switch|Ca|Rt)\s+\d{1,4}\s+"[SHR]-[0-9a-fA-F]', re.MULTILINE)
_KNOWN = ("vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=", "rtguid=", "#", "DR path", "Chassis")


def is_ibnetdiscover(text: str) -> bool:
    """Return whether `text` looks like the output of ibnetdiscover.

    Parameters
    ----------
    text
        The file, or its start.
    """
    return _LOOKS.search(text) is not None


def parse_ibnetdiscover(text: str, *, path: str | None = None) -> InfinibandFabric:
    """Return the fabric that `ibnetdiscover` printed.

    Parameters
    ----------
    text
        The whole output.
    path
        The file it came from, for messages.

    Raises
    ------
    DocumentError
        With all faults: lines that are none of the format, ports without a rate or with two far ends, devices
        that are named but not listed (a file that is cut short).
    """
    found = LinkCollector(faults=Faults(path=path))
    named: dict[str, int] = {}
    device = None
    for number, raw in enumerate(StringIO(text), start=1):
        line = raw.strip()
        if len(line) > LONGEST_LINE:
            found.faults.add(f"{excerpt(line)} is longer than any line of ibnetdiscover", line=number)
        elif match := _DEVICE.match(line):
            device = match[2]
            name = match[3] or device
            if device in found.devices:
                found.faults.add(f"the device {excerpt(name)} is listed twice; keep one", line=number)
            found.devices[device] = InfinibandDevice(name=name.strip(), is_switch=match[1] != "Ca")
        elif match := _PORT.match(line):
            named.setdefault(match[2], number)
            _add(found, device, match, line, number)
        elif line and not line.startswith(_KNOWN):
            found.faults.add(f"{excerpt(line)} is no line of ibnetdiscover", line=number)
    missing = [key for key in named if key not in found.devices]
    if missing:
        more = f" and {len(missing) - 1} more devices are" if len(missing) > 1 else " is"
        said = f"{missing[0]}{more} linked to but not listed; the file is cut short"
        found.faults.add(said, line=named[missing[0]])
    return found.finish()


def _add(found: LinkCollector, device: str | None, match: re.Match[str], line: str, number: int) -> None:
    rates = _RATE.findall(line)
    if device is None:
        found.faults.add("a port stands in front of the first device; the file is cut", line=number)
    elif not rates:
        speeds = ", ".join(LANE_BYTES_PER_S)
        found.faults.add(f"port {match[1]} has no rate such as 4xNDR (of {speeds})", line=number)
    else:
        width, speed = rates[-1]
        near, far = (device, int(match[1])), (match[2], int(match[3]))
        found.add(near, far, width=int(width), speed=speed, line=number)
