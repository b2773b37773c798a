"""The lines of a job before they are text, and the edits that a fault makes to them."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tests.job_logs.formats import WARN, default_subsystems, find
from tests.job_logs.job import Job, Rank, comm_id, ranks_of, release_at
from tests.job_logs.releases import Release

PHASES = (
    "start", "bootstrap", "plugins", "network", "init", "graph", "channels", "tuning", "complete", "collective", "training", "end",
)  # fmt: skip
"""The parts of a run in order; what happens at run time comes after `complete`."""

_BEGINS_S = dict(zip(PHASES, (0.0, 0.2, 0.5, 0.8, 1.2, 1.6, 2.0, 2.6, 3.0, 3.4, 5.0, 60.0), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One record of one process.

    Parameters
    ----------
    rank : Rank
        Who prints it.
    at_s : float
        When, from the start of the job [s].
    phase : str
        The part of the run it belongs to.
    name : str
        The name of its message, or empty for a line of the framework.
    level : str
        INFO, WARN, BARE, or FRAMEWORK.
    text : str
        What is printed after the prefix of NCCL.
    tid : int
        The thread.
    device : int
        The CUDA device of the thread.
    source, function : str
        Place of a WARN.
    decisive : bool
        Whether the cause cannot be named without this line.
    """

    rank: Rank
    at_s: float
    phase: str
    name: str
    level: str
    text: str
    tid: int
    device: int
    source: str = ""
    function: str = ""
    decisive: bool = False


class Script:
    """The lines of all ranks of a job, in the order of each process.

    Parameters
    ----------
    job : Job
        Whose lines these are.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.ranks = ranks_of(job)
        self.lines: list[Line] = []
        self.random = random.Random(job.seed)
        self._delays_s = {rank.rank: self.random.uniform(0.0, 0.15) for rank in self.ranks}
        self._clock_s: dict[int, float] = {}
        self._given_s: dict[tuple[int, float], float] = {}

    def release_of(self, rank: Rank):
        return release_at(self.job, rank.host)

    def say(
        self,
        rank: Rank,
        phase: str,
        name: str,
        /,
        *,
        thread: str = "init",
        decisive: bool = False,
        at_s: float | None = None,
        source: str = "",
        function: str = "",
        **fields,
    ) -> bool:
        """Add a message of NCCL as this rank prints it; return whether its release has such a message that is shown."""
        release = self.release_of(rank)
        message = find(name, release)
        if message is None:
            return False
        shown = self.job.subsystems or default_subsystems(release)
        if not ({"ALL"} | shown) & message.subsystems and "ALL" not in shown:
            return False
        defaults = self.fields_of(rank)
        text = message.text.format(**{**defaults, **fields})
        line = self._line(rank, phase, name, message.level, text, thread=thread, at_s=at_s)
        place = source or f"{_place(name, message.where, release)}:{40 + len(text) * 7 % 900}"
        self.lines.append(
            replace(
                line,
                source=place,
                function=function or _FUNCTIONS.get(name, "ncclProxyService"),
                decisive=decisive,
            )
        )
        return True

    def print(
        self, rank: Rank, phase: str, text: str, *, at_s: float | None = None, decisive: bool = False
    ) -> None:
        """Add output of the framework."""
        line = self._line(rank, phase, "", "FRAMEWORK", text, thread="main", at_s=at_s)
        self.lines.append(replace(line, decisive=decisive))

    def raw_warn(
        self,
        rank: Rank,
        phase: str,
        text: str,
        source: str,
        *,
        at_s: float | None = None,
        decisive: bool = False,
        level: str = WARN,
        thread: str = "init",
    ) -> None:
        """Add a record of a plug-in, which logs through NCCL with texts of its own."""
        line = self._line(rank, phase, "plugin", level, text, thread=thread, at_s=at_s)
        self.lines.append(replace(line, source=source, function="", decisive=decisive))

    def unwind(
        self,
        rank: Rank,
        phase: str,
        places: Iterable[str],
        code: int,
        *,
        at_s: float | None = None,
        thread: str = "init",
        tag: str = "",
    ) -> None:
        """Add the `FILE:LINE -> CODE` lines by which a result travels up."""
        release = self.release_of(rank)
        for place in places:
            text = f"{place} (ncclInit) -> {code}" if release.is_from("2.30.7") else f"{place} -> {code}"
            self.lines.append(self._line(rank, phase, "unwind", "INFO", text + tag, thread=thread, at_s=at_s))

    def fields_of(self, rank: Rank) -> dict[str, object]:
        """Return the fields that every message may use."""
        release = self.release_of(rank)
        job = self.job
        return {
            "version": str(release),
            "cuda": release.cuda,
            "driver": release.driver,
            "interface": job.interface,
            "address": rank.address,
            "network": job.network.name,
            "comm": rank.comm,
            "rank": rank.rank,
            "ranks": job.size,
            "device": rank.device,
            "nvml": rank.device,
            "bus": rank.bus,
            "comm_id": comm_id(job),
            "nodes": job.nodes,
            "local_ranks": job.gpus_per_node,
            "local": rank.device,
            "mnnvl": int(job.rack),
        }

    def cut(self, phase: str, ranks: Iterable[Rank] | None = None) -> None:
        """Remove what these ranks, or all, print from that phase on."""
        first = PHASES.index(phase)
        chosen = {rank.rank for rank in (self.ranks if ranks is None else ranks)}
        self.lines = [
            line for line in self.lines if line.rank.rank not in chosen or PHASES.index(line.phase) < first
        ]
        self._clock_s.clear()

    def drop(self, *names: str, where: Callable[[Line], bool] = lambda _: True) -> None:
        """Remove the messages of these names."""
        self.lines = [line for line in self.lines if not (line.name in names and where(line))]

    def change(
        self,
        name: str,
        edit: Callable[[str], str],
        *,
        where: Callable[[Line], bool] = lambda _: True,
        decisive: bool = False,
    ) -> None:
        """Rewrite the text of every message of that name."""
        self.lines = [
            replace(line, text=edit(line.text), decisive=decisive or line.decisive)
            if line.name == name and where(line)
            else line
            for line in self.lines
        ]

    def mark(self, *names: str, where: Callable[[Line], bool] = lambda _: True) -> None:
        """Call the messages of these names decisive."""
        self.lines = [
            replace(line, decisive=True) if line.name in names and where(line) else line
            for line in self.lines
        ]

    def in_order(self) -> tuple[Line, ...]:
        """Return the lines as they reach one terminal."""
        return tuple(sorted(self.lines, key=lambda line: line.at_s))

    def _after(self, rank: Rank, at_s: float) -> float:
        """Return a moment just after that one and after all that the rank printed at that moment before."""
        key = rank.rank, at_s
        self._given_s[key] = max(at_s, self._given_s.get(key, 0.0)) + self.random.uniform(0.0001, 0.001)
        return self._given_s[key]

    def _line(
        self, rank: Rank, phase: str, name: str, level: str, text: str, *, thread: str, at_s: float | None
    ) -> Line:
        if at_s is None:
            begin = _BEGINS_S[phase] + self._delays_s[rank.rank]
            at_s = max(begin, self._clock_s.get(rank.rank, 0.0)) + self.random.uniform(0.0001, 0.03)
            self._clock_s[rank.rank] = at_s
        else:
            at_s = self._after(rank, at_s)
        threads = {"main": 0, "init": 612, "proxy": 618, "progress": 624, "async": 630}
        return Line(
            rank=rank,
            at_s=at_s,
            phase=phase,
            name=name,
            level=level,
            text=text,
            tid=rank.pid + threads[thread],
            device=0 if thread == "async" else rank.device,
        )


_FUNCTIONS = {
    "completion": "ncclIbLogCompletionWithError",
    "modify_qp": "wrap_ibv_modify_qp",
    "closed_by_peer": "socketProgress",
    "connect_failed": "socketConnectCheck",
    "connect_given_up": "socketConnectCheck",
    "duplicate_gpu": "initTransportsRank",
    "version_mismatch": "initTransportsRank",
    "shm_extend": "ncclShmOpen",
    "shm_segment": "ncclShmOpen",
    "proxy_operation": "proxyProgressAsync",
    "proxy_poll": "ncclPollProxyResponse",
    "no_algorithm": "ncclGetAlgoInfo",
    "async_event": "ncclIbAsyncThreadMain",
}
"""Functions that a WARN names from 2.30.7 on; others name the thread's own."""

_CALLERS = {"system_call": "misc/socket.cc", "cuda": "enqueue.cc", "cu": "transport/p2p.cc"}
"""Files that such a message names: that of the caller, not that of the macro."""


def _place(name: str, where: str, release: Release) -> str:
    """Return the file that a WARN names: files moved in 2.26 (plug-ins), 2.29 (verbs, sockets) and 2.30 (memory)."""
    if where.startswith("transport/net_ib/") and not release.is_from("2.29.2"):
        return "transport/net_ib.cc"
    if where == "os/linux.cc" and name.startswith("shm_") and not release.is_from("2.30.3"):
        return "misc/shmutils.cc"
    if where == "os/linux.cc" and not release.is_from("2.29.2"):
        return "misc/socket.cc"
    if where == "plugin/net.cc" and not release.is_from("2.26.2"):
        return "net.cc"
    return _CALLERS.get(name, where)
