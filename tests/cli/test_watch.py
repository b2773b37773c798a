"""`linkwise watch` as a user runs it."""

import datetime as dt
import gzip
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from linkwise.cli.main import run
from linkwise.launch.run.ending import Ending, Outcome
from linkwise.launch.run.launch_record import LaunchRecord, Prediction
from linkwise.launch.run.proof import Expected
from linkwise.report.launch_result import launch_json
from tests.monitor.expositions import vllm

LINKWISE = str(Path(sys.executable).with_name("linkwise"))


def _log(count, *, rise=1.0, at=None, first=1):
    times = 0.5 * (1 + 0.01 * np.random.default_rng(1).standard_normal(count))
    times[at or count :] *= rise
    return "".join(
        f"step {first + number} loss 2.1 time {time_s:.5f} s tokens/s {1000 / time_s:.0f}\n"
        for number, time_s in enumerate(times)
    )


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "job.log"
    path.write_text(_log(600))
    return path


def test_a_healthy_recording_ends_with_zero(log, capsys):
    assert run(["watch", "--replay", str(log)]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("healthy\n")
    assert "600 up to 600; not timed: 10 warm-up" in told.out
    assert "false alarms of this test: 0 in 21,480" in " ".join(told.out.split())
    assert told.err == ""


def test_a_rise_is_told_in_its_line_and_ends_with_one(log, capsys):
    log.write_text(_log(600, rise=1.05, at=400))
    assert run(["watch", "--replay", str(log)]) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert "step 4" in first
    assert "warning: step_time_rose: step time rose from 0." in first


def test_json_is_the_published_result_and_nothing_else(log, capsys):
    assert run(["watch", "--replay", str(log), "--format", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["schema"], result["verdict"], result["run"]) == ("linkwise.watch/1", "healthy", "job.log")
    assert result["step_time"]["median_s"] == pytest.approx(0.5, rel=0.01)


def test_lines_of_json_end_with_the_result(log, capsys):
    log.write_text(_log(600, rise=1.05, at=400))
    assert run(["watch", "--replay", str(log), "--follow-json"]) == 1
    alert, result = map(json.loads, capsys.readouterr().out.splitlines())
    assert (alert["schema"], alert["kind"]) == ("linkwise.watch.alert/1", "step_time_rose")
    assert result["schema"] == "linkwise.watch/1"


def test_a_compressed_recording_is_read(tmp_path, capsys):
    path = tmp_path / "job.log.gz"
    path.write_bytes(gzip.compress(_log(600).encode()))
    assert run(["watch", "--replay", str(path)]) == 0


def test_too_few_steps_end_with_three(log, capsys):
    log.write_text(_log(50))
    assert run(["watch", "--replay", str(log)]) == 3
    assert "too few" in capsys.readouterr().out


def test_nothing_to_measure_ends_with_four(log, capsys):
    log.write_text("hello\n")
    assert run(["watch", "--replay", str(log)]) == 4
    assert "no line of a step" in capsys.readouterr().out


def test_text_fits_eighty_columns(log, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    log.write_text(_log(600, rise=1.05, at=400))
    run(["watch", "--replay", str(log)])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to watch"),
        (["--replay"], "nothing to watch"),
        (["--replay", "x.log", "--host"], "have no effect with --replay"),
        (["--replay", "absent.log"], "no such file"),
        (["absent/absent.log"], "neither the file nor its folder"),
        (["x.log", "--stall", "0 s"], "above zero"),
        (["x.log", "--stall", "5"], "--stall: '5' has no unit; write a time as '5 min'"),
        (["x.log", "--until-quiet", "soon"], "--until-quiet: 'soon' is not a time; write it as '5 min'"),
        (["x.log", "--until-quiet", "5"], "unit"),
        (["x.log", "--metrics", "here:there"], "ADDRESS:PORT"),
        (["--endpoint", "server:8000"], "begins with http://"),
        (["-", "-"], "given twice"),
    ],
)
def test_wrong_use_says_what_to_do(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["watch", *words]) == 2
    assert message in capsys.readouterr().err


def test_rules_and_dashboard_are_written_without_a_job(tmp_path, capsys):
    rules, board = tmp_path / "rules.yml", tmp_path / "board.json"
    assert run(["watch", "--write-rules", str(rules), "--write-dashboard", str(board)]) == 0
    assert rules.read_text().startswith("# Written by linkwise watch")
    assert json.loads(board.read_text())["title"] == "Linkwise watch"
    assert run(["watch", "--write-rules", "-"]) == 0
    assert "LinkwiseWatchStalled" in capsys.readouterr().out


def test_without_scipy_it_says_what_to_install(log, capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert run(["watch", "--replay", str(log)]) == 2
    assert "linkwise[watch]" in capsys.readouterr().err
    assert run(["watch", "--replay", str(log), "--no-drift"]) == 0
    assert "not judged" in capsys.readouterr().out


def test_metrics_are_written_to_a_file(log, tmp_path, capsys):
    path = tmp_path / "linkwise.prom"
    assert run(["watch", "--replay", str(log), "--textfile", str(path), "--name", "llama"]) == 0
    assert 'linkwise_watch_steps_total{run="llama"} 600.0' in path.read_text()


def _record(folder, outcome):
    record = LaunchRecord(
        run_id="0123456789abcdef",
        name="llama",
        place="local",
        handle="1",
        argv=("torchrun",),
        plan_digest="0" * 64,
        expected=Expected(
            nodes=1, ranks_per_node=4, hosts=("n1",), device="cuda", settings={}, protocol="", has_nvlink=True
        ),
        prediction=Prediction(
            step_time_s=0.5, step_time_low_s=0.4, step_time_high_s=0.6, tokens_per_step=4096, steps=600
        ),
        started=dt.datetime(2026, 12, 1, tzinfo=dt.UTC),
        ending=Ending(outcome=outcome),
    )
    (folder / "record.json").write_text(launch_json(record))


def test_the_run_folder_of_an_ended_job_is_read_as_a_recording(tmp_path, capsys):
    _record(tmp_path, Outcome.DONE)
    (tmp_path / "output.log").write_text("torchrun says hello\n")
    logs = tmp_path / "logs" / "x" / "attempt_0" / "0"
    logs.mkdir(parents=True)
    lines = "".join(
        f"[rank0]:step: {at:>3}  loss:  3.2  memory: 60GiB  tps: 2,048  mfu: 40.70%\n" for at in range(1, 400)
    )
    (logs / "stdout.log").write_text(lines)
    assert run(["watch", str(tmp_path), "--format", "json"]) == 0
    told = capsys.readouterr()
    result = json.loads(told.out)
    assert "has ended" in told.err
    assert (result["run"], result["is_replay"], result["steps"]["count"]) == ("llama", True, 399)
    # 4,096 tokens on 4 GPUs at 2,048 tokens/s each.
    assert result["step_time"]["median_s"] == pytest.approx(0.5)
    assert result["training"]["tokens_per_s"] == pytest.approx(8192)


def test_the_run_folder_of_a_bench_is_a_folder_of_logs(tmp_path, capsys):
    (tmp_path / "record.json").write_text('{"schema": "linkwise.run/1", "outcome": "done"}')
    (tmp_path / "output.log").write_text(_log(600))
    assert run(["watch", "--replay", str(tmp_path)]) == 0
    assert "600 up to 600" in capsys.readouterr().out


def test_the_watch_of_a_run_folder_ends_with_its_job(tmp_path):
    _record(tmp_path, Outcome.RUNNING)
    (tmp_path / "output.log").write_text(_log(600) + "step 601 loss nan time 0.5 s tokens/s 2000\n")
    process = _started(str(tmp_path), "--follow-json")
    assert json.loads(process.stdout.readline())["kind"] == "not_a_number"
    assert process.poll() is None
    _record(tmp_path, Outcome.DONE)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert json.loads(out)["steps"]["count"] == 601


def test_objectives_are_handed_in_as_values(log, capsys):
    from linkwise.cli.watch_following import WatchRequest, watch_job
    from linkwise.monitor.alert import Comparison, Objective

    bar = Objective(name="speed", metric="train.step_time", comparison=Comparison.AT_MOST, bar=0.4)
    assert watch_job(WatchRequest(paths=(str(log),), is_replay=True, objectives=(bar,))) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "speed: train.step_time is 0." in out
    assert "must be at most 0.4" in out


def _started(*words, **given):
    return subprocess.Popen(
        [LINKWISE, "watch", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **given
    )


def test_standard_input_is_followed_to_its_end():
    process = _started("-", stdin=subprocess.PIPE)
    out, err = process.communicate(_log(600, rise=1.05, at=400), timeout=60)
    assert process.returncode == 1
    assert "step_time_rose" in out
    assert err == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_the_verdict(log, number):
    process = _started(str(log), "--follow-json", "--stall", "1 s")
    assert json.loads(process.stdout.readline())["kind"] == "stalled"
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert json.loads(out.splitlines()[-1])["is_stalled"] is True


def test_it_ends_once_the_logs_are_quiet(log):
    process = _started(str(log), "--until-quiet", "0.5 s")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.startswith("healthy")


def test_a_terminal_gets_one_line_that_is_refreshed(log):
    import pty

    parent, child = pty.openpty()
    process = subprocess.Popen(
        [LINKWISE, "watch", str(log), "--until-quiet", "1.5 s"],
        stdout=subprocess.PIPE,
        stderr=child,
        text=True,
    )
    os.close(child)
    out, _ = process.communicate(timeout=60)
    shown = os.read(parent, 65536).decode()
    os.close(parent)
    assert "\r\x1b[2Kstep 600  0.5" in shown
    assert shown.endswith("\r\x1b[2K")
    assert "\x1b" not in out


class _Server(http.server.BaseHTTPRequestHandler):
    shown = vllm(release="0.12", ttft=(9,) * 7, tpot=(9,) * 6, stopped=63, waiting=2)

    looked = threading.Semaphore(0)

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.shown.encode())
        self.looked.release()

    def log_message(self, *_):
        pass


def test_a_server_is_watched_without_a_job():
    server = http.server.HTTPServer(("127.0.0.1", 0), _Server)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        process = _started("--endpoint", f"http://127.0.0.1:{server.server_port}/metrics", "--format", "json")
        assert _Server.looked.acquire(timeout=60)
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    result = json.loads(out)
    assert process.returncode == 0
    assert result["endpoints"][0]["server"] == "vllm"
    assert result["endpoints"][0]["queue"] == 2
