"""What is known of a job: its processes and hosts, put together from recognised lines.

A rule asks this value and no other. Every question has an answer for a log that says nothing, so that rules
need no
guards.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from linkwise.readers.job_log.values import ChannelUse, CommandOutput, Evidence, JobLog, Sighting

__all__ = ["Facts", "Process", "lines_of"]

_NUMBERS = re.compile(r"(?:0x)?[0-9a-f]*\d[0-9a-f]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process of the job.

    Parameters
    ----------
    host, pid
        As it prints itself.
    ranks
        Its ranks in the largest communicator: one, or several where it drives several GPUs.
    world
        Ranks of that communicator; 0 where no line says.
    started, completed
        Communicators it began to build, and those it built.
    """

    host: str
    pid: int
    ranks: tuple[int, ...]
    world: int
    started: int
    completed: int


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The log and what follows from it at once.

    Parameters
    ----------
    log
        What was read.
    """

    log: JobLog

    def seen(self, *names: str) -> tuple[Sighting, ...]:
        """Return the lines that are one of these messages, in the order they were read.

        Parameters
        ----------
        names
            Names of messages.
        """
        if len(names) == 1:
            return self.log.sightings.get(names[0], ())
        found = [each for name in names for each in self.log.sightings.get(name, ())]
        return tuple(sorted(found, key=lambda each: each.order))

    def warned(self, *names: str) -> tuple[Sighting, ...]:
        """Return those of `seen` that are warnings, or what a framework repeats as last error.

        Parameters
        ----------
        names
            Names of messages.
        """
        return tuple(each for each in self.seen(*names) if each.level in {"WARN", "LAST"})

    @property
    def channels(self) -> tuple[ChannelUse, ...]:
        """Return what the processes use."""
        return self.log.channels

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """Return the hosts that printed lines, in the order they first did."""
        found = {each.host: None for name in self.log.sightings.values() for each in name if each.host}
        found |= {each.host: None for each in self.channels if each.host}
        return tuple(found)

    @cached_property
    def processes(self) -> Mapping[tuple[str, int], Process]:
        """Return the processes that printed a line of a communicator."""
        grouped: dict[tuple[str, int], list[Sighting]] = {}
        for each in self.seen("init", "size"):
            if each.process is not None:
                grouped.setdefault(each.process, []).append(each)
        return {key: _process(key, lines) for key, lines in grouped.items()}

    @cached_property
    def host_of(self) -> Mapping[int, str]:
        """Return the host of each rank of the largest communicator."""
        return {rank: each.host for each in self.processes.values() for rank in each.ranks}

    @cached_property
    def ranks(self) -> int | None:
        """Return the ranks of the largest communicator; ``None`` where no line says."""
        sizes = [int(each.fields["nranks"]) for each in self.seen("init", "size")]
        return max(sizes, default=None) or self._tested_ranks

    @property
    def _tested_ranks(self) -> int | None:
        return max((run.ranks or 0 for _, run in self.log.tests), default=0) or None

    @cached_property
    def nodes(self) -> int | None:
        """Return the nodes of the largest communicator; ``None`` where nothing says."""
        sizes = self.seen("size")
        if sizes:
            largest = max(int(each.fields["nranks"]) for each in sizes)
            return max(int(each.fields["nodes"]) for each in sizes if int(each.fields["nranks"]) == largest)
        if any(each.kind == "NET" for each in self.channels):
            return max(len(self.hosts), 2)
        known = {rank for process in self.processes.values() for rank in process.ranks}
        if self.ranks and len(known) == self.ranks:
            return len({process.host for process in self.processes.values()})
        tested = max((len(run.hosts) for _, run in self.log.tests), default=0)
        return tested or None

    @property
    def is_one_node(self) -> bool:
        """Return whether the job is known to be on one node."""
        return self.nodes == 1

    def settings(self, *names: str) -> tuple[Sighting, ...]:
        """Return the lines that show one of these variables, with ``name`` and ``value`` as fields.

        Parameters
        ----------
        names
            Names of variables; all variables if none is given.
        """
        return tuple(each for each in self.seen("setting") if not names or each.fields["name"] in names)

    def value_of(self, name: str) -> str | None:
        """Return the value of a variable as the first process shows it; ``None`` where none does.

        Parameters
        ----------
        name
            Name of the variable.
        """
        found = self.settings(name)
        return found[0].fields.get("value", "") if found else None

    def commands(self, *words: str) -> Iterator[CommandOutput]:
        """Yield outputs of host commands whose command line has all of these words.

        Parameters
        ----------
        words
            Texts looked for in the command line.
        """
        for each in self.log.commands:
            if all(word in each.command for word in words):
                yield each

    @cached_property
    def version(self) -> tuple[int, ...] | None:
        """Return the NCCL version as numbers, the most frequent one; ``None`` where no line says."""
        counts = Counter(each.fields["version"] for each in self.seen("version") if each.level != "LAST")
        if not counts:
            return None
        return tuple(int(part) for part in counts.most_common(1)[0][0].split("."))

    @property
    def is_rccl(self) -> bool:
        """Return whether the library is AMD's."""
        return any(each.fields.get("library") == "RCCL" for each in self.seen("version"))

    @cached_property
    def networks(self) -> Counter[str]:
        """Return how many lines chose each network, by its name."""
        return Counter(each.fields["name"] for each in self.seen("network"))

    def network_of(self, process: tuple[str, int]) -> str | None:
        """Return the network one process chose last; ``None`` where it does not say.

        Parameters
        ----------
        process
            Host and pid.
        """
        names = [each.fields["name"] for each in self.seen("network") if each.process == process]
        return names[-1] if names else None

    @cached_property
    def net_channels(self) -> tuple[ChannelUse, ...]:
        """Return the channels over a network."""
        return tuple(each for each in self.channels if each.kind == "NET")

    @cached_property
    def used_networks(self) -> Counter[str]:
        """Return how many channel lines name each network."""
        counts: Counter[str] = Counter()
        for each in self.net_channels:
            counts[each.network] += each.count
        return counts

    @cached_property
    def is_rdma(self) -> bool:
        """Return whether data goes over InfiniBand or RoCE, by channels or, without any, by choice."""
        names = self.used_networks or self.networks
        return any(name.startswith("IB") for name in names)

    @cached_property
    def gpus(self) -> tuple[str, ...]:
        """Return names of GPUs that any input tells, in the words of the driver."""
        named = [run.gpu for _, run in self.log.tests if run.gpu]
        return tuple(dict.fromkeys(named))

    @cached_property
    def has_completed(self) -> bool:
        """Return whether every communicator that was begun was built, as far as the lines tell."""
        return bool(self.processes) and all(
            each.completed >= each.started for each in self.processes.values()
        )

    @cached_property
    def are_all_ranks_here(self) -> bool:
        """Return whether every rank printed something; of jobs of unknown size, two processes or more."""
        found = {each.process for lines in self.log.sightings.values() for each in lines if each.process}
        found |= {
            (each.host, each.pid) for each in self.channels if each.host is not None and each.pid is not None
        }
        known = {rank for process in self.processes.values() for rank in process.ranks}
        if self.ranks is None:
            return len(found) > 1
        return max(len(found), len(known)) >= self.ranks

    @cached_property
    def stuck(self) -> tuple[Process, ...]:
        """Return the processes that began a communicator and did not finish it."""
        return tuple(each for each in self.processes.values() if each.completed < each.started)

    @cached_property
    def has_failed(self) -> bool:
        """Return whether a line says that the job, or a part of it, ended in an error."""
        return bool(self.failures)

    @cached_property
    def faults(self) -> tuple[Sighting, ...]:
        """Return the warnings that tell of something that failed, be it explained or not; echoes are none."""
        return self.warned(*_FAULTS)

    @property
    def unknown_warnings(self) -> tuple[Sighting, ...]:
        """Return the warnings that no message of the tables is, one of each text."""
        texts = {
            _NUMBERS.sub("", each.fields.get("text", "")): each for each in reversed(self.seen("warning"))
        }
        return tuple(sorted(texts.values(), key=lambda each: each.order))

    @cached_property
    def failures(self) -> tuple[Sighting, ...]:
        """Return the lines that say so."""
        return self.seen(*_FAILURES)


def lines_of(channels: Iterable[ChannelUse]) -> list[Evidence]:
    """Return the lines that show these channels.

    Parameters
    ----------
    channels
        What processes use.
    """
    return [line for each in channels for line in each.lines]


_FAULTS = (
    "bind_failed",
    "completion",
    "connect_failed",
    "connect_given_up",
    "cuda_driver_failure",
    "cuda_failure",
    "cuda_memory",
    "cumem_import",
    "ipc_failed",
    "memory_full",
    "mismatch",
    "no_algorithm",
    "peer_failed",
    "shm_failed",
    "socket_failed",
    "uds_failed",
)

_FAILURES = (
    "xla_error",
    "torch_error",
    "tests_failure",
    "horovod_error",
    "watchdog_timeout",
    "worker_exit",
    "crashed",
    "task_died",
    "host_oom",
    "cuda_error",
    "cuda_oom",
    "call_failed",
)


def _process(key: tuple[str, int], lines: list[Sighting]) -> Process:
    world = max(int(each.fields["nranks"]) for each in lines)
    ranks = {int(each.fields["rank"]) for each in lines if int(each.fields["nranks"]) == world}
    stages = Counter((each.fields["stage"], each.fields["comm"]) for each in lines if each.what == "init")
    completed = {comm for stage, comm in stages if stage == "COMPLETE"}
    started = {comm for stage, comm in stages} | {
        each.fields["comm"] for each in lines if each.what == "size"
    }
    return Process(
        host=key[0],
        pid=key[1],
        ranks=tuple(sorted(ranks)),
        world=world,
        started=len(started),
        completed=len(completed),
    )
