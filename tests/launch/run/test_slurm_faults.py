"""What can go wrong with a launch under Slurm, each put into a real one of a lab.

Each fault has a clear message, ends what was running, leaves a record that is complete up to it and says that it
ended badly, and leaves nothing behind.
"""

import json
import os
import signal
import subprocess
import time

import pytest

from tests.lab.slurm_labs import TOOL, slurm_lab
from tests.launch.run.slurm_launches import (
    launched,
    left_running,
    ranks_seen,
    record_in,
    said_by,
    steps_seen,
    wait_for,
)
from tests.launch.run.small_disks import fill, small_disk

pytestmark = [
    pytest.mark.requires("netns"),
    pytest.mark.requires("slurm"),
    pytest.mark.requires("torch"),
    pytest.mark.full,
]
LONG = 100_000
LISTEN = "import socket, time; s = socket.create_server(('', 29500)); print('listens', flush=True); time.sleep(600)"
HOLD = (
    "import socket, time; s = socket.socket(socket.AF_UNIX); s.bind('\\0linkwise-launch/n0/cpu')\n"
    "print('holds', flush=True); time.sleep(600)"
)


@pytest.fixture(scope="module")
def two():
    with slurm_lab(f"f{os.getpid()}", nodes=2, gpus=2) as lab:
        yield lab


@pytest.fixture
def lab(two):
    two.idle()
    yield two
    two.run("scancel", "--user=root")
    two.run("scontrol", "update", "nodename=ALL", "state=resume")
    two.idle()


def ended_badly(process, folder, outcome, *reasons, code=1, run="run"):
    """Wait for the end, hold the record to the outcome and its reason, and return it."""
    assert process.wait(timeout=120) == code, said_by(folder)
    record = record_in(folder, run)
    assert record["outcome"] == outcome, record["reason"]
    for each in reasons:
        assert each in record["reason"], record["reason"]
    assert record["ended"] is not None
    assert record["reason"] in said_by(folder) or code in (2, 130)
    assert left_running(folder, run) == []
    return record


def beside(lab, node, program):
    """Start a program on a node that says a word when it is ready."""
    other = subprocess.Popen(lab.words("python3", "-c", program, node=node), stdout=subprocess.PIPE)
    other.stdout.readline()
    return other


def test_rank_that_is_killed_is_named(lab, tmp_path):
    with launched(lab, tmp_path, steps=LONG) as process:
        wait_for(lambda: steps_seen(tmp_path, 8), process, what="step")
        os.kill(ranks_seen(tmp_path, 1)[3], signal.SIGKILL)
        record = ended_badly(process, tmp_path, "failed", "rank 3 was killed by signal 9 (SIGKILL)", "n1")
    assert len(record["samples"]) >= 8
    assert record["exit_code"] not in (0, None)
    assert record["step_time"] is None


def test_port_that_is_taken_is_told_before_ranks_start(lab, tmp_path):
    other = beside(lab, 0, LISTEN)
    with launched(lab, tmp_path) as process:
        ended_badly(process, tmp_path, "not started", "n0: port 29500 is taken")
    other.kill()
    other.communicate()


def test_node_that_is_lost_is_named_and_its_ranks_end(lab, tmp_path):
    with launched(lab, tmp_path, steps=LONG) as process:
        wait_for(lambda: steps_seen(tmp_path, 8), process, what="step")
        with lab.without_node(1):
            record = ended_badly(process, tmp_path, "failed", "Slurm ended it: NODE_FAIL", "n1 is down*")
    assert len(record["samples"]) >= 8


def test_node_that_does_not_answer_is_named(lab, tmp_path):
    (daemon,) = lab.processes("slurmd", 1)
    os.kill(daemon, signal.SIGSTOP)
    try:
        with launched(lab, tmp_path, "--start-within", "16 s") as process:
            ended_badly(process, tmp_path, "not started", "node 1 of 2 did not answer in 8 s; n0 did")
    finally:
        os.kill(daemon, signal.SIGCONT)


def test_job_that_never_starts_says_why_it_waits_and_is_cancelled(lab, tmp_path):
    other = subprocess.Popen(lab.words("srun", "--exclusive", "-N2", "sleep", "300"))
    while lab.says("sinfo", "-h", "-o", "%T") != "allocated":
        time.sleep(0.1)
    try:
        with launched(lab, tmp_path, "--queue-within", "5 s") as process:
            record = ended_badly(process, tmp_path, "not started", "it was queued for 5 s (Resources)")
        waits = (
            f"job {record['handle']} waits in the queue of lab, 1 of 1: Resources, what it asks for is in use"
        )
        assert said_by(tmp_path).count(waits) == 1
    finally:
        other.terminate()
        other.wait()


def test_job_that_asks_for_more_nodes_than_there_are_says_so_and_is_cancelled(lab, tmp_path):
    with launched(lab, tmp_path, "--queue-within", "8 s", nodes=4) as process:
        ended_badly(process, tmp_path, "not started", "it was queued for 8 s (PartitionNodeLimit)")
    assert "Partition" in said_by(tmp_path)


def test_job_that_no_node_can_run_is_refused_at_once(lab, tmp_path):
    with launched(lab, tmp_path, gpus=4) as process:
        ended_badly(process, tmp_path, "not started", "sbatch refused the job", "not available", code=2)


def test_second_launch_waits_for_the_first(lab, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    with launched(lab, tmp_path, steps=LONG) as first:
        wait_for(lambda: ranks_seen(tmp_path, 1), first, what="rank")
        with launched(lab, other) as second:
            wait_for(
                lambda: "waits in the queue of lab, 1 of 1: Resources" in said_by(other), second, what="word"
            )
            assert record_in(other)["outcome"] == "running"
            first.send_signal(signal.SIGINT)
            assert first.wait(timeout=60) == 130
            assert second.wait(timeout=120) == 0, said_by(other)
    assert record_in(tmp_path)["outcome"] == "interrupted"
    assert left_running(tmp_path) == []


def test_launch_that_runs_on_a_node_already_is_refused(lab, tmp_path):
    other = beside(lab, 0, HOLD)
    with launched(lab, tmp_path) as process:
        ended_badly(process, tmp_path, "not started", "n0: another launch runs on its CPUs")
    other.kill()
    other.communicate()


def test_output_that_ends_in_the_middle_is_cut(lab, tmp_path):
    assert lab.run("scontrol", "update", "nodename=n[0-1]", "state=drain", "reason=test").returncode == 0
    with launched(lab, tmp_path) as process:
        wait_for(lambda: (tmp_path / "run" / "job.sbatch").exists(), process, what="file")
        program = tmp_path / "run" / "train_ddp.py"
        text = program.read_text()
        line = "        loss = one_step("
        leaving = "        if step == 6:\n            os._exit(0)\n"
        assert line in text
        program.write_text(text.replace(line, leaving + line))
        assert lab.run("scontrol", "update", "nodename=n[0-1]", "state=resume").returncode == 0
        record = ended_badly(process, tmp_path, "cut", "its output ends at step 5 of 16")
    assert len(record["samples"]) == 5


def test_job_that_somebody_cancels_says_so(lab, tmp_path):
    with launched(lab, tmp_path, steps=LONG) as process:
        wait_for(lambda: steps_seen(tmp_path, 4), process, what="step")
        lab.says("scancel", record_in(tmp_path)["handle"])
        ended_badly(process, tmp_path, "failed", "Slurm ended it: CANCELLED")


def test_lost_launcher_leaves_the_job_running_and_another_follows_it(lab, tmp_path):
    with launched(lab, tmp_path, steps=60) as process:
        wait_for(lambda: steps_seen(tmp_path, 4), process, what="step")
        process.kill()
        process.wait()
    assert record_in(tmp_path)["outcome"] == "running"
    done = lab.run(*TOOL, "launch", "--attach", "run", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert (record["outcome"], record["valid"], len(record["samples"])) == ("done", True, 60)


@pytest.mark.parametrize("when", ["before", "while it runs"])
def test_full_disk_under_the_logs_stops_the_job(tmp_path, when):
    run = "disk/run"
    with small_disk(tmp_path, size_mib=300) as disk, slurm_lab(f"d{os.getpid()}", nodes=2, gpus=2) as lab:
        if when == "before":
            fill(disk, leave_bytes=64 << 20)
        with launched(lab, tmp_path, steps=LONG, run=run) as process:
            if when == "before":
                words = ("not started", "n0: ", "bytes are free for the run folder")
                ended_badly(process, tmp_path, *words, run=run)
                return
            wait_for(lambda: steps_seen(tmp_path, 8, run), process, what="step")
            fill(disk)
            words = ("failed", f"the disk of {tmp_path}/{run} is full", "the job was stopped")
            record = ended_badly(process, tmp_path, *words, run=run)
        assert len(record["samples"]) >= 8
        lab.idle()
