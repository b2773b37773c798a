"""A real Prometheus scrapes a watch, its rules fire, and a real Alertmanager holds the alerts."""

import contextlib
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

pytestmark = [pytest.mark.requires("prometheus"), pytest.mark.requires("alertmanager"), pytest.mark.slow]

_PATIENCE_S = 60.0
LINKWISE = str(Path(sys.executable).with_name("linkwise"))


def _free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _get(url):
    with urllib.request.urlopen(url, timeout=5) as answer:
        return json.loads(answer.read() or b"null")


def _until(what, url, wanted):
    """Return the answer of an address once it is as wanted."""
    end_s = time.monotonic() + _PATIENCE_S
    last = None
    while time.monotonic() < end_s:
        with contextlib.suppress(OSError, ValueError, urllib.error.URLError):
            last = _get(url)
            if found := wanted(last):
                return found
        time.sleep(0.2)
    pytest.fail(f"{what} within {_PATIENCE_S:.0f} s; last answer {last}")


@contextlib.contextmanager
def _running(*words, **given):
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **given)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


@pytest.fixture
def alertmanager(tmp_path):
    port = _free_port()
    (tmp_path / "am.yml").write_text("route: {receiver: none, group_wait: 0s}\nreceivers: [{name: none}]\n")
    with _running(
        "prometheus-alertmanager", f"--config.file={tmp_path / 'am.yml'}", f"--storage.path={tmp_path / 'am'}",
        f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address=",
    ):  # fmt: skip
        address = f"http://127.0.0.1:{port}"
        _until("Alertmanager answers", f"{address}/api/v2/status", bool)
        yield address


@pytest.fixture
def prometheus(tmp_path, alertmanager, watched):
    port = _free_port()
    rules = tmp_path / "rules.yml"
    subprocess.run([LINKWISE, "watch", "--write-rules", str(rules)], check=True)
    target, manager = watched.removeprefix("http://"), alertmanager.removeprefix("http://")
    (tmp_path / "prometheus.yml").write_text(
        f"""\
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ["{manager}"]}}]}}]}}
scrape_configs: [{{job_name: linkwise, static_configs: [{{targets: ["{target}"]}}]}}]
"""
    )
    with _running(
        "prometheus", f"--config.file={tmp_path / 'prometheus.yml'}", f"--storage.tsdb.path={tmp_path / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ):  # fmt: skip
        address = f"http://127.0.0.1:{port}"
        _until("Prometheus answers", f"{address}/api/v1/status/config", bool)
        yield address


@pytest.fixture
def watched(tmp_path, alertmanager):
    """Yield the address of the metrics of a watch whose job lost its loss and then stopped."""
    log = tmp_path / "job.log"
    steps = "".join(f"step {at} loss 2.0 time 0.50000 s tokens/s 2000\n" for at in range(1, 300))
    log.write_text(steps + "step 300 loss nan time 0.50000 s tokens/s 2000\n")
    port = _free_port()
    with _running(
        LINKWISE, "watch", str(log), "--name", "llama", "--metrics", str(port), "--stall", "3 s",
        "--alertmanager", alertmanager,
    ):  # fmt: skip
        address = f"http://127.0.0.1:{port}"
        end_s = time.monotonic() + _PATIENCE_S
        while True:
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"{address}/metrics", timeout=5) as answer,
            ):
                answer.read()
                break
            assert time.monotonic() < end_s, "no metrics"
            time.sleep(0.2)
        yield address


def test_metrics_are_scraped_rules_fire_and_alerts_arrive(prometheus, alertmanager):
    found = _until(
        "steps are scraped",
        f"{prometheus}/api/v1/query?query=linkwise_watch_steps_total",
        lambda answer: answer["data"]["result"],
    )
    assert found[0]["metric"]["run"] == "llama"
    assert float(found[0]["value"][1]) == 300

    def names(alerts):
        return {each["labels"]["alertname"] for each in alerts}

    wanted = {"LinkwiseWatchStalled", "LinkwiseWatchNotANumber"}
    _until(
        "rules fire",
        f"{prometheus}/api/v1/alerts",
        lambda answer: wanted <= names(answer["data"]["alerts"]),
    )
    alerts = _until(
        "alerts reach Alertmanager",
        f"{alertmanager}/api/v2/alerts",
        lambda answer: answer if wanted <= names(answer) else None,
    )
    # Those that Prometheus sends name where they were scraped; those of the watch itself do not.
    from_prometheus = [each for each in alerts if "instance" in each["labels"]]
    from_watch = [each for each in alerts if "instance" not in each["labels"]]
    assert wanted <= names(from_prometheus)
    assert wanted <= names(from_watch)
    stalled = next(each for each in from_watch if each["labels"]["alertname"] == "LinkwiseWatchStalled")
    assert stalled["labels"]["run"] == "llama"
    assert "no step for" in stalled["annotations"]["summary"]
