"""What `linkwise watch` does beside reading options: files, clock, terminal and the programs it tells."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwise.errors import ExitCode, InputError

if TYPE_CHECKING:
    from linkwise.launch.run.launch_record import LaunchRecord
    from linkwise.monitor.alert import Alert, Objective
    from linkwise.monitor.alertmanager import Alertmanager
    from linkwise.monitor.tail import Tail
    from linkwise.monitor.watching import Watch

__all__ = ["WatchRequest", "watch_job"]

_PAUSE_S = 0.1
_SERVERS_ONLY_PAUSE_S = 0.5
_STATUS_S = 60.0
_REFRESH_S = 0.5
_TEXTFILE_S = 15.0
_RECORD_S = 1.0
_HEAD_BYTES = 1024
_KERNEL_LOG = "/dev/kmsg"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """What is watched, and who is told.

    Parameters
    ----------
    paths
        Logs, folders, run folders, ``-``.
    is_replay
        Whether they are recordings.
    endpoints
        Addresses of metrics of servers.
    is_host_watched
        Whether ports and kernel log of this host are watched.
    run
        Name of the job; ``None`` to take it from the paths.
    until_quiet_s, stall_s
        As the options of these names; ``None`` where not given [s].
    finds_drift
        Whether drift is looked for.
    metrics
        Where metrics are shown: address and port; ``None`` for nowhere.
    textfile
        Where they are written.
    alertmanager
        Who is told.
    prints_lines
        Whether alerts are lines of JSON.
    form
        ``table`` or ``json``.
    objectives
        What must be kept.
    """

    paths: tuple[str, ...] = ()
    is_replay: bool = False
    endpoints: tuple[str, ...] = ()
    is_host_watched: bool = False
    run: str | None = None
    until_quiet_s: float | None = None
    stall_s: float | None = None
    finds_drift: bool = True
    metrics: tuple[str, int] | None = None
    textfile: Path | None = None
    alertmanager: str | None = None
    prints_lines: bool = False
    form: str = "table"
    objectives: tuple[Objective, ...] = ()


def watch_job(request: WatchRequest) -> ExitCode:
    """Return the exit code of a watch, having told what was seen.

    Parameters
    ----------
    request
        What is watched.

    Raises
    ------
    InputError
        When something that was asked for cannot be.
    """
    from linkwise.report.watch_result import WatchVerdict, watch_result

    if request.finds_drift and importlib.util.find_spec("scipy") is None:
        raise InputError(
            "drift is found with SciPy, which is not here; pip install 'linkwise[watch]', or use --no-drift"
        )
    folders = tuple(Path(each) for each in request.paths if _is_run_folder(each))
    count = len(request.paths)
    request, records = _with_run_folders(request)
    with ExitStack() as stack:
        watch = _watch_of(request, records)
        teller = stack.enter_context(_teller(watch, request))
        if request.is_replay:
            _replay(watch, teller)
        else:
            _follow(watch, request, teller, _Runs(folders if len(folders) == count else ()))
        teller.tell(watch.finish())
        teller.end()
        result = watch_result(watch, run=request.run or "job", is_replay=request.is_replay)
    if request.prints_lines:
        click.echo(result.model_dump_json(by_alias=True))
    elif request.form == "json":
        from linkwise.report.results import published_json

        click.echo(published_json(result))
    else:
        from linkwise.report.tables import console_for
        from linkwise.report.watch_table import print_watch

        print_watch(result, console_for())
    return {
        WatchVerdict.HEALTHY: ExitCode.DONE,
        WatchVerdict.AGAINST: ExitCode.AGAINST,
        WatchVerdict.CANNOT_TELL: ExitCode.INCONCLUSIVE,
        WatchVerdict.NOTHING: ExitCode.NOT_MEASURED,
    }[result.verdict]


def _is_run_folder(path: str) -> bool:
    """Return whether a path is the run folder of a launch; those of benches and labs are folders of logs."""
    record = Path(path) / "record.json"
    if path == "-" or not record.is_file():
        return False
    with record.open("rb") as file:
        return b'"linkwise.launch/1"' in file.read(_HEAD_BYTES)


class _Runs:
    """Run folders whose jobs end some time: their records say so, where a log only falls silent."""

    def __init__(self, folders: tuple[Path, ...]) -> None:
        self._waiting = dict.fromkeys(folders, 0)
        self._looked_s = time.monotonic()

    def are_over(self) -> bool:
        """Return whether there are such folders, and all their jobs have ended."""
        from linkwise.launch.run.ending import Outcome
        from linkwise.report.launch_result import read_launch

        if not self._waiting or time.monotonic() - self._looked_s < _RECORD_S:
            return False
        self._looked_s = time.monotonic()
        for folder, before_ns in list(self._waiting.items()):
            changed_ns = (folder / "record.json").stat().st_mtime_ns
            if changed_ns == before_ns:
                continue
            self._waiting[folder] = changed_ns
            if read_launch(folder).ending.outcome is not Outcome.RUNNING:
                del self._waiting[folder]
        return not self._waiting


def _with_run_folders(request: WatchRequest) -> tuple[WatchRequest, tuple[LaunchRecord, ...]]:
    """Return the request with run folders as their logs; one whose job has ended is a recording."""
    from linkwise.launch.run.ending import Outcome

    paths: list[str] = []
    records: list[LaunchRecord] = []
    for each in request.paths:
        folder = Path(each)
        if not _is_run_folder(each):
            paths.append(each)
            continue
        from linkwise.report.launch_result import read_launch

        records.append(read_launch(folder))
        paths += [str(folder / "output.log"), *(str(logs) for logs in sorted(folder.glob("logs*")))]
    is_over = bool(records) and len(records) == len(request.paths)
    is_over &= all(each.ending.outcome is not Outcome.RUNNING for each in records)
    if is_over and not request.is_replay:
        click.echo("linkwise: the job has ended; its logs are read as a recording", err=True)
    name = request.run or next((each.name for each in records), None) or _name_of(request.paths)
    changed = replace(request, paths=tuple(paths), is_replay=request.is_replay or is_over, run=name)
    return changed, tuple(records)


def _name_of(paths: Sequence[str]) -> str:
    named = [Path(each).name for each in paths if each != "-"]
    return named[0] if len(named) == 1 else "job"


def _watch_of(request: WatchRequest, records: Sequence[LaunchRecord]) -> Watch:
    from linkwise.monitor.drift import DriftRule
    from linkwise.monitor.endpoints import Endpoint
    from linkwise.monitor.host_counters import PortsWatch
    from linkwise.monitor.job_steps import JobSteps
    from linkwise.monitor.stall import StallRule
    from linkwise.monitor.watching import Watch, WatchClocks

    tokens = tokens_per_gpu = None
    if len(records) == 1:
        expected, tokens = records[0].expected, float(records[0].prediction.tokens_per_step)
        tokens_per_gpu = tokens / (expected.nodes * expected.ranks_per_node)
    return Watch(
        find=_finder(request),
        clocks=WatchClocks(monotonic=time.monotonic, day=time.time, is_live=not request.is_replay),
        steps=JobSteps(tokens_per_step=tokens, tokens_per_step_per_gpu=tokens_per_gpu),
        expects_steps=bool(request.paths),
        objectives=request.objectives,
        endpoints=tuple(Endpoint(url=url) for url in request.endpoints),
        ports=PortsWatch() if request.is_host_watched else None,
        stall=StallRule(fixed_s=request.stall_s),
        rule=DriftRule() if request.finds_drift else None,
    )


def _finder(request: WatchRequest) -> Callable[[], Sequence[Tail]]:
    if request.is_replay:
        from linkwise.monitor.recording import recordings

        found: list[Tail] = list(recordings(request.paths))

        def once() -> Sequence[Tail]:
            new, found[:] = tuple(found), []
            return new

        return once
    from linkwise.cli.doctor_follow import allow_many_files
    from linkwise.monitor.inputs import Inputs

    allow_many_files()
    inputs = Inputs(paths=request.paths)
    for each in inputs.check():
        click.echo(f"linkwise: {each} is not there yet; waiting for it", err=True)
    kernel = list(_kernel_log()) if request.is_host_watched else []

    def look() -> Sequence[Tail]:
        new, kernel[:] = [*inputs.new(), *kernel], []
        return new

    return look


def _kernel_log() -> Iterator[Tail]:
    """Yield the kernel log from now on, where this user may read it."""
    import os

    from linkwise.monitor.tail import PipeTail

    try:
        descriptor = os.open(_KERNEL_LOG, os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(descriptor, 0, os.SEEK_END)
    except OSError as error:
        text = f"linkwise: {_KERNEL_LOG}: {error.strerror}; Xids of the kernel log are not seen"
        click.echo(text, err=True)
        return
    yield PipeTail(name=_KERNEL_LOG, descriptor=descriptor)


def _replay(watch: Watch, teller: _Teller) -> None:
    while not watch.follower.is_over:
        teller.tell(watch.turn())


def _follow(watch: Watch, request: WatchRequest, teller: _Teller, runs: _Runs) -> None:
    from linkwise.cli.doctor_follow import ended_by_signals

    pause_s = _PAUSE_S if request.paths else _SERVERS_ONLY_PAUSE_S
    grew_s, lines = time.monotonic(), -1
    with ended_by_signals() as wait:
        while True:
            teller.tell(watch.turn())
            now_s = time.monotonic()
            if watch.steps.lines != lines:
                grew_s, lines = now_s, watch.steps.lines
            if watch.follower.is_over or runs.are_over():
                return
            if request.until_quiet_s is not None and now_s - grew_s >= request.until_quiet_s:
                return
            if wait(0 if watch.follower.is_behind else pause_s):
                return


@contextmanager
def _teller(watch: Watch, request: WatchRequest) -> Iterator[_Teller]:
    """Give who tells alerts, and show metrics as long as it lives."""
    from linkwise.monitor.alertmanager import Alertmanager

    run = request.run or "job"
    with ExitStack() as stack:
        write = None
        if request.metrics is not None or request.textfile is not None:
            from linkwise.monitor.metrics import registry_of, serve, write_textfile

            registry = registry_of(watch, run=run)
            if request.metrics is not None:
                host, port = request.metrics
                server = serve(registry, host=host, port=port)
                stack.callback(server.close)
                click.echo(f"linkwise: metrics at http://{host}:{server.port}/metrics", err=True)
            if (target := request.textfile) is not None:
                write = lambda: write_textfile(registry, target)  # noqa: E731 (one thought)
                write()
        sink = None if request.alertmanager is None else Alertmanager(url=request.alertmanager, run=run)
        yield _Teller(watch, request, write=write, alertmanager=sink)


class _Teller:
    """Alerts as lines on standard output, the status on standard error, and both to other programs."""

    def __init__(
        self,
        watch: Watch,
        request: WatchRequest,
        *,
        write: Callable[[], None] | None,
        alertmanager: Alertmanager | None,
    ) -> None:
        self._watch, self._request = watch, request
        self._write, self._alertmanager = write, alertmanager
        self._is_terminal = sys.stderr.isatty()
        self._status_s = time.monotonic()
        self._written_s = time.monotonic()
        self._fault = ""
        self._has_status = False

    def tell(self, alerts: Sequence[Alert]) -> None:
        """Tell what is new, and how the job is doing where that is due."""
        for each in alerts:
            self._print(each)
        self._send(alerts)
        now_s = time.monotonic()
        if self._write is not None and now_s - self._written_s >= _TEXTFILE_S:
            self._written_s = now_s
            self._write()
        if now_s - self._status_s >= (_REFRESH_S if self._is_terminal else _STATUS_S):
            self._status_s = now_s
            self._status()

    def end(self) -> None:
        """Clear the line that was refreshed, and write the last metrics."""
        self._clear()
        if self._write is not None:
            self._write()

    def _print(self, alert: Alert) -> None:
        if self._request.form == "json" and not self._request.prints_lines:
            return
        from linkwise.report.watch_result import alert_result

        result = alert_result(alert)
        self._clear()
        if self._request.prints_lines:
            click.echo(result.model_dump_json(by_alias=True))
        else:
            from linkwise.report.tables import console_for
            from linkwise.report.watch_table import alert_text

            click.echo(alert_text(result, width=console_for().width))
        sys.stdout.flush()

    def _send(self, alerts: Sequence[Alert]) -> None:
        sink = self._alertmanager
        if sink is None:
            return
        sink.send(alerts, self._watch.book.active, now_s=time.time())
        if sink.fault != self._fault:
            self._fault = sink.fault
            text = sink.fault or f"{sink.url} takes alerts again"
            click.echo(f"linkwise: {text}", err=True)

    def _status(self) -> None:
        from linkwise.report.watch_table import status_text

        text = status_text(self._watch)
        if not self._is_terminal:
            click.echo(f"linkwise: {text}", err=True)
            return
        import shutil

        room = shutil.get_terminal_size().columns - 1
        click.echo(f"\r\x1b[2K{text[:room]}", nl=False, err=True)
        self._has_status = True

    def _clear(self) -> None:
        if self._has_status:
            click.echo("\r\x1b[2K", nl=False, err=True)
            self._has_status = False
