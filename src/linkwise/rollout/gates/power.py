"""How often a gate is right: the judge itself, on simulated runs whose truth is known."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from linkwise.rollout.digests import workload_digest
from linkwise.rollout.gates.judging import judge_step
from linkwise.rollout.metrics import find_metric
from linkwise.rollout.plan import (
    Against,
    Comparison,
    Objective,
    Rollout,
    Severity,
    Step,
    Target,
    TargetKind,
)
from linkwise.rollout.runs import RunState, Side, StepRun
from linkwise.rollout.verdicts import Outcome

__all__ = ["GatePower", "Noise", "gate_power"]

_NEVER = dt.date.min
_START = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How runs of one thing differ.

    Parameters
    ----------
    spread_fraction
        Standard deviation of a run over its mean [1].
    slow_fraction
        Share of runs that a neighbour's traffic or the like makes slow [1].
    slow_loss_fraction
        By how much those are worse [1].
    shift_fraction
        Standard deviation of what moves all runs of a day alike, candidate and control, but not those that
        were stored another day [1].
    """

    spread_fraction: float
    slow_fraction: float = 0.0
    slow_loss_fraction: float = 0.0
    shift_fraction: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePower:
    """How often a gate says what, of a change whose truth is known.

    Parameters
    ----------
    trials
        Rollouts that were simulated [1].
    passed, failed, undecided
        How many ended so [1]; undecided after the last planned run.
    mean_runs
        Runs of the candidate that it took [1].
    """

    trials: int
    passed: int
    failed: int
    undecided: int
    mean_runs: float


def gate_power(
    rollout: Rollout,
    objective: Objective,
    comparison: Comparison,
    *,
    truth: float,
    noise: Noise,
    stored: int | None = None,
    trials: int,
    seed: int,
) -> GatePower:
    """Return how often the gate of one comparison says what.

    Parameters
    ----------
    rollout
        Whose sampling and rules of valid runs hold.
    objective, comparison
        What is judged.
    truth
        What the candidate really is: a ratio to what it is compared with, or a value for a floor.
    noise
        How runs differ.
    stored
        Runs that a baseline has; as many as are planned at first, if absent [1].
    trials
        How many rollouts are simulated [1].
    seed
        Of the random numbers.

    Notes
    -----
    Each trial is carried out as a real step is: the planned runs, a look, one run more and a look, until the
    judge says that no more are wanted. A change that is worse for a metric of which less is better has a
    truth above 1.
    """
    plan = _alone(rollout, objective, comparison)
    draw = np.random.default_rng(seed)
    said: Counter[Outcome] = Counter()
    runs = 0
    for _ in range(trials):
        outcome, count = _trial(
            plan, comparison, truth, noise, count_stored=stored or plan.sampling.repeats, draw=draw
        )
        said[outcome] += 1
        runs += count
    passed, failed = said[Outcome.PASS], said[Outcome.FAIL]
    return GatePower(
        trials=trials,
        passed=passed,
        failed=failed,
        undecided=trials - passed - failed,
        mean_runs=runs / trials,
    )


def _alone(rollout: Rollout, objective: Objective, comparison: Comparison) -> Rollout:
    """Return a rollout of one step that judges one comparison."""
    reason = replace(objective.reason, review_by=None)
    only = replace(objective, comparisons=(comparison,), severity=Severity.MUST, reason=reason)
    step = Step(
        name="simulated", target=Target(kind=TargetKind.NODES, amount=1), objectives=(objective.name,)
    )
    return replace(rollout, objectives=(only,), steps=(step,))


def _trial(
    plan: Rollout,
    comparison: Comparison,
    truth: float,
    noise: Noise,
    *,
    count_stored: int,
    draw: np.random.Generator,
) -> tuple[Outcome, int]:
    """Return how one rollout ends, and after how many runs of the candidate."""
    objective, sampling = plan.objectives[0], plan.sampling
    is_paired = comparison.against is Against.CONTROL
    is_more_better = find_metric(objective.metric).is_more_better
    most = sampling.most_repeats
    shift = 1 + noise.shift_fraction * draw.standard_normal()
    ours = truth * shift * _drawn(most, noise, draw, is_more_better=is_more_better)
    theirs = shift * _drawn(most if is_paired else 0, noise, draw, is_more_better=is_more_better)
    runs = _step_runs(plan, ours, theirs, predicted=comparison.against is Against.PREDICTION)
    stored: list[StepRun] = []
    if comparison.against is Against.BASELINE:
        other_day = 1 + noise.shift_fraction * draw.standard_normal()
        values = other_day * _drawn(count_stored, noise, draw, is_more_better=is_more_better)
        stored = list(_step_runs(plan, values, values[:0], predicted=False))
    each_turn = 2 if is_paired else 1
    for count in range(sampling.repeats, most + 1):
        verdict = judge_step(plan, plan.steps[0], runs[: count * each_turn], baseline=stored, today=_NEVER)
        if not verdict.wants_more:
            return verdict.outcome, count
    return verdict.outcome, most


def _drawn(
    count: int, noise: Noise, draw: np.random.Generator, *, is_more_better: bool
) -> npt.NDArray[np.float64]:
    """Return runs of a thing whose truth is 1."""
    values = 1 + noise.spread_fraction * draw.standard_normal(count)
    slow = draw.random(count) < noise.slow_fraction
    loss = noise.slow_loss_fraction
    return np.where(slow, values * (1 - loss if is_more_better else 1 + loss), values)


def _step_runs(
    plan: Rollout,
    ours: Sequence[float] | npt.NDArray[np.float64],
    theirs: Sequence[float] | npt.NDArray[np.float64],
    *,
    predicted: bool,
) -> list[StepRun]:
    """Return runs in the order A B B A, or of the candidate alone."""
    objective = plan.objectives[0]
    digest = workload_digest(objective.workload)
    predictions = {objective.metric: 1.0} if predicted else {}
    return [
        StepRun(
            run_id=str(turn),
            step=plan.steps[0].name,
            workload=digest,
            side=side,
            configuration=(plan.candidate if side is Side.CANDIDATE else plan.control).digest,
            turn=turn,
            state=RunState.VALID,
            samples={objective.metric: (value,)},
            predictions=predictions,
            started=_START,
        )
        for turn, (side, value) in enumerate(_in_turns(ours, theirs))
    ]


def _in_turns(
    ours: Sequence[float] | npt.NDArray[np.float64], theirs: Sequence[float] | npt.NDArray[np.float64]
) -> Iterator[tuple[Side, float]]:
    if not len(theirs):
        yield from ((Side.CANDIDATE, float(value)) for value in ours)
        return
    for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        pair = ((Side.CANDIDATE, float(one)), (Side.CONTROL, float(other)))
        yield from pair if place % 2 == 0 else reversed(pair)
