"""One job from start to end: started on a place, followed, stopped in any case, and recorded."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import signal
import subprocess
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from linkwise import __version__
from linkwise.errors import InputError
from linkwise.launch.run.checks import SeenRank
from linkwise.launch.run.ending import Ending, Outcome, ending_of
from linkwise.launch.run.node_files import addresses_in, ranks_in, refusal_in
from linkwise.launch.run.node_sight import addresses_of, connections_of, rank_of
from linkwise.launch.run.place import Command, Place, Queue, TorchJob
from linkwise.launch.run.processes import Processes
from linkwise.launch.run.proof import prove_start, seen_rank
from linkwise.launch.run.record import RunFolder, RunRecord, recorded_settings
from linkwise.launch.run.transports import transports_of

__all__ = ["MARK", "FinishedRun", "Patience", "run_job", "run_program"]

MARK = "@linkwise "
"""What a line starts with that a rank says for Linkwise; JSON follows."""

MOST_EVENTS = 2_000_000
"""More lines than that from one job are refused."""
_LEAVING_S = 5.0
"""How long a job may take to end once a rank said that it failed [s]."""
_SURE_S = 60.0
"""How long it may take to make sure that nothing of a job goes on [s]."""
_TAIL_LINES = 200
_MOST_FAILURES = 64

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a job may say nothing.

    Parameters
    ----------
    start_s
        Until all its ranks are there [s].
    silence_s
        Between two things it says after that [s].
    """

    start_s: float
    silence_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A job that ended, well or not.

    Parameters
    ----------
    record
        How it was started, and how it ended.
    events
        What its ranks said, in order, up to the end.
    log
        Lines of NCCL, where it was told to log.
    """

    record: RunRecord
    events: tuple[Event, ...]
    log: tuple[str, ...] = ()


@dataclass(slots=True)
class _Followed:
    """What a job has said so far; one that does not speak is heard in every line."""

    speaks: bool
    events: list[Event] = field(default_factory=list)
    failures: list[Event] = field(default_factory=list)
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=_TAIL_LINES))
    log: list[str] = field(default_factory=list)
    ready: set[int] = field(default_factory=set)
    hosts: dict[str, int] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    ranks: list[SeenRank] = field(default_factory=list)
    addresses: dict[str, dict[str, str]] = field(default_factory=dict)
    is_complete: bool = False
    cut_line: str | None = None
    waiting: str = ""


def run_job(
    job: TorchJob,
    plan: Mapping[str, object],
    *,
    what: str,
    place: Place,
    folder: RunFolder,
    patience: Patience,
    inherited: Mapping[str, str] | None = None,
    on_event: Callable[[Event], None] = lambda _: None,
    now: Callable[[], dt.datetime] = lambda: dt.datetime.now(tz=dt.UTC),
) -> FinishedRun:
    """Return a job's run once it ended; whatever happens, its processes are stopped and its record written.

    Parameters
    ----------
    job
        What is started; the path of its plan is its last argument.
    plan
        What it is told to do, as JSON.
    what
        Such as ``bench collectives``.
    place
        Where it runs.
    folder
        Where its record goes.
    patience
        How long it may say nothing.
    inherited
        The environment; that of this process by default.
    on_event
        Called with everything a rank says.
    now
        The clock of the record.

    Raises
    ------
    KeyboardInterrupt
        When this process is interrupted or asked to end, after the job was stopped and recorded.
    """
    run_id = _new_id()
    text = json.dumps(plan)
    environ = dict(os.environ if inherited is None else inherited)
    written = folder.write_plan(text)
    told = replace(job, arguments=(*job.arguments, str(written)))
    command = place.command(told, run_id=run_id, inherited=environ)
    record = _begun(
        command, environ, text, run_id=run_id, what=what, place=place.name, ranks=job.ranks, now=now
    )
    # torchrun makes a folder for logs and leaves it where temporary files are.
    with tempfile.TemporaryDirectory(dir=written.parent, prefix="temporary-") as scratch:
        environ["TMPDIR"] = scratch
        return _run(command, environ, record, folder, patience=patience, on_event=on_event, now=now)


def run_program(
    command: Command,
    *,
    what: str,
    place: str,
    ranks: int,
    folder: RunFolder,
    patience: Patience,
    inherited: Mapping[str, str] | None = None,
    now: Callable[[], dt.datetime] = lambda: dt.datetime.now(tz=dt.UTC),
) -> FinishedRun:
    """Return the run of a program that says nothing for Linkwise; its output is the log.

    Parameters
    ----------
    command
        What is started.
    what, folder, patience, inherited, now
        As for `run_job`.
    place
        Name of the place.
    ranks
        Processes or threads that it makes [1].
    """
    environ = dict(os.environ if inherited is None else inherited)
    text, run_id = json.dumps(command.argv), _new_id()
    record = _begun(command, environ, text, run_id=run_id, what=what, place=place, ranks=ranks, now=now)
    return _run(command, environ, record, folder, patience=patience, on_event=None, now=now)


def _new_id() -> str:
    return uuid.uuid4().hex[:16]


def _begun(
    command: Command,
    inherited: Mapping[str, str],
    plan: str,
    *,
    run_id: str,
    what: str,
    place: str,
    ranks: int,
    now: Callable[[], dt.datetime],
) -> RunRecord:
    return RunRecord(
        run_id=run_id,
        what=what,
        place=place,
        argv=command.argv,
        settings=recorded_settings(command.environment(inherited)),
        plan_digest=hashlib.sha256(plan.encode()).hexdigest(),
        started=now(),
        ranks=ranks,
        versions={"linkwise": __version__},
    )


def _run(
    command: Command,
    inherited: Mapping[str, str],
    record: RunRecord,
    folder: RunFolder,
    *,
    patience: Patience,
    on_event: Callable[[Event], None] | None,
    now: Callable[[], dt.datetime],
) -> FinishedRun:
    """Start, follow, stop and record; a program without `on_event` says nothing for Linkwise."""
    _write(folder, record)
    found = _Followed(speaks=on_event is not None)
    ending = Ending(outcome=Outcome.INTERRUPTED, reason="interrupted from the keyboard, or asked to end")
    variables = command.environment(inherited)
    try:
        with (
            _ended_by_signal(),
            Processes(command.argv, environment=variables, run_id=record.run_id) as processes,
        ):
            ending = _follow(
                processes, found, folder, ranks=record.ranks, patience=patience, on_event=on_event,
                queue=command.queue,
            )  # fmt: skip
            ending = _refused(command, ending)
    except InputError as error:
        ending = Ending(outcome=Outcome.NOT_STARTED, reason=str(error))
        raise
    except OSError as error:
        ending = Ending(
            outcome=Outcome.FAILED, reason=f"{folder.path}: {error.strerror}; the job was stopped"
        )
    finally:
        if ending.outcome is not Outcome.DONE:
            _make_sure(command, variables)
        record = _ended(record, found, ending, command=command, ended=now())
        _write(folder, record)
    return FinishedRun(record=record, events=tuple(found.events), log=tuple(found.log))


def _write(folder: RunFolder, record: RunRecord) -> None:
    try:
        folder.write_record(record)
    except OSError as error:
        raise InputError(
            f"{folder.path}: the record of the run cannot be written ({error.strerror})"
        ) from None


def _refused(command: Command, ending: Ending) -> Ending:
    """Return that a node refused the job, where its agent wrote so."""
    refusal = () if command.seen_in is None else refusal_in(command.seen_in)
    if not refusal or ending.outcome is Outcome.DONE:
        return ending
    return replace(ending, outcome=Outcome.NOT_STARTED, reason="; ".join(refusal))


def _make_sure(command: Command, environment: Mapping[str, str]) -> None:
    if command.stop:
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(  # noqa: S603 (words of the place)
                command.stop, env=environment, check=False, capture_output=True, timeout=_SURE_S
            )


def _ended(
    record: RunRecord, found: _Followed, ending: Ending, *, command: Command, ended: dt.datetime
) -> RunRecord:
    expected, folder = command.expected, command.seen_in
    ranks = found.ranks if folder is None else ranks_in(folder)
    addresses = found.addresses if folder is None else addresses_in(folder)
    checks = () if expected is None else prove_start(expected, ranks, addresses=addresses)
    return replace(
        record,
        ended=ended,
        hosts=tuple(sorted(found.hosts, key=found.hosts.__getitem__)),
        versions={**record.versions, **found.versions},
        transports=tuple(transports_of(found.log)) if found.log else (),
        samples=len(found.events),
        ending=ending,
        checks=checks,
    )


@contextmanager
def _ended_by_signal() -> Iterator[None]:
    """Turn being asked to end into an interrupt, so that the job is stopped and recorded first."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    try:
        heard = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) != signal.SIG_IGN]
        before = {number: signal.signal(number, interrupt) for number in heard}
    except ValueError:  # not the main thread, to which alone signals come
        before = {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _follow(
    processes: Processes,
    found: _Followed,
    folder: RunFolder,
    *,
    ranks: int,
    patience: Patience,
    on_event: Callable[[Event], None] | None,
    queue: Queue | None,
) -> Ending:
    """Take what the job says until it ends or has said nothing for too long."""
    heard_at = time.monotonic()
    for line in processes.lines():
        if line is not None:
            is_word = on_event is None or MARK in line or _is_of_queue(found, line, queue, on_event)
            heard_at = time.monotonic() if is_word else heard_at
            _hear(found, line, folder, on_event)
        silent_s = time.monotonic() - heard_at
        if found.waiting and queue is not None:
            if silent_s > queue.patience_s:
                return _queued(queue, found.waiting)
            continue
        if found.failures and silent_s > _LEAVING_S:
            break  # some rank said why; one that hangs keeps the others from leaving
        is_started = not found.speaks or len(found.ready) >= ranks
        if silent_s > (patience.silence_s if is_started else patience.start_s):
            return _silence(found, ranks, silent_s)
        if len(found.events) > MOST_EVENTS:
            return Ending(outcome=Outcome.FAILED, reason=f"it said more than {MOST_EVENTS:,} things")
    exit_code = processes.exit_code
    if exit_code is None:
        return Ending(outcome=Outcome.FAILED, reason=_unanswered(found))
    if found.cut_line is not None and not found.failures:
        found.failures.append({"rank": "?", "error": f"its output was cut in the line {found.cut_line!r}"})
    return ending_of(
        exit_code=exit_code,
        is_complete=not found.speaks or (found.is_complete and found.cut_line is None),
        failures=found.failures,
        output=tuple(found.tail),
    )


def _is_of_queue(
    found: _Followed, line: str, queue: Queue | None, on_event: Callable[[Event], None] | None
) -> bool:
    """Return whether a line says that the job waits in a queue, or no longer; whoever listens is told."""
    waiting = None if queue is None else queue.heard(line)
    if waiting is None:
        return False
    found.waiting = waiting
    if waiting and on_event is not None:
        on_event({"event": "waiting", "job": waiting})
    return True


def _queued(queue: Queue, job: str) -> Ending:
    why = queue.reason(job)
    reason = f"it was queued for {queue.patience_s:.0f} s{f' ({why})' if why else ''}; the job was stopped"
    return Ending(outcome=Outcome.NOT_STARTED, reason=reason)


def _hear(found: _Followed, line: str, folder: RunFolder, on_event: Callable[[Event], None] | None) -> None:
    before, mark, text = line.partition(MARK)
    if mark and on_event is not None:
        _take(found, text, folder, on_event)
    if not mark or on_event is None or before.strip():
        _keep(found, before if mark and on_event is not None else line, folder)


def _take(found: _Followed, text: str, folder: RunFolder, on_event: Callable[[Event], None]) -> None:
    try:
        event = json.loads(text)
    except ValueError:
        event = None
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        found.cut_line = found.cut_line or text[:80]
        return
    folder.add_sample(text)
    found.events.append(event)
    if event["event"] == "failed" and len(found.failures) < _MOST_FAILURES:
        found.failures.append(event)
    elif event["event"] == "ready":
        _take_rank(found, event)
    elif event["event"] == "done":
        found.is_complete = True
    on_event(event)


def _take_rank(found: _Followed, event: Event) -> None:
    host, rank = str(event.get("host"))[:255], event.get("rank")
    if isinstance(rank, int):
        found.ready.add(rank)
        found.hosts[host] = min(rank, found.hosts.get(host, rank))
    _look_at_rank(found, event.get("pid"), host)
    for name in ("python", "torch", "nccl", "gpu"):
        if name in event:
            found.versions.setdefault(name, str(event[name])[:100])


def _look_at_rank(found: _Followed, pid: object, host: str) -> None:
    """Keep what the kernel shows of a rank, where it runs on this machine; all have met by now."""
    told = rank_of(pid, host=host) if isinstance(pid, int) else None
    if told is None:
        return
    told["connections"] = connections_of(told["pid"], without_port=told["store_port"])
    if (rank := seen_rank(told)) is not None:
        found.ranks.append(rank)
        found.addresses.setdefault(host, addresses_of(str(told["pid"])))


def _keep(found: _Followed, line: str, folder: RunFolder) -> None:
    folder.add_output(line)
    found.tail.append(line)
    if (not found.speaks or " NCCL " in line) and len(found.log) < MOST_EVENTS:
        found.log.append(line)


def _unanswered(found: _Followed) -> str:
    """Return what a rank said before it left, and who said nothing."""
    failed = {event.get("rank") for event in found.failures}
    mute = sorted(found.ready - failed)
    who = f"; no answer from {_ranks(mute)}, and the job was stopped" if mute else "; the job was stopped"
    first = found.failures[0] if found.failures else {"rank": "?", "error": "closed its output and went on"}
    return f"rank {first.get('rank')}: {str(first.get('error'))[:600]}{who}"


def _ranks(numbers: Sequence[int]) -> str:
    named = ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")
    return f"{'ranks' if len(numbers) > 1 else 'rank'} {named}"


def _silence(found: _Followed, ranks: int, silent_s: float) -> Ending:
    missing = sorted(set(range(ranks)) - found.ready) if found.speaks else []
    if missing:
        reason = f"after {silent_s:.0f} s {_ranks(missing)} of {ranks} had not joined; the job was stopped"
        return Ending(outcome=Outcome.NOT_STARTED, reason=reason)
    last = found.events[-1] if found.events else {}
    at = ", ".join(f"{name} {value}" for name, value in last.items() if name in _NAMED_PLACES)
    reason = f"it said nothing for {silent_s:.0f} s{f' (last: {at})' if at else ''}; the job was stopped"
    return Ending(outcome=Outcome.SILENT, reason=reason)


_NAMED_PLACES = ("operation", "size_bytes", "round", "cut", "step")
