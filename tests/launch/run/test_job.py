"""A job from start to end, well and badly: what is said, what is recorded, and that nothing is left."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from linkwise.errors import InputError
from linkwise.launch.run.ending import Outcome
from tests.launch.run.playing import left_of, play

ROOT = Path(__file__).parents[3]


def record_of(path):
    return json.loads((path / "record.json").read_text())


def test_a_job_that_is_done_is_recorded_with_what_it_said(tmp_path):
    heard = []
    run = play(
        'ready(0, 1); say("sample", time_s=1.5); print("other"); say("done")', tmp_path, on_event=heard.append
    )
    assert run.record.ending.outcome is Outcome.DONE
    assert [event["event"] for event in heard] == ["ready", "ready", "sample", "done"]
    record = record_of(tmp_path)
    assert (record["schema"], record["outcome"], record["samples"]) == ("linkwise.run/1", "done", 4)
    assert (record["hosts"], record["versions"]["torch"]) == (["node-1"], "2.13.0")
    samples = [json.loads(line) for line in (tmp_path / "samples.jsonl").read_text().splitlines()]
    assert samples == list(run.events)
    assert (tmp_path / "output.log").read_text() == "other\n"
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "output.log",
        "plan.json",
        "record.json",
        "samples.jsonl",
    ]


def test_the_record_holds_settings_of_communication_and_no_others(tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    monkeypatch.setenv("NCCL_IB_HCA", "mlx5")
    play('ready(0, 1); say("done")', tmp_path, settings={"NCCL_DEBUG": "INFO"})
    text = (tmp_path / "record.json").read_text()
    assert "hush" not in text
    settings = json.loads(text)["settings"]
    assert (settings["NCCL_IB_HCA"], settings["NCCL_DEBUG"]) == ("mlx5", "INFO")


@pytest.mark.parametrize(
    ("script", "outcome", "reason"),
    [
        (
            'ready(0, 1); say("failed", rank=1, error="ValueError: no"); sys.exit(1)',
            "failed",
            "rank 1: ValueError: no",
        ),
        (
            """ready(0, 1); say("failed", rank=0, error="Connection closed by peer")
say("failed", rank=1, error="OutOfMemoryError"); sys.exit(1)""",
            "failed",
            "rank 1: OutOfMemoryError",
        ),
        ('print("segfault at 0"); sys.exit(7)', "failed", "exit code 7; it last said: segfault at 0"),
        ("sys.exit(7)", "failed", "exit code 7, and said nothing"),
        ('ready(0, 1); say("sample")', "cut", "never said that it is done"),
        ('ready(0, 1); os.write(1, b"@linkwise {\\"event\\": \\"sam")', "cut", "was cut in the line"),
        (
            """ready(0, 1); say("failed", rank=0, error="reset")
print("failed (exitcode: -9) local_rank: 1 (pid: 77) of binary: python"); sys.exit(1)""",
            "failed",
            "local rank 1 of its node) was killed by signal 9",
        ),
        ("import no_such_module_here", "failed", "No module named"),
    ],
)
def test_a_bad_end_names_its_first_cause(tmp_path, script, outcome, reason):
    run = play(script, tmp_path)
    assert run.record.ending.outcome == outcome
    assert reason in run.record.ending.reason
    assert record_of(tmp_path)["outcome"] == outcome


@pytest.mark.parametrize(
    ("script", "outcome", "reason"),
    [
        ("time.sleep(60)", "not started", "ranks 0, 1 of 2 had not joined"),
        ("ready(0); time.sleep(60)", "not started", "rank 1 of 2 had not joined"),
        (
            'ready(0, 1); say("begin", operation="all_reduce", size_bytes=8); time.sleep(60)',
            "silent",
            "last: operation all_reduce, size_bytes 8",
        ),
        ('ready(0, 1)\nwhile True: print("noise"); time.sleep(0.01)', "silent", "said nothing"),
    ],
)
def test_a_job_that_says_nothing_is_stopped(tmp_path, script, outcome, reason):
    begin = time.monotonic()
    run = play(script, tmp_path, patience_s=0.8)
    assert time.monotonic() - begin < 8
    assert run.record.ending.outcome == outcome
    assert reason in run.record.ending.reason
    assert left_of(run.record.run_id) == []


def test_a_rank_that_does_not_answer_is_named_by_the_failure_of_another(tmp_path, monkeypatch):
    monkeypatch.setattr("linkwise.launch.run.job._LEAVING_S", 0.3)
    run = play('ready(0, 1); say("failed", rank=0, error="Timed out"); time.sleep(60)', tmp_path)
    assert run.record.ending.reason == "rank 0: Timed out; no answer from rank 1, and the job was stopped"
    assert left_of(run.record.run_id) == []


STUBBORN = """
child = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"],
                         start_new_session=True)
ready(0, 1); time.sleep(0.3); sys.exit(3)
"""


def test_processes_that_left_their_session_and_ignore_the_request_are_killed(tmp_path, monkeypatch):
    monkeypatch.setattr("linkwise.launch.run.processes._GRACE_S", 0.3)
    run = play(STUBBORN, tmp_path)
    assert run.record.ending.exit_code == 3
    assert left_of(run.record.run_id) == []


def test_a_stopped_process_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr("linkwise.launch.run.processes._GRACE_S", 0.3)
    run = play("ready(0, 1); os.kill(os.getpid(), signal.SIGSTOP)", tmp_path, patience_s=0.5)
    assert run.record.ending.outcome is Outcome.SILENT
    assert left_of(run.record.run_id) == []


def test_lines_without_end_and_no_text_are_bounded(tmp_path):
    run = play('ready(0, 1); os.write(1, b"x" * 300_000 + b"\\xff\\n"); say("done")', tmp_path)
    assert run.record.ending.outcome is Outcome.DONE
    assert (tmp_path / "output.log").stat().st_size < 150_000


def test_a_program_that_is_not_there_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.executable", "/no/such/python")
    with pytest.raises(InputError, match="cannot start /no/such/python"):
        play("", tmp_path)
    assert record_of(tmp_path)["outcome"] == "not started"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_stops_the_job_and_is_recorded(tmp_path, number):
    code = (
        "from pathlib import Path; from tests.launch.run.playing import play\n"
        f"play('ready(0, 1); time.sleep(60)', Path({str(tmp_path)!r}), patience_s=50)"
    )
    launcher = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 20
    samples = tmp_path / "samples.jsonl"
    while not samples.exists() or samples.read_text().count("\n") < 2:
        assert time.monotonic() < until
        time.sleep(0.05)
    os.kill(launcher.pid, number)
    assert launcher.wait(20) != 0
    record = record_of(tmp_path)
    assert (record["outcome"], record["samples"]) == ("interrupted", 2)
    assert left_of(record["id"]) == []


def test_two_runs_at_once_do_not_touch_each_other(tmp_path):
    script = 'ready(0, 1); time.sleep(1.0); say("done")'
    code = f"from pathlib import Path; from tests.launch.run.playing import play\nplay({script!r}, Path({str(tmp_path / 'other')!r}))"
    other = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    run = play("ready(0, 1); sys.exit(1)", tmp_path / "own")
    assert run.record.ending.outcome is Outcome.FAILED
    assert other.wait(20) == 0
    assert record_of(tmp_path / "other")["outcome"] == "done"


@pytest.fixture
def small_disk(tmp_path):
    """Mount a file system of half a megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("needs a small file system, which only root can mount")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_ends_the_job_and_the_record_says_so(small_disk):
    run = play('ready(0, 1)\nwhile True: say("sample", text="x" * 2000)', small_disk)
    assert run.record.ending.outcome is Outcome.FAILED
    assert "No space left on device; the job was stopped" in run.record.ending.reason
    record = record_of(small_disk)
    assert record["outcome"] == "failed"
    assert record["samples"] > 10
    assert left_of(run.record.run_id) == []


def test_a_disk_full_from_the_start_is_said_before_anything_runs(small_disk):
    (small_disk / "filler").write_bytes(b"x" * (512 * 1024 - 4096))
    with pytest.raises(InputError, match="cannot be written"):
        play('say("done")', small_disk)


def test_a_process_that_loads_programs_all_the_time_is_stopped(tmp_path):
    script = """
open("again.sh", "w").write("exec sh again.sh")
subprocess.Popen(["sh", "again.sh"])
say("done"); sys.exit(0)
"""
    run = play(f"os.chdir({str(tmp_path)!r})\n" + "ready(0, 1)\n" + script, tmp_path / "run")
    assert run.record.ending.outcome == "done"
    time.sleep(0.2)
    assert left_of(run.record.run_id) == []


class Waiting:
    """A queue that is named by lines such as ``queued 7`` and left by ``granted``."""

    patience_s = 0.6

    def heard(self, line):
        word, _, job = line.partition(" ")
        return job if word == "queued" else "" if word == "granted" else None

    def reason(self, job):
        return f"reason of {job}"


def test_job_that_waits_in_a_queue_has_its_own_patience(tmp_path):
    told = []
    script = "print('queued 7', flush=True); time.sleep(0.4); print('granted', flush=True); ready(0, 1); say('done')"
    run = play(script, tmp_path / "good", patience_s=0.3, queue=Waiting(), on_event=told.append)
    assert run.record.ending.outcome is Outcome.DONE
    assert {"event": "waiting", "job": "7"} in told
    script = "print('queued 7', flush=True); time.sleep(60)"
    ending = play(script, tmp_path / "never", patience_s=0.3, queue=Waiting()).record.ending
    assert ending.outcome is Outcome.NOT_STARTED
    assert ending.reason == "it was queued for 1 s (reason of 7); the job was stopped"


def test_place_makes_sure_of_a_job_that_ended_badly_alone(tmp_path):
    for script, is_made_sure in (("ready(0, 1); say('done')", False), ("sys.exit(3)", True)):
        mark = tmp_path / f"mark-{is_made_sure}"
        play(script, tmp_path / f"run-{is_made_sure}", stop=("touch", str(mark)))
        assert mark.exists() is is_made_sure


def test_refusal_of_a_node_is_the_reason_of_a_bench(tmp_path):
    path = tmp_path / "run"
    script = "sys.stderr.write('noise'); sys.exit(3)"
    (path / "seen").mkdir(parents=True)
    (path / "seen" / "refused-0.json").write_text('["n1: its Python has no torch"]')
    ending = play(script, path, seen_in=path).record.ending
    assert (ending.outcome, ending.reason) == (Outcome.NOT_STARTED, "n1: its Python has no torch")
