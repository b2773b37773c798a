"""Runs of a step to its verdict. The unit is the run; anything that is not clearly a pass is none.

The same code judges for whoever carries a rollout out and for a replay. An objective is looked at from its
first planned number of valid runs on. A run that failed, was cut or was not what was planned counts as
executed and never as a value.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from linkwise.evidence.holm import holm_rejects
from linkwise.rollout.gates.comparing import Compared, References, compare
from linkwise.rollout.gates.run_values import RunValue, values_of
from linkwise.rollout.gates.sentences import Standings, objective_sentence, step_sentence
from linkwise.rollout.plan import Against, Objective, Rollout, Severity, Step
from linkwise.rollout.runs import RunState, Side, StepRun
from linkwise.rollout.verdicts import ObjectiveVerdict, Outcome, StepVerdict

__all__ = ["judge_rollback", "judge_step", "worst_of"]

_FROM_WORST = (Outcome.FAIL, Outcome.ERROR, Outcome.NO_DATA, Outcome.INCONCLUSIVE, Outcome.PASS)
_WATCH_ALARM_FRACTION = 0.05
"""How often something watched is called missed although nothing is, over all that is watched [1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    """The runs of an objective."""

    ours: tuple[RunValue, ...]
    control: tuple[RunValue, ...]
    baseline: tuple[float, ...]
    is_paired: bool


def judge_step(
    rollout: Rollout,
    step: Step,
    runs: Sequence[StepRun],
    *,
    baseline: Sequence[StepRun] = (),
    started: Collection[str] = (),
    today: dt.date,
) -> StepVerdict:
    """Return what the runs of a step say.

    Parameters
    ----------
    rollout, step
        What is carried out.
    runs
        All runs of the step, in any order: warm-up, bad ones and those of the control among them. Only those
        of the candidate and the control of the rollout are judged.
    baseline
        Valid runs of what was promoted last; those of the same work on as many GPUs are used.
    started
        Names of all runs that the log says were started; where one is missing nothing passes.
    today
        The calendar, by which numbers grow old.
    """
    gap = _gap(runs, started)
    own = [
        run
        for run in runs
        if (run.side, run.configuration)
        in ((Side.CANDIDATE, rollout.candidate.digest), (Side.CONTROL, rollout.control.digest))
    ]
    objectives = [rollout.objective(name) for name in step.objectives]
    verdicts = [
        _judge(objective, rollout, _sides(objective, own, baseline), gap=gap, today=today)
        for objective in objectives
    ]
    return _step_verdict(step.name, _watched(verdicts))


def judge_rollback(
    rollout: Rollout, runs: Sequence[StepRun], *, baseline: Sequence[StepRun] = ()
) -> StepVerdict:
    """Return whether what was restored meets the objectives that prove it.

    Parameters
    ----------
    rollout
        What was carried out.
    runs
        Fresh ones on the side PROMOTED, and those of the control before: they are no pairs, so that each
        side's own noise counts.
    baseline
        Valid runs of what was promoted last, stored before.

    Notes
    -----
    A number that grew old still proves a way back.
    """
    verdicts = []
    for name in rollout.rollback.verify:
        objective = replace(rollout.objective(name), severity=Severity.MUST)
        sides = _sides(objective, runs, baseline, side=Side.PROMOTED)
        verdicts.append(_judge(objective, rollout, sides, gap="", today=None))
    return _step_verdict("rollback", verdicts)


def worst_of(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the worst of outcomes: fail, error, no data, inconclusive, pass; no data of none.

    Parameters
    ----------
    outcomes
        In any order.
    """
    return min(outcomes, key=_FROM_WORST.index, default=Outcome.NO_DATA)


def _gap(runs: Sequence[StepRun], started: Collection[str]) -> str:
    """Return which runs are missing, in words; empty where none is known to be."""
    missing = sorted(set(started) - {run.run_id for run in runs})
    if missing:
        return f"{len(missing)} runs that were started are missing, {missing[0]} first"
    turns = sorted(run.turn for run in runs if run.side is not Side.PROMOTED)
    if turns != list(range(len(turns))):
        lost = next((turn for turn in range(len(turns)) if turn not in turns), None)
        return f"the run of turn {lost} is missing" if lost is not None else "two runs have one turn"
    return ""


def _sides(
    objective: Objective,
    runs: Sequence[StepRun],
    baseline: Sequence[StepRun],
    *,
    side: Side = Side.CANDIDATE,
) -> _Sides:
    gpus = {run.gpus for run in runs if run.side is side and run.state is RunState.VALID}
    stored = [replace(run, side=side) for run in baseline if not gpus or run.gpus in gpus]
    found = values_of(objective, stored, side=side)
    return _Sides(
        ours=values_of(objective, runs, side=side),
        control=values_of(objective, runs, side=Side.CONTROL),
        baseline=tuple(each.value for each in found if each.value is not None),
        is_paired=side is Side.CANDIDATE,
    )


def _judge(
    objective: Objective, rollout: Rollout, sides: _Sides, *, gap: str, today: dt.date | None
) -> ObjectiveVerdict:
    """Return the verdict of an objective."""
    sampling = rollout.sampling
    references = References(control=sides.control, baseline=sides.baseline, is_paired=sides.is_paired)
    compared = [
        compare(each, sides.ours, references, needed=sampling.repeats) for each in objective.comparisons
    ]
    decisive = min(compared, key=lambda each: _FROM_WORST.index(each.outcome))
    outcome, obstacle = _outcome(objective, rollout, sides, compared, gap=gap)
    day = objective.reason.review_by
    if outcome is Outcome.PASS and today is not None and day is not None and day <= today:
        outcome = Outcome.INCONCLUSIVE
        obstacle = f"its number was to be looked at again by {day}; {objective.reason.by} must do so first"
    executed, has_control = len(sides.ours), _has_control(objective)
    verdict = ObjectiveVerdict(
        objective=objective.name,
        outcome=outcome,
        value=decisive.value,
        low=decisive.low,
        high=decisive.high,
        bar=decisive.comparison.bar,
        values=tuple(each.value for each in sides.ours if each.value is not None),
        references=decisive.references,
        planned=max(sampling.repeats, executed),
        executed=executed,
        judged=_judged(objective, sides),
        can_decide_later=not obstacle
        and outcome in (Outcome.INCONCLUSIVE, Outcome.NO_DATA)
        and executed < sampling.most_repeats,
        chance_of_miss=_chance(compared),
        severity=objective.severity,
        run_ids=tuple(each.run_id for each in (*sides.ours, *(sides.control if has_control else ()))),
    )
    standings = Standings(decisive=decisive, obstacle=obstacle, ours=sides.ours, control=sides.control)
    return replace(verdict, sentence=objective_sentence(objective, verdict, standings))


def _outcome(
    objective: Objective, rollout: Rollout, sides: _Sides, compared: Sequence[Compared], *, gap: str
) -> tuple[Outcome, str]:
    """Return the outcome of an objective, and what more runs would not mend; a fail stands in any case."""
    outcome = worst_of(each.outcome for each in compared)
    executed, judged = len(sides.ours), _judged(objective, sides)
    sampling, least = rollout.sampling, rollout.valid_run.least_valid_fraction
    if gap:
        return Outcome.ERROR, gap
    if outcome is Outcome.FAIL:
        return outcome, ""
    if executed >= sampling.repeats and not judged:
        # Runs that are good and alone: to say that none counts would send a reader after the wrong runs.
        is_alone = any(each.value is not None for each in sides.ours)
        return Outcome.ERROR, "no run has a control beside it that counts" if is_alone else "no run counts"
    if executed >= sampling.repeats and judged < least * executed:
        return Outcome.ERROR, f"{judged} of {executed} runs count, {100 * least:g} % must"
    if executed >= sampling.most_repeats and judged < sampling.repeats:
        return Outcome.ERROR, f"{judged} of {executed} runs count, and no more are planned"
    lack = next((each.lack for each in compared if each.lack and not each.can_grow), "")
    return outcome, lack if executed else ""


def _judged(objective: Objective, sides: _Sides) -> int:
    """Return the runs that count, or the pairs where the control is measured in turns."""
    if not (sides.is_paired and _has_control(objective)):
        return sum(each.value is not None for each in sides.ours)
    pairs = zip(sides.ours, sides.control, strict=False)
    return sum(ours.value is not None and theirs.value is not None for ours, theirs in pairs)


def _has_control(objective: Objective) -> bool:
    return any(each.against is Against.CONTROL for each in objective.comparisons)


def _chance(compared: Sequence[Compared]) -> float | None:
    """Return the chance of the worst of several bars, each counted (Bonferroni)."""
    chances = [each.chance_of_miss for each in compared if each.chance_of_miss is not None]
    return min(1.0, len(compared) * min(chances)) if chances else None


def _watched(verdicts: Sequence[ObjectiveVerdict]) -> list[ObjectiveVerdict]:
    """Return verdicts in which something watched is missed only where chance is not what shows it."""
    watched = [
        each for each in verdicts if each.severity is Severity.WATCH and each.chance_of_miss is not None
    ]
    chances = [each.chance_of_miss or 0.0 for each in watched]
    shown = holm_rejects(chances, level=_WATCH_ALARM_FRACTION)
    chance_only = {
        each.objective
        for each, is_shown in zip(watched, shown, strict=True)
        if each.outcome is Outcome.FAIL and not is_shown
    }
    said = f" Among {len(watched)} that are watched, chance alone shows as much; it is not called a miss."
    return [
        replace(each, outcome=Outcome.INCONCLUSIVE, sentence=each.sentence + said)
        if each.objective in chance_only
        else each
        for each in verdicts
    ]


def _step_verdict(step: str, verdicts: Sequence[ObjectiveVerdict]) -> StepVerdict:
    must = [each for each in verdicts if each.severity is Severity.MUST]
    outcome = worst_of(each.outcome for each in must)
    to_approve = tuple(
        each.objective
        for each in verdicts
        if each.severity is Severity.SHOULD and each.outcome is not Outcome.PASS
    )
    return StepVerdict(
        step=step,
        outcome=outcome,
        objectives=tuple(verdicts),
        to_approve=to_approve,
        sentence=step_sentence(step, outcome, must, to_approve),
    )
