import itertools
import math

import numpy as np
import pytest
import scipy.stats

from linkwise.errors import InputError
from linkwise.evidence.median import median_interval
from linkwise.evidence.ranked import _normal, _rank_sums, _signed_ranks, of_one, of_pairs, of_two


@pytest.mark.parametrize("count", [5, 6, 9, 15, 30])
def test_of_one_is_the_interval_by_order_statistics(count):
    samples = np.random.default_rng(count).normal(100, 3, count).tolist()
    assert of_one(samples).interval() == median_interval(samples)


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_chances_of_signed_ranks_are_those_of_all_sign_patterns(count):
    sums = [sum(r for r, s in zip(range(1, count + 1), signs, strict=True) if s)
            for signs in itertools.product((0, 1), repeat=count)]  # fmt: skip
    for k, chance in enumerate(_signed_ranks(count)):
        assert chance == pytest.approx(sum(each <= k for each in sums) / 2**count)


@pytest.mark.parametrize(("few", "many"), [(2, 3), (3, 3), (4, 5)])
def test_chances_of_rank_sums_are_those_of_all_arrangements(few, many):
    totals = [sum(place - k for k, place in enumerate(chosen))
              for chosen in itertools.combinations(range(few + many), few)]  # fmt: skip
    for k, chance in enumerate(_rank_sums(few, many)):
        assert chance == pytest.approx(sum(each <= k for each in totals) / math.comb(few + many, few))


def test_chance_of_pairs_is_the_exact_test_of_wilcoxon():
    ratios = np.exp(np.random.default_rng(7).normal(0.01, 0.03, 12))
    found = of_pairs(ratios.tolist()).chance_if_at_least(1.02)
    judged = scipy.stats.wilcoxon(np.log(ratios / 1.02), alternative="less", method="exact")
    assert found == pytest.approx(judged.pvalue)


def test_chance_of_two_samples_is_the_exact_test_of_mann_and_whitney():
    draw = np.random.default_rng(8)
    ours, theirs = np.exp(draw.normal(0.0, 0.03, 9)), np.exp(draw.normal(0.01, 0.03, 14))
    found = of_two(ours.tolist(), theirs.tolist())
    for bar in (0.97, 1.0, 1.02):
        less = scipy.stats.mannwhitneyu(ours, theirs * bar, alternative="less", method="exact")
        more = scipy.stats.mannwhitneyu(ours, theirs * bar, alternative="greater", method="exact")
        assert found.chance_if_at_least(bar) == pytest.approx(less.pvalue)
        assert found.chance_if_at_most(bar) == pytest.approx(more.pvalue)


@pytest.mark.parametrize("count", [5, 7, 15])
def test_intervals_cover_as_often_as_they_say(count):
    draw = np.random.default_rng(count)
    trials, held = 4000, {"pairs": 0, "two": 0}
    for _ in range(trials):
        noise = np.where(draw.random((3, count)) < 0.1, 0.88, 1) * np.exp(draw.normal(0, 0.03, (3, count)))
        pairs = of_pairs((0.97 * noise[0] / noise[1]).tolist()).interval()
        two = of_two((0.97 * noise[0]).tolist(), noise[2].tolist()).interval()
        held["pairs"] += pairs.low <= 0.97 <= pairs.high
        held["two"] += two.low <= 0.97 <= two.high
    # Four standard deviations of a share of 4,000.
    for share, stated in ((held["pairs"], pairs.coverage_fraction), (held["two"], two.coverage_fraction)):
        assert share / trials == pytest.approx(stated, abs=4 * math.sqrt(0.05 * 0.95 / trials))


def test_normal_curve_takes_over_where_counting_ends():
    exact, most = _signed_ranks(200), 200 * 201 // 2
    curve = _normal(most / 2, 200 * 201 * 401 / 24, most)
    assert np.abs(exact - curve).max() < 1e-3
    exact = _rank_sums(50, 50)
    assert np.abs(exact - _normal(1250, 2500 * 101 / 12, 2500)).max() < 1e-3


def test_ratio_of_what_is_no_number_is_the_worst():
    interval = of_pairs([1.0, 1.0, 1.0, math.inf, math.inf]).interval()
    assert interval.high > 1e200
    assert of_two([math.inf] * 5, [1.0] * 5).interval().low > 1e200


def test_too_few_or_negative_samples_are_refused():
    with pytest.raises(InputError, match="4 samples say too little"):
        of_pairs([1.0] * 4)
    with pytest.raises(InputError, match="below zero"):
        of_two([1.0] * 5, [1.0, 1.0, 1.0, 1.0, -1.0])
    with pytest.raises(InputError, match="no number"):
        of_one([1.0, 1.0, 1.0, 1.0, math.nan])
