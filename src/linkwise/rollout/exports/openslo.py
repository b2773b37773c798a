"""Objectives of a rollout that hold on after it, as OpenSLO: those with a floor that `linkwise watch` shows.

OpenSLO asks for the share of a time window in which a bar is kept. A rollout file does not say one, so that
whoever exports must.

References
----------
OpenSLO specification v1, README.md at aa5cb78 (SLO, thresholdMetric, Occurrences).
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from linkwise.rollout.metrics import find_metric
from linkwise.rollout.plan import Against, Aggregate, Comparison, Objective, Rollout

__all__ = ["OpenSlo", "openslo"]

_WATCHED: Mapping[tuple[str, Aggregate], str] = {
    ("train.step_time", Aggregate.MEDIAN): 'linkwise_watch_step_time_seconds{quantile="0.5"}',
    ("train.step_time", Aggregate.P95): 'linkwise_watch_step_time_seconds{quantile="0.95"}',
    ("train.tokens_per_s", Aggregate.MEDIAN): "linkwise_watch_tokens_per_second",
    ("train.loss", Aggregate.MEDIAN): "linkwise_watch_loss",
    ("serve.ttft", Aggregate.MEDIAN): 'linkwise_watch_ttft_seconds{quantile="0.5"}',
    ("serve.ttft", Aggregate.P99): 'linkwise_watch_ttft_seconds{quantile="0.99"}',
    ("serve.tpot", Aggregate.MEDIAN): 'linkwise_watch_tpot_seconds{quantile="0.5"}',
    ("serve.tpot", Aggregate.P99): 'linkwise_watch_tpot_seconds{quantile="0.99"}',
    ("serve.error_fraction", Aggregate.MEDIAN): "linkwise_watch_error_ratio",
    ("serve.waiting", Aggregate.MEDIAN): "linkwise_watch_queued_requests",
}
"""What `linkwise watch` shows to Prometheus of each metric and aggregate."""
_LONGEST_DESCRIPTION = 1050
_NO_NAME = re.compile(r"[^a-z0-9-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSlo:
    """What an export says, and what it cannot.

    Parameters
    ----------
    text
        YAML, a document for each objective; empty where there is none.
    left_out
        Objectives that are not in it, each with the reason.
    """

    text: str
    left_out: tuple[str, ...]


def openslo(rollout: Rollout, *, target_fraction: float, window: str) -> OpenSlo:
    """Return the objectives of a rollout that hold on after it.

    Parameters
    ----------
    rollout
        Whose objectives.
    target_fraction
        Share of the window in which each must be kept, below 1 [1].
    window
        A duration as OpenSLO writes it, such as ``28d``.
    """
    from ruamel.yaml import YAML

    documents, left_out = [], []
    for objective in rollout.objectives:
        reason = _why_not(objective)
        if reason:
            left_out.append(f"{objective.name}: {reason}")
            continue
        documents += [
            _slo(rollout, objective, each, target_fraction=target_fraction, window=window)
            for each in _floors(objective)
        ]
    out = io.StringIO()
    yaml = YAML()
    yaml.explicit_start = True
    yaml.width = 110
    yaml.dump_all(documents, out)
    return OpenSlo(text=out.getvalue() if documents else "", left_out=tuple(left_out))


def _floors(objective: Objective) -> Iterator[Comparison]:
    return (each for each in objective.comparisons if each.against is Against.FLOOR)


def _why_not(objective: Objective) -> str:
    if not any(_floors(objective)):
        return "is a comparison with other runs, and after the rollout there are none to compare with"
    if (objective.metric, objective.aggregate) not in _WATCHED:
        return f"linkwise watch shows no {objective.aggregate} of {objective.metric}"
    return ""


def _slo(
    rollout: Rollout, objective: Objective, comparison: Comparison, *, target_fraction: float, window: str
) -> dict[str, object]:
    """Return one document."""
    metric = find_metric(objective.metric)
    ends = "" if len(list(_floors(objective))) == 1 else ("-least" if comparison.is_least else "-most")
    name = _name(f"{rollout.name}-{objective.name}{ends}")
    description = f"{objective.reason.why} (by {objective.reason.by})"
    indicator = {
        "metadata": {"name": _name(f"{name}-indicator"), "displayName": metric.words},
        "spec": {
            "thresholdMetric": {
                "metricSource": {
                    "type": "Prometheus",
                    "spec": {"query": _WATCHED[objective.metric, objective.aggregate]},
                }
            }
        },
    }
    return {
        "apiVersion": "openslo/v1",
        "kind": "SLO",
        "metadata": {"name": name, "displayName": objective.name},
        "spec": {
            "description": description[:_LONGEST_DESCRIPTION],
            "service": _name(rollout.name),
            "indicator": indicator,
            "timeWindow": [{"duration": window, "isRolling": True}],
            "budgetingMethod": "Occurrences",
            "objectives": [
                {
                    "displayName": objective.name,
                    "op": "gte" if comparison.is_least else "lte",
                    "value": comparison.bar,
                    "target": target_fraction,
                }
            ],
        },
    }


def _name(text: str) -> str:
    """Return a name that Kubernetes and OpenSLO take (RFC 1123)."""
    return _NO_NAME.sub("-", text.lower()).strip("-")[:63].strip("-")
