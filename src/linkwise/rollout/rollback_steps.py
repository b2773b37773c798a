"""The way back: a command, the configuration that was promoted last, and fresh runs that prove it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace

from linkwise.rollout import actions
from linkwise.rollout.actions import Action
from linkwise.rollout.plan import Against, Comparison, Configuration, Objective, Rollout, Step
from linkwise.rollout.progress import RollbackProgress
from linkwise.rollout.runs import RunState, Side, StepRun
from linkwise.rollout.schedule import measured_slots, next_run, workloads_of
from linkwise.rollout.verdicts import Judge, Outcome, StepVerdict

__all__ = ["next_of_rollback", "rollback_step", "verified"]


def rollback_step(rollout: Rollout, way: RollbackProgress) -> Step:
    """Return the step that proves a rollback, on as much of the cluster as the step that stopped.

    Parameters
    ----------
    rollout
        The plan.
    way
        The rollback.
    """
    stopped = next((step for step in rollout.steps if step.name == way.begun.step), rollout.steps[0])
    return Step(name=way.step_name, target=stopped.target, objectives=rollout.rollback.verify)


def next_of_rollback(
    rollout: Rollout,
    way: RollbackProgress,
    runs: Sequence[StepRun],
    *,
    judge: Judge,
    baseline: Mapping[str, Sequence[StepRun]],
    today: dt.date,
) -> Action:
    """Return what comes next on the way back.

    Parameters
    ----------
    rollout, runs, judge, baseline, today
        As in `next_action.Situation`.
    way
        How far it is.
    """
    command = rollout.rollback.command
    if command and way.command_exit is None:
        return actions.RunCommand(argv=command)
    if way.command_exit:
        why = f"the command of the rollback ended with {way.command_exit}: what is in force is not known"
        return actions.EndRollback(verdict=None, why=why)
    if not way.is_restored:
        return actions.Restore(to=way.to)
    if not rollout.rollback.verify:
        why = "rollback.verify names no objective: nothing shows that what was restored works"
        return actions.EndRollback(verdict=None, why=why)
    return _prove(rollout, way, runs, judge=judge, baseline=baseline, today=today)


def _prove(
    rollout: Rollout,
    way: RollbackProgress,
    runs: Sequence[StepRun],
    *,
    judge: Judge,
    baseline: Mapping[str, Sequence[StepRun]],
    today: dt.date,
) -> Action:
    step, sampling = rollback_step(rollout, way), rollout.sampling
    mine = [run for run in runs if run.step == step.name and run.side is Side.PROMOTED]
    plans = workloads_of(rollout, step, alone=Side.PROMOTED)
    slots = dict.fromkeys((plan.digest for plan in plans), sampling.repeats)
    wanted = next_run(plans, mine, warmup=sampling.warmup, slots=slots)
    if wanted is not None:
        return actions.Measure(step=step, wanted=wanted)
    references = [*_controls(rollout, way, runs), *baseline.get(way.begun.step, ())]
    asked = _as_candidate(rollout, way, references)
    verdict = judge(asked, step, [_relabelled(run, way) for run in mine], baseline=references, today=today)
    if verdict.outcome not in (Outcome.PASS, Outcome.FAIL):
        open_ones = {each.objective for each in verdict.objectives if each.can_decide_later}
        for plan in plans:
            done = len(measured_slots(plan, mine, warmup=sampling.warmup))
            more = bool(open_ones & set(plan.objectives)) and done < sampling.most_repeats
            slots[plan.digest] = done + more
        wanted = next_run(plans, mine, warmup=sampling.warmup, slots=slots)
        if wanted is not None:
            return actions.Measure(step=step, wanted=wanted)
    return actions.EndRollback(verdict=verdict, why=verdict.sentence)


def _controls(rollout: Rollout, way: RollbackProgress, runs: Sequence[StepRun]) -> list[StepRun]:
    """Return runs of the same configuration, on as much of the cluster, from before it was replaced."""
    target = rollback_step(rollout, way).target
    alike = {step.name for step in rollout.steps if step.target == target}
    return [
        run
        for run in runs
        if run.step in alike
        and run.side is Side.CONTROL
        and run.configuration == way.to
        and run.state is RunState.VALID
        and not run.is_warmup
    ]


def _relabelled(run: StepRun, way: RollbackProgress) -> StepRun:
    return replace(run, side=Side.CANDIDATE, configuration=way.to)


def _as_candidate(rollout: Rollout, way: RollbackProgress, references: Sequence[StepRun]) -> Rollout:
    """Return the plan by which what was restored is judged, as if it were a candidate.

    It is the control itself: where a candidate was compared with the control, it is compared with what that
    gave before.
    """
    verified = set(rollout.rollback.verify)
    objectives = tuple(
        _against_before(each, has_references=bool(references)) if each.name in verified else each
        for each in rollout.objectives
    )
    return replace(rollout, objectives=objectives, candidate=Configuration(digest=way.to))


def _against_before(objective: Objective, *, has_references: bool) -> Objective:
    relative = (Against.CONTROL, Against.BASELINE)
    fixed = tuple(each for each in objective.comparisons if each.against not in relative)
    if fixed and not has_references:
        # What is fixed can still be asked; what has nothing to be compared with cannot.
        return replace(objective, comparisons=fixed)
    before = tuple(_as_before(each) if each.against in relative else each for each in objective.comparisons)
    return replace(objective, comparisons=tuple(dict.fromkeys(before)))


def _as_before(comparison: Comparison) -> Comparison:
    """Return the bar for something that shall be as good as before, within the same margin.

    A bar that asks the candidate for more than the control gives cannot be asked of the control.
    """
    is_gain = comparison.bar > 1 if comparison.is_least else comparison.bar < 1
    bar = 1 / comparison.bar if is_gain else comparison.bar
    return replace(comparison, against=Against.BASELINE, bar=bar)


def verified(verdict: StepVerdict | None) -> bool:
    """Return whether a verdict proves a rollback.

    Parameters
    ----------
    verdict
        What its objectives say; ``None`` where they could not be asked.
    """
    return verdict is not None and verdict.outcome is Outcome.PASS
