"""A launch from its run folder to its finished record, for whoever has a plan and a place."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from linkwise.errors import InputError
from linkwise.launch.run.launch_folder import LaunchFolder
from linkwise.launch.run.launch_place import LaunchPlace, State
from linkwise.launch.run.launch_record import LaunchRecord
from linkwise.launch.run.launching import Follow, LaunchPatience, Watch, begin, follow
from linkwise.launch.run.preflight import look_at
from linkwise.launch.run.prepared import Prepared
from linkwise.launch.run.steps import StepLog

__all__ = ["Audience", "LaunchSite", "follow_launch", "run_launch"]

_USUAL_FOLDER = Path("runs")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSite:
    """Where a launch runs, and how long it may take to start.

    Parameters
    ----------
    place
        Where it runs.
    python
        The Python that has torch.
    patience
        How long it may take to start, and then be silent.
    looks
        Commands that look at the nodes before anything starts, by run folder and Python; none where the job
        does so itself.
    inherited
        The environment; that of this process by default.
    notes
        What a reader of the record must know of the place.
    """

    place: LaunchPlace
    python: str
    patience: LaunchPatience
    looks: Callable[[Path, str], Sequence[Sequence[str]]] = lambda _folder, _python: ()
    inherited: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """Who hears of a launch.

    Parameters
    ----------
    publish
        Makes the text of the record.
    watch
        Who follows the logs, by run folder and handle of the job.
    tell
        Called when steps were done.
    tell_waiting
        Called with the state and the handle of a job that waits in a queue.
    say
        Called with a sentence on what happens.
    """

    publish: Callable[[LaunchRecord], str]
    watch: Callable[[Path, str], Watch]
    tell: Callable[[LaunchRecord, StepLog], None] = lambda _record, _steps: None
    tell_waiting: Callable[[State, str], None] = lambda *_: None
    say: Callable[[str], None] = lambda _: None


def run_launch(prepared: Prepared, site: LaunchSite, path: Path, audience: Audience) -> LaunchRecord:
    """Return the record of a job that was run to its end, well or not.

    Parameters
    ----------
    prepared
        What is launched.
    site
        Where it runs.
    path
        The run folder, which is made.
    audience
        Who hears of it.

    Raises
    ------
    InputError
        When the run folder cannot be made, a node lacks something, or the job cannot be started.
    KeyboardInterrupt
        When this process is interrupted or asked to end, after the job was stopped and recorded.
    """
    _make(path)
    try:
        with LaunchFolder(path) as folder:
            folder.fill(
                prepared.files, executable=prepared.executable, wanted=prepared.wanted, python=site.python
            )
            environment = prepared.environment(site.inherited, folder.path)
            for words in site.looks(folder.path, site.python):
                look_at(words, environment, python=site.python)
            record = _planned(prepared, site, folder.path)
            to = _follow_of(record, site, folder, audience)
            started = begin(record, environment, to)
            audience.say(f"{prepared.name} runs in {path}")
            return follow(started, to)
    except InputError:
        if not (path / "record.json").exists():
            _remove(path)
        raise


def follow_launch(record: LaunchRecord, site: LaunchSite, path: Path, audience: Audience) -> LaunchRecord:
    """Return the record of a run that was followed before, once it ended.

    Parameters
    ----------
    record
        As far as it goes.
    site, path, audience
        As for `run_launch`.
    """
    with LaunchFolder(path) as folder:
        return follow(record, _follow_of(record, site, folder, audience))


def _planned(prepared: Prepared, site: LaunchSite, folder: Path) -> LaunchRecord:
    return LaunchRecord(
        run_id=uuid.uuid4().hex[:16],
        name=prepared.name,
        place=site.place.name,
        handle="",
        argv=site.place.command(folder),
        plan_digest=prepared.plan_digest,
        expected=prepared.expected,
        prediction=prepared.prediction,
        notes=site.notes,
        started=dt.datetime.now(tz=dt.UTC),
    )


def _follow_of(record: LaunchRecord, site: LaunchSite, folder: LaunchFolder, audience: Audience) -> Follow:
    return Follow(
        folder=folder,
        place=site.place,
        patience=site.patience,
        watch=lambda handle: audience.watch(folder.path, handle),
        publish=audience.publish,
        tell=lambda steps: audience.tell(record, steps),
        tell_waiting=audience.tell_waiting,
    )


def _make(path: Path) -> None:
    try:
        path.mkdir(parents=path.parent == _USUAL_FOLDER)
    except FileExistsError:
        raise InputError(
            f"-o {path}: there is something already; name a folder that does not exist"
        ) from None
    except OSError as error:
        raise InputError(f"-o {path}: cannot be made ({error.strerror})") from None


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):
        if path.parent == _USUAL_FOLDER:
            path.parent.rmdir()  # only where it is empty
