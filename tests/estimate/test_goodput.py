"""Goodput against Young, Daly, a simulation of runs, and laws that hold always."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.estimate import goodput
from linkwise.estimate.columns import Evaluation, Table
from linkwise.estimate.term import term_table

PARTS = ("gpu", "node", "nic", "switch", "cable")


def evaluated(*, rate, write, interval=0.0, restart=0.0):
    """Return the terms for one GPU that fails at a rate."""
    columns = {
        "gpus": 1.0, "nodes": 0.0, "nics": 0.0, "switches": 0.0, "cables": 0.0,
        **{f"{part}_failures_per_s": 0.0 for part in PARTS}, "gpu_failures_per_s": rate,
        "restart_s": restart, "checkpoint_write_s": write, "stated_interval_s": interval,
    }  # fmt: skip
    fixed = {name: np.array([value]) for name, value in columns.items()}
    return Evaluation(Table(rows=1, fixed=fixed), term_table(goodput.TERMS))


def fraction(**given):
    return evaluated(**given).fixed("goodput_fraction")


def test_goodput_without_failures_is_the_share_that_does_not_write():
    assert fraction(rate=0.0, write=30.0, interval=3570.0) == pytest.approx(3570 / 3600)
    assert fraction(rate=0.0, write=0.0, interval=1.0) == 1.0


def test_goodput_is_to_first_order_that_of_young():
    # An interruption in 1e7 s, 100 s restart, checkpoints of 10 s every 1,000 s.
    lost = 10 / 1000 + 1e-7 * (100 + 1000 / 2)
    assert fraction(rate=1e-7, write=10.0, interval=1000.0, restart=100.0) == pytest.approx(
        1 / (1 + lost), abs=2e-6
    )


def test_goodput_is_the_closed_form_of_daly():
    # T / (M exp(R / M) (exp((T + w) / M) - 1)) with M = 5,000, T = 3,600, w = 300, R = 900 s.
    expected = 3600 / (5000 * np.exp(900 / 5000) * (np.exp(3900 / 5000) - 1))
    assert fraction(rate=1 / 5000, write=300.0, interval=3600.0, restart=900.0) == pytest.approx(expected)


def test_goodput_is_that_of_runs_which_are_interrupted_at_random():
    rng = np.random.default_rng(7)
    between_s, interval, write, restart = 4000.0, 1800.0, 120.0, 300.0
    spent, segments = 0.0, 4000
    for _ in range(segments):
        while (up := rng.exponential(between_s)) < interval + write:
            spent += up
            while (back := rng.exponential(between_s)) < restart:
                spent += back
            spent += restart
        spent += interval + write
    simulated = segments * interval / spent
    found = fraction(rate=1 / between_s, write=write, interval=interval, restart=restart)
    assert found == pytest.approx(simulated, rel=0.02)


@pytest.mark.parametrize(("between_s", "write"), [(1e6, 30.0), (36_000.0, 60.0), (7200.0, 300.0)])
def test_best_interval_is_the_one_that_wastes_least(between_s, write):
    best = evaluated(rate=1 / between_s, write=write).fixed("best_interval_s")
    tried = np.linspace(0.2, 3.0, 400) * best
    found = [fraction(rate=1 / between_s, write=write, interval=each, restart=600.0) for each in tried]
    assert tried[int(np.argmax(found))] == pytest.approx(best, rel=0.05)
    # Its first factor is Young's, sqrt(2 w M).
    assert best == pytest.approx(np.sqrt(2 * write * between_s), rel=0.2)


def test_best_interval_is_taken_where_none_is_stated():
    found = evaluated(rate=1e-5, write=30.0)
    assert found.fixed("checkpoint_interval_s") == found.fixed("best_interval_s")
    assert evaluated(rate=1e-5, write=30.0, interval=60.0).fixed("checkpoint_interval_s") == 60.0


TIMES = st.floats(0.001, 3e7)


@given(rate=st.just(0.0) | st.floats(1e-12, 1.0), write=TIMES, interval=TIMES, restart=TIMES)
def test_goodput_is_a_share_and_falls_with_failures_and_restarts(rate, write, interval, restart):
    found = fraction(rate=rate, write=write, interval=interval, restart=restart)
    assert 0.0 <= found <= 1.0
    assert fraction(rate=2 * rate, write=write, interval=interval, restart=restart) <= found + 1e-9
    assert fraction(rate=rate, write=write, interval=interval, restart=2 * restart) <= found + 1e-9
