"""A job in a lab: its ranks started, its output read, its end waited for."""

from __future__ import annotations

import json
import os
import random
import selectors
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from linkwise.errors import InputError
from linkwise.lab.design import LabDesign
from linkwise.lab.folder import HOME, JOB
from linkwise.lab.routes import Tier, counter_of, links_of
from linkwise.lab.wires import node_namespace

__all__ = ["JobEnd", "JobRequest", "run_job"]

_MARK = "@linkwise "
_MOST_LINES, _MOST_LINE_BYTES = 200_000, 4096
_SCRIPT = Path(__file__).parent / "torch_job" / "start.py"
_HARMLESS = "The hostname of the client socket cannot be retrieved"
"""What torch warns of where no names are resolved, as in a namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """What is run.

    Parameters
    ----------
    kind
        A module of `linkwise.lab.torch_job`.
    work
        What it reads, beside where its ranks are.
    python
        The Python that has torch.
    timeout_s
        How long one call may take [s].
    limit_s
        How long the job may take [s].
    grace_s
        How long ranks may go on once one has failed [s].
    """

    kind: str
    work: Mapping[str, object]
    python: str
    timeout_s: float = 60.0
    limit_s: float = 900.0
    grace_s: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """What a job said and how it ended.

    Parameters
    ----------
    events
        What it said for us, in order; with ``at_s``, seconds after it started.
    output
        Its other lines, without line breaks.
    exit_code
        0 where every rank ended well.
    wall_s
        From its start to its end [s].
    is_stopped
        Whether it was stopped because it took too long.
    """

    events: tuple[Mapping[str, Any], ...]
    output: tuple[str, ...]
    exit_code: int
    wall_s: float
    is_stopped: bool = False

    @property
    def is_done(self) -> bool:
        """Return whether it did all it should."""
        return self.exit_code == 0 and any(each["event"] == "done" for each in self.events)

    @property
    def reason(self) -> str:
        """Return why it failed, in one line; empty where it did not."""
        if self.is_done:
            return ""
        if self.is_stopped:
            return "it took too long and was stopped"
        if any("No module named 'torch'" in line for line in self.output):
            return "this Python has no torch; install torch there, or name one that has it with --python"
        for each in self.events:
            if each["event"] == "failed":
                return f"rank {each.get('rank')}: {str(each.get('error'))[:300]}"
        last = next((line.strip() for line in reversed(self.output) if line.strip()), "it said nothing")
        return f"it left with exit code {self.exit_code}: {last[:300]}"


def run_job(
    request: JobRequest,
    *,
    lab: str,
    design: LabDesign,
    watch: Callable[[Mapping[str, Any]], None] | None = None,
) -> JobEnd:
    """Return how a job in a lab ended, having waited for it. The caller holds the lock of the lab.

    Parameters
    ----------
    request
        What is run.
    lab
        Name of the lab.
    design
        What it is.
    watch
        Called with each event as it comes.

    Notes
    -----
    The first process ends when this one does, and the ranks when the first does: the kernel sees to it.
    """
    home = HOME / lab
    with tempfile.TemporaryDirectory(prefix=JOB, dir=home if home.is_dir() else None) as folder:
        plan = Path(folder) / "plan.json"
        plan.write_text(json.dumps(_plan(request, lab, design)), encoding="utf-8")
        return _run([request.python, str(_SCRIPT), str(plan)], limit_s=request.limit_s, watch=watch)


def _plan(request: JobRequest, lab: str, design: LabDesign) -> dict[str, object]:
    counters: dict[str, list[str]] = {}
    for link in links_of(design):
        namespace, device = counter_of(lab, link).split(" ")
        devices = counters.setdefault(namespace, [])
        if link.tier is not Tier.INSIDE:
            devices.append(device)
    nics = {(nic.node, nic.index): nic for nic in design.nics}
    first = nics.get((0, design.nic_of(0))) if nics else None
    return {
        "kind": request.kind,
        "ranks": [
            {
                "namespace": node_namespace(lab, design.node_of(rank)),
                "device": f"eth{design.nic_of(rank)}" if nics else "lo",
            }
            for rank in range(design.ranks)
        ],
        "address": "127.0.0.1" if first is None else first.address,
        "port": random.SystemRandom().randrange(20_000, 30_000),
        "timeout_s": request.timeout_s,
        "grace_s": request.grace_s,
        "parent": os.getpid(),
        "counters": counters,
        "loopbacks": [node_namespace(lab, node) for node in range(design.nodes)],
        **request.work,
    }


def _run(argv: list[str], *, limit_s: float, watch: Callable[[Mapping[str, Any]], None] | None) -> JobEnd:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    begin = time.monotonic()
    try:
        process = subprocess.Popen(  # noqa: S603 (words of our own, without a shell)
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
        )
    except OSError as error:
        raise InputError(f"{argv[0]}: {error.strerror}; name a Python that has torch with --python") from None
    events: list[Mapping[str, Any]] = []
    output: list[str] = []
    is_stopped = False
    with process:
        try:
            for line in _lines(process, begin + limit_s):
                event = _sort(line, events, output, at_s=time.monotonic() - begin)
                if event is not None and watch is not None:
                    watch(event)
            is_stopped = process.poll() is None and time.monotonic() >= begin + limit_s
        finally:
            if is_stopped or _is_left(process):
                process.kill()
        code = process.wait()
    return JobEnd(
        events=tuple(events),
        output=tuple(output),
        exit_code=code,
        wall_s=time.monotonic() - begin,
        is_stopped=is_stopped,
    )


def _is_left(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a process goes on although its output has ended, or nobody reads it any more."""
    try:
        process.wait(timeout=2.0)
    except subprocess.TimeoutExpired:
        return True
    return False


def _lines(process: subprocess.Popen[bytes], deadline: float) -> Iterator[str]:
    """Yield the lines of a process until it ends its output or the deadline is past."""
    stream: IO[bytes] = process.stdout  # type: ignore[assignment]
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while (left_s := deadline - time.monotonic()) > 0:
            if not selector.select(timeout=min(left_s, 1.0)):
                continue
            data = os.read(stream.fileno(), 65_536)
            if not data:
                break
            *whole, pending = (pending + data).split(b"\n")
            pending = pending[-_MOST_LINE_BYTES:]
            yield from (line[:_MOST_LINE_BYTES].decode("utf-8", "replace") for line in whole)
    if pending:
        yield pending.decode("utf-8", "replace")


def _sort(
    line: str, events: list[Mapping[str, Any]], output: list[str], *, at_s: float
) -> Mapping[str, Any] | None:
    """Keep a line among events or output, and return it if it is an event."""
    if line.startswith(_MARK) and len(events) < _MOST_LINES:
        try:
            told = json.loads(line.removeprefix(_MARK))
        except ValueError:
            told = None
        if isinstance(told, dict) and isinstance(told.get("event"), str):
            events.append({**told, "at_s": at_s})
            return events[-1]
    if _HARMLESS not in line and len(output) < _MOST_LINES:
        output.append(line)
    return None
