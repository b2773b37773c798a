"""Ranks that are slow, or no longer with the others."""

import math
from collections import deque

from linkwise.monitor.job_steps import Rank
from linkwise.monitor.stragglers import stragglers_of


def _ranks(times, *, last=100, at_s=0.0):
    return {
        str(number): Rank(name=str(number), last_step=last, at_s=at_s, times_s=deque([time_s] * 32))
        for number, time_s in enumerate(times)
    }


def _found(ranks, *, last=100, now_s=0.0, patience_s=10.0):
    return [each.name for each in stragglers_of(ranks, last_step=last, now_s=now_s, patience_s=patience_s)]


def test_one_slow_rank_among_sixteen_is_found_alone():
    times = [1.0 + 0.002 * (number % 5) for number in range(16)]
    times[11] = 1.15
    assert _found(_ranks(times)) == ["11"]


def test_ranks_that_are_alike_are_no_stragglers():
    assert _found(_ranks([1.0 + 0.002 * (number % 5) for number in range(16)])) == []


def test_among_few_a_tenth_more_is_slow():
    assert _found(_ranks([1.0, 1.01, 1.3])) == ["2"]
    assert _found(_ranks([1.0, 1.01, 1.05])) == []


def test_of_two_neither_can_be_called_slow():
    assert _found(_ranks([1.0, 2.0])) == []


def test_a_rank_that_fell_silent_is_found_after_its_patience():
    ranks = _ranks([1.0] * 4)
    ranks["2"].last_step = 90
    ranks["2"].at_s = 100.0
    for name in ("0", "1", "3"):
        ranks[name].at_s = 120.0
    assert _found(ranks, now_s=105.0) == []
    assert _found(ranks, now_s=120.0) == ["2"]
    assert _found(ranks, now_s=120.0, patience_s=math.inf) == []


def test_one_step_behind_is_no_matter():
    ranks = _ranks([1.0] * 4)
    ranks["2"].last_step = 99
    assert _found(ranks, now_s=1000.0) == []
