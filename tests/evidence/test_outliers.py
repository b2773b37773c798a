"""Round-robin pairs, scores of nodes, and which are low."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.errors import InputError
from linkwise.evidence.outliers import fleet_of, node_scores, robust_sigma, round_robin


def test_four_nodes_meet_as_the_circle_method_has_it():
    assert round_robin(4, 3) == (((0, 3), (1, 2)), ((0, 1), (2, 3)), ((0, 2), (1, 3)))


@given(st.integers(2, 41))
def test_all_rounds_have_every_pair_once_and_every_node_once_a_round(count):
    rounds = round_robin(count, count - 1 + count % 2)
    met = [pair for pairs in rounds for pair in pairs]
    assert sorted(met) == list(itertools.combinations(range(count), 2))
    for pairs in rounds:
        nodes = [node for pair in pairs for node in pair]
        assert len(nodes) == len(set(nodes)) == count - count % 2


@pytest.mark.parametrize(("count", "rounds"), [(0, 1), (1, 1), (4, 4), (4, 0), (5, 6)])
def test_rounds_that_there_are_not_are_refused(count, rounds):
    with pytest.raises(InputError, match=r"two nodes|no nodes|rounds of pairs"):
        round_robin(count, rounds)


def test_a_node_is_scored_by_its_best_of_two_pairs_and_the_median_of_more():
    two = node_scores({(0, 1): [10.0], (0, 2): [4.0]})
    assert (two[0], two[1], two[2]) == (10.0, 10.0, 4.0)
    three = node_scores({(0, 1): [10.0], (0, 2): [4.0], (0, 3): [9.0]})
    assert three[0] == 9.0


def test_robust_sigma_is_that_of_the_normal_half_whatever_the_rest_does():
    values = [100.0, 101.0, 99.0, 100.0, 102.0, 98.0, 100.0]
    assert robust_sigma(values) == pytest.approx(1.4826)
    assert robust_sigma([*values, 1e9]) == pytest.approx(1.4826)
    draw = random.Random(1)
    assert robust_sigma([draw.gauss(0, 3) for _ in range(20_000)]) == pytest.approx(3, rel=0.03)


def test_a_low_score_must_miss_both_the_spread_and_the_margin():
    # Sigma of 100 101 99 100 102 98 100 is 1.4826 x 1; 3.5 of it are 5.2.
    around = dict(enumerate([100.0, 101.0, 99.0, 100.0, 102.0, 98.0, 100.0]))
    assert fleet_of({**around, 7: 94.0}).low == (7,)
    assert fleet_of({**around, 7: 95.5}).low == ()


def test_scores_all_alike_have_the_margin_as_their_floor():
    alike = dict.fromkeys(range(9), 100.0)
    assert fleet_of({**alike, 9: 98.0}).low == ()
    assert fleet_of({**alike, 9: 96.9}).low == (9,)
    assert fleet_of({**alike, 9: 96.9, 10: 50.0}).low == (10, 9)


def test_fewer_than_eight_members_are_no_baseline():
    few = fleet_of({**dict.fromkeys(range(6), 100.0), 6: 10.0})
    assert few.low == ()
    assert not few.is_enough


def test_one_slow_node_of_32_is_found_in_two_rounds_at_one_percent_noise():
    # A simulation of 10 % in 1 % noise gives exactly the right set in 99 % of trials; fewer than 95 here fail.
    source, right = random.Random(1), 0
    for _ in range(200):
        slow = source.randrange(32)
        reached = {
            pair: [100.0 * (0.9 if slow in pair else 1.0) * source.gauss(1, 0.01)]
            for pairs in round_robin(32, 2)
            for pair in pairs
        }
        right += fleet_of(node_scores(reached)).low == (slow,)
    assert right >= 190


def _found_alone(trials, *, rounds=5, noise=0.03, slow=0.9, seed=3):
    """Return how often 32 nodes, one of them slow, are told apart: that one and no other is low."""
    draw, schedule = random.Random(seed), round_robin(32, rounds)
    alone = 0
    for _ in range(trials):
        bad = draw.randrange(32)
        pairs = {
            pair: [(slow if bad in pair else 1.0) * draw.gauss(1.0, noise)]
            for met in schedule
            for pair in met
        }
        alone += fleet_of(node_scores(pairs)).low == (bad,)
    return alone / trials


def test_slow_node_among_32_is_found_alone():
    assert _found_alone(5000) >= 0.88
    assert _found_alone(5000, rounds=2, noise=0.01) >= 0.98
