"""Alerts as Alertmanager takes them."""

import json

import pytest

from linkwise.errors import InputError
from linkwise.monitor.alert import Alert, AlertKind, Severity
from linkwise.monitor.alertmanager import Alertmanager


def _alert(kind=AlertKind.STALLED, *, severity=Severity.CRITICAL, is_over=False, subject=""):
    return Alert(
        kind=kind,
        severity=severity,
        summary="no step",
        at_s=1_796_103_837.0,
        is_over=is_over,
        subject=subject,
    )


@pytest.fixture
def posted():
    return []


@pytest.fixture
def sink(posted):
    return Alertmanager(
        url="http://am/", run="llama", post=lambda url, data: posted.append((url, json.loads(data)))
    )


def test_a_new_alert_is_sent_at_once(sink, posted):
    sink.send([_alert()], {}, now_s=1_796_103_900.0)
    ((url, (alert,)),) = posted
    assert url == "http://am/api/v2/alerts"
    assert alert["labels"] == {"alertname": "LinkwiseWatchStalled", "severity": "critical", "run": "llama"}
    assert alert["annotations"] == {"summary": "no step"}
    assert alert["startsAt"] == "2026-12-01T05:43:57.000+00:00"
    assert alert["endsAt"] > alert["startsAt"]


def test_what_holds_is_sent_again_every_minute_so_that_it_is_not_forgotten(sink, posted):
    active = {(AlertKind.STALLED, ""): _alert()}
    sink.send([_alert()], active, now_s=0.0)
    sink.send([], active, now_s=30.0)
    sink.send([], active, now_s=61.0)
    assert [len(alerts) for _, alerts in posted] == [1, 1]


def test_what_is_over_ends_now(sink, posted):
    sink.send([_alert(is_over=True)], {}, now_s=1_796_103_900.0)
    ((_, (alert,)),) = posted
    assert alert["endsAt"] == "2026-12-01T05:45:00.000+00:00"


def test_what_is_told_only_is_not_sent(sink, posted):
    sink.send([_alert(severity=Severity.INFO)], {}, now_s=0.0)
    assert posted == []


def test_subjects_tell_alerts_apart(sink, posted):
    sink.send([_alert(AlertKind.XID, subject="0 79"), _alert(AlertKind.XID, subject="1 79")], {}, now_s=0.0)
    assert [each["labels"]["subject"] for each in posted[0][1]] == ["0 79", "1 79"]


def test_what_could_not_be_sent_is_sent_once_it_can(posted):
    refuses = [True]

    def post(url, data):
        if refuses[0]:
            raise InputError(f"{url}: gives no answer (refused)")
        posted.append(json.loads(data))

    sink = Alertmanager(url="http://am", run="llama", post=post)
    sink.send([_alert()], {}, now_s=0.0)
    assert "no answer" in sink.fault
    refuses[0] = False
    sink.send([], {}, now_s=10.0)
    assert posted == []
    sink.send([], {}, now_s=61.0)
    assert sink.fault == ""
    assert len(posted[0]) == 1
