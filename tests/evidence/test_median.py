"""The interval of the median: published coverages, hand-worked medians, and what is refused."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.errors import InputError
from linkwise.evidence.median import coverage_fraction, median_interval


@pytest.mark.parametrize(
    ("count", "dropped", "percent"),
    # 1 - 2 sum(C(n, i)) / 2^n by hand: 1 - 2/32, 1 - 2/64, 1 - 2 (1 + 9)/512, 1 - 2 (1 + 15 + 105 + 455)/32768
    [(5, 0, 93.75), (6, 0, 96.875), (9, 1, 96.09375), (15, 3, 96.484375)],
)
def test_coverage_is_that_of_the_binomial(count, dropped, percent):
    assert 100 * coverage_fraction(count, dropped) == pytest.approx(percent)


@pytest.mark.parametrize(
    ("count", "low", "high"), [(5, 1, 5), (6, 1, 6), (8, 1, 8), (9, 2, 8), (11, 2, 10), (15, 4, 12)]
)
def test_interval_ends_are_the_order_statistics_of_tables(count, low, high):
    # H. A. David, H. N. Nagaraja, Order Statistics, section 7.1: the narrowest of at least 95 %; n = 5 has none.
    found = median_interval([float(count - place) for place in range(count)])
    assert (found.low, found.high) == (low, high)


def test_median_of_even_and_odd_counts():
    assert median_interval([5.0, 1.0, 2.0, 9.0, 3.0]).median == 3.0
    assert median_interval([5.0, 1.0, 2.0, 9.0, 3.0, 4.0]).median == 3.5


@pytest.mark.parametrize(
    "samples", [[], [1.0] * 4, [1.0, 2.0, 3.0, 4.0, math.nan], [1.0, 2.0, 3.0, 4.0, math.inf]]
)
def test_too_few_samples_and_no_numbers_are_refused(samples):
    with pytest.raises(InputError, match=r"at least 5|no finite number"):
        median_interval(samples)


@given(st.lists(st.floats(-1e9, 1e9), min_size=5, max_size=60))
def test_interval_holds_the_median_and_covers_what_it_says(samples):
    found = median_interval(samples)
    assert min(samples) <= found.low <= found.median <= found.high <= max(samples)
    assert found.coverage_fraction >= (0.95 if len(samples) > 5 else 0.9375)
    assert found.count == len(samples)


@given(st.lists(st.floats(1e-6, 1e6), min_size=5, max_size=30), st.floats(0.1, 10))
def test_interval_scales_with_its_samples(samples, factor):
    one, other = median_interval(samples), median_interval([sample * factor for sample in samples])
    assert other.low == pytest.approx(one.low * factor)
    assert other.median == pytest.approx(one.median * factor)
