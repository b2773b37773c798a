"""Verdicts as CTRF, the Common Test Report Format: a test for each objective of each step.

A pass is passed, a fail failed, what could not be told or measured is other (never skipped), with its outcome
as rawStatus. What is only watched and missed is other too, for it fails nothing.

References
----------
CTRF, schema/ctrf.schema.json, specification 0.0.0 (https://ctrf.io).
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from linkwise import __version__
from linkwise.rollout.plan import Rollout, Severity
from linkwise.rollout.verdicts import ObjectiveVerdict, Outcome, StepVerdict

__all__ = ["verdicts_ctrf"]

_STATUS: Mapping[Outcome, str] = {Outcome.PASS: "passed", Outcome.FAIL: "failed"}
_SPECIFICATION = "0.0.0"


def verdicts_ctrf(
    rollout: Rollout, verdicts: Sequence[StepVerdict], *, now: dt.datetime, head: str = ""
) -> str:
    """Return the text of a CTRF report.

    Parameters
    ----------
    rollout
        Whose verdicts they are.
    verdicts
        Of steps, in order.
    now
        When it was judged, with its time zone.
    head
        Digest of the last entry of the decision log; empty where there is none.
    """
    tests = [_test(rollout, verdict, each) for verdict in verdicts for each in verdict.objectives]
    counts = Counter(test["status"] for test in tests)
    at_ms = round(now.timestamp() * 1000)
    statuses = {name: counts[name] for name in ("passed", "failed", "skipped", "pending", "other")}
    report = {
        "reportFormat": "CTRF",
        "specVersion": _SPECIFICATION,
        "timestamp": now.isoformat(),
        "generatedBy": "linkwise",
        "results": {
            "tool": {"name": "linkwise", "version": __version__},
            "summary": {
                "tests": len(tests), **statuses, "suites": len(verdicts), "start": at_ms, "stop": at_ms,
            },
            "tests": tests,
            "extra": {
                "rollout": rollout.name,
                "digest": rollout.digest,
                "candidate": rollout.candidate.digest,
                "control": rollout.control.digest,
                **({"head": head} if head else {}),
                "steps": {each.step: str(each.outcome) for each in verdicts},
            },
        },
    }  # fmt: skip
    return json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _test(rollout: Rollout, step: StepVerdict, verdict: ObjectiveVerdict) -> dict[str, Any]:
    status = _STATUS.get(verdict.outcome, "other")
    if verdict.severity is Severity.WATCH and status == "failed":
        status = "other"
    return {
        "name": f"{step.step}: {verdict.objective}",
        "status": status,
        "rawStatus": str(verdict.outcome),
        "duration": 0,
        "suite": [rollout.name, step.step],
        "message": verdict.sentence,
        "tags": [str(verdict.severity)],
        "extra": {
            "value": _number(verdict.value),
            "low": _number(verdict.low),
            "high": _number(verdict.high),
            "bar": _number(verdict.bar),
            "values": [_number(each) for each in verdict.values],
            "planned": verdict.planned,
            "executed": verdict.executed,
            "judged": verdict.judged,
        },
    }


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
