"""What a rollout cost and what its decisions are worth: worked by hand."""

import datetime as dt
from dataclasses import replace

import pytest

from linkwise.rollout.carrying.ledger import gpu_time_facts, ledger_of
from linkwise.rollout.plan import Against, Rollback
from linkwise.rollout.runs import RunState, Side
from linkwise.rollout.verdicts import ObjectiveVerdict, Outcome, StepVerdict
from tests.rollout.making import JOB, at_most, objective, rollout
from tests.rollout.simulated import Processes, carry, ground, steps, three_steps

STEP_TIME = objective(at_most(1.05), name="step-time", metric="train.step_time", workload=JOB)


def verdict(value, bar=1.05):
    mine = ObjectiveVerdict(objective="step-time", outcome=Outcome.FAIL, value=value, bar=bar)
    return StepVerdict(step="one", outcome=Outcome.FAIL, objectives=(mine,), sentence="")


def test_spent_and_lost_are_sums_of_runs(tmp_path):
    there = ground(tmp_path, three_steps(), measure=Processes(states={Side.CANDIDATE: RunState.FAILED}))
    carry(there)
    record = there.store.record("change")
    found = ledger_of(record.entries, record.runs, now=there.clock())
    assert found.spent_gpu_s == 80
    assert found.by_step == {"one": 80}
    assert found.lost_gpu_s == {"failed": 40}
    assert found.lost_runs == {"failed": 5}
    assert found.decisions == ()  # bandwidth is no GPU-time: nothing is said


def test_a_longer_step_is_more_gpu_time_for_the_same_work():
    facts = gpu_time_facts(rollout(STEP_TIME), verdict(1.25))
    assert facts == {"gpu_time_ratio": 1.25, "gpu_time_by": "step-time"}


def test_more_tokens_per_second_are_less_gpu_time():
    plan = rollout(replace(STEP_TIME, metric="train.tokens_per_s"))
    assert gpu_time_facts(plan, verdict(0.8))["gpu_time_ratio"] == pytest.approx(1.25)


@pytest.mark.parametrize("against", [Against.FLOOR, Against.PREDICTION])
def test_what_is_compared_with_no_other_configuration_has_no_worth(against):
    plan = rollout(replace(STEP_TIME, comparisons=(at_most(1.05, against),)))
    assert gpu_time_facts(plan, verdict(1.25)) == {}


class StepTimes(Processes):
    """Runs that give step times in the place of bandwidths."""

    def _read(self, request):
        run = super()._read(request)
        return replace(run, samples={"train.step_time": next(iter(run.samples.values()))})


def test_stopping_a_slow_change_saves_what_all_gpus_would_have_lost(tmp_path):
    plan = rollout(STEP_TIME, rollback=Rollback(verify=("step-time",)))
    plan = replace(plan, steps=steps("one", "all", objectives=("step-time",)), digest="f" * 64)
    levels = {**dict.fromkeys(Side, 1.0), Side.CANDIDATE: 1.25}
    there = ground(tmp_path, plan, measure=StepTimes(levels=levels))
    carry(there)
    record = there.store.record("change")
    stopped = record.entries[-1].at
    found = ledger_of(record.entries, record.runs, now=stopped + dt.timedelta(hours=3))
    (worth,) = found.decisions
    # 16 GPUs of the last step at 1.25 times the step time: a fifth of each hour does no work.
    assert worth.saved_gpu_h_per_h == pytest.approx(16 * 0.2, rel=0.05)
    assert worth.hours == pytest.approx(3)
    assert "on the 16 GPUs" in worth.basis


def test_promoting_a_faster_change_gains(tmp_path):
    plan = rollout(STEP_TIME)
    plan = replace(plan, steps=steps("all", objectives=("step-time",)), digest="f" * 64)
    levels = {**dict.fromkeys(Side, 1.0), Side.CANDIDATE: 0.8}
    there = ground(tmp_path, plan, measure=StepTimes(levels=levels))
    carry(there)
    record = there.store.record("change")
    (worth,) = ledger_of(record.entries, record.runs, now=there.clock()).decisions
    assert worth.saved_gpu_h_per_h == pytest.approx(8 * 0.25, rel=0.05)
