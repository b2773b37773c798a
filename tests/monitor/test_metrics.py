"""Metrics of a watched job as Prometheus reads them."""

import re
import subprocess
import urllib.request

import pytest
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as open_metrics

from linkwise.errors import InputError
from linkwise.monitor.alerting import PANELS, RULES
from linkwise.monitor.endpoints import Endpoint
from linkwise.monitor.host_counters import PortsWatch
from linkwise.monitor.metrics import PREFIX, registry_of, serve, write_textfile
from linkwise.monitor.watching import Watch, WatchClocks
from linkwise.readers.prometheus_text import parse_exposition
from tests.monitor.expositions import vllm
from tests.monitor.test_watching import Clock, _live


@pytest.fixture
def watch(tmp_path):
    """Return a watch that has seen some of everything that metrics show."""
    port = tmp_path / "sys" / "mlx5_0" / "ports" / "1"
    (port / "counters").mkdir(parents=True)
    (port / "state").write_text("4: ACTIVE\n")
    for name in ("symbol_error", "port_xmit_data", "port_rcv_data"):
        (port / "counters" / name).write_text("0\n")
    path = tmp_path / "job.log"
    steps = (
        "2026-12-01 05:{:02}:{:02} iteration {}/ 900 | elapsed time per iteration (ms): 1000.0 | lm loss: 2.5 | "
        "grad norm: 0.2 |\ntime (ms) | backward-params-all-reduce: 100.0\n"
    )
    path.write_text(
        "".join(steps.format(at // 60, at % 60, at) for at in range(1, 300))
        + "NVRM: Xid (PCI:0000:1b:00): 79, pid=1\nstep 300 loss 2.0 time 1.00000 s tokens/s 900\n"
    )
    shown = [vllm(release="0.12", ttft=(at,) * 7, tpot=(at,) * 6, stopped=at, waiting=2) for at in (18, 9)]
    clock = Clock()
    made = _live(
        clock,
        path,
        ports=PortsWatch(root=tmp_path / "sys"),
        endpoints=(Endpoint(url="http://server", fetch=lambda _url: shown.pop()),),
    )
    made.turn()
    (port / "counters" / "symbol_error").write_text("3\n")
    clock.now_s += 6
    made.turn()
    return made


def _shown(watch):
    return parse_exposition(generate_latest(registry_of(watch, run="llama")).decode(), path="x")


def test_values_are_those_of_the_watch(watch):
    shown = _shown(watch)
    assert shown.sum(f"{PREFIX}_steps_total") == 300
    assert shown.sum(f"{PREFIX}_communication_ratio") == pytest.approx(0.1)
    ((labels, value), *_) = shown.values(f"{PREFIX}_step_time_seconds")
    assert (labels["quantile"], value) == ("0.5", 1.0)
    alerts = {(each["kind"], each["severity"]): value for each, value in shown.values(f"{PREFIX}_alerts")}
    assert alerts["xid", "critical"] == 1
    assert alerts["link_errors", "warning"] == 1
    assert alerts["stalled", "critical"] == 0


def test_all_carry_the_name_of_the_run(watch):
    assert {labels.get("run") for each in _shown(watch).samples.values() for labels, _ in each} == {"llama"}


def test_names_that_rules_and_drawings_use_are_shown(watch):
    used = [each.expression for each in RULES]
    used += [expression for panel in PANELS for expression, _ in panel.expressions]
    names = set(re.findall(rf"{PREFIX}_[a-z_]+", " ".join(used)))
    assert names <= set(_shown(watch).samples)


@pytest.mark.requires("promtool")
def test_promtool_has_nothing_to_say_against_them(watch):
    text = generate_latest(registry_of(watch, run="llama"))
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_open_metrics_can_be_written_and_read(watch):
    text = open_metrics(registry_of(watch, run="llama")).decode()
    assert parse_exposition(text, path="x").sum(f"{PREFIX}_steps_total") == 300


def test_they_are_served_on_loopback(watch):
    server = serve(registry_of(watch, run="llama"), host="127.0.0.1", port=0)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=5) as answer:
            assert f'{PREFIX}_steps_total{{run="llama"}} 300.0' in answer.read().decode()
    finally:
        server.close()


def test_an_address_that_is_taken_says_so(watch):
    server = serve(registry_of(watch, run="llama"), host="127.0.0.1", port=0)
    try:
        with pytest.raises(InputError, match=r"cannot be listened on"):
            serve(registry_of(watch, run="llama"), host="127.0.0.1", port=server.port)
    finally:
        server.close()


def test_the_file_is_replaced_at_once(watch, tmp_path):
    path = tmp_path / "linkwise.prom"
    path.write_text("old")
    write_textfile(registry_of(watch, run="llama"), path)
    assert f"{PREFIX}_steps_total" in path.read_text()
    assert [each.name for each in tmp_path.glob(".linkwise*")] == []


def test_a_file_that_cannot_be_written_says_so(watch, tmp_path):
    with pytest.raises(InputError, match=r"cannot be written"):
        write_textfile(registry_of(watch, run="llama"), tmp_path / "none" / "x.prom")


def test_a_job_without_a_step_shows_that_it_has_none():
    clock = Clock()
    watch = Watch(find=tuple, clocks=WatchClocks(monotonic=clock, day=clock))
    watch.turn()
    shown = _shown(watch)
    assert shown.sum(f"{PREFIX}_steps_total") == 0
    assert shown.sum(f"{PREFIX}_step_time_seconds") is None
