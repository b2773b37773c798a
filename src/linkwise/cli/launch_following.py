"""What `linkwise launch` does beside reading options: the preflight, the doctor beside the job, the end."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import shlex
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from linkwise.errors import InputError

if TYPE_CHECKING:
    from linkwise.diagnose.doctor import Diagnosis
    from linkwise.launch.run.launch_place import LaunchPlace
    from linkwise.launch.run.launch_record import LaunchRecord
    from linkwise.launch.run.launching import Follow, Watched
    from linkwise.launch.run.prepared import Prepared
    from linkwise.launch.run.steps import StepLog
    from linkwise.readers.job_log.values import JobLog

__all__ = ["dry_run", "follow_again", "run_prepared"]

_PROBE_S = 120.0
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


@contextmanager
def run_prepared(
    prepared: Prepared,
    place: LaunchPlace,
    path: Path,
    *,
    python: str,
    patience: tuple[float, float],
    form: str,
) -> Iterator[LaunchRecord]:
    """Give the record of a job that was run to its end.

    Parameters
    ----------
    prepared
        What is launched.
    place
        Where it runs.
    path
        The run folder, which is made.
    python
        The Python that has torch.
    patience
        How long it may be queued, and then take to start [s].
    form
        ``table`` or ``json``: where it is told what happens.

    Raises
    ------
    InputError
        When the run folder cannot be made, or this machine lacks something.
    """
    from linkwise.launch.run.launch_folder import LaunchFolder
    from linkwise.launch.run.launch_record import LaunchRecord
    from linkwise.launch.run.launching import begin, follow

    _make(path)
    try:
        with LaunchFolder(path) as folder:
            folder.fill(prepared.files, executable=prepared.executable, wanted=prepared.wanted, python=python)
            environment = prepared.environment(os.environ, folder.path)
            if place.name == "local":
                _preflight(folder.path, python, environment)
            record = LaunchRecord(
                run_id=uuid.uuid4().hex[:16],
                name=prepared.name,
                place=place.name,
                handle="",
                argv=place.command(folder.path),
                plan_digest=prepared.plan_digest,
                expected=prepared.expected,
                prediction=prepared.prediction,
                started=dt.datetime.now(tz=dt.UTC),
            )
            to = _follow_of(folder, place, patience, record, form)
            started = begin(record, environment, to)
            click.echo(f"linkwise: {prepared.name} runs in {path}", err=True)
            yield follow(started, to)
    except InputError:
        if not (path / "record.json").exists():
            _remove(path)
        raise


def follow_again(
    record: LaunchRecord, place: LaunchPlace, path: Path, *, patience: tuple[float, float], form: str
) -> LaunchRecord:
    """Return the record of a run that was followed before, once it ended.

    Parameters
    ----------
    record
        As far as it goes.
    place, path, patience, form
        As for `run_prepared`.
    """
    from linkwise.launch.run.launch_folder import LaunchFolder
    from linkwise.launch.run.launching import follow

    with LaunchFolder(path) as folder:
        return follow(record, _follow_of(folder, place, patience, record, form))


def _make(path: Path) -> None:
    try:
        path.mkdir(parents=path.parent == Path("runs"))
    except FileExistsError:
        raise InputError(
            f"-o {path}: there is something already; name a folder that does not exist"
        ) from None
    except OSError as error:
        raise InputError(f"-o {path}: cannot be made ({error.strerror})") from None


def _remove(path: Path) -> None:
    import shutil

    shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):
        if path.parent == Path("runs"):
            path.parent.rmdir()  # only where it is empty


def _preflight(folder: Path, python: str, environment: dict[str, str]) -> None:
    """Refuse a machine that lacks what the job needs, with all it lacks."""
    words = [python, str(folder / "agent" / "node_agent.py"), "--facts"]
    try:
        done = subprocess.run(  # noqa: S603 (the user's own Python)
            words, env=environment, check=False, capture_output=True, text=True, timeout=_PROBE_S
        )
        found: dict[str, Any] = json.loads(done.stdout)
    except OSError as error:
        raise InputError(f"--python {python}: cannot be started ({error.strerror})") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"--python {python}: gives no answer in {_PROBE_S:.0f} s") from None
    except ValueError:
        raise InputError(
            f"--python {python}: is no Python 3.8 or newer: {done.stderr[-300:].strip()}"
        ) from None
    if found["lacking"]:
        raise InputError(f"{found['host']} cannot run this job: " + "; ".join(found["lacking"]))


def _follow_of(
    folder: Any, place: LaunchPlace, patience: tuple[float, float], record: LaunchRecord, form: str
) -> Follow:
    from linkwise.launch.run.launching import Follow, LaunchPatience
    from linkwise.launch.run.slurm_queue import QueueNews
    from linkwise.report.launch_result import launch_json

    progress = _Progress(record)
    return Follow(
        folder=folder,
        place=place,
        patience=LaunchPatience(queue_s=patience[0], start_s=patience[1]),
        watch=lambda handle: _Doctor(folder.path, place.name, handle, form),
        publish=launch_json,
        tell=progress.tell,
        tell_waiting=QueueNews(say=lambda text: click.echo(f"linkwise: {text}", err=True)).tell,
    )


class _Progress:
    """Lines on standard error that say how far a job is: a few a minute, more on a terminal."""

    def __init__(self, record: LaunchRecord) -> None:
        self._record = record
        self._due_s = 0.0
        self._every_s = 1.0 if sys.stderr.isatty() else _TELL_S

    def tell(self, steps: StepLog) -> None:
        """Say it, where the last time is long enough ago.

        Parameters
        ----------
        steps
            Those that are done.
        """
        from linkwise.report.launch_table import progress_text

        if time.monotonic() < self._due_s or not steps.steps:
            return
        self._due_s = time.monotonic() + self._every_s
        last = steps.steps[max(steps.steps)]
        predicted = self._record.prediction
        text = progress_text(
            last.number,
            predicted.steps,
            last.time_s,
            tokens=predicted.tokens_per_step,
            predicted_s=predicted.step_time_s,
        )
        click.echo(f"linkwise: {text}", err=True)


class _Doctor:
    """The doctor beside a running job: it reads output and logs of NCCL as they grow."""

    def __init__(self, folder: Path, place: str, handle: str, form: str) -> None:
        from linkwise.diagnose.doctor import diagnose
        from linkwise.monitor.follower import Follower
        from linkwise.monitor.inputs import Inputs

        logs = folder / ("logs" if place == "local" else f"logs-{handle}")
        inputs = Inputs(paths=(str(folder / "output.log"), str(logs)))
        self._folder = folder
        self._form = form
        self._settings: tuple[tuple[str, str], ...] = ()
        self._follower = Follower(find=inputs.new, judge=diagnose, clock=time.monotonic)

    def turn(self) -> None:
        """Read what was added, and tell on standard error what is wrong."""
        from linkwise.report.doctor_change import change_result, change_text

        at = dt.datetime.now(tz=dt.UTC).isoformat(timespec="milliseconds")
        for each in self._follower.turn():
            click.echo(change_text(change_result(each, at=at), width=80), err=True)

    def finish(self) -> Watched:
        """Return what all of it showed."""
        from linkwise.launch.run.launching import Watched

        try:
            found = self._follower.finish(self._judge)
        except InputError as error:
            click.echo(f"linkwise: the logs cannot be read: {error}", err=True)
            return Watched(diagnosis=None)
        return Watched(diagnosis=found, settings=self._settings)

    def _judge(self, log: JobLog) -> Diagnosis:
        from linkwise.diagnose.doctor import diagnose
        from linkwise.diagnose.facts import Facts

        pairs = ((each.fields["name"], each.fields.get("value", "")) for each in Facts(log=log).settings())
        self._settings = tuple(dict.fromkeys(pairs))
        return diagnose(log)
