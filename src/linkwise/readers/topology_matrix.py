"""The matrix that `nvidia-smi topo -m` prints: how each pair of GPUs and NICs of one node is joined.

Notes
-----
Four generations are read: the plain matrix, with NICs under the names of their devices (`mlx5_0`); with the
columns *CPU Affinity* and *NUMA Affinity*; with *GPU NUMA ID*; with NICs as `NIC0` and a legend of names.
Drivers underline the header with terminal escapes, which are dropped. The affinities are not read.

References
----------
NVIDIA, "nvidia-smi", manual page, section "topo", 2024.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from linkwise.readers.faults import Faults, excerpt

__all__ = ["TopologyMatrix", "is_topology_matrix", "parse_topology_matrix"]

MOST_DEVICES = 256
"""GPUs and NICs of one node that are read; the largest servers have 16 of each."""

_ESCAPE = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
_GPU = re.compile(r"GPU\d{1,4}")
_DEVICE = re.compile(r"[A-Za-z][A-Za-z0-9_.:+-]{0,63}")
_CELL = re.compile(r"X|NV\d{1,3}|PIX|PXB|PHB|NODE|SYS|SOC")
_PEER_TO_PEER = re.compile(r"OK|CNS|GNS|TNS|NS|DR|U")
_LEGEND = re.compile(r"(NIC\d{1,4}):\s*(\S{1,64})")
_HEADER = re.compile(r"\s*GPU\d{1,4}(?:\s+[A-Za-z]|\s*$)")
_ROW = re.compile(r"\s*GPU\d{1,4}\s+(?:X|NV\d|PIX|PXB|PHB|NODE|SYS|SOC|OK|CNS|GNS|TNS|NS)\b")
_SEARCHED = 200_000
_AFTER_DEVICES = ("CPU", "NUMA", "GPU")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyMatrix:
    """How GPUs and NICs of one node are joined.

    Parameters
    ----------
    gpus, nics
        Names as the header has them: ``GPU0``; ``NIC0`` or ``mlx5_0``.
    cells
        What joins a pair, both orders: ``NV18``, ``PIX PXB PHB NODE SYS`` (``SOC`` of old drivers is SYS).
    nic_devices
        Device of each NIC that the legend names: ``NIC0`` to ``mlx5_0``.
    """

    gpus: tuple[str, ...]
    nics: tuple[str, ...]
    cells: Mapping[tuple[str, str], str] = field(hash=False)
    nic_devices: Mapping[str, str] = field(default_factory=dict, hash=False)

    def nvlinks(self, first: str, second: str) -> int:
        """Return the number of NVLinks that join two GPUs, 0 for a pair without.

        Parameters
        ----------
        first, second
            Names out of `gpus`.
        """
        cell = self.cells[first, second]
        return int(cell[2:]) if cell.startswith("NV") else 0


def is_topology_matrix(text: str) -> bool:
    """Return whether `text` looks like such a matrix: a header of GPUs and a row of one.

    Parameters
    ----------
    text
        The file, or its start.
    """
    if "GPU" not in text:
        return False
    lines = [_plain(line) for line in text[:_SEARCHED].splitlines()]
    return any(map(_HEADER.match, lines)) and any(map(_ROW.match, lines))


def parse_topology_matrix(text: str, *, path: str | None = None) -> TopologyMatrix:
    """Return the matrix in what `nvidia-smi topo -m` printed.

    Parameters
    ----------
    text
        The whole output; other lines around it do not matter.
    path
        The file it came from, for messages.

    Raises
    ------
    DocumentError
        With all faults: rows missing, doubled or short, cells that are none, pairs that differ by direction.
    """
    faults = Faults(path=path)
    lines = [_plain(line) for line in text.splitlines()]
    at, devices = _header(lines, faults)
    rows = _rows(lines[at:], devices, faults, first=at + 1)
    faults.raise_any()
    cells = dict(_cells(devices, rows))
    _check_symmetry(devices, rows, cells, faults)
    faults.raise_any()
    named = (_LEGEND.fullmatch(line.strip()) for line in lines[at:])
    legend = {match[1]: match[2] for match in named if match is not None}
    nics = tuple(name for name in devices if _GPU.fullmatch(name) is None)
    return TopologyMatrix(
        gpus=tuple(name for name in devices if _GPU.fullmatch(name)),
        nics=nics,
        cells=cells,
        nic_devices={name: legend[name] for name in nics if name in legend},
    )


def _plain(line: str) -> str:
    return _ESCAPE.sub("", line)


def _header(lines: Sequence[str], faults: Faults) -> tuple[int, tuple[str, ...]]:
    """Return how many lines end with the header, and its devices."""
    for number, line in enumerate(lines, start=1):
        if _HEADER.match(line) and not _ROW.match(line):
            devices = tuple(_devices(line.split()))
            if len(devices) > MOST_DEVICES:
                raise faults.refusal(
                    f"{len(devices)} devices are more than the {MOST_DEVICES} read of one node", line=number
                )
            for name in sorted({each for each in devices if devices.count(each) > 1}):
                faults.add(f"the header names {name} more than once; keep one", line=number)
            faults.raise_any()
            return number, devices
    raise faults.refusal("there is no header line GPU0 GPU1...; give the whole output of nvidia-smi topo -m")


def _devices(words: Sequence[str]) -> Iterator[str]:
    """Yield the names of the header in front of the titles of other columns."""
    for word in words:
        if word in _AFTER_DEVICES or _DEVICE.fullmatch(word) is None:
            return
        yield word


def _rows(
    lines: Sequence[str], devices: Sequence[str], faults: Faults, *, first: int
) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Return line number and cells of each row."""
    rows: dict[str, tuple[int, tuple[str, ...]]] = {}
    known = set(devices)
    for number, line in enumerate(lines, start=first):
        name, *cells = line.split() or [""]
        if name in rows and name in known:
            faults.add(f"{name} has a row here and in line {rows[name][0]}; keep one", line=number)
        elif name in known:
            rows[name] = number, tuple(cells[: len(devices)])
            _check_row(name, rows[name], devices, faults)
        elif _ROW.match(line):
            faults.add(f"{name} has a row but no column; the header is cut or wrapped", line=number)
    for name in devices:
        if name not in rows:
            faults.add(f"{name} has a column but no row; the matrix is cut short", line=first - 1)
    return rows


def _check_row(name: str, row: tuple[int, tuple[str, ...]], devices: Sequence[str], faults: Faults) -> None:
    number, cells = row
    for other, cell in zip(devices, cells, strict=False):
        if _CELL.fullmatch(cell) is None:
            hint = (
                "topo -p2p prints such words; give topo -m"
                if _PEER_TO_PEER.fullmatch(cell)
                else "X, NV#, PIX, PXB, PHB, NODE or SYS is due; a wide table may have wrapped"
            )
            faults.add(f"{excerpt(cell)} joins {name} and {other}: {hint}", line=number)
            return
        if (cell == "X") != (name == other):
            faults.add(f"{name} and {other} have {cell}; X stands for a device and itself only", line=number)
            return
    if len(cells) < len(devices):
        missing = f"{name} has {len(cells)} cells and the header {len(devices)} devices"
        faults.add(f"{missing}; the row is cut short or has wrapped", line=number)


def _cells(
    devices: Sequence[str], rows: Mapping[str, tuple[int, tuple[str, ...]]]
) -> Iterator[tuple[tuple[str, str], str]]:
    for name, (_, cells) in rows.items():
        for other, cell in zip(devices, cells, strict=True):
            yield (name, other), "SYS" if cell == "SOC" else cell


def _check_symmetry(
    devices: Sequence[str],
    rows: Mapping[str, tuple[int, tuple[str, ...]]],
    cells: Mapping[tuple[str, str], str],
    faults: Faults,
) -> None:
    for place, name in enumerate(devices):
        for other in devices[:place]:
            there, back = cells[name, other], cells[other, name]
            if there != back:
                what = f"{name} to {other} is {there}, but {other} to {name} is {back}"
                faults.add(f"{what} (line {rows[other][0]}); a pair is joined one way", line=rows[name][0])
