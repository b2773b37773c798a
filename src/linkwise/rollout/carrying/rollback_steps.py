"""The way back: a command, the configuration that was promoted last, and fresh runs that prove it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from linkwise.rollout.carrying import actions
from linkwise.rollout.carrying.actions import Action
from linkwise.rollout.carrying.progress import RollbackProgress
from linkwise.rollout.carrying.schedule import measured_slots, next_run, workloads_of
from linkwise.rollout.gates.judging import judge_rollback
from linkwise.rollout.plan import Against, Comparison, Objective, Rollout, Step
from linkwise.rollout.runs import Side, StepRun
from linkwise.rollout.verdicts import Outcome, StepVerdict

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
    baseline: Mapping[str, Sequence[StepRun]],
) -> Action:
    """Return what comes next on the way back.

    Parameters
    ----------
    rollout, runs, baseline
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
    return _prove(rollout, way, runs, baseline=baseline)


def _prove(
    rollout: Rollout,
    way: RollbackProgress,
    runs: Sequence[StepRun],
    *,
    baseline: Mapping[str, Sequence[StepRun]],
) -> Action:
    step, sampling = rollback_step(rollout, way), rollout.sampling
    mine = [run for run in runs if run.step == step.name]
    plans = workloads_of(rollout, step, alone=Side.PROMOTED)
    slots = dict.fromkeys((plan.digest for plan in plans), sampling.repeats)
    wanted = next_run(plans, mine, warmup=sampling.warmup, slots=slots)
    if wanted is not None:
        return actions.Measure(step=step, wanted=wanted)
    asked = replace(rollout, objectives=tuple(map(_as_good_as_before, rollout.objectives)))
    stored = baseline.get(way.begun.step, ())
    verdict = judge_rollback(asked, [*mine, *_controls(rollout, way, runs)], baseline=stored)
    open_ones = {each.objective for each in verdict.objectives if each.can_decide_later}
    for plan in plans:
        is_open = verdict.wants_more and bool(open_ones & set(plan.objectives))
        slots[plan.digest] = len(measured_slots(plan, mine, warmup=sampling.warmup)) + is_open
    wanted = next_run(plans, mine, warmup=sampling.warmup, slots=slots)
    if wanted is not None:
        return actions.Measure(step=step, wanted=wanted)
    return actions.EndRollback(verdict=verdict, why=verdict.sentence)


def _controls(rollout: Rollout, way: RollbackProgress, runs: Sequence[StepRun]) -> list[StepRun]:
    """Return runs of the same configuration, on as much of the cluster, from before it was replaced."""
    target = rollback_step(rollout, way).target
    alike = {step.name for step in rollout.steps if step.target == target}
    return [
        run for run in runs if run.step in alike and run.side is Side.CONTROL and run.configuration == way.to
    ]


def _as_good_as_before(objective: Objective) -> Objective:
    """Return an objective for something that shall be as good as before, within the same margin.

    A bar that asks the candidate for more than the control gives cannot be asked of the control.
    """
    return replace(objective, comparisons=tuple(map(_turned, objective.comparisons)))


def _turned(comparison: Comparison) -> Comparison:
    if comparison.against not in (Against.CONTROL, Against.BASELINE):
        return comparison
    is_gain = comparison.bar > 1 if comparison.is_least else comparison.bar < 1
    return replace(comparison, bar=1 / comparison.bar) if is_gain else comparison


def verified(verdict: StepVerdict | None) -> bool:
    """Return whether a verdict proves a rollback.

    Parameters
    ----------
    verdict
        What its objectives say; ``None`` where they could not be asked.
    """
    return verdict is not None and verdict.outcome is Outcome.PASS
