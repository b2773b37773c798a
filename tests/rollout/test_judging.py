import datetime as dt
import math
from dataclasses import replace

import pytest

from linkwise.rollout.gates.judging import judge_rollback, judge_step
from linkwise.rollout.plan import Against, Aggregate, Rollback, Severity, ValidRun
from linkwise.rollout.runs import RunState, Side
from linkwise.rollout.verdicts import Outcome
from tests.rollout.making import JOB, TODAY, at_least, at_most, bad_run, objective, rollout, run, turns

FLAT = [100.0] * 5
NEAR = [99.0, 100.0, 100.5, 101.0, 99.5]
FLOOR = objective(at_least(95.0, Against.FLOOR))


def judged(runs, plan=None, **more):
    plan = plan or rollout()
    return judge_step(plan, plan.steps[0], runs, **{"today": TODAY, **more})


def outcome(runs, plan=None, **more):
    return judged(runs, plan, **more).outcome


def floor_runs(values, **more):
    return [run(turn, value, **more) for turn, value in enumerate(values)]


@pytest.mark.parametrize(
    ("ratio", "said"), [(0.99, Outcome.PASS), (0.90, Outcome.FAIL), (0.95, Outcome.INCONCLUSIVE)]
)
def test_pairs_with_the_control_decide_by_their_ratio(ratio, said):
    verdict = judged(turns([ratio * each for each in (99.9, 100.2, 99.8, 100.1, 100.0)], NEAR))
    assert verdict.outcome is said
    assert verdict.objectives[0].value == pytest.approx(ratio, rel=0.01)
    assert verdict.wants_more is (said is Outcome.INCONCLUSIVE)


def test_shift_that_moves_both_of_a_pair_is_no_matter():
    day = [1.0, 1.4, 0.6, 1.2, 0.8]
    verdict = judged(turns([0.97 * 100 * each for each in day], [100 * each for each in day]))
    assert verdict.outcome is Outcome.PASS
    assert verdict.objectives[0].low == pytest.approx(0.97)


@pytest.mark.parametrize(("values", "said"), [
    ([96, 97, 98, 96.5, 97.5], Outcome.PASS), ([94, 93, 92, 94.5, 90], Outcome.FAIL), ([94, 96, 97, 98, 99], Outcome.INCONCLUSIVE),
])  # fmt: skip
def test_floor_is_met_only_by_the_whole_interval(values, said):
    assert outcome(floor_runs(values), rollout(FLOOR)) is said


def test_bar_that_is_just_met_is_met():
    slow_nodes = objective(at_most(0.0, Against.FLOOR), metric="pairs.slow_nodes")
    assert outcome(floor_runs([0] * 5, metric="pairs.slow_nodes"), rollout(slow_nodes)) is Outcome.PASS
    assert outcome(floor_runs([1] * 5, metric="pairs.slow_nodes"), rollout(slow_nodes)) is Outcome.FAIL


def test_baseline_counts_its_own_noise():
    plan = rollout(objective(at_least(0.95, Against.BASELINE)))
    ours = floor_runs([97.0, 97.2, 96.8, 97.1, 96.9])
    quiet = [
        run(90 + k, value, side=Side.PROMOTED) for k, value in enumerate([100, 100.2, 99.8, 100.1, 99.9])
    ]
    noisy = [run(90 + k, value, side=Side.PROMOTED) for k, value in enumerate([100, 108, 92, 104, 96])]
    assert outcome(ours, plan, baseline=quiet) is Outcome.PASS
    assert outcome(ours, plan, baseline=noisy) is Outcome.INCONCLUSIVE


def test_baseline_of_another_size_is_none():
    plan = rollout(objective(at_least(0.95, Against.BASELINE)))
    stored = [run(90 + k, 100.0, side=Side.PROMOTED, gpus=16) for k in range(5)]
    verdict = judged(floor_runs(FLAT), plan, baseline=stored)
    assert verdict.outcome is Outcome.NO_DATA
    assert "0 stored runs of the baseline, 5 are needed" in verdict.objectives[0].sentence
    assert not verdict.objectives[0].can_decide_later


def test_prediction_is_that_of_each_run():
    plan = rollout(objective(at_least(0.8, Against.PREDICTION)))
    runs = [run(turn, 85.0, predictions={"collective.busbw": 100.0}) for turn in range(5)]
    assert outcome(runs, plan) is Outcome.PASS
    assert (
        outcome([replace(each, predictions={"collective.busbw": 120.0}) for each in runs], plan)
        is Outcome.FAIL
    )
    without = judged([replace(each, predictions={}) for each in runs], plan)
    assert without.outcome is Outcome.NO_DATA
    assert "no prediction for any run" in without.objectives[0].sentence


def test_several_bars_must_all_be_met():
    plan = rollout(objective(at_least(0.95), at_least(120.0, Against.FLOOR)))
    verdict = judged(turns(FLAT, NEAR), plan)
    assert verdict.outcome is Outcome.FAIL
    assert verdict.objectives[0].bar == 120.0


def test_nothing_measured_is_no_data():
    verdict = judged([])
    assert verdict.outcome is Outcome.NO_DATA
    assert "Nothing was measured" in verdict.objectives[0].sentence
    assert outcome([run(0, 100.0, is_warmup=True)]) is Outcome.NO_DATA


@pytest.mark.parametrize("state", [RunState.INVALID, RunState.FAILED, RunState.CUT, RunState.STARTED])
def test_bad_runs_are_no_data_however_many(state):
    verdict = judged(
        [bad_run(turn, state, side=side) for turn, side in enumerate([Side.CANDIDATE, Side.CONTROL] * 8)]
    )
    assert verdict.outcome is Outcome.ERROR
    told = verdict.objectives[0]
    assert (told.planned, told.executed, told.judged, told.can_decide_later) == (8, 8, 0, False)
    assert "another world size" in told.sentence


def test_fewer_runs_than_planned_decide_nothing_yet():
    verdict = judged(turns(FLAT, FLAT), rollout(repeats=9))
    assert (verdict.outcome, verdict.wants_more) == (Outcome.INCONCLUSIVE, True)
    assert (
        "5 pairs with the control that count and are above zero, 9 are needed"
        in verdict.objectives[0].sentence
    )


def test_undecided_is_undecided_when_no_runs_are_left():
    verdict = judged(turns([95.0] * 5, [100.0, 99, 101, 100, 100]), rollout(most_repeats=5))
    assert (verdict.outcome, verdict.wants_more) == (Outcome.INCONCLUSIVE, False)
    assert "No more runs are planned" in verdict.objectives[0].sentence


def test_too_many_bad_runs_are_an_error_although_enough_are_good():
    runs = [*floor_runs([100.0] * 6), bad_run(6), bad_run(7)]
    assert outcome(runs, rollout(FLOOR)) is Outcome.ERROR
    lenient = rollout(FLOOR, valid_run=ValidRun(least_valid_fraction=0.5))
    assert outcome(runs, lenient) is Outcome.PASS


def test_bad_run_takes_its_partner_with_it():
    runs = turns([100.0] * 6, [100.0] * 6)
    runs[2] = bad_run(2, side=Side.CONTROL)
    told = judged(runs).objectives[0]
    assert (told.executed, told.judged, len(told.references)) == (6, 5, 5)


def test_missing_run_is_an_error():
    runs = [each for each in floor_runs([100.0] * 7) if each.turn != 3]
    verdict = judged(runs, rollout(FLOOR))
    assert verdict.outcome is Outcome.ERROR
    assert "the run of turn 3 is missing" in verdict.objectives[0].sentence
    started = [f"candidate-{turn}" for turn in range(7)]
    assert outcome(floor_runs([100.0] * 6), rollout(FLOOR), started=started) is Outcome.ERROR
    assert outcome(floor_runs([100.0] * 7), rollout(FLOOR), started=started) is Outcome.PASS


def test_runs_of_another_candidate_do_not_count():
    assert outcome(floor_runs(FLAT, configuration="b" * 64), rollout(FLOOR)) is Outcome.NO_DATA


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_loss_that_is_no_number_is_the_worst_loss(broken):
    plan = rollout(objective(at_most(1.01), metric="train.loss", workload=JOB, aggregate=Aggregate.LAST))
    ours = [(3.0, 2.0, broken)] * 5
    verdict = judged(turns(ours, [(3.0, 2.0, 1.5)] * 5, metric="train.loss", workload=JOB), plan)
    assert verdict.outcome is Outcome.FAIL
    assert "Loss is no number in half of 5 pairs of runs or more" in verdict.objectives[0].sentence


def test_bandwidth_that_is_no_number_is_the_worst_bandwidth():
    assert outcome(turns([math.nan] * 5, FLAT)) is Outcome.FAIL
    assert outcome(floor_runs([math.nan] * 5), rollout(FLOOR)) is Outcome.FAIL


def test_control_that_is_no_number_is_no_control():
    verdict = judged(turns(FLAT, [math.nan] * 5), rollout(most_repeats=5))
    assert verdict.outcome is not Outcome.PASS
    assert "0 pairs" in verdict.objectives[0].sentence


def test_number_past_its_review_passes_nothing():
    plan = rollout(objective(at_least(0.95), review_by=TODAY))
    verdict = judged(turns(FLAT, FLAT), plan)
    assert (verdict.outcome, verdict.wants_more) == (Outcome.INCONCLUSIVE, False)
    assert "was to be looked at again by 2026-11-30" in verdict.objectives[0].sentence
    assert outcome(turns(FLAT, FLAT), plan, today=dt.date(2026, 11, 29)) is Outcome.PASS


def test_step_is_the_worst_of_what_must_hold():
    high = replace(FLOOR, name="high", comparisons=(at_least(120.0, Against.FLOOR),))
    plan = rollout(FLOOR, high)
    verdict = judged(floor_runs(FLAT), plan)
    assert verdict.outcome is Outcome.FAIL
    assert verdict.sentence == "one: fail, because of high."


def test_what_should_hold_asks_for_an_approval():
    high = replace(
        FLOOR, name="high", comparisons=(at_least(120.0, Against.FLOOR),), severity=Severity.SHOULD
    )
    verdict = judged(floor_runs(FLAT), rollout(FLOOR, high))
    assert (verdict.outcome, verdict.to_approve) == (Outcome.PASS, ("high",))
    assert "Somebody must approve high" in verdict.sentence


def test_step_in_which_nothing_must_hold_has_no_data():
    verdict = judged(floor_runs(FLAT), rollout(replace(FLOOR, severity=Severity.WATCH)))
    assert verdict.outcome is Outcome.NO_DATA


def test_one_miss_among_many_watched_is_told_as_chance():
    watched = [
        replace(
            FLOOR,
            name=f"w{place}",
            comparisons=(at_least(99.0 if place else 101.0, Against.FLOOR),),
            severity=Severity.WATCH,
        )
        for place in range(6)
    ]
    runs = floor_runs([100.0, 100.0, 100.0, 100.0, 100.0])
    many = judged(runs, rollout(FLOOR, *watched)).objectives[1]
    alone = judged(runs, rollout(FLOOR, watched[0])).objectives[1]
    assert (alone.outcome, many.outcome) == (Outcome.FAIL, Outcome.INCONCLUSIVE)
    assert "Among 6 that are watched, chance alone shows as much" in many.sentence


def test_rollback_is_proved_by_fresh_runs_against_the_control():
    plan = replace(rollout(), rollback=Rollback(verify=("bandwidth",)))
    before = [run(turn, value, side=Side.CONTROL) for turn, value in enumerate(NEAR)]
    good = [run(turn, value, side=Side.PROMOTED) for turn, value in enumerate(NEAR)]
    slow = [run(turn, 0.9 * value, side=Side.PROMOTED) for turn, value in enumerate(NEAR)]
    assert judge_rollback(plan, [*before, *good]).outcome is Outcome.PASS
    assert judge_rollback(plan, [*before, *slow]).outcome is Outcome.FAIL
    assert judge_rollback(plan, before).outcome is Outcome.NO_DATA
    assert judge_rollback(plan, good).outcome is Outcome.NO_DATA
    assert judge_rollback(plan, good, baseline=before).outcome is Outcome.PASS


def test_sentence_says_what_was_seen_and_asked():
    told = judged(turns([97.0] * 5, FLAT)).objectives[0]
    assert told.sentence == (
        "Bus bandwidth is 97 % of the control's (interval 97 % to 97 %, 5 pairs of runs); asked is at least 95 %. "
        "All of the interval clears the bar."
    )


def _mostly_bad():
    """Return runs that fail, of which five pairs alone would pass."""
    return turns([95.5] * 5 + [80.0] * 10, [100.0] * 15)


def test_fail_is_no_pass_when_bad_runs_lose_their_samples():
    runs = _mostly_bad()
    assert outcome(runs) is Outcome.FAIL
    assert outcome(runs[:10]) is Outcome.PASS
    emptied = [replace(each, samples={}) if each.turn >= 10 else each for each in runs]
    assert outcome(emptied) is Outcome.ERROR


def test_fail_is_no_pass_when_bad_runs_are_lost():
    runs = [replace(each, turn=29 - each.turn) for each in _mostly_bad()]
    assert outcome(runs) is Outcome.FAIL
    assert outcome([each for each in runs if each.turn >= 20]) is Outcome.ERROR
