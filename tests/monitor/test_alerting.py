"""The files written for Prometheus and Grafana, read by Prometheus' own tools."""

import json
import re
import subprocess

import pytest
from ruamel.yaml import YAML

from linkwise.monitor.alert import AlertKind
from linkwise.monitor.alerting import PANELS, RULES, dashboard_json, rules_yaml
from linkwise.monitor.metrics import PREFIX

_INSTANT = frozenset({AlertKind.RESTARTED})
"""Kinds that do not last; their rules look at a counter."""


def _promtool(*words, **given):
    return subprocess.run(["promtool", *words], capture_output=True, text=True, check=False, **given)


def test_every_kind_of_alert_has_a_rule():
    text = rules_yaml()
    for kind in set(AlertKind) - _INSTANT:
        assert f'kind=\\"{kind.value}\\"' in text, kind
    assert f"{PREFIX}_restarts_total" in text


def test_names_of_rules_are_told_apart():
    names = [each.name for each in RULES]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"LinkwiseWatch[A-Za-z]+", name) for name in names)


@pytest.mark.requires("promtool")
def test_promtool_takes_the_rules(tmp_path):
    path = tmp_path / "rules.yml"
    path.write_text(rules_yaml())
    done = _promtool("check", "rules", str(path))
    assert done.returncode == 0, done.stderr
    assert f"{len(RULES)} rules found" in done.stdout


@pytest.mark.requires("promtool")
def test_promtool_finds_that_the_rules_fire_and_do_not(tmp_path):
    (tmp_path / "rules.yml").write_text(rules_yaml())
    active = f'{PREFIX}_alerts{{run="llama",kind="%s",severity="%s"}}'
    tests = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "30s",
        "tests": [
            {
                "interval": "30s",
                "input_series": [
                    {"series": active % ("stalled", "critical"), "values": "0x9 1x20"},
                    {"series": active % ("objective", "warning"), "values": "0x9 2x20"},
                    {"series": active % ("xid", "critical"), "values": "0x30"},
                    {"series": f'{PREFIX}_restarts_total{{run="llama"}}', "values": "0x9 1x20"},
                    {"series": f'{PREFIX}_last_look_timestamp_seconds{{run="llama"}}', "values": "0+30x9 _x30"},
                ],
                "alert_rule_test": [
                    _expected("LinkwiseWatchStalled", "4m"),
                    _expected(
                        "LinkwiseWatchStalled", "5m", kind="stalled", severity="critical", run="llama",
                        summary="llama does no step",
                    ),
                    _expected("LinkwiseWatchObjectiveWarning", "5m"),
                    _expected(
                        "LinkwiseWatchObjectiveWarning", "6m30s", kind="objective", severity="warning", run="llama",
                        summary="llama misses 2 objective(s)",
                    ),
                    _expected("LinkwiseWatchXidCritical", "10m"),
                    _expected(
                        "LinkwiseWatchRestarted", "6m", severity="warning", run="llama",
                        summary="llama was restarted, and does steps again",
                    ),
                    _expected("LinkwiseWatchSilent", "4m"),
                    _expected(
                        "LinkwiseWatchSilent", "11m30s", severity="warning", run="llama",
                        summary="the watch of llama shows nothing any more: it ended, or its host did",
                    ),
                ],
            }
        ],
    }  # fmt: skip
    path = tmp_path / "test.yml"
    YAML().dump(tests, path)
    done = _promtool("test", "rules", str(path))
    assert done.returncode == 0, done.stdout + done.stderr


def _expected(name, at, *, summary=None, **labels):
    alerts = [] if summary is None else [{"exp_labels": labels, "exp_annotations": {"summary": summary}}]
    return {"eval_time": at, "alertname": name, "exp_alerts": alerts}


@pytest.mark.requires("promtool")
def test_prometheus_understands_every_drawing_of_the_dashboard(tmp_path):
    rules = [
        {"record": f"panel:{number}:{place}", "expr": expression.replace('"$run"', '".*"')}
        for number, panel in enumerate(PANELS)
        for place, (expression, _) in enumerate(panel.expressions)
    ]
    path = tmp_path / "panels.yml"
    YAML().dump({"groups": [{"name": "panels", "rules": rules}]}, path)
    done = _promtool("check", "rules", str(path))
    assert done.returncode == 0, done.stderr


def test_the_dashboard_is_one_that_grafana_imports():
    board = json.loads(dashboard_json())
    assert [each["title"] for each in board["panels"]] == [each.title for each in PANELS]
    assert len({each["id"] for each in board["panels"]}) == len(PANELS)
    places = [(each["gridPos"]["x"], each["gridPos"]["y"]) for each in board["panels"]]
    assert len(set(places)) == len(places)
    assert {each["name"] for each in board["templating"]["list"]} == {"datasource", "run"}
