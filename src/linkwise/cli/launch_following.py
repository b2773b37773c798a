"""What `linkwise launch` says while a job runs, and what it would submit."""

from __future__ import annotations

import datetime as dt
import json
import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from linkwise.diagnose.following import Change
    from linkwise.launch.run.launch_place import LaunchPlace
    from linkwise.launch.run.launch_record import LaunchRecord
    from linkwise.launch.run.prepared import Prepared
    from linkwise.launch.run.steps import StepLog
    from linkwise.launch.run.whole import Audience

__all__ = ["audience_of", "dry_run"]

_TELL_S = 10.0


def dry_run(prepared: Prepared, place: LaunchPlace, folder: Path, *, form: str) -> None:
    """Print what would be submitted.

    Parameters
    ----------
    prepared
        What is launched.
    place
        Where it would run.
    folder
        The run folder that would be made.
    form
        ``table`` or ``json``.
    """
    added = prepared.added(os.environ, folder)
    argv = place.command(folder)
    if form == "json":
        told = {"schema": "linkwise.launch.plan/1", "argv": argv, "folder": str(folder), "settings": added,
                "plan_digest": prepared.plan_digest, "files": dict(prepared.files)}  # fmt: skip
        click.echo(json.dumps(told, indent=2))
        return
    click.echo(f"# In {folder}, with LINKWISE_RUN, new for each run, and")
    for name, value in added.items():
        click.echo(f"export {name}={shlex.quote(value)}")
    click.echo(shlex.join(argv))
    for name, text in prepared.files.items():
        click.echo(f"\n# ---- {name}")
        click.echo(text, nl=False)


def audience_of(place: str) -> Audience:
    """Return who hears of a launch: the person at the terminal.

    Parameters
    ----------
    place
        Name of the place it runs on.
    """
    from linkwise.launch.run.slurm_queue import QueueNews
    from linkwise.launch.run.whole import Audience
    from linkwise.monitor.job_watch import JobWatch, logs_of
    from linkwise.report.launch_result import launch_json

    def say(text: str) -> None:
        click.echo(f"linkwise: {text}", err=True)

    return Audience(
        publish=launch_json,
        watch=lambda folder, handle: JobWatch(
            logs_of(folder, place=place, handle=handle), on_change=_tell_change, say=say
        ),
        tell=_Progress().tell,
        say=say,
        tell_waiting=QueueNews(say=say).tell,
    )


def _tell_change(change: Change) -> None:
    from linkwise.report.doctor_change import change_result, change_text

    at = dt.datetime.now(tz=dt.UTC).isoformat(timespec="milliseconds")
    click.echo(change_text(change_result(change, at=at), width=80), err=True)


class _Progress:
    """Lines on standard error that say how far a job is: a few a minute, more on a terminal."""

    def __init__(self) -> None:
        self._due_s = 0.0
        self._every_s = 1.0 if sys.stderr.isatty() else _TELL_S

    def tell(self, record: LaunchRecord, steps: StepLog) -> None:
        """Say it, where the last time is long enough ago.

        Parameters
        ----------
        record
            Of the run.
        steps
            Those that are done.
        """
        from linkwise.report.launch_table import progress_text

        if time.monotonic() < self._due_s or not steps.steps:
            return
        self._due_s = time.monotonic() + self._every_s
        last = steps.steps[max(steps.steps)]
        predicted = record.prediction
        text = progress_text(
            last.number,
            predicted.steps,
            last.time_s,
            tokens=predicted.tokens_per_step,
            predicted_s=predicted.step_time_s,
        )
        click.echo(f"linkwise: {text}", err=True)
