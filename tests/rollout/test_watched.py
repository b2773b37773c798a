"""Objectives of a rollout as alerts of a watched job."""

import pytest

from linkwise.monitor.alert import Comparison, Severity
from linkwise.rollout.gates.watched import watched_objectives
from linkwise.rollout.plan import Against, Aggregate
from linkwise.rollout.plan import Severity as Weight
from linkwise.rollout.runs import Side
from tests.rollout.making import JOB, at_least, at_most, objective, rollout, run


def step_time(*comparisons, **more):
    return objective(*comparisons, name="step-time", metric="train.step_time", workload=JOB, **more)


def test_a_floor_is_an_alert_as_it_is():
    found, left_out = watched_objectives(rollout(step_time(at_most(0.5, Against.FLOOR))))
    assert [(each.metric, each.comparison, each.bar) for each in found] == [
        ("train.step_time", Comparison.AT_MOST, 0.5)
    ]
    assert found[0].severity is Severity.CRITICAL
    assert left_out == ()


def test_a_ratio_to_the_control_is_one_to_the_median_of_its_runs():
    runs = [
        run(turn, value, side=Side.CONTROL, workload=JOB, metric="train.step_time")
        for turn, value in enumerate((0.4, 0.5, 0.9))
    ]
    found, _ = watched_objectives(rollout(step_time(at_most(1.1))), runs)
    assert found[0].bar == pytest.approx(0.55)


def test_a_ratio_to_the_prediction_is_one_to_what_runs_predicted():
    runs = [run(0, 0.5, workload=JOB, metric="train.step_time", predictions={"train.step_time": 0.4})]
    found, _ = watched_objectives(rollout(step_time(at_most(1.25, Against.PREDICTION))), runs)
    assert found[0].bar == pytest.approx(0.5)


def test_a_ratio_without_a_run_is_named_and_left_out():
    found, left_out = watched_objectives(rollout(step_time(at_most(1.1))))
    assert found == ()
    assert "no figure yet" in left_out[0]


def test_what_a_job_does_not_show_is_named_and_left_out():
    found, left_out = watched_objectives(
        rollout(
            objective(at_least(1e11, Against.FLOOR)),
            step_time(at_most(1, Against.FLOOR), aggregate=Aggregate.P99),
        )
    )
    assert found == ()
    assert len(left_out) == 2


@pytest.mark.parametrize(
    ("weight", "severity"), [(Weight.SHOULD, Severity.WARNING), (Weight.WATCH, Severity.INFO)]
)
def test_the_weight_of_an_objective_is_that_of_its_alert(weight, severity):
    found, _ = watched_objectives(rollout(step_time(at_most(1, Against.FLOOR), severity=weight)))
    assert found[0].severity is severity
