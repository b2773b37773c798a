"""Rank correlation against hand-worked and published values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.errors import InputError
from linkwise.evidence.ranks import rank_correlation


def test_a_hand_worked_order():
    # ranks 1 2 3 4 5 against 2 1 4 3 5: 1 - 6 x 4 / (5 x 24)
    assert rank_correlation([1, 2, 3, 4, 5], [20, 10, 40, 30, 50]) == pytest.approx(0.8)


def test_equal_values_share_the_mean_of_their_ranks():
    # ranks 1, 2.5, 2.5 against 1, 2, 3: covariance 1.5 over sqrt(1.5 x 2)
    assert rank_correlation([1, 2, 2], [1, 2, 3]) == pytest.approx(1.5 / 3**0.5)
    assert rank_correlation([1, 1, 1], [1, 2, 3]) is None


@given(st.lists(st.integers(-1000, 1000), min_size=3, max_size=20, unique=True))
def test_any_rising_change_of_scale_keeps_the_order(values):
    assert rank_correlation(values, [3.0 * each + 7.0 for each in values]) == pytest.approx(1.0)
    assert rank_correlation(values, [-each for each in values]) == pytest.approx(-1.0)


@pytest.mark.parametrize(("one", "other"), [([1, 2], [1, 2]), ([1, 2, 3], [1, 2])])
def test_too_few_or_unlike_numbers_of_values_are_refused(one, other):
    with pytest.raises(InputError, match="3 pairs at least"):
        rank_correlation(one, other)
