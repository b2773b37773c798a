"""The doctor beside a launched job: it reads output and logs of NCCL in the run folder as they grow."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from linkwise.diagnose.doctor import diagnose
from linkwise.diagnose.facts import Facts
from linkwise.errors import InputError
from linkwise.launch.run.launching import Watched
from linkwise.monitor.follower import Follower
from linkwise.monitor.inputs import Inputs

if TYPE_CHECKING:
    from linkwise.diagnose.doctor import Diagnosis
    from linkwise.diagnose.following import Change
    from linkwise.readers.job_log.values import JobLog

__all__ = ["JobWatch", "logs_of"]


def logs_of(folder: Path, *, place: str, handle: str) -> tuple[str, ...]:
    """Return where a launched job writes what the doctor reads.

    Parameters
    ----------
    folder
        The run folder.
    place
        Name of the place it runs on.
    handle
        How it is found there.
    """
    logs = folder / (f"logs-{handle}" if place == "slurm" else "logs")
    return str(folder / "output.log"), str(logs)


class JobWatch:
    """Who follows the logs of a launch, as `linkwise.launch.run.launching.Watch`.

    Parameters
    ----------
    paths
        Files and folders that are followed.
    on_change
        Called with each change of what the doctor finds.
    say
        Called with a sentence where the logs cannot be read.
    """

    def __init__(
        self,
        paths: tuple[str, ...],
        *,
        on_change: Callable[[Change], None] = lambda _: None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._on_change = on_change
        self._say = say
        self._settings: tuple[tuple[str, str], ...] = ()
        self._follower = Follower(find=Inputs(paths=paths).new, judge=diagnose, clock=time.monotonic)

    def turn(self) -> None:
        """Read what was added, and tell what that changes."""
        for each in self._follower.turn():
            self._on_change(each)

    def finish(self) -> Watched:
        """Return what all of it showed."""
        try:
            found = self._follower.finish(self._judge)
        except InputError as error:
            self._say(f"the logs cannot be read: {error}")
            return Watched(diagnosis=None)
        return Watched(diagnosis=found, settings=self._settings)

    def _judge(self, log: JobLog) -> Diagnosis:
        pairs = ((each.fields["name"], each.fields.get("value", "")) for each in Facts(log=log).settings())
        self._settings = tuple(dict.fromkeys(pairs))
        return diagnose(log)
