import math

import pytest

from linkwise.rollout.gates.power import Noise, gate_power
from linkwise.rollout.plan import Against
from tests.rollout.making import at_least, at_most, objective, rollout
from tests.rollout.power_cases import CASES, TRIALS, simulated


def name(case):
    return f"{case.against}-{case.words}-{case.truth:g}".replace(" ", "_")


def held(case, power, slack):
    """Hold a case to its bars; `slack` is how many standard deviations of a share are let pass."""

    def room(bar):
        return slack * math.sqrt(bar * (1 - bar) / power.trials)

    if case.most_passed is not None:
        assert power.passed / power.trials <= case.most_passed + room(case.most_passed)
    if case.least_passed is not None:
        assert power.passed / power.trials >= case.least_passed - room(case.least_passed)
    if case.most_failed is not None:
        assert power.failed / power.trials <= case.most_failed + room(case.most_failed)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_gates_are_right_as_often_as_they_must_be(case):
    held(case, simulated(case, trials=120), slack=3)


@pytest.mark.full
@pytest.mark.parametrize("case", CASES, ids=name)
def test_gates_are_right_in_twenty_thousand_trials(case):
    held(case, simulated(case, trials=TRIALS), slack=0)


def test_shift_between_days_misleads_a_stored_baseline_and_no_control():
    noise = Noise(spread_fraction=0.01, shift_fraction=0.03)

    def passed(against):
        bar = at_least(0.95, against)
        goal = objective(bar)
        plan = rollout(goal)
        return gate_power(plan, goal, bar, truth=0.93, noise=noise, trials=300, seed=1).passed / 300

    assert passed(Against.BASELINE) > 0.10
    assert passed(Against.CONTROL) < 0.01


def test_metric_of_which_less_is_better_is_judged_the_other_way():
    bar = at_most(1.05)
    goal = objective(bar, metric="collective.time")
    noise = Noise(spread_fraction=0.01, slow_fraction=0.2, slow_loss_fraction=0.1)
    plan = rollout(goal)
    worse = gate_power(plan, goal, bar, truth=1.12, noise=noise, trials=100, seed=1)
    better = gate_power(plan, goal, bar, truth=0.9, noise=noise, trials=100, seed=1)
    assert (worse.passed, better.failed) == (0, 0)
    assert better.passed > 90


def test_same_seed_gives_the_same_answer():
    assert simulated(CASES[0], trials=20) == simulated(CASES[0], trials=20)
