"""Jobs for tests: a Python script plays what torchrun and its ranks would do."""

import sys
from dataclasses import dataclass
from pathlib import Path

from linkwise.launch.run.job import MARK, Patience, run_job
from linkwise.launch.run.place import Command, TorchJob
from linkwise.launch.run.processes import RUN_VARIABLE
from linkwise.launch.run.record import RunFolder

PRELUDE = f"""
import json, os, signal, subprocess, sys, time
def say(event, **values):
    os.write(1, ({MARK!r} + json.dumps(dict(event=event, **values)) + "\\n").encode())
def ready(*ranks):
    for rank in ranks:
        say("ready", rank=rank, host="node-1", torch="2.13.0", pid=os.getpid())
"""


@dataclass(frozen=True)
class Stage:
    """A place that runs a script in place of torchrun."""

    script: str
    name: str = "stage"
    more: tuple = ()

    def command(self, job, *, run_id, inherited):  # noqa: ARG002 (as a place has them)
        """Return the script with the arguments of the job."""
        return Command(
            argv=(sys.executable, "-c", PRELUDE + self.script, *job.arguments),
            settings=job.settings,
            **dict(self.more),
        )


def play(script, path, *, ranks=2, patience_s=10.0, settings=None, on_event=lambda _: None, **more):
    """Return the finished run of a script, recorded in a folder; `more` is of its command."""
    path.mkdir(exist_ok=True)
    job = TorchJob(script="unused", ranks=ranks, settings=settings or {}, python=sys.executable)
    with RunFolder(path) as folder:
        return run_job(
            job,
            {"device": "cpu"},
            what="bench collectives",
            place=Stage(script, more=tuple(more.items())),
            folder=folder,
            patience=Patience(start_s=patience_s, silence_s=patience_s),
            on_event=on_event,
        )


def left_of(run_id):
    """Return the processes of a run that still live."""
    wanted = f"{RUN_VARIABLE}={run_id}".encode()
    left = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                left.append(entry.name)
        except OSError:
            continue
    return left
