"""What evidence says of an objective and of a step."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from linkwise.rollout.plan import Severity

__all__ = ["ObjectiveVerdict", "Outcome", "StepVerdict"]


class Outcome(StrEnum):
    """What is said of an objective or a step."""

    PASS = "pass"  # noqa: S105 (a verdict)
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    """There are samples, and they do not decide."""
    ERROR = "error"
    """It could not be measured."""
    NO_DATA = "no data"
    """Nothing was measured: never a pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveVerdict:
    """What evidence says of an objective.

    Parameters
    ----------
    objective
        Its name.
    outcome
        What is said.
    value, low, high
        The median over runs and its interval: in the unit of the metric for a floor, else a ratio [1];
        ``None`` where there is too little.
    bar
        The comparison that decided, in the same unit.
    values
        One for each valid run of the candidate, in order.
    references
        Those that they are compared with: control, baseline or prediction; empty for a floor.
    planned, executed, judged
        Runs [1].
    can_decide_later
        Whether more runs may still decide.
    chance_of_miss
        How often evidence would look so bad were the bar just met [1]; ``None`` where there is too little.
    severity
        That of the objective.
    sentence
        All of it in words, for a person.
    run_ids
        What it rests on.
    """

    objective: str
    outcome: Outcome
    value: float | None = None
    low: float | None = None
    high: float | None = None
    bar: float | None = None
    values: tuple[float, ...] = ()
    references: tuple[float, ...] = ()
    planned: int = 0
    executed: int = 0
    judged: int = 0
    can_decide_later: bool = False
    chance_of_miss: float | None = None
    severity: Severity = Severity.MUST
    sentence: str = ""
    run_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepVerdict:
    """What evidence says of a step: the worst of its objectives that must be met.

    Parameters
    ----------
    step
        Its name.
    outcome
        What is said.
    objectives
        Of each objective, in order.
    to_approve
        Names of objectives that should hold and do not pass: somebody must approve before the next step.
    sentence
        In words.
    """

    step: str
    outcome: Outcome
    objectives: tuple[ObjectiveVerdict, ...]
    to_approve: tuple[str, ...] = ()
    sentence: str

    @property
    def wants_more(self) -> bool:
        """Return whether more runs may turn it into a pass: all that must hold passes or is open."""
        undecided = [
            each
            for each in self.objectives
            if each.severity is Severity.MUST and each.outcome is not Outcome.PASS
        ]
        return self.outcome is Outcome.INCONCLUSIVE and all(each.can_decide_later for each in undecided)
