"""What `iblinkinfo` prints, with a header for each device or (with `-l`) a link on each line.

Notes
-----
Without `-l` the far end of a link has no GUID, so devices are told apart by their LIDs. The speed is the
signalling rate of one lane. Ports that are down say nothing of what would be on them and are left out.

References
----------
linux-rdma, "rdma-core", manual page iblinkinfo(8), 2025.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from io import StringIO

from linkwise.readers.faults import Faults, excerpt
from linkwise.readers.infiniband_fabric import (
    LONGEST_LINE,
    InfinibandDevice,
    InfinibandFabric,
    LinkCollector,
    is_adapter_name,
)

__all__ = ["is_iblinkinfo", "parse_iblinkinfo"]

SPEED_OF_GBIT_PER_S: Mapping[float, str] = {
    2.5: "SDR",
    5.0: "DDR",
    10.0: "QDR",
    10.3125: "FDR10",
    14.0625: "FDR",
    25.78125: "EDR",
    53.125: "HDR",
    106.25: "NDR",
    212.5: "XDR",
}
"""Speed by the signalling rate of one lane [Gbit/s]."""

_HEADER = re.compile(r"(Switch|CA|RT):?\s+(.{0,250}?):?\s*")
_GUID = r"(?:0x[0-9a-fA-F]{1,16}\s+)?"
_LINK = re.compile(
    _GUID
    + r'(?:"(?P<near_name>[^"]{0,200})"\s+)?(?P<near_lid>\d{1,6})\s+(?P<near_port>\d{1,4})\[[^\]]{0,8}\]\s*'
    r"==\((?P<state>.{0,80}?)\)==>\s*"
    + _GUID
    + r'(?P<far_lid>\d{1,6})?\s*(?P<far_port>\d{1,4})?\[[^\]]{0,8}\]\s*"(?P<far_name>[^"]{0,200})"\s*'
    r"(?:\((?P<remark>.{0,200})\))?\s*"
)
_UP = re.compile(
    r"\s*(\d{1,2})X\s+(\d{1,4}(?:\.\d{1,6})?)\s+Gbps(?:\s*\((\w{3,5})\))?\s+(?:Active|Armed|Init)"
)
_LOOKS = re.compile(r"\[[^\]\n]{0,8}\]\s*==\([^\n]{0,80}?\)==>")


def is_iblinkinfo(text: str) -> bool:
    """Return whether `text` looks like the output of iblinkinfo.

    Parameters
    ----------
    text
        The file, or its start.
    """
    return _LOOKS.search(text) is not None


def parse_iblinkinfo(text: str, *, path: str | None = None) -> InfinibandFabric:
    """Return the fabric that `iblinkinfo` printed.

    Parameters
    ----------
    text
        The whole output.
    path
        The file it came from, for messages.

    Raises
    ------
    DocumentError
        With all faults: lines that are none of the format, speeds that no InfiniBand has, ports with two far
        ends; also where no link is up.
    """
    found = LinkCollector(faults=Faults(path=path))
    header: tuple[str, bool] | None = None
    for number, raw in enumerate(StringIO(text), start=1):
        line = raw.strip()
        if len(line) > LONGEST_LINE:
            found.faults.add(f"{excerpt(line)} is longer than any line of iblinkinfo", line=number)
        elif "==(" in line:
            match = _LINK.fullmatch(line)
            if match is None:
                found.faults.add(f"{excerpt(line)} is cut short or no line of iblinkinfo", line=number)
            else:
                _add(found, match, header, number)
        elif match := _HEADER.fullmatch(line):
            is_switch = match[1] != "CA"
            header = re.sub(r"^0x[0-9a-fA-F]{1,16}\s+", "", match[2]), is_switch
        elif line and not line.startswith("#"):
            found.faults.add(f"{excerpt(line)} is no line of iblinkinfo", line=number)
    return found.finish()


def _add(found: LinkCollector, match: re.Match[str], header: tuple[str, bool] | None, number: int) -> None:
    up = _UP.match(match["state"])
    if up is None or match["far_lid"] is None or match["far_port"] is None:
        return
    speed = up[3] if up[3] in SPEED_OF_GBIT_PER_S.values() else SPEED_OF_GBIT_PER_S.get(float(up[2]))
    if speed is None:
        known = ", ".join(f"{each:g}" for each in SPEED_OF_GBIT_PER_S)
        found.faults.add(f"{up[2]} Gbps is the rate of no InfiniBand lane ({known})", line=number)
        return
    name, is_switch = header or (match["near_name"] or "", None)
    near = _keep(found, match["near_lid"], name.strip(), is_switch=is_switch)
    far = _keep(found, match["far_lid"], match["far_name"].strip(), is_switch=None)
    remark = (match["remark"] or "").strip()
    ends = (near, int(match["near_port"])), (far, int(match["far_port"]))
    found.add(*ends, width=int(up[1]), speed=speed, line=number, remark=remark)


def _keep(found: LinkCollector, lid: str, name: str, *, is_switch: bool | None) -> str:
    """Return the key of a device; what its own header says goes before what its name suggests."""
    key = f"lid {int(lid)}"
    if is_switch is not None or key not in found.devices:
        stated = not is_adapter_name(name) if is_switch is None else is_switch
        found.devices[key] = InfinibandDevice(name=name, is_switch=stated)
    return key
