"""Benches on the real Slurm of a lab: gloo over its links, every fault stopped and recorded."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.lab.slurm_labs import TOOL, slurm_lab
from tests.launch.run.playing import left_of
from tests.launch.run.small_disks import fill, small_disk

pytestmark = [
    pytest.mark.requires("netns"),
    pytest.mark.requires("slurm"),
    pytest.mark.requires("torch"),
    pytest.mark.full,
]
TWO = ("--on", "slurm", "--nodes", "2", "--ranks", "4", "--device", "cpu", "-o", "run", "--format", "json")
LONG = ("collectives", "--sizes", "8B", "--repeats", "1000", "--calls", "1000", *TWO)


@pytest.fixture(scope="module")
def two():
    with slurm_lab(f"b{os.getpid()}", nodes=2, gpus=2) as lab:
        yield lab


@pytest.fixture
def lab(two):
    two.idle()
    yield two
    two.run("scancel", "--user=root")
    two.run("scontrol", "update", "nodename=ALL", "state=resume")
    two.idle()


def measured(lab, folder, *words, code=0, settings=()):
    """Return the result of a bench that left with a code."""
    done = lab.run("env", *settings, *TOOL, "bench", *words, cwd=folder, timeout=580)
    assert done.returncode == code, done.stderr[-2000:]
    return json.loads(done.stdout)


def started(lab, folder):
    """Start a bench that lasts, and return it once its ranks say samples."""
    process = subprocess.Popen(
        lab.words(*TOOL, "bench", *LONG), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    until = time.monotonic() + 90
    while b'"begin"' not in read(folder / "run" / "samples.jsonl"):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < until
        time.sleep(0.1)
    return process


def read(path):
    return path.read_bytes() if path.exists() else b""


def record_in(folder):
    return json.loads((folder / "run" / "record.json").read_text())


def is_left(record):
    """Return what of a run lives, after the moment that ending takes."""
    for _ in range(100):
        if not (left := left_of(record["id"])):
            return []
        time.sleep(0.1)
    return left


def test_collectives_run_over_the_links_of_the_lab_and_are_proved(lab, tmp_path):
    before = lab.sent_bytes(1, "eth0")
    words = ("collectives", "all_reduce", "all_gather", "--sizes", "64KiB", "--repeats", "5", "--calls", "2")
    result = measured(lab, tmp_path, *words, *TWO, settings=["GLOO_SOCKET_IFNAME=eth0"])
    assert (result["place"], result["backend"], result["ranks"]) == ("slurm", "gloo", 4)
    assert all(row["wrong"] == 0 and len(row["time"]["samples_s"]) == 5 for row in result["rows"])
    (run,) = result["runs"]
    assert run["hosts"] == ["n0", "n1"]
    assert [check["is_as_planned"] for check in run["checks"]] == [True] * len(run["checks"])
    assert {check["what"] for check in run["checks"]} == {"world size", "hosts", "environment", "interface"}
    # One all-reduce of 64 KiB by four ranks sends 1.5 times that over the link from node 1.
    assert lab.sent_bytes(1, "eth0") - before > 10 * 1.5 * 65_536


def test_every_cut_trains_the_same_model_on_two_nodes(lab, tmp_path):
    shape = ("--layers", "4", "--hidden", "64", "--heads", "4", "--sequence-length", "32", "--steps", "5")
    result = measured(lab, tmp_path, "training", *shape, *TWO)
    assert [cut["cut"] for cut in result["cuts"]] == ["ddp", "fsdp", "tensor", "pipeline"]
    assert result["losses_agree"] is True


def test_slow_node_of_eight_is_found_by_all_ranks_of_pairs(tmp_path):
    # 20 Mbit/s a NIC: four times two ranks that send 256 KiB at once take 0.8 s, more than turns on few cores.
    with slurm_lab(f"p{os.getpid()}", nodes=8, gpus=2, dilation=20_000) as lab:
        fault = lab.fault("slow-link", 5)
        fault.set_rate(0.4)
        words = ["pairs", "--on", "slurm", "--nodes", "8", "--ranks", "16", "--device", "cpu"]
        sampling = ["--size", "256KiB", "--repeats", "5", "--calls", "4", "--warmup", "1"]
        more = ["--patience", "300", "--format", "json"]
        result = measured(lab, tmp_path, *words, *sampling, *more, code=1)
    assert result["ranks_per_node"] == 2
    assert result["verdict"] == "slow nodes", result["reason"]
    slow = [node for node in result["nodes"] if node["confirmed"]]
    assert [node["host"] for node in slow] == ["n5"]
    assert "n5" in result["reason"]
    first = [pair for pair in result["pairs"] if pair["run"] == 0]
    assert len(first) == 5 * 4
    healthy = sorted(pair["time"]["median_s"] for pair in first if 5 not in pair["pair"])
    # Two ranks of 256 KiB over 2.5 MB/s: every node sends with both at once.
    assert healthy[0] > 0.9 * 2 * 262_144 / 2.5e6


def test_rank_that_is_killed_ends_the_bench(lab, tmp_path):
    process = started(lab, tmp_path)
    ranks = json.loads((tmp_path / "run" / "seen" / "ranks-1.json").read_text())
    os.kill(ranks[-1]["pid"], signal.SIGKILL)
    _, said = process.communicate(timeout=90)
    record = record_in(tmp_path)
    assert (process.returncode in (1, 4), record["outcome"]) == (True, "failed"), said
    assert f"rank {ranks[-1]['rank']}" in record["reason"], record["reason"]
    assert is_left(record) == []


def test_node_that_is_lost_ends_the_bench(lab, tmp_path):
    process = started(lab, tmp_path)
    with lab.without_node(1):
        _, said = process.communicate(timeout=150)
        record = record_in(tmp_path)
        assert record["outcome"] in ("failed", "silent"), said
        assert "n1" in record["reason"], record["reason"]
        assert is_left(record) == []


def test_full_disk_ends_the_bench(tmp_path):
    with small_disk(tmp_path, size_mib=100) as disk, slurm_lab(f"e{os.getpid()}", nodes=2, gpus=2) as lab:
        process = started(lab, disk)
        fill(disk)
        _, said = process.communicate(timeout=90)
        record = record_in(disk)
        assert (process.returncode in (1, 4), record["outcome"]) == (True, "failed"), said
        assert "No space left on device" in record["reason"]
        assert is_left(record) == []
        lab.idle()


def test_interrupt_cancels_the_job(lab, tmp_path):
    process = started(lab, tmp_path)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=90)
    record = record_in(tmp_path)
    assert (process.returncode, record["outcome"]) == (130, "interrupted")
    assert is_left(record) == []


def test_ranks_end_when_the_bench_is_killed(lab, tmp_path):
    process = started(lab, tmp_path)
    process.kill()
    process.communicate()
    assert is_left(record_in(tmp_path)) == []


def test_srun_that_is_killed_leaves_no_job(lab, tmp_path):
    process = started(lab, tmp_path)
    (srun,) = [pid for pid in left_of(record_in(tmp_path)["id"]) if is_srun(pid)][:1]
    os.kill(int(srun), signal.SIGKILL)
    process.communicate(timeout=120)
    record = record_in(tmp_path)
    assert record["outcome"] == "failed", record["reason"]
    assert is_left(record) == []


def is_srun(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"srun\0")


def test_job_that_waits_says_why_and_is_given_up(lab, tmp_path):
    other = subprocess.Popen(lab.words("srun", "--exclusive", "-N2", "sleep", "300"))
    while lab.says("sinfo", "-h", "-o", "%T") != "allocated":
        time.sleep(0.1)
    try:
        done = lab.run(*TOOL, "bench", *LONG, "--queue-within", "4 s", cwd=tmp_path)
    finally:
        other.terminate()
        other.wait()
    assert done.returncode == 4
    assert "waits in the queue of lab, 1 of 1: Resources, what it asks for is in use" in " ".join(
        done.stderr.split()
    )
    record = record_in(tmp_path)
    assert (record["outcome"], record["reason"].split(";")[0]) == (
        "not started",
        "it was queued for 4 s (Resources)",
    )


def test_node_without_torch_is_named_before_ranks_start(lab, tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.base_prefix}/bin/python3 -S -E "$@"\n')
    bare.chmod(0o755)
    done = lab.run(*TOOL, "bench", *LONG, "--python", str(bare), cwd=tmp_path)
    record = record_in(tmp_path)
    assert (done.returncode, record["outcome"]) == (4, "not started")
    assert "n0: its Python has no torch" in record["reason"]
    assert is_left(record) == []


def test_bench_leaves_no_folder_where_none_was_asked_for(lab, tmp_path):
    words = [word for word in TWO if word not in ("-o", "run")]
    measured(lab, tmp_path, "collectives", "--sizes", "8B", "--repeats", "5", *words)
    assert list(tmp_path.iterdir()) == []
