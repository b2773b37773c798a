"""What comes next in a rollout: a pure function of the plan, the log, the runs, and the time.

Nothing is kept beside the log, so that whoever asks after a kill gets the same answer.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from linkwise.rollout.carrying import actions
from linkwise.rollout.carrying.actions import Action, Waiting
from linkwise.rollout.carrying.guards import Guarded, first_guard, waiver_guard
from linkwise.rollout.carrying.progress import Cause, Progress, progress_of
from linkwise.rollout.carrying.rollback_steps import next_of_rollback, rollback_step
from linkwise.rollout.carrying.schedule import WorkloadPlan, measured_slots, next_run, workloads_of
from linkwise.rollout.gates.judging import judge_step
from linkwise.rollout.plan import Reaction, Rollout, Severity, Step
from linkwise.rollout.runs import RunState, Side, StepRun
from linkwise.rollout.store.decisions import Entry
from linkwise.rollout.verdicts import Outcome, StepVerdict

__all__ = ["Situation", "next_action"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """All that the next action hangs on.

    Parameters
    ----------
    rollout
        The plan, as its file says now.
    entries, runs
        What was decided and measured.
    baseline
        By name of the step: runs of what was promoted before, on a target as large.
    nodes
        By name of the step: nodes that it touches [1].
    now
        In UTC.
    """

    rollout: Rollout
    entries: Sequence[Entry]
    runs: Sequence[StepRun]
    baseline: Mapping[str, Sequence[StepRun]] = field(default_factory=dict)
    nodes: Mapping[str, int] = field(default_factory=dict)
    now: dt.datetime


def next_action(situation: Situation) -> Action:
    """Return what comes next.

    Parameters
    ----------
    situation
        All that it hangs on.
    """
    progress = progress_of(situation.entries)
    if not progress.has_begun:
        return actions.Begin()
    open_run = next((run for run in situation.runs if run.state is RunState.STARTED), None)
    if open_run is not None:
        return actions.Recover(run=open_run, step=_step_of(situation, progress, open_run))
    if progress.rollback is not None and progress.rollback.is_proven is None:
        return next_of_rollback(
            situation.rollout,
            progress.rollback,
            situation.runs,
            baseline=situation.baseline,
        )
    if progress.suspended is not None:
        return _suspended(situation, progress, progress.suspended)
    if progress.is_promoted:
        return actions.Done()
    return _forward(situation, progress)


def _step_of(situation: Situation, progress: Progress, run: StepRun) -> Step:
    named = next((step for step in situation.rollout.steps if step.name == run.step), None)
    if named is not None or progress.rollback is None:
        return named or situation.rollout.steps[0]
    return rollback_step(situation.rollout, progress.rollback)


def _suspended(situation: Situation, progress: Progress, entry: Entry) -> Action:
    """Return the way back where the file wants it and it was not taken, else nothing."""
    cause = progress.cause
    reactions = situation.rollout.reactions
    wanted = {
        Cause.FAIL: reactions.fail,
        Cause.INCONCLUSIVE: reactions.inconclusive,
        Cause.ERROR: reactions.error,
        Cause.NO_DATA: reactions.no_data,
    }
    is_wanted = cause in wanted and wanted[cause] is Reaction.ROLL_BACK
    if is_wanted and progress.rollback is None:
        return actions.BeginRollback(step=entry.step, why=entry.why)
    return actions.Stopped(entry=entry, is_rolled_back=progress.rollback is not None)


def _forward(situation: Situation, progress: Progress) -> Action:
    rollout = situation.rollout
    expired = waiver_guard(progress, situation.now.date())
    if expired is not None:
        return expired
    step = next((each for each in rollout.steps if not progress.has_passed(each.name)), None)
    guarded = Guarded(
        rollout=rollout, progress=progress, runs=situation.runs, nodes=situation.nodes, now=situation.now
    )
    guard = first_guard(guarded, step)
    if guard is not None:
        return guard
    if step is None:
        return actions.Promote()
    judged = progress.judged.get(step.name)
    if judged is None:
        return _measure_or_judge(situation, progress, guarded, step)
    return _after_verdict(situation, progress, step, judged)


def _after_verdict(situation: Situation, progress: Progress, step: Step, judged: Entry) -> Action:
    outcome = Outcome(judged.fact("outcome"))
    waiver = progress.waivers.get(step.name)
    if outcome is not Outcome.PASS and waiver is None:
        return actions.Suspend(cause=Cause(outcome.value), why=judged.why, step=step.name)
    wanted = step.approvals or ((situation.rollout.owner,) if judged.facts.get("to_approve") else ())
    missing = tuple(who for who in wanted if who not in progress.approved.get(step.name, ()))
    if missing:
        return actions.Wait(what=Waiting.APPROVAL, step=step.name, who=missing)
    return actions.PassStep(step=step.name, waiver=None if outcome is Outcome.PASS else waiver)


def _measure_or_judge(situation: Situation, progress: Progress, guarded: Guarded, step: Step) -> Action:
    """Measure what is planned; then more, for as long as that may decide; then judge."""
    rollout, sampling = situation.rollout, situation.rollout.sampling
    runs = progress.of_trial(situation.runs, step=step.name)
    plans = workloads_of(rollout, step)
    # Whoever resumes after nothing could be measured gets as many runs again; the bad ones still count.
    rounds = 1 + progress.rounds.get(step.name, 0)
    most = sampling.most_repeats * rounds
    slots = dict.fromkeys((plan.digest for plan in plans), sampling.repeats * rounds)
    action = _next(guarded, step, plans, runs, slots)
    if action is not None:
        return action
    asked = replace(rollout, sampling=replace(sampling, most_repeats=most))
    verdict = judge_step(
        asked,
        step,
        runs,
        baseline=situation.baseline.get(step.name, ()),
        started=progress.started_of_trial(step.name),
        today=situation.now.date(),
    )
    soaked = _soaked(step, runs)
    if verdict.outcome is not Outcome.FAIL:
        if soaked is not None and situation.now < soaked:
            return actions.Wait(what=Waiting.SOAK, step=step.name, until=soaked)
        slots = _wanted_slots(asked, verdict, plans, runs, soaked)
        action = _next(guarded, step, plans, runs, slots)
    return action or actions.Judge(verdict=verdict)


def _next(
    guarded: Guarded,
    step: Step,
    plans: Sequence[WorkloadPlan],
    runs: Sequence[StepRun],
    slots: Mapping[str, int],
) -> Action | None:
    wanted = next_run(plans, runs, warmup=guarded.rollout.sampling.warmup, slots=slots)
    if wanted is None:
        return None
    return guarded.spending(step, wanted) or actions.Measure(step=step, wanted=wanted)


def _soaked(step: Step, runs: Sequence[StepRun]) -> dt.datetime | None:
    """Return when the step has run for as long as it must; it runs from its first run on."""
    first = next((run.started for run in runs if run.side is Side.CANDIDATE), None)
    if not step.soak_s or first is None:
        return None
    return first + dt.timedelta(seconds=step.soak_s)


def _wanted_slots(
    rollout: Rollout,
    verdict: StepVerdict,
    plans: Sequence[WorkloadPlan],
    runs: Sequence[StepRun],
    soaked: dt.datetime | None,
) -> dict[str, int]:
    """Return how many slots each workload gets: those after the soak, and one more while it is undecided."""
    sampling = rollout.sampling
    may_pass = verdict.wants_more or verdict.outcome is Outcome.PASS
    undecided = {
        each.objective
        for each in verdict.objectives
        if may_pass and each.can_decide_later and each.severity is not Severity.WATCH
    }
    wanted = {}
    for plan in plans:
        done = measured_slots(plan, runs, warmup=sampling.warmup)
        after = sum(soaked is not None and min(run.started for run in slot) >= soaked for slot in done)
        # Half as many again after the soak: what was measured before it says nothing of it.
        more = 0 if soaked is None else max(0, (sampling.repeats + 1) // 2 - after)
        if not more and undecided & set(plan.objectives) and len(done) < sampling.most_repeats:
            more = 1
        wanted[plan.digest] = len(done) + more
    return wanted
