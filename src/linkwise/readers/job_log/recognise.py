"""What an input is, told by its content, and its tables and files read by the readers for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from linkwise.errors import DocumentError
from linkwise.readers.flight_recorder import LARGEST_BYTES, FlightRecording, parse_flight_recording
from linkwise.readers.job_log.sources import Unusable
from linkwise.readers.json_text import looks_like_json
from linkwise.readers.nccl_graph import NcclGraph, parse_nccl_graphs
from linkwise.readers.nccl_tests import NcclTestsRun, parse_nccl_tests
from linkwise.readers.nccl_topology import NcclTopology, is_nccl_topology, parse_nccl_topology
from linkwise.readers.topology_matrix import TopologyMatrix, is_topology_matrix, parse_topology_matrix

__all__ = ["HEAD_BYTES", "Documents"]

HEAD_BYTES = 4_000_000
"""Bytes from the start of an input in which tables are looked for [bytes]."""

_T = TypeVar("_T")
_TESTS = re.compile(r"#\s*(?:nThread|Using devices)")
_NCCL_LINE = re.compile(r"NCCL (?:INFO|WARN|version)|RCCL version")
_TOPOLOGY_FILE = re.compile(r"<system\b")
_GRAPH_FILE = re.compile(r"\s*<(?:\?xml[^>]*>\s*<)?graphs\b")
_TESTS_START = re.compile(r"^.{0,120}#\s*nThread", re.MULTILINE)


@dataclass(slots=True)
class Documents:
    """Tables and files found in the inputs so far."""

    matrices: list[tuple[str, TopologyMatrix]] = field(default_factory=list)
    topologies: list[tuple[str, NcclTopology]] = field(default_factory=list)
    graphs: list[tuple[str, tuple[NcclGraph, ...]]] = field(default_factory=list)
    tests: list[tuple[str, NcclTestsRun]] = field(default_factory=list)
    recordings: list[tuple[str, FlightRecording]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def take(self, name: str, text: str) -> str:
        """Read what the start of an input holds, and return what kind of input it is.

        Parameters
        ----------
        name
            The input.
        text
            Its start.
        """
        if _GRAPH_FILE.match(text[:2000]):
            self._read(name, text, parse_nccl_graphs, self.graphs)
            return "NCCL graph file"
        if _TOPOLOGY_FILE.search(text[:2000]) and is_nccl_topology(text):
            self._read(name, text, parse_nccl_topology, self.topologies)
            return "NCCL topology file"
        kinds: list[str] = []
        if _NCCL_LINE.search(text):
            kinds.append("NCCL log")
        if is_topology_matrix(text):
            self._read(name, text, parse_topology_matrix, self.matrices)
            kinds.append("topology matrix")
        if _TESTS.search(text) or (looks_like_json(text, "busbw") and "busbw" in text):
            for part in _runs(text):
                self._read(name, part, parse_nccl_tests, self.tests, is_quiet=True)
            kinds.append("nccl-tests output")
        return " with ".join(kinds) or "text"

    def take_recording(self, name: str, chunks: Iterable[bytes]) -> int:
        """Read a dump of the Flight Recorder, and return its bytes.

        Parameters
        ----------
        name
            The input.
        chunks
            All of it.

        Raises
        ------
        Unusable
            If it is too large, damaged, or no such dump.
        """
        whole = bytearray()
        for chunk in chunks:
            whole += chunk
            if len(whole) > LARGEST_BYTES:
                raise Unusable(f"seems to be a dump of more than {LARGEST_BYTES >> 20} MiB; it is not read")
        try:
            self.recordings.append((name, parse_flight_recording(bytes(whole), path=name)))
        except DocumentError as error:
            raise Unusable(error.faults[-1].message) from None
        return len(whole)

    def _read(
        self,
        name: str,
        text: str,
        parse: Callable[..., _T],
        into: list[tuple[str, _T]],
        *,
        is_quiet: bool = False,
    ) -> None:
        try:
            into.append((name, parse(text, path=name)))
        except DocumentError as error:
            # A table that a log was cut in is no fault of the log.
            if not is_quiet:
                self.faults.append(str(error).split("\n", 1)[0])


def _runs(text: str) -> list[str]:
    """Return the text of each run of nccl-tests: one heading with its arguments starts one."""
    starts = [found.start() for found in _TESTS_START.finditer(text)]
    if len(starts) < 2:
        return [text]
    return [text[at:to] for at, to in zip(starts, [*starts[1:], len(text)], strict=True)]
