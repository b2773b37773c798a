"""Faults in a lab: one is put into a job that runs, and what the job did is told."""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from linkwise.errors import InputError
from linkwise.lab.design import LabDesign
from linkwise.lab.job import JobEnd, JobRequest
from linkwise.lab.shell import Shell
from linkwise.lab.wires import node_name, node_namespace, switch_namespace, tc_lines

__all__ = ["DoctorWord", "FaultKind", "FaultRun", "Injection", "fault_run", "faulty_request"]

FLAP_S = 3.0
"""How long a link that flaps is down [s]."""
_GRACE_S = 3.0
SLOW_LINK, SLOW_NODE = 10.0, 8.0
"""How many times slower a link and a node become [1]."""


class FaultKind(StrEnum):
    """What can be wrong."""

    LINK_DOWN = "link-down"
    """The links of a node are down from a step on."""
    LINK_FLAP = "link-flap"
    """They are down for some seconds."""
    SLOW_LINK = "slow-link"
    SLOW_NODE = "slow-node"
    """The GPUs of a node compute slower."""
    RANK_KILLED = "rank-killed"
    RANK_FROZEN = "rank-frozen"
    """A rank neither goes on nor ends."""
    NODE_LOST = "node-lost"
    """All ranks and links of a node at once."""


@dataclass(slots=True, kw_only=True)
class Injection:
    """A fault that waits for its step; it is told of every event of the job.

    Parameters
    ----------
    kind, node, step
        What, where and when.
    lab, design
        Where.
    shell
        Runs programs of the system.
    """

    kind: FaultKind
    node: int
    step: int
    lab: str
    design: LabDesign
    shell: Shell
    at_s: float | None = None
    _pids: dict[int, int] = field(default_factory=dict)
    _agents: dict[str, int] = field(default_factory=dict)
    _timer: threading.Timer | None = None

    def watch(self, event: Mapping[str, Any]) -> None:
        """Put the fault in once its step begins.

        Parameters
        ----------
        event
            Of the job.
        """
        if event["event"] == "started":
            self._pids[int(event["rank"])] = int(event["pid"])
        elif event["event"] == "agent":
            self._agents[str(event["namespace"])] = int(event["pid"])
        elif event["event"] == "step begins" and event["step"] == self.step and self.at_s is None:
            self.at_s = float(event["at_s"])
            _INJECT[self.kind](self)

    def mend(self) -> None:
        """Have all links as they were."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        if self.at_s is not None:
            self.set_links("up")
            self.set_rate(1.0)

    def set_links(self, state: str) -> None:
        """Set the links of the node at their leaf; addresses of the node stay.

        Parameters
        ----------
        state
            ``up`` or ``down``.
        """
        ports = "".join(f"link set {nic.port} {state}\n" for nic in self.design.nics if nic.node == self.node)
        self.shell(("ip", "-n", switch_namespace(self.lab), "-batch", "-"), ports)

    def set_rate(self, factor: float) -> None:
        """Set the rate of the links of the node, both ways, to so much of their own.

        Parameters
        ----------
        factor
            Of the rate that the design gives them [1].
        """
        rate = self.design.nic_bytes_per_s * factor
        nics = [nic for nic in self.design.nics if nic.node == self.node]
        ends = {
            node_namespace(self.lab, self.node): [f"eth{nic.index}" for nic in nics],
            switch_namespace(self.lab): [nic.port for nic in nics],
        }
        for namespace, devices in ends.items():
            lines = "".join(
                f"{line}\n" for device in devices for line in tc_lines(device, rate, replace=True)
            )
            self.shell(("tc", "-n", namespace, "-batch", "-"), lines)

    def signal_ranks(self, number: signal.Signals, *, is_all: bool) -> None:
        """Send a signal to the last rank of the node, or to all of them.

        Parameters
        ----------
        number
            The signal.
        is_all
            Whether to all.
        """
        ranks = [rank for rank in self._pids if self.design.node_of(rank) == self.node]
        for rank in ranks if is_all else ranks[-1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pids[rank], number)

    def flap(self) -> None:
        """Take the links down, and up again later."""
        self.set_links("down")
        self._timer = threading.Timer(FLAP_S, self.set_links, args=("up",))
        self._timer.daemon = True
        self._timer.start()

    def lose(self) -> None:
        """Take the node away: first its links, so that nothing says goodbye."""
        self.set_links("down")
        agent = self._agents.get(node_namespace(self.lab, self.node))
        if agent is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(agent, signal.SIGKILL)
        self.signal_ranks(signal.SIGKILL, is_all=True)


_INJECT: Mapping[FaultKind, Callable[[Injection], None]] = {
    FaultKind.LINK_DOWN: lambda fault: fault.set_links("down"),
    FaultKind.LINK_FLAP: Injection.flap,
    FaultKind.SLOW_LINK: lambda fault: fault.set_rate(1 / SLOW_LINK),
    FaultKind.SLOW_NODE: lambda _: None,  # the ranks of the node slow down by their plan
    FaultKind.RANK_KILLED: lambda fault: fault.signal_ranks(signal.SIGKILL, is_all=False),
    FaultKind.RANK_FROZEN: lambda fault: fault.signal_ranks(signal.SIGSTOP, is_all=False),
    FaultKind.NODE_LOST: Injection.lose,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorWord:
    """What the doctor said of an output.

    Parameters
    ----------
    verdict, words
        The verdict, and why.
    causes
        Of its findings, worst first.
    node
        The one node that the first finding names; ``None`` where it names several, or none.
    where
        All that it names.
    time_s
        What reading and judging took [s].
    """

    verdict: str
    words: str
    causes: tuple[str, ...]
    node: str | None
    where: tuple[str, ...]
    time_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRun:
    """What a job did under a fault, and what the doctor said of its output alone.

    Parameters
    ----------
    kind, node, step
        What was wrong, where and from when.
    did
        What the job did, in a sentence.
    noticed_s
        From the fault to the first error of a rank; ``None`` where there was none [s].
    ended_s
        From the fault to the end of the job; ``None`` where it went on [s].
    step_before_s, longest_after_s
        Median step before the fault; the longest that was finished after it, ``None`` without one [s].
    said
        What the doctor said of the output alone.
    """

    kind: FaultKind
    node: int
    step: int
    did: str
    noticed_s: float | None
    ended_s: float | None
    step_before_s: float
    longest_after_s: float | None
    said: DoctorWord

    @property
    def is_kind_named(self) -> bool:
        """Return whether the first finding is the cause of the name of the fault."""
        return self.said.causes[:1] == (self.kind.replace("-", "_"),)

    @property
    def is_node_right(self) -> bool | None:
        """Return whether the node that was named is the one; ``None`` where none was."""
        return None if self.said.node is None else self.said.node == node_name(self.node)


def faulty_request(request: JobRequest, fault: Injection, *, timeout_s: float) -> JobRequest:
    """Return a job that a fault is put into.

    Parameters
    ----------
    request
        The job without it.
    fault
        What is put in.
    timeout_s
        How long one call may take; others go on so long, and some more, once a rank has failed [s].
    """
    work = dict(request.work)
    if fault.kind is FaultKind.SLOW_NODE:
        namespace = node_namespace(fault.lab, fault.node)
        work["slow"] = {"namespace": namespace, "step": fault.step, "factor": SLOW_NODE}
    return replace(request, work=work, timeout_s=timeout_s, grace_s=timeout_s + _GRACE_S)


def fault_run(fault: Injection, end: JobEnd) -> FaultRun:
    """Return what a job did under a fault.

    Parameters
    ----------
    fault
        What was put in.
    end
        How the job ended.

    Raises
    ------
    InputError
        If the job ended before the fault.
    """
    if fault.at_s is None:
        raise InputError(f"the job ended before step {fault.step}: {end.reason or 'give a smaller --at'}")
    at_s = fault.at_s
    steps = [each for each in end.events if each["event"] == "step"]
    before = [float(each["time_s"]) for each in steps if 0 <= each["step"] < fault.step]
    after = [float(each["time_s"]) for each in steps if each["step"] >= fault.step]
    errors = [each for each in end.events if each["event"] == "failed"]
    return FaultRun(
        kind=fault.kind,
        node=fault.node,
        step=fault.step,
        did="".join(_told(end, errors)),
        noticed_s=float(errors[0]["at_s"]) - at_s if errors else None,
        ended_s=None if end.is_done else end.wall_s - at_s,
        step_before_s=statistics.median(before),
        longest_after_s=max(after, default=None),
        said=_asked(end, nodes=fault.design.nodes),
    )


def _told(end: JobEnd, errors: list[Mapping[str, Any]]) -> Iterator[str]:
    if end.is_done:
        yield "it went on to its end"
        return
    yield "it was stopped, having taken too long" if end.is_stopped else "it failed"
    if errors:
        ranks = sorted({int(each["rank"]) for each in errors})
        first = textwrap.shorten(str(errors[0]["error"]), 160, placeholder=" ...")
        yield f"; ranks {', '.join(map(str, ranks))} had errors, the first said: {first}"


def _asked(end: JobEnd, *, nodes: int) -> DoctorWord:
    """Return what the doctor says, who sees the output of the job alone."""
    from linkwise.diagnose.doctor import diagnose
    from linkwise.readers.job_log.reading import parse_job_log

    begin = time.perf_counter()
    text = "".join(f"{line}\n" for line in end.output).encode()
    found = diagnose(parse_job_log([("output of the job", text)]))
    time_s = time.perf_counter() - begin
    where = found.findings[0].where if found.findings else ()
    named = [each for each in where if each in map(node_name, range(nodes))]
    return DoctorWord(
        verdict=str(found.verdict),
        words=found.findings[0].explanation if found.findings else found.reason,
        causes=tuple(each.cause for each in found.findings),
        node=named[0] if len(named) == 1 else None,
        where=where,
        time_s=time_s,
    )
