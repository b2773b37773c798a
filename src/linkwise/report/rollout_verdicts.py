"""Verdicts of a rollout as they are published, `linkwise.rollout-verdicts/1`, and on a terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from linkwise.report.results import PublishedResult
from linkwise.report.tables import print_line, wrapped
from linkwise.rollout.plan import Severity
from linkwise.rollout.verdicts import ObjectiveVerdict, Outcome, StepVerdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from linkwise.rollout.plan import Rollout

__all__ = [
    "ObjectiveVerdictResult",
    "StepVerdictResult",
    "VerdictsResult",
    "print_verdicts",
    "step_verdict_result",
    "verdicts_result",
]


class ObjectiveVerdictResult(PublishedResult):
    """What evidence says of an objective."""

    objective: str
    metric: str
    dimension: str
    severity: Severity
    outcome: Outcome
    against: list[str] = Field(description="What it is compared with; all must be met.")
    value: float | None = Field(description="Median over runs, or the ratio; null for none or no number.")
    low: float | None
    high: float | None
    bar: float | None = Field(description="The one that decided, in the unit of value.")
    values: list[float | None] = Field(description="One for each run that counts; null for no number.")
    references: list[float | None]
    planned: int
    executed: int
    judged: int
    can_decide_later: bool
    chance_of_miss: float | None = Field(description="How often it would look so bad were the bar just met.")
    runs: list[str]
    sentence: str


class StepVerdictResult(PublishedResult):
    """What evidence says of a step."""

    step: str
    outcome: Outcome
    to_approve: list[str] = Field(description="What should hold and does not pass.")
    objectives: list[ObjectiveVerdictResult]
    sentence: str


class VerdictsResult(PublishedResult):
    """What the gates of a rollout say."""

    published: Literal["linkwise.rollout-verdicts/1"] = Field(
        default="linkwise.rollout-verdicts/1", alias="schema"
    )
    rollout: str
    digest: str = Field(description="SHA-256 of the document and of the files it names.")
    candidate: str = Field(description="Digest of the configuration.")
    control: str
    outcome: Outcome = Field(description="That of the first step that does not pass.")
    stopped_at: str = Field(description="Its name; empty where all pass.")
    steps: list[StepVerdictResult]


def verdicts_result(rollout: Rollout, verdicts: Iterable[StepVerdict]) -> VerdictsResult:
    """Return verdicts as they are published.

    Parameters
    ----------
    rollout
        Whose.
    verdicts
        Of steps, in order.
    """
    steps = [step_verdict_result(rollout, each) for each in verdicts]
    stopped = next((each for each in steps if each.outcome is not Outcome.PASS), None)
    nothing = Outcome.PASS if steps else Outcome.NO_DATA
    return VerdictsResult(
        rollout=rollout.name,
        digest=rollout.digest,
        candidate=rollout.candidate.digest,
        control=rollout.control.digest,
        outcome=stopped.outcome if stopped else nothing,
        stopped_at=stopped.step if stopped else "",
        steps=steps,
    )


def step_verdict_result(rollout: Rollout, verdict: StepVerdict) -> StepVerdictResult:
    """Return the verdict of a step as it is published.

    Parameters
    ----------
    rollout
        Whose.
    verdict
        The verdict.
    """
    return StepVerdictResult(
        step=verdict.step,
        outcome=verdict.outcome,
        to_approve=list(verdict.to_approve),
        objectives=[_objective_result(rollout, each) for each in verdict.objectives],
        sentence=verdict.sentence,
    )


def _objective_result(rollout: Rollout, verdict: ObjectiveVerdict) -> ObjectiveVerdictResult:
    objective = rollout.objective(verdict.objective)
    return ObjectiveVerdictResult(
        objective=objective.name,
        metric=objective.metric,
        dimension=objective.dimension,
        severity=verdict.severity,
        outcome=verdict.outcome,
        against=[str(each.against) for each in objective.comparisons],
        value=_number(verdict.value),
        low=_number(verdict.low),
        high=_number(verdict.high),
        bar=verdict.bar,
        values=[_number(each) for each in verdict.values],
        references=[_number(each) for each in verdict.references],
        planned=verdict.planned,
        executed=verdict.executed,
        judged=verdict.judged,
        can_decide_later=verdict.can_decide_later,
        chance_of_miss=verdict.chance_of_miss,
        runs=list(verdict.run_ids),
        sentence=verdict.sentence,
    )


def _number(value: float | None) -> float | None:
    """Return a number that JSON has."""
    return None if value is None or not math.isfinite(value) else value


def print_verdicts(result: VerdictsResult, console: Console) -> None:
    """Print verdicts, a sentence for each.

    Parameters
    ----------
    result
        What the gates say.
    console
        Where to.
    """
    print_line(console, f"{result.rollout}, digest {result.digest[:12]}, candidate {result.candidate[:12]}")
    for step in result.steps:
        print_line(console)
        print_line(console, wrapped(step.sentence, width=console.width, indent="  ", first=""))
        for each in step.objectives:
            coverage = f"{each.judged} of {each.executed} runs count, {each.planned} planned"
            severity = "" if each.severity is Severity.MUST else f", {each.severity}"
            head = f"{each.objective}{severity}: {each.outcome} ({coverage}). {each.sentence}"
            print_line(console, wrapped(head, width=console.width, indent="    ", first="  "))
    print_line(console)
    end = f"stopped at {result.stopped_at}: {result.outcome}" if result.stopped_at else "all steps pass"
    print_line(console, end)
