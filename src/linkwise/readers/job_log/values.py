"""The values that reading logs gives: lines that were recognised, channels, outputs of commands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkwise.readers.flight_recorder import FlightRecording
    from linkwise.readers.nccl_graph import NcclGraph
    from linkwise.readers.nccl_tests import NcclTestsRun
    from linkwise.readers.nccl_topology import NcclTopology
    from linkwise.readers.topology_matrix import TopologyMatrix

__all__ = [
    "ChannelUse",
    "CommandOutput",
    "Evidence",
    "JobLog",
    "LogInput",
    "RankStep",
    "RankSteps",
    "Sighting",
]


_PAIR = re.compile(r" : (\d+)(?:\[\w+\])? -> (\d+)(?:\[\w+\])? ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One line that proves something.

    Parameters
    ----------
    file
        The input as it was named.
    line
        Line counted from one.
    text
        The line, without escapes and cut to a bounded length.
    """

    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One recognised line.

    Parameters
    ----------
    what
        The name of the message in the table of messages.
    host, pid
        The process that printed it; ``None`` where the line does not say.
    device
        The CUDA device current in the thread that printed it, which is not the rank.
    rank
        The rank, where the line itself names it.
    level
        ``INFO``, ``WARN`` or the empty text for lines that are not NCCL's.
    source
        The source file that a warning names, without its line; empty where it names none.
    fields
        The parts of the message.
    evidence
        The line.
    order
        Grows with the place in the input; comparable only within one file.
    """

    what: str
    host: str | None = None
    pid: int | None = None
    device: int | None = None
    rank: int | None = None
    level: str = ""
    source: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    evidence: Evidence
    order: int = 0

    @property
    def process(self) -> tuple[str, int] | None:
        """Return host and pid, where both are known."""
        return None if self.host is None or self.pid is None else (self.host, self.pid)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelUse:
    """How one process uses one transport on its channels.

    Parameters
    ----------
    host, pid, device
        The process, and the CUDA device of the rank.
    direction
        ``send``, ``receive``, or the empty text where the line names none (within a node).
    transport
        As printed after *via*: ``P2P/CUMEM/read``, ``NET/IB/0/GDRDMA``.
    rank, peer
        The two ranks of the first such line, in the order of the line.
    count
        Lines of this kind from this process.
    lines
        The first of them, at least one.
    """

    host: str | None
    pid: int | None
    device: int | None
    direction: str
    transport: str
    rank: int
    peer: int
    count: int
    lines: tuple[Evidence, ...]

    @property
    def evidence(self) -> Evidence:
        """Return the first line."""
        return self.lines[0]

    @property
    def pairs(self) -> frozenset[tuple[int, int]]:
        """Return the pairs of ranks that the lines name, in the order of each line."""
        found = (_PAIR.search(each.text) for each in self.lines)
        return frozenset({(self.rank, self.peer), *((int(each[1]), int(each[2])) for each in found if each)})

    @property
    def kind(self) -> str:
        """Return ``P2P``, ``SHM``, ``NET`` or ``COLLNET``."""
        if "shared memory" in self.transport:
            return "SHM"
        return self.transport.split("/", 1)[0]

    @property
    def network(self) -> str:
        """Return the name of the network of a NET channel, else the empty text."""
        parts = self.transport.split("/")
        return parts[1] if parts[0] in {"NET", "COLLNET"} and len(parts) > 1 else ""

    @property
    def nic(self) -> str:
        """Return the number of the network device, as printed; empty where there is none."""
        parts = self.transport.split("/")
        return parts[2].split("(")[0] if self.kind == "NET" and len(parts) > 2 else ""

    @property
    def is_forwarded(self) -> bool:
        """Return whether another rank of the node sends it on (PXN)."""
        return "(" in self.transport.replace("(PCI)", "")

    @property
    def is_gpudirect(self) -> bool:
        """Return whether it is registered for GPUDirect RDMA."""
        return "/GDRDMA" in self.transport


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutput:
    """What a host command printed, as pasted under its prompt.

    Parameters
    ----------
    command
        The command line.
    lines
        Its output, bounded.
    evidence
        The prompt line.
    """

    command: str
    lines: tuple[str, ...]
    evidence: Evidence

    def evidence_at(self, number: int) -> Evidence:
        """Return the evidence of a line of the output.

        Parameters
        ----------
        number
            Of the line, from 0.
        """
        return Evidence(
            file=self.evidence.file, line=self.evidence.line + 1 + number, text=self.lines[number]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RankStep:
    """One step, as one rank tells of it.

    Parameters
    ----------
    number
        By the count of the program.
    time_s
        From the end of the step before [s].
    compute_s, wait_s
        How much of it the rank computed, and how much it waited [s].
    evidence
        The line.
    """

    number: int
    time_s: float
    compute_s: float
    wait_s: float
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSteps:
    """The steps of one rank.

    Parameters
    ----------
    rank
        Its number.
    host
        Where it is; ``None`` where its lines do not say.
    steps
        In the order of the log; of many the first, the last and the longest between.
    count
        How many there were [1].
    """

    rank: int
    host: str | None
    steps: tuple[RankStep, ...]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogInput:
    """One input that was read.

    Parameters
    ----------
    name
        As it was given.
    kind
        What it is by its content.
    size_bytes
        Bytes read, decompressed.
    note
        What the reader should know of it, such as where it was cut; may be empty.
    """

    name: str
    kind: str
    size_bytes: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLog:
    """All that was recognised in all inputs.

    Parameters
    ----------
    sightings
        Recognised lines by the name of the message, in the order they were read.
    channels
        What the processes use, one value per process, direction and transport.
    commands
        Outputs of host commands.
    matrices, topologies, graphs, tests, recordings
        Topology matrices, NCCL topology files and graph files, nccl-tests tables and dumps of PyTorch's
        Flight Recorder, each with the name of its input.
    rank_steps
        Steps that ranks print of themselves, by rank.
    inputs
        The inputs.
    unread
        What could not be used of them, one message each.
    """

    sightings: Mapping[str, tuple[Sighting, ...]]
    channels: tuple[ChannelUse, ...]
    commands: tuple[CommandOutput, ...] = ()
    matrices: tuple[tuple[str, TopologyMatrix], ...] = ()
    topologies: tuple[tuple[str, NcclTopology], ...] = ()
    graphs: tuple[tuple[str, tuple[NcclGraph, ...]], ...] = ()
    tests: tuple[tuple[str, NcclTestsRun], ...] = ()
    recordings: tuple[tuple[str, FlightRecording], ...] = ()
    rank_steps: tuple[RankSteps, ...] = ()
    inputs: tuple[LogInput, ...] = ()
    unread: tuple[str, ...] = ()
