"""Ratios of pairs, and how an interval lies to a bar."""

import random

import pytest

from linkwise.errors import InputError
from linkwise.evidence.comparison import Standing, ratio_interval, standing


def test_a_shift_of_both_sides_of_a_pair_leaves_the_ratio():
    shifts = [1.0, 1.3, 0.7, 2.0, 1.1, 0.9, 1.6]
    found = ratio_interval([1.05 * shift for shift in shifts], shifts)
    assert found.low == pytest.approx(1.05)
    assert found.high == pytest.approx(1.05)


def test_interval_holds_the_true_ratio_as_often_as_it_says():
    source = random.Random(3)
    held = 0
    for _ in range(1000):
        pairs = [(1.02 * source.lognormvariate(0, 0.05), source.lognormvariate(0, 0.05)) for _ in range(15)]
        found = ratio_interval([one for one, _ in pairs], [other for _, other in pairs])
        held += found.low <= 1.02 <= found.high
    assert 0.945 <= held / 1000 <= 0.985  # 96.5 %, three standard errors


@pytest.mark.parametrize(
    ("samples", "bar", "expected"),
    [
        ([1.0, 1.0, 1.0, 1.0, 1.0], 1.03, Standing.BELOW),
        ([1.04, 1.1, 1.2, 1.05, 1.3], 1.03, Standing.ABOVE),
        ([1.0, 1.1, 1.2, 1.05, 1.3], 1.03, Standing.ACROSS),
        ([1.03, 1.03, 1.03, 1.03, 1.03], 1.03, Standing.ACROSS),
    ],
)
def test_standing_needs_the_whole_interval(samples, bar, expected):
    assert standing(ratio_interval(samples, [1.0] * 5), bar) is expected


@pytest.mark.parametrize(
    ("candidate", "control", "message"),
    [
        ([1.0] * 5, [1.0] * 6, "pairs"),
        ([1.0] * 5, [0.0] * 5, "above zero"),
        ([1.0] * 4, [1.0] * 4, "at least 5"),
    ],
)
def test_samples_that_are_no_pairs_are_refused(candidate, control, message):
    with pytest.raises(InputError, match=message):
        ratio_interval(candidate, control)
