"""NCCL's topology XML (`NCCL_TOPO_DUMP_FILE`): the PCI tree of a node with its GPUs, NVLinks and NICs.

Notes
-----
The file is parsed by events. A document type is refused, so there are no entities to expand, and depth and
number of elements are bounded. Speeds of networks are in Mbit/s of one direction.

References
----------
NVIDIA, "NCCL User Guide", environment variables NCCL_TOPO_FILE and NCCL_TOPO_DUMP_FILE, 2025.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# A document type, which alone can define entities, is refused at its first byte.
from xml.parsers import expat

from linkwise.readers.faults import Faults, excerpt

__all__ = ["NcclGpu", "NcclNet", "NcclTopology", "is_nccl_topology", "parse_nccl_topology"]

DEEPEST = 64
MOST_ELEMENTS = 50_000

_LARGEST = 10**9
_GPU_ELEMENTS = ("nvlink", "xgmi")
_GPU_CLASSES = ("0x0302", "0x0380", "0x1200")
"""PCI classes of 3D controllers, other displays and processing accelerators."""
_INFINIBAND_CLASS = "0x0207"
_NET_CLASSES = (_INFINIBAND_CLASS, "0x0200")


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclGpu:
    """One GPU.

    Parameters
    ----------
    host
        Hash of its host; empty in files of one node.
    bus_id
        Its place on the PCI bus.
    pci_id
        Vendor and device: ``"10de:2330"``; empty where the file has none.
    nvlinks
        Number of NVLinks (or xGMI links) by the bus id of the far end, which is a GPU or an NVSwitch.
    switched
        Whether a far end is an NVSwitch.
    is_outline
        Whether the file has only the PCI device, as the files that clouds hand out for NCCL_TOPO_FILE: then
        NVLinks are not known.
    """

    host: str
    bus_id: str
    pci_id: str = ""
    nvlinks: Mapping[str, int] = field(default_factory=dict, hash=False)
    switched: bool = False
    is_outline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclNet:
    """One port that NCCL can send through.

    Parameters
    ----------
    host
        Hash of its host; empty in files of one node.
    name
        Its device: ``mlx5_0``; ``mlx5_0+mlx5_1`` for two that NCCL has joined.
    bytes_per_s
        Rate of one direction [B/s]; ``None`` where the file has none.
    pci_id
        Vendor and device: ``"15b3:1021"``; empty where the file has none.
    infiniband
        Whether the PCI class of its device is that of an InfiniBand controller; ``None`` if not stated.
    """

    host: str
    name: str
    bytes_per_s: float | None
    pci_id: str = ""
    infiniband: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclTopology:
    """What the file of one communicator holds: one node, or several of one NVLink domain."""

    gpus: tuple[NcclGpu, ...]
    nets: tuple[NcclNet, ...]


@dataclass(slots=True, kw_only=True)
class _Element:
    name: str
    attributes: Mapping[str, str]


def is_nccl_topology(text: str) -> bool:
    """Return whether `text` looks like XML at all; NCCL's is the one XML that is read.

    Parameters
    ----------
    text
        The file, or its start.
    """
    return text.lstrip().startswith("<")


def parse_nccl_topology(text: str, *, path: str | None = None) -> NcclTopology:
    """Return the GPUs and networks in NCCL's topology XML.

    Parameters
    ----------
    text
        The file.
    path
        Its name, for messages.

    Raises
    ------
    DocumentError
        If it is not well-formed, not of NCCL, passes a limit, has no GPU, or names one twice.
    """
    reader = _Reader(faults=Faults(path=path))
    parser = expat.ParserCreate()
    parser.buffer_text = True
    reader.parser = parser
    parser.StartDoctypeDeclHandler = reader.refuse_document_type
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    try:
        parser.Parse(text.encode("utf-8", errors="surrogatepass"), True)
    except expat.ExpatError as error:
        reason = expat.errors.messages[error.code]
        cut = "; the file is cut short" if reason.startswith(("no element", "unclosed")) else ""
        raise reader.faults.refusal(f"not well-formed XML: {reason}{cut}", line=error.lineno) from None
    gpus, nets = reader.gpus or reader.outline_gpus, reader.nets or reader.outline_nets
    if not gpus:
        reader.faults.add("the topology has no GPU; dump it from a job that uses them")
    reader.faults.raise_any()
    return NcclTopology(gpus=tuple(gpus), nets=tuple(nets))


@dataclass(slots=True, kw_only=True)
class _Reader:
    """Follows the elements from the root to where the parser is."""

    faults: Faults
    parser: expat.XMLParserType | None = None
    open: list[_Element] = field(default_factory=list)
    gpus: list[NcclGpu] = field(default_factory=list)
    nets: list[NcclNet] = field(default_factory=list)
    outline_gpus: list[NcclGpu] = field(default_factory=list)
    outline_nets: list[NcclNet] = field(default_factory=list)
    lines: dict[tuple[str, str], int] = field(default_factory=dict)
    nvlinks: dict[str, int] = field(default_factory=dict)
    switched: bool = False
    elements: int = 0

    @property
    def line(self) -> int | None:
        return self.parser.CurrentLineNumber if self.parser is not None else None

    def refuse_document_type(self, *_: object) -> None:
        raise self.faults.refusal("has a document type (<!DOCTYPE); NCCL writes none", line=self.line)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.elements += 1
        if not self.open and name != "system":
            what = "is NCCL's graph of channels" if name == "graphs" else "is not NCCL's topology (<system>)"
            said = f"the root <{name[:40]}> {what}; give the file of NCCL_TOPO_DUMP_FILE"
            raise self.faults.refusal(said, line=self.line)
        if self.elements > MOST_ELEMENTS or len(self.open) >= DEEPEST:
            limit = f"more than {MOST_ELEMENTS:,} elements, or nested more than {DEEPEST} deep"
            raise self.faults.refusal(limit, line=self.line)
        if name == "gpu":
            self.nvlinks, self.switched = {}, False
        elif name in _GPU_ELEMENTS and self.open[-1].name == "gpu":
            self.read_nvlink(attributes)
        elif name == "net":
            self.read_net(attributes)
        elif name == "pci":
            self.outline(attributes)
        self.open.append(_Element(name=name, attributes=attributes))

    def end(self, name: str) -> None:
        self.open.pop()
        if name == "gpu":
            self.finish_gpu()

    def outline(self, device: Mapping[str, str]) -> None:
        """Keep a PCI device by its class, for files that say no more of it."""
        host, pci_id = self.above("cpu").get("host_hash", ""), _pci_id(device)
        bus_id, stated = device.get("busid", "")[:32], device.get("class", "")
        if stated.startswith(_GPU_CLASSES):
            self.outline_gpus.append(NcclGpu(host=host, bus_id=bus_id, pci_id=pci_id, is_outline=True))
        elif stated.startswith(_NET_CLASSES):
            infiniband = stated.startswith(_INFINIBAND_CLASS)
            net = NcclNet(host=host, name=bus_id, bytes_per_s=None, pci_id=pci_id, infiniband=infiniband)
            self.outline_nets.append(net)

    def read_nvlink(self, attributes: Mapping[str, str]) -> None:
        target = attributes.get("target", "")
        self.nvlinks[target] = self.nvlinks.get(target, 0) + self.number(attributes, "count", default=1)
        self.switched |= attributes.get("tclass", "").startswith("0x0680")

    def read_net(self, attributes: Mapping[str, str]) -> None:
        mbit_per_s = self.number(attributes, "speed", default=0)
        device = self.above("pci")
        stated = device.get("class")
        self.keep_once(
            "network", attributes.get("name", f"net {len(self.nets)}") + attributes.get("port", "")
        )
        self.nets.append(
            NcclNet(
                host=self.above("cpu").get("host_hash", ""),
                name=attributes.get("name", "")[:64],
                bytes_per_s=mbit_per_s * 1e6 / 8 or None,
                pci_id=_pci_id(device),
                infiniband=None if stated is None else stated.startswith(_INFINIBAND_CLASS),
            )
        )

    def finish_gpu(self) -> None:
        device = self.above("pci")
        bus_id = device.get("busid", f"gpu {len(self.gpus)}")[:32]
        self.keep_once("GPU", bus_id)
        self.gpus.append(
            NcclGpu(
                host=self.above("cpu").get("host_hash", ""),
                bus_id=bus_id,
                pci_id=_pci_id(device),
                nvlinks=dict(self.nvlinks),
                switched=self.switched,
            )
        )

    def above(self, name: str) -> Mapping[str, str]:
        """Return the attributes of the nearest open element of that name; none where there is none."""
        return next((each.attributes for each in reversed(self.open) if each.name == name), {})

    def keep_once(self, what: str, name: str) -> None:
        key = f"{what} {self.above('cpu').get('host_hash', '')}", name
        first = self.lines.setdefault(key, self.line or 0)
        if first != self.line:
            self.faults.add(
                f"the {what} {excerpt(name)} is here and in line {first}; keep one", line=self.line
            )

    def number(self, attributes: Mapping[str, str], key: str, *, default: int) -> int:
        given = attributes.get(key)
        if given is None:
            return default
        if given.isascii() and given.isdigit() and len(given) < 10 and int(given) <= _LARGEST:
            return int(given)
        if given not in ("-1", ""):
            self.faults.add(f"{key}={excerpt(given)} is not a whole number", line=self.line)
        return default


def _pci_id(device: Mapping[str, str]) -> str:
    vendor, model = (device.get(key, "").lower().removeprefix("0x")[:8] for key in ("vendor", "device"))
    return f"{vendor}:{model}" if vendor and model else ""
