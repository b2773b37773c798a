"""Killed at any moment, the next one goes on: nothing is lost, doubled or decided twice."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from linkwise.rollout.carrying.progress import progress_of
from linkwise.rollout.runs import RunState
from linkwise.rollout.store.decisions import Kind
from linkwise.rollout.store.store import Store
from linkwise.rollout.store.verification import flaws_of
from tests.rollout.simulated import METRIC

ROOT = Path(__file__).parents[2]


def start(folder, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.rollout.simulated", str(folder), *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )


def kill_at_random(folder, *arguments, kills, draw):
    """Carry the rollout on, killing the keeper now and then; its runs go on by themselves, as real ones do."""
    killed = 0
    while killed < kills:
        process = start(folder, *arguments)
        process.stdout.readline()  # it is past its imports: what is killed is the rollout
        time.sleep(draw.expovariate(1 / 0.1))
        assert process.poll() is None, f"the rollout ended after {killed} kills"
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        killed += 1
    last = start(folder, *arguments)
    _, err = last.communicate(timeout=300)
    assert last.returncode == 0, err


def written_by_runs(folder):
    """Return the samples that each run itself wrote down, whoever was killed."""
    found = {}
    for samples in folder.glob("runs/*/samples"):
        lines = samples.read_text().splitlines()
        found[samples.parent.name.split(".")[0]] = [float(line) for line in lines if line != "end"]
    return found


def check_nothing_lost_or_doubled(folder, store):
    contents = store.contents("change")
    assert flaws_of(contents) == ()
    record = store.record("change")
    stored = {run.run_id: list(run.samples.get(METRIC, ())) for run in record.runs}
    assert stored == written_by_runs(folder)
    assert not [run for run in record.runs if run.state is RunState.STARTED]
    for step in ("one", "two", "all"):
        turns = [run.turn for run in record.runs if run.step == step]
        assert turns == list(range(len(turns)))
    entries = record.entries
    runs = Counter(
        (e.kind, e.fact("run_id")) for e in entries if e.kind in (Kind.RUN_STARTED, Kind.RUN_ENDED)
    )
    assert set(runs.values()) == {1}
    decided = Counter((e.kind, e.step) for e in entries if e.kind not in (Kind.RUN_STARTED, Kind.RUN_ENDED))
    assert decided == {
        (Kind.BEGUN, ""): 1,
        (Kind.PROMOTED, ""): 1,
        **{(kind, step): 1 for kind in (Kind.JUDGED, Kind.STEP_PASSED) for step in ("one", "two", "all")},
    }
    assert progress_of(entries).is_promoted


@pytest.mark.parametrize("kills", [4, pytest.param(50, marks=pytest.mark.full)])
def test_killed_at_random_moments_nothing_is_lost_doubled_or_decided_twice(tmp_path, kills):
    # Samples come so slowly that the rollout outlasts all kills.
    kill_at_random(tmp_path, str(0.002 * kills), kills=kills, draw=random.Random(kills))
    store = Store(str(tmp_path / "store.sqlite"))
    check_nothing_lost_or_doubled(tmp_path, store)
    store.close()


def refuse_the_second(folder, *where):
    """Start a rollout that goes on for long, and a second one; then end the first, and go on."""
    first = start(folder, "1", *where)
    first.stdout.readline()
    second = start(folder, "1", *where)
    _, err = second.communicate(timeout=60)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    assert second.returncode != 0
    assert re.search(r"is carried out by tester \(process \d+ on host\) since 20\d\d-", err)
    last = start(folder, "0.001", *where)
    _, err = last.communicate(timeout=120)
    assert last.returncode == 0, err


def test_two_at_once_are_one_and_a_refusal(tmp_path):
    refuse_the_second(tmp_path)
    store = Store(str(tmp_path / "store.sqlite"))
    check_nothing_lost_or_doubled(tmp_path, store)
    store.close()


def test_runs_that_were_killed_with_their_keeper_keep_their_samples_and_count_as_cut(tmp_path):
    process = start(tmp_path, "0.05")
    while not any(path.read_text().count("\n") for path in tmp_path.glob("runs/*/samples")):
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    last = start(tmp_path, "0.001")
    _, err = last.communicate(timeout=120)
    assert last.returncode == 0, err
    store = Store(str(tmp_path / "store.sqlite"))
    record = store.record("change")
    assert record.runs[0].state is RunState.CUT
    assert 0 < len(record.runs[0].samples[METRIC]) < 5
    check_nothing_lost_or_doubled(tmp_path, store)
    store.close()
