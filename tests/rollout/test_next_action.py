"""What comes next hangs on the log and the runs alone: at every moment the answer is what was done then."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.rollout.carrying import actions
from linkwise.rollout.carrying.carrying import situation_of
from linkwise.rollout.carrying.next_action import next_action
from linkwise.rollout.carrying.schedule import next_run, workloads_of
from linkwise.rollout.plan import Reaction, Reactions, Sampling
from linkwise.rollout.runs import RunState, Side
from linkwise.rollout.store.decisions import Kind
from tests.rollout.making import JOB, at_least, at_most, objective, rollout
from tests.rollout.simulated import Clock, Processes, carry, ground, steps, three_steps

ACTIONS = {
    Kind.BEGUN: actions.Begin,
    Kind.RUN_STARTED: actions.Measure,
    Kind.RUN_ENDED: actions.Recover,
    Kind.JUDGED: actions.Judge,
    Kind.STEP_PASSED: actions.PassStep,
    Kind.PROMOTED: actions.Promote,
    Kind.SUSPENDED: actions.Suspend,
    Kind.ROLLBACK_BEGUN: actions.BeginRollback,
    Kind.COMMAND_STARTED: actions.RunCommand,
    Kind.COMMAND_ENDED: actions.RunCommand,
    Kind.RESTORED: actions.Restore,
    Kind.ROLLBACK_VERIFIED: actions.EndRollback,
    Kind.ROLLBACK_UNPROVEN: actions.EndRollback,
}


def at_each_moment(there):
    """Yield what was known before each entry of a log, and the entry."""
    record = there.store.record("change")
    for place, entry in enumerate(record.entries):
        before = record.entries[:place]
        started = {each.fact("run_id") for each in before if each.kind is Kind.RUN_STARTED}
        ended = {each.fact("run_id") for each in before if each.kind is Kind.RUN_ENDED}
        runs = tuple(
            run if run.run_id in ended else replace(run, state=RunState.STARTED, ended=None, samples={})
            for run in record.runs
            if run.run_id in started
        )
        known = situation_of(there.store, there.load(), record, now=entry.at)
        yield replace(known, entries=before, runs=runs), entry


@pytest.mark.parametrize("candidate", [1e11, 0.8e11])
def test_whoever_asks_after_a_kill_gets_what_was_done_then(tmp_path, candidate):
    plan = three_steps(reactions=Reactions(fail=Reaction.ROLL_BACK))
    plan = replace(plan, rollback=replace(plan.rollback, command=("true",)))
    levels = {**dict.fromkeys(Side, 1e11), Side.CANDIDATE: candidate}
    there = ground(tmp_path, plan, measure=Processes(levels=levels))
    carry(there)
    record = there.store.record("change")
    for situation, entry in at_each_moment(there):
        action = next_action(situation)
        assert type(action) is ACTIONS[entry.kind], entry
        if isinstance(action, actions.Measure):
            run = next(run for run in record.runs if run.run_id == entry.fact("run_id"))
            assert (action.wanted.side, action.wanted.turn) == (run.side, run.turn)
        if isinstance(action, actions.Judge):
            assert action.verdict.outcome.value == entry.fact("outcome")


def two_workloads(*, is_paired):
    against = at_least(0.95) if is_paired else replace(at_least(1e9), against="floor")
    return rollout(
        objective(against), objective(at_most(1.1), name="time", metric="train.step_time", workload=JOB)
    )


@given(
    warmup=st.integers(0, 3),
    slots=st.lists(st.integers(0, 8), min_size=2, max_size=2),
    is_paired=st.booleans(),
)
@settings(max_examples=60)
def test_a_schedule_makes_each_run_once_and_pairs_side_by_side(warmup, slots, is_paired):
    plan = two_workloads(is_paired=is_paired)
    plans = workloads_of(plan, plan.steps[0])
    wanted = dict(zip([each.digest for each in plans], slots, strict=True))
    from tests.rollout.making import run as made

    runs = []
    while (found := next_run(plans, runs, warmup=warmup, slots=wanted)) is not None:
        work = found.plan.workload
        runs.append(made(found.turn, 1.0, side=found.side, workload=work, is_warmup=found.is_warmup))
    assert [run.turn for run in runs] == list(range(len(runs)))
    for plan_of, count in zip(plans, slots, strict=True):
        for side in plan_of.sides:
            mine = [run for run in runs if run.workload == plan_of.digest and run.side is side]
            assert sum(run.is_warmup for run in mine) == warmup
            assert sum(not run.is_warmup for run in mine) == count
        if len(plan_of.sides) == 2:
            counted = [run for run in runs if run.workload == plan_of.digest and not run.is_warmup]
            order = "".join("ab"[run.side is Side.CONTROL] for run in counted)
            assert order == ("abba" * count)[: 2 * count]
            assert all(abs(a.turn - b.turn) == 1 for a, b in zip(counted[::2], counted[1::2], strict=True))


def test_objectives_of_one_workload_share_its_runs():
    plan = rollout(objective(), objective(name="time", metric="collective.time"))
    (only,) = workloads_of(plan, plan.steps[0])
    assert only.metrics == ("collective.busbw", "collective.time")
    assert only.objectives == ("bandwidth", "time")


def test_the_answer_does_not_hang_on_when_it_is_asked_but_for_soaks_and_days(tmp_path):
    plan = replace(three_steps(), steps=steps("one"), sampling=Sampling(repeats=5, warmup=0))
    there = ground(tmp_path, plan, clock=Clock())
    carry(there, is_enough=lambda passed: bool(passed))
    for situation, _ in at_each_moment(there):
        later = replace(situation, now=situation.now.replace(hour=23))
        assert type(next_action(later)) is type(next_action(situation))
