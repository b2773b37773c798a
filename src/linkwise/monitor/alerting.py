"""Files for others' alerting and drawing: rules for Prometheus, a dashboard for Grafana."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from linkwise.monitor.alert import AlertKind, Severity
from linkwise.monitor.metrics import PREFIX

__all__ = ["PANELS", "RULES", "Panel", "Rule", "dashboard_json", "rules_yaml"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One alert of Prometheus.

    Parameters
    ----------
    name
        In its spelling.
    expression
        In PromQL; it holds while the alert does.
    lasting
        How long it must hold, as Prometheus writes it.
    severity
        Its label.
    summary
        A sentence, in Prometheus' template language.
    """

    name: str
    expression: str
    lasting: str
    severity: Severity
    summary: str


_TEXTS = {
    AlertKind.STEP_TIME_ROSE: "step time of {{ $labels.run }} rose, and stays up",
    AlertKind.STEP_TIME_SPREAD: "step times of {{ $labels.run }} scatter more than before",
    AlertKind.STEP_TIME_CREPT: "step time of {{ $labels.run }} crept up since its first steps",
    AlertKind.STALLED: "{{ $labels.run }} does no step",
    AlertKind.NOT_A_NUMBER: "loss or gradient norm of {{ $labels.run }} is no number",
    AlertKind.STRAGGLER: "{{ $value }} rank(s) of {{ $labels.run }} are out of step",
    AlertKind.INTERCONNECT: "{{ $labels.run }} does not use its interconnect as it should",
    AlertKind.XID: "a GPU of {{ $labels.run }} reports an Xid",
    AlertKind.LINK_ERRORS: "links of {{ $labels.run }} count errors",
    AlertKind.OBJECTIVE: "{{ $labels.run }} misses {{ $value }} objective(s)",
    AlertKind.ENDPOINT_SILENT: "{{ $value }} server(s) of {{ $labels.run }} give no answer",
}
_SEVERITIES = {
    AlertKind.STALLED: (Severity.CRITICAL,),
    AlertKind.NOT_A_NUMBER: (Severity.CRITICAL,),
    AlertKind.ENDPOINT_SILENT: (Severity.CRITICAL,),
    AlertKind.INTERCONNECT: (Severity.CRITICAL, Severity.WARNING),
    AlertKind.XID: (Severity.CRITICAL, Severity.WARNING),
    AlertKind.LINK_ERRORS: (Severity.CRITICAL, Severity.WARNING),
    AlertKind.OBJECTIVE: (Severity.CRITICAL, Severity.WARNING),
}
_LASTING = {AlertKind.OBJECTIVE: "1m", AlertKind.ENDPOINT_SILENT: "1m"}


def _rule(kind: AlertKind, severity: Severity) -> Rule:
    both = len(_SEVERITIES.get(kind, ())) > 1
    name = "LinkwiseWatch" + "".join(word.title() for word in kind.value.split("_"))
    return Rule(
        name=f"{name}{severity.value.title()}" if both else name,
        expression=f'{PREFIX}_alerts{{kind="{kind.value}",severity="{severity.value}"}} > 0',
        lasting=_LASTING.get(kind, "0s"),
        severity=severity,
        summary=_TEXTS[kind],
    )


RULES: tuple[Rule, ...] = (
    *(_rule(kind, severity) for kind in _TEXTS for severity in _SEVERITIES.get(kind, (Severity.WARNING,))),
    Rule(
        name="LinkwiseWatchRestarted",
        expression=f"increase({PREFIX}_restarts_total[10m]) > 0",
        lasting="0s",
        severity=Severity.WARNING,
        summary="{{ $labels.run }} was restarted, and does steps again",
    ),
    Rule(
        name="LinkwiseWatchStepsOld",
        expression=(f"time() - {PREFIX}_last_step_timestamp_seconds > 2 * {PREFIX}_stall_limit_seconds"),
        lasting="1m",
        severity=Severity.CRITICAL,
        summary="{{ $labels.run }} does no step, or its watch does not see it",
    ),
    Rule(
        name="LinkwiseWatchSilent",
        expression=(
            f"time() - {PREFIX}_last_look_timestamp_seconds > 120 "
            f"or (count by (run) ({PREFIX}_last_look_timestamp_seconds offset 5m) "
            f"unless count by (run) ({PREFIX}_last_look_timestamp_seconds))"
        ),
        lasting="1m",
        severity=Severity.WARNING,
        summary="the watch of {{ $labels.run }} shows nothing any more: it ended, or its host did",
    ),
)
"""All rules that are written. A watch that is gone alerts too: no data is no good news."""


def rules_yaml() -> str:
    """Return the rules as a file of Prometheus."""
    lines = [
        "# Written by linkwise watch; edit a copy.",
        "groups:",
        "  - name: linkwise-watch",
        "    rules:",
    ]
    for each in RULES:
        lines += [
            f"      - alert: {each.name}",
            f"        expr: {json.dumps(each.expression)}",
            f"        for: {each.lasting}",
            "        labels:",
            f"          severity: {each.severity.value}",
            "        annotations:",
            f"          summary: {json.dumps(each.summary)}",
        ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One drawing of the dashboard.

    Parameters
    ----------
    title
        Above it.
    expressions
        In PromQL, each with the legend of its lines.
    unit
        As Grafana names units.
    """

    title: str
    expressions: tuple[tuple[str, str], ...]
    unit: str = "short"


_RUN = '{run=~"$run"}'
PANELS: tuple[Panel, ...] = (
    Panel(
        title="Step time",
        expressions=((f"{PREFIX}_step_time_seconds{_RUN}", "{{run}} q{{quantile}}"),),
        unit="s",
    ),
    Panel(title="Tokens in a second", expressions=((f"{PREFIX}_tokens_per_second{_RUN}", "{{run}}"),)),
    Panel(title="Loss", expressions=((f"{PREFIX}_loss{_RUN}", "{{run}}"),)),
    Panel(title="Gradient norm", expressions=((f"{PREFIX}_gradient_norm{_RUN}", "{{run}}"),)),
    Panel(title="Steps in a second", expressions=((f"rate({PREFIX}_steps_total{_RUN}[5m])", "{{run}}"),)),
    Panel(
        title="Time since the last step",
        expressions=(
            (f"time() - {PREFIX}_last_step_timestamp_seconds{_RUN}", "{{run}}"),
            (f"{PREFIX}_stall_limit_seconds{_RUN}", "{{run}} limit"),
        ),
        unit="s",
    ),
    Panel(
        title="Goodput and communication",
        expressions=(
            (f"{PREFIX}_goodput_ratio{_RUN}", "{{run}} goodput"),
            (f"{PREFIX}_communication_ratio{_RUN}", "{{run}} communication"),
        ),
        unit="percentunit",
    ),
    Panel(
        title="Restarts and lost steps",
        expressions=(
            (f"{PREFIX}_restarts_total{_RUN}", "{{run}} restarts"),
            (f"{PREFIX}_lost_steps_total{_RUN}", "{{run}} lost steps"),
        ),
    ),
    Panel(
        title="Alerts that hold",
        expressions=((f"{PREFIX}_alerts{_RUN} > 0", "{{run}} {{kind}} {{severity}}"),),
    ),
    Panel(
        title="RDMA ports",
        expressions=((f"{PREFIX}_port_bytes_per_second{_RUN}", "{{port}} {{direction}}"),),
        unit="Bps",
    ),
    Panel(
        title="Errors of links and GPUs",
        expressions=(
            (f"increase({PREFIX}_port_errors_total{_RUN}[10m])", "{{port}} {{counter}}"),
            (f"increase({PREFIX}_xid_errors_total{_RUN}[10m])", "Xid {{xid}}"),
        ),
    ),
    Panel(
        title="Time to first token",
        expressions=((f"{PREFIX}_ttft_seconds{_RUN}", "{{endpoint}} q{{quantile}}"),),
        unit="s",
    ),
    Panel(
        title="Time per output token",
        expressions=((f"{PREFIX}_tpot_seconds{_RUN}", "{{endpoint}} q{{quantile}}"),),
        unit="s",
    ),
    Panel(title="Requests that wait", expressions=((f"{PREFIX}_queued_requests{_RUN}", "{{endpoint}}"),)),
    Panel(
        title="Requests that failed or ended early",
        expressions=(
            (f"{PREFIX}_error_ratio{_RUN}", "{{endpoint}} failed"),
            (f"{PREFIX}_aborted_ratio{_RUN}", "{{endpoint}} ended early"),
        ),
        unit="percentunit",
    ),
)
"""All drawings of the dashboard, two a row."""


def dashboard_json() -> str:
    """Return the dashboard as a file that Grafana imports."""
    source = {"type": "prometheus", "uid": "${datasource}"}
    panels = [
        {
            "id": at + 1,
            "type": "timeseries",
            "title": each.title,
            "datasource": source,
            "gridPos": {"x": 12 * (at % 2), "y": 8 * (at // 2), "w": 12, "h": 8},
            "fieldConfig": {"defaults": {"unit": each.unit}, "overrides": []},
            "targets": [
                {"refId": chr(ord("A") + place), "datasource": source, "expr": text, "legendFormat": legend}
                for place, (text, legend) in enumerate(each.expressions)
            ],
        }
        for at, each in enumerate(PANELS)
    ]
    variables: list[dict[str, Any]] = [
        {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
        {
            "name": "run",
            "type": "query",
            "label": "Run",
            "datasource": source,
            "query": f"label_values({PREFIX}_steps_total, run)",
            "multi": True,
            "includeAll": True,
            "refresh": 2,
        },
    ]
    board = {
        "title": "Linkwise watch",
        "uid": "linkwise-watch",
        "schemaVersion": 39,
        "version": 1,
        "tags": ["linkwise"],
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "10s",
        "templating": {"list": variables},
        "panels": panels,
    }
    return json.dumps(board, indent=2) + "\n"
