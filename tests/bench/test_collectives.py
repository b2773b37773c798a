"""Sizes that ranks are told, and what is made of what they said."""

import pytest

from linkwise.bench.collectives import CollectivesPlan, measured_sizes, whole_size_bytes
from linkwise.bench.sampling import Sampling
from linkwise.errors import InputError


@pytest.mark.parametrize(
    ("operation", "size", "ranks", "whole"),
    # As nccl-tests: all_reduce rounds down to an element, all_gather to an element of each rank; never to nothing.
    [
        ("all_reduce", 10, 3, 8),
        ("all_gather", 1024, 3, 1020),
        ("all_to_all", 1, 8, 32),
        ("broadcast", 1, 8, 4),
    ],
)
def test_sizes_are_cut_into_whole_elements(operation, size, ranks, whole):
    assert whole_size_bytes(operation, size, ranks) == whole


def test_sizes_that_become_equal_are_measured_once():
    plan = CollectivesPlan(operations=("all_gather",), sizes_bytes=(8, 16, 32, 64))
    assert plan.told(8)["sizes_bytes"] == {"all_gather": [32, 64]}


def test_one_rank_sends_to_nobody():
    plan = CollectivesPlan(operations=("all_reduce", "send_recv"), sizes_bytes=(8,))
    with pytest.raises(InputError, match="two ranks"):
        plan.told(1)
    assert CollectivesPlan(operations=("all_reduce",), sizes_bytes=(8,)).told(1)["repeats"] == 9


@pytest.mark.parametrize("repeats", [0, 1, 4, 1001])
def test_too_few_or_absurdly_many_repeats_are_refused(repeats):
    with pytest.raises(InputError, match=f"--repeats {repeats}"):
        Sampling(repeats=repeats)


def events(samples, wrong=0):
    named = {"operation": "all_reduce", "size_bytes": 1024}
    yield {"event": "begin", **named}
    for sample in samples:
        yield {"event": "sample", **named, "calls": 3, "time_s": sample, "first_s": sample / 2}
    if wrong is not None:
        yield {"event": "checked", **named, "wrong": wrong}


def test_samples_are_kept_and_summed_up_by_their_median():
    (found,) = measured_sizes(events([3.0, 1.0, 2.0, 5.0, 4.0], wrong=2))
    assert found.samples_s == (3.0, 1.0, 2.0, 5.0, 4.0)
    assert (found.time_s.median, found.time_s.low, found.time_s.high) == (3.0, 1.0, 5.0)
    assert (found.calls, found.wrong) == (3, 2)
    assert found.busbw_factor(4) == 1.5


def test_a_size_that_was_not_finished_has_samples_and_no_median():
    (found,) = measured_sizes(events([1.0, 2.0], wrong=None))
    assert (found.samples_s, found.time_s, found.wrong) == ((1.0, 2.0), None, None)


@pytest.mark.parametrize("sample", [0, -1.0, "x", None, True, float("nan"), 1e30])
def test_a_time_that_is_none_is_refused(sample):
    with pytest.raises(InputError, match="no time"):
        measured_sizes([{"event": "sample", "operation": "all_reduce", "size_bytes": 8, "time_s": sample}])
