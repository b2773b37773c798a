"""NCCL's graph XML (`NCCL_GRAPH_DUMP_FILE`): the channels it built, and what rate it took its links to have.

Notes
-----
As with the topology, a document type is refused, so that there are no entities to expand, and depth and
number of elements are bounded. Speeds are in GB/s of one channel.

References
----------
NVIDIA, NCCL source, src/graph/search.cc (ncclTopoGetXmlFromGraph), https://github.com/NVIDIA/nccl.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

# A document type, which alone can define entities, is refused at its first byte.
from xml.parsers import expat

from linkwise.readers.faults import Faults, excerpt

__all__ = ["NcclGraph", "parse_nccl_graphs"]

_DEEPEST = 8
_MOST_ELEMENTS = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclGraph:
    """One graph of channels: a ring, a tree, or one of those that switches reduce in.

    Parameters
    ----------
    id
        As in the file: 0 ring, 1 tree, 2 CollNet, 3 NVLS.
    channels
        Channels it has.
    intra_bytes_per_s, inter_bytes_per_s
        What NCCL took a channel to carry inside a node and between nodes [B/s].
    nets
        Network devices of its channels, by number, each once.
    line
        Line of the graph in the file, from one.
    """

    id: int
    channels: int
    intra_bytes_per_s: float
    inter_bytes_per_s: float
    nets: tuple[str, ...]
    line: int


@dataclass(slots=True, kw_only=True)
class _Reader:
    faults: Faults
    parser: expat.XMLParserType
    depth: int = 0
    elements: int = 0
    graphs: list[NcclGraph] = field(default_factory=list)
    attributes: Mapping[str, str] = field(default_factory=dict)
    line: int = 0
    nets: dict[str, None] = field(default_factory=dict)

    def refuse_document_type(self, *_: object) -> None:
        line = self.parser.CurrentLineNumber
        raise self.faults.refusal("has a document type (<!DOCTYPE); NCCL writes none", line=line)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.elements += 1
        self.depth += 1
        line = self.parser.CurrentLineNumber
        if self.depth == 1 and name != "graphs":
            raise self.faults.refusal(f"the root <{name[:40]}> is not NCCL's graphs", line=line)
        if self.elements > _MOST_ELEMENTS or self.depth > _DEEPEST:
            limit = f"more than {_MOST_ELEMENTS:,} elements, or nested more than {_DEEPEST} deep"
            raise self.faults.refusal(limit, line=line)
        if name == "graph":
            self.attributes, self.line, self.nets = attributes, line, {}
        elif name == "net":
            self.nets[attributes.get("dev", "")[:40]] = None

    def end(self, name: str) -> None:
        self.depth -= 1
        if name == "graph":
            self.graphs.append(
                NcclGraph(
                    id=int(self.number("id")),
                    channels=int(self.number("nchannels")),
                    intra_bytes_per_s=1e9 * self.number("speedintra"),
                    inter_bytes_per_s=1e9 * self.number("speedinter"),
                    nets=tuple(self.nets),
                    line=self.line,
                )
            )

    def number(self, key: str) -> float:
        text = self.attributes.get(key, "")
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 <= value <= 1e6:
            said = f"{key} is {excerpt(text)}; a number from 0 to 1,000,000 was expected"
            raise self.faults.refusal(said, line=self.line, key=key)
        return value


def parse_nccl_graphs(text: str, *, path: str | None = None) -> tuple[NcclGraph, ...]:
    """Return the graphs in NCCL's graph XML.

    Parameters
    ----------
    text
        The file.
    path
        Its name, for messages.

    Raises
    ------
    DocumentError
        If it is not well-formed, not of NCCL, passes a limit, or has no graph.
    """
    parser = expat.ParserCreate()
    reader = _Reader(faults=Faults(path=path), parser=parser)
    parser.StartDoctypeDeclHandler = reader.refuse_document_type
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    try:
        parser.Parse(text.encode("utf-8", errors="surrogatepass"), True)
    except expat.ExpatError as error:
        reason = expat.errors.messages[error.code]
        raise reader.faults.refusal(f"not well-formed XML: {reason}", line=error.lineno) from None
    if not reader.graphs:
        raise reader.faults.refusal("has no graph; give the file of NCCL_GRAPH_DUMP_FILE")
    return tuple(reader.graphs)
