"""`linkwise doctor --follow`: the signals, the clock and the terminal around a job that is followed."""

from __future__ import annotations

import datetime as dt
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from linkwise.report.wording import counted

if TYPE_CHECKING:
    from types import FrameType

    from linkwise.diagnose.doctor import Diagnosis
    from linkwise.diagnose.following import Change
    from linkwise.readers.job_log.values import JobLog

__all__ = ["allow_many_files", "ended_by_signals", "follow_job"]


def follow_job(
    files: tuple[str, ...],
    *,
    judge: Callable[[JobLog], Diagnosis],
    judge_at_end: Callable[[JobLog], Diagnosis],
    form: str,
    until_quiet_s: float | None,
) -> Diagnosis:
    """Return the last diagnosis of a job, having told what was found while it ran.

    Parameters
    ----------
    files
        Its logs: files, folders, or ``-``.
    judge, judge_at_end
        What makes the diagnosis while it runs, and the last one.
    form
        ``table`` or ``json``.
    until_quiet_s
        End when no log grew for so long; ``None`` to end by a signal or with standard input [s].
    """
    from linkwise.monitor.follower import Follower
    from linkwise.monitor.inputs import Inputs

    inputs = Inputs(paths=files)
    for each in inputs.check():
        click.echo(f"linkwise: {each} is not there yet; waiting for it", err=True)
    allow_many_files()
    follower = Follower(find=inputs.new, judge=judge, clock=time.monotonic)
    with ended_by_signals() as wait:
        _announce(files)
        for changes in follower.follow(wait, until_quiet_s=until_quiet_s):
            _tell(changes, form)
        if form == "table" and follower.told.findings:
            click.echo()
        return follower.finish(judge_at_end)


def _tell(changes: tuple[Change, ...], form: str) -> None:
    from linkwise.report.doctor_change import change_result, change_text
    from linkwise.report.tables import console_for

    at = dt.datetime.now(tz=dt.UTC).isoformat(timespec="milliseconds")
    for each in changes:
        result = change_result(each, at=at)
        if form == "json":
            click.echo(result.model_dump_json(by_alias=True))
        else:
            click.echo(change_text(result, width=console_for().width))
    sys.stdout.flush()


def _announce(files: tuple[str, ...]) -> None:
    if sys.stderr.isatty():
        click.echo(f"following {counted(len(files), 'input')}; Ctrl-C ends with the verdict", err=True)


@contextmanager
def ended_by_signals() -> Iterator[Callable[[float], bool]]:
    """Yield a wait that the first SIGINT or SIGTERM breaks off; a second one ends the program as ever."""
    ended = threading.Event()
    before: dict[int, Any] = {}

    def end(number: int, _: FrameType | None) -> None:
        ended.set()
        signal.signal(number, before[number])

    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, end)
    try:
        yield ended.wait
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def allow_many_files() -> None:
    """Raise the limit of open files to what the system allows: every followed file is open."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
