"""A job launched, followed to its end, stopped where it must be, and its record written in any case."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from signal import SIG_IGN, SIGINT, SIGTERM, signal
from typing import TYPE_CHECKING, Protocol

from linkwise import __version__
from linkwise.errors import InputError
from linkwise.launch.run.ending import Ending, Outcome, ending_of
from linkwise.launch.run.launch_folder import LaunchFolder
from linkwise.launch.run.launch_place import LaunchPlace, Phase, State
from linkwise.launch.run.launch_record import LaunchRecord, Witnessed
from linkwise.launch.run.proof import prove
from linkwise.launch.run.steps import StepLog

if TYPE_CHECKING:
    from linkwise.diagnose.doctor import Diagnosis

__all__ = ["Follow", "LaunchPatience", "Watch", "Watched", "begin", "follow"]

LEAST_FREE_BYTES = 16 << 20
"""With less the next lines of a log may be lost, and the record with them [bytes]."""
_TIMED_OUT = 124
TICK_S = 1.0
"""Between two turns of reading: more often costs more of a core than following may [s]."""
LOOK_S = 2.0
"""Between two looks at the state of the job [s]."""
REFUSED_S = 10.0
"""How long a job may take to leave once a node refused it: a scheduler may wait for another one [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What logs of NCCL showed.

    Parameters
    ----------
    diagnosis
        That of the doctor; ``None`` where nothing could be read.
    settings
        Variables that NCCL said it read, with their values.
    """

    diagnosis: Diagnosis | None
    settings: tuple[tuple[str, str], ...] = ()


class Watch(Protocol):
    """Who follows the logs while the job runs."""

    def turn(self) -> None:
        """Read what was added, and tell what that changes."""
        ...

    def finish(self) -> Watched:
        """Return what all of it showed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPatience:
    """How long a job may take to start, and be silent.

    Parameters
    ----------
    queue_s
        In the queue of a scheduler [s].
    start_s
        From there until all ranks are there [s].
    silence_s
        After that, without a line of output or a log [s].
    """

    queue_s: float
    start_s: float
    silence_s: float = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Follow:
    """What following a run needs of the world.

    Parameters
    ----------
    folder, place
        Where its files are, and where it runs.
    patience
        How long it may take to start.
    watch
        Who follows the logs, by the handle of the job.
    publish
        Makes the text of the record.
    tell
        Called when steps were done.
    tell_waiting
        Called with the state and the handle of a job that waits in a queue, at every look.
    now
        The clock of the record.
    clock
        The time, which never goes back [s].
    wait
        Waits for some seconds.
    """

    folder: LaunchFolder
    place: LaunchPlace
    patience: LaunchPatience
    watch: Callable[[str], Watch]
    publish: Callable[[LaunchRecord], str]
    tell: Callable[[StepLog], None] = lambda _: None
    tell_waiting: Callable[[State, str], None] = lambda *_: None
    now: Callable[[], dt.datetime] = lambda: dt.datetime.now(tz=dt.UTC)
    clock: Callable[[], float] = time.monotonic
    wait: Callable[[float], None] = time.sleep


@dataclass(slots=True)
class _Seen:
    """How far a job has come, for the next look at it."""

    steps: StepLog
    since_s: float
    running_s: float | None = None
    looked_s: float = float("-inf")
    ranks: int = 0
    hosts: tuple[str, ...] = field(default_factory=tuple)
    refused_s: float | None = None
    written_bytes: int = 0
    heard_s: float | None = None


def begin(record: LaunchRecord, environment: Mapping[str, str], to: Follow) -> LaunchRecord:
    """Return the record of a job that was started.

    Parameters
    ----------
    record
        What is planned.
    environment
        All variables of the job.
    to
        Where it runs, and where the record goes.

    Raises
    ------
    InputError
        When it cannot be started; the record then says so.
    """
    to.folder.write_record(to.publish(record), is_last=False)
    try:
        handle = to.place.start(to.folder.path, environment, run_id=record.run_id)
    except InputError as error:
        ending = Ending(outcome=Outcome.NOT_STARTED, reason=str(error))
        to.folder.write_record(to.publish(replace(record, ending=ending, ended=to.now())), is_last=True)
        raise
    started = replace(record, handle=handle)
    to.folder.write_record(to.publish(started), is_last=False)
    return started


def follow(record: LaunchRecord, to: Follow) -> LaunchRecord:
    """Return the record of a job once it ended; whatever happens here, what runs is stopped and recorded.

    Parameters
    ----------
    record
        Of a job that was started, here or by a launcher that is gone.
    to
        What this needs of the world.

    Raises
    ------
    KeyboardInterrupt
        When this process is interrupted or asked to end, after the job was stopped and recorded.
    """
    per_gpu = record.prediction.tokens_per_step / record.expected.ranks
    sequences = record.prediction.sequences_per_step or 1
    seen = _Seen(steps=StepLog(to.folder.path, per_gpu, sequences), since_s=to.clock())
    watch = to.watch(record.handle)
    ending = Ending(outcome=Outcome.INTERRUPTED, reason="interrupted from the keyboard, or asked to end")
    try:
        with _ended_by_signal():
            ending = _until_end(record, to, seen, watch)
    except OSError as error:
        ending = Ending(outcome=Outcome.FAILED, reason=f"{to.folder.path}: {error.strerror}")
    finally:
        with _undisturbed():
            to.place.stop(record.handle, run_id=record.run_id)
            seen.steps.look()
            while seen.steps.read():
                pass
            record = _ended(record, to, seen, watch, ending)
            to.folder.write_record(to.publish(record), is_last=True)
    return record


@contextmanager
def _ended_by_signal() -> Iterator[None]:
    """Turn being asked to end into an interrupt; a terminal that goes away ends the launcher and no job."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    try:
        before = signal(SIGTERM, interrupt)
    except ValueError:  # not the main thread, to which alone signals come
        yield
        return
    try:
        yield
    finally:
        signal(SIGTERM, before)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let no further signal break off the stopping of a job and the writing of its record."""
    try:
        before = {number: signal(number, SIG_IGN) for number in (SIGINT, SIGTERM)}
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal(number, handler)


def _until_end(record: LaunchRecord, to: Follow, seen: _Seen, watch: Watch) -> Ending:
    while True:
        if to.clock() - seen.looked_s >= LOOK_S:
            seen.looked_s = to.clock()
            seen.steps.look()
            state = to.place.state(to.folder.path, record.handle, run_id=record.run_id)
            seen.hosts = state.hosts or seen.hosts
            if state.phase is Phase.ENDED:
                return _ending(record, to, seen, state)
            if (cause := _cause_to_stop(record, to, seen, state)) is not None:
                return cause
        watch.turn()
        if seen.steps.read():
            to.tell(seen.steps)
        to.wait(TICK_S)


def _cause_to_stop(record: LaunchRecord, to: Follow, seen: _Seen, state: State) -> Ending | None:
    """Return why a job that runs or waits is stopped now; ``None`` for no reason."""
    now_s, wanted = to.clock(), record.expected.ranks
    if to.folder.free_bytes() < LEAST_FREE_BYTES:
        free = f"{to.folder.free_bytes() / 1e6:.0f} MB"
        return _stopped(Outcome.FAILED, f"the disk of {to.folder.path} is full ({free} free)")
    if state.phase is Phase.WAITING:
        if now_s - seen.since_s > to.patience.queue_s:
            why = f" ({state.reason})" if state.reason else ""
            return _stopped(Outcome.NOT_STARTED, f"it was queued for {to.patience.queue_s:.0f} s{why}")
        to.tell_waiting(state, record.handle)
        return None
    seen.running_s = now_s if seen.running_s is None else seen.running_s
    if refusal := to.folder.refusal():
        seen.refused_s = now_s if seen.refused_s is None else seen.refused_s
        return (
            _stopped(Outcome.NOT_STARTED, "; ".join(refusal)) if now_s - seen.refused_s > REFUSED_S else None
        )
    if seen.ranks < wanted:
        seen.ranks = len({each.rank for each in to.folder.ranks()})
    if seen.ranks < wanted and now_s - seen.running_s > to.patience.start_s:
        return _stopped(
            Outcome.NOT_STARTED,
            f"after {to.patience.start_s:.0f} s {seen.ranks} of {wanted} ranks had started{_mute(to, seen)}",
        )
    return _silence(to, seen, now_s) if seen.ranks >= wanted else None


def _silence(to: Follow, seen: _Seen, now_s: float) -> Ending | None:
    """Return that a job hangs, where none of its files has grown for too long."""
    written_bytes = to.folder.written_bytes()
    if seen.heard_s is None or written_bytes != seen.written_bytes:
        seen.heard_s, seen.written_bytes = now_s, written_bytes
    if now_s - seen.heard_s <= to.patience.silence_s:
        return None
    last = max(seen.steps.steps, default=None)
    after = "no step was told" if last is None else f"the last step told is {last}"
    words = f"it wrote nothing for {to.patience.silence_s:.0f} s, so that it hangs ({after})"
    return _stopped(Outcome.SILENT, words)


def _mute(to: Follow, seen: _Seen) -> str:
    """Return which of the nodes that a scheduler gave have said nothing."""
    heard = {str(each.get("host")) for each in to.folder.nodes()}
    mute = [each for each in seen.hosts if each not in heard]
    return f"; nothing was heard of {', '.join(mute[:8])}" if mute else ""


def _stopped(outcome: Outcome, reason: str) -> Ending:
    return Ending(outcome=outcome, reason=f"{reason}; the job was stopped")


def _ending(record: LaunchRecord, to: Follow, seen: _Seen, state: State) -> Ending:
    seen.steps.look()
    while seen.steps.read():
        pass
    if refusal := to.folder.refusal():
        return Ending(outcome=Outcome.NOT_STARTED, reason="; ".join(refusal), exit_code=state.exit_code)
    if state.exit_code is None and not state.is_cancelled:
        why = state.reason or "its processes are gone, and none wrote down how it ended"
        return Ending(outcome=Outcome.CUT, reason=why)
    if state.exit_code == _TIMED_OUT or "TIMEOUT" in state.reason:
        return Ending(outcome=Outcome.FAILED, reason="its time limit ended it", exit_code=state.exit_code)
    if state.exit_code is None:
        return Ending(outcome=Outcome.FAILED, reason=state.reason)
    ending = ending_of(exit_code=state.exit_code, is_complete=True, failures=(), output=to.folder.tail())
    if state.reason and ending.outcome is Outcome.FAILED:
        return replace(ending, reason=f"{state.reason}: {ending.reason}")
    last, planned = max(seen.steps.steps, default=0), record.prediction.steps
    if ending.outcome is Outcome.DONE and planned is not None and last < planned:
        words = f"its output ends at step {last} of {planned}, though it left without an error"
        return Ending(outcome=Outcome.CUT, reason=words, exit_code=0)
    return ending


def _ended(record: LaunchRecord, to: Follow, seen: _Seen, watch: Watch, ending: Ending) -> LaunchRecord:
    watched = watch.finish()
    expected = replace(record.expected, hosts=record.expected.hosts or seen.hosts)
    ranks, found = to.folder.ranks(), watched.diagnosis
    transport = None if found is None else found.transport
    nodes = to.folder.nodes()
    addresses = {str(each.get("host")): each["addresses"] for each in nodes if _has_addresses(each)}
    checks = prove(expected, ranks, transport=transport, logged=watched.settings, addresses=addresses)
    witnessed = Witnessed(
        hosts=tuple(dict.fromkeys(each.host for each in ranks)),
        versions={"linkwise": __version__, **_versions(to.folder)},
        transports={} if found is None else _transports(found),
        findings=() if found is None else tuple(each.cause for each in found.findings),
        verdict="" if found is None else found.verdict.value,
        checks=checks,
        steps=tuple(seen.steps.steps.values()),
    )
    return replace(record, expected=expected, ended=to.now(), ending=ending, witnessed=witnessed)


def _has_addresses(node: Mapping[str, object]) -> bool:
    return isinstance(node.get("addresses"), dict)


def _versions(folder: LaunchFolder) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in folder.nodes():
        told = node.get("versions")
        for name, value in told.items() if isinstance(told, dict) else ():
            found.setdefault(str(name)[:100], str(value)[:100])
    return found


_TRANSPORTS = ("nccl_version", "intra_node", "inter_node", "nics_per_node", "gpudirect_rdma", "nvls")


def _transports(found: Diagnosis) -> dict[str, str]:
    values = {name: getattr(found.transport, name).value for name in _TRANSPORTS}
    return {name: str(value) for name, value in values.items() if value is not None}
