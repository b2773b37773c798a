"""Real jobs of torch on this machine: gloo over loopback, two to four ranks."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from linkwise.cli.main import run
from tests.launch.run.playing import left_of

pytestmark = [pytest.mark.requires("torch")]
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "send_recv")


def result_of(capsys, *words, code=0):
    assert run(["bench", *words, "--device", "cpu", "--format", "json"]) == code, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def test_collectives_are_measured_and_right_where_the_usual_port_is_taken(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    monkeypatch.setenv("MASTER_PORT", str(taken.getsockname()[1]))
    result = result_of(capsys, "collectives", *OPERATIONS, "--sizes", "8B,96KiB", "--repeats", "5")
    taken.close()
    assert [row["collective"] for row in result["rows"][::2]] == list(OPERATIONS)
    assert all(row["wrong"] == 0 and len(row["time"]["samples_s"]) == 5 for row in result["rows"])
    assert all(
        first <= last
        for row in result["rows"]
        for first, last in zip(row["first_samples_s"], row["time"]["samples_s"], strict=True)
    )
    assert result["runs"][0]["versions"]["torch"].startswith("2.")
    assert list(tmp_path.iterdir()) == []  # torchrun's own folder went with the run


def test_every_cut_trains_the_same_model(capsys):
    words = ("--layers", "2", "--hidden", "64", "--heads", "4", "--sequence-length", "32", "--steps", "5")
    result = result_of(capsys, "training", *words)
    assert result["losses_agree"] is True
    losses = {cut["cut"]: cut["losses"] for cut in result["cuts"]}
    assert list(losses) == ["ddp", "fsdp", "tensor", "pipeline"]
    for cut in losses.values():
        assert cut == pytest.approx(losses["ddp"], rel=1e-4)
    for cut in result["cuts"]:
        assert sum(phase["median_s"] for phase in cut["phases"].values()) < 3 * cut["step_time"]["median_s"]
    assert result["model"]["parameters"] == 2 * 49_984 + 2 * 1024 * 64 + 32 * 64 + 128


@pytest.mark.full
def test_one_rank_runs_as_on_a_machine_with_one_gpu(capsys):
    result = result_of(
        capsys, "collectives", *OPERATIONS[:-1], "--ranks", "1", "--sizes", "1MiB", "--repeats", "5"
    )
    assert all(row["wrong"] == 0 for row in result["rows"])
    assert result["rows"][0]["busbw_bytes_per_s"] == 0  # of one rank nothing crosses a link
    result = result_of(capsys, "training", "--ranks", "1", "--steps", "5", "--hidden", "64", "--layers", "2")
    assert result["losses_agree"] is True


@pytest.mark.full
def test_four_ranks_meet_in_all_rounds(capsys):
    result = result_of(capsys, "pairs", "--ranks", "4", "--size", "64KiB", "--repeats", "5", code=3)
    assert sorted({tuple(pair["pair"]) for pair in result["pairs"]}) == [
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 2),
        (1, 3),
        (2, 3),
    ]
    assert result["verdict"] == "cannot tell"


COMMAND = [sys.executable, "-c", "from linkwise.cli.main import main; main()", "bench", "collectives"]


@contextmanager
def started(folder, *words):
    """Give a bench that runs, once its ranks measure, with their process numbers."""
    options = ("--device", "cpu", "--sizes", "1MiB:64MiB", "--calls", "50", "-o", str(folder), *words)
    with subprocess.Popen(
        [*COMMAND, *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as bench:
        try:
            yield bench, ready(bench, folder / "samples.jsonl")
        finally:
            bench.kill()


def ready(bench, samples):
    until = time.monotonic() + 60
    while bench.poll() is None and time.monotonic() < until:
        said = samples.read_text().splitlines() if samples.exists() else []
        events = [json.loads(line) for line in said if line.endswith("}")]
        if any(event["event"] == "sample" for event in events):
            return {event["rank"]: event["pid"] for event in events if event["event"] == "ready"}
        time.sleep(0.1)
    pytest.fail(f"the ranks did not come; exit code {bench.poll()}")


def record_of(folder):
    return json.loads((folder / "record.json").read_text())


@pytest.mark.full
@pytest.mark.parametrize(
    ("number", "patience_s", "message"),
    [
        (signal.SIGKILL, "120", "rank 1 was killed by signal 9 (SIGKILL)"),
        (signal.SIGSTOP, "30", "no answer from rank 1"),
    ],
)
def test_a_rank_that_is_killed_or_does_not_answer_is_named(tmp_path, number, patience_s, message):
    with started(tmp_path / "out", "--patience", patience_s) as (bench, ranks):
        os.kill(ranks[1], number)
        _, err = bench.communicate(timeout=100)
    assert message in err
    assert bench.returncode == 1
    record = record_of(tmp_path / "out")
    assert (record["outcome"], message in record["reason"]) == ("failed", True)
    assert left_of(record["id"]) == []


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_cleanly(tmp_path, number):
    with started(tmp_path / "out") as (bench, _):
        bench.send_signal(number)
        _, err = bench.communicate(timeout=60)
    assert bench.returncode == 130
    assert "interrupted" in err
    record = record_of(tmp_path / "out")
    assert record["outcome"] == "interrupted"
    assert left_of(record["id"]) == []


@pytest.mark.full
def test_ranks_end_when_their_launcher_is_killed(tmp_path):
    with started(tmp_path / "out") as (bench, _):
        bench.kill()
        bench.wait()
    record, until = record_of(tmp_path / "out"), time.monotonic() + 20
    while left_of(record["id"]) and time.monotonic() < until:
        time.sleep(0.1)
    assert left_of(record["id"]) == []
    assert record["outcome"] == "running"


@pytest.mark.full
def test_two_benches_at_once_both_measure():
    options = ("--device", "cpu", "--sizes", "1MiB", "--repeats", "5", "--format", "json")
    with (
        subprocess.Popen([*COMMAND, *options], stdout=subprocess.PIPE) as one,
        subprocess.Popen([*COMMAND, *options], stdout=subprocess.PIPE) as other,
    ):
        results = [json.loads(bench.communicate(timeout=100)[0]) for bench in (one, other)]
    assert [one.returncode, other.returncode] == [0, 0]
    assert all(result["rows"][0]["wrong"] == 0 for result in results)
