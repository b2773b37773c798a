"""Launches for the Slurm of a lab: their words, their records, and what they left."""

import json
import os
import subprocess
import time
from contextlib import contextmanager

from linkwise.launch.run.processes import living
from tests.lab.slurm_labs import CLUSTER, CONFIG, TOOL

TOKENS_PER_STEP = 32 * 8


def launch_words(folder, *more, steps=16, nodes=2, gpus=2, run="run"):
    """Return the words of a launch of small steps of a small model, and write what it reads."""
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "cluster.yaml").write_text(CLUSTER.format(nodes=nodes, gpus=gpus))
    job = ["--model", "config.json", "--framework", "ddp", "--sequence-length", "32", "--global-batch", "8"]
    job += ["--tokens", str(TOKENS_PER_STEP * steps), "--cluster", "cluster.yaml"]
    return [*TOOL, "launch", *job, "--on", "slurm", "--device", "cpu", "-o", run, *more]


def record_in(folder, run="run"):
    """Return the record of a run."""
    return json.loads((folder / run / "record.json").read_text())


@contextmanager
def launched(lab, folder, *more, **what):
    """Give a launch that goes on, as a process; it is ended at the end."""
    words = lab.words(*launch_words(folder, *more, **what))
    with (folder / "said.txt").open("wb") as said:
        process = subprocess.Popen(words, cwd=folder, stdout=said, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for(find, process, *, what, limit_s=90.0):
    """Return the first thing that `find` finds while a process goes on."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until and process.poll() is None:
        if found := find():
            return found
        time.sleep(0.1)
    raise AssertionError(f"no {what}; the launch left with {process.poll()}")


def steps_seen(folder, least, run="run"):
    """Return whether so many steps were printed."""
    logs = [path.read_text(errors="replace") for path in (folder / run).glob("logs-*/**/stdout.log")]
    return sum(text.count("step ") for text in logs) >= least


def ranks_seen(folder, node, run="run"):
    """Return the processes of the ranks of a node by rank, once its agent wrote them down."""
    path = folder / run / "seen" / f"ranks-{node}.json"
    if not path.exists():
        return {}
    return {each["rank"]: each["pid"] for each in json.loads(path.read_text())}


def said_by(folder):
    """Return what a launch printed."""
    return " ".join((folder / "said.txt").read_text(errors="replace").split())


def left_running(folder, run="run"):
    """Return the processes of a run that live, after the moment that ending takes."""
    run_id = record_in(folder, run)["id"]
    for _ in range(150):
        if not (left := [pid for pid in living(run_id) if pid != os.getpid()]):
            return []
        time.sleep(0.1)
    return left
