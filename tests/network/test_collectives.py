"""Closed forms against values worked by hand, and against what nccl-tests calls bus bandwidth."""

import numpy as np
import pytest

from linkwise.network.collectives import (
    all_to_all_s,
    nvls_all_reduce_s,
    ring_all_gather_s,
    ring_all_reduce_s,
    ring_pass_bytes,
    tree_all_reduce_s,
)

GB = 1e9


def one(value):
    return np.array([float(value)])


def test_ring_pass_sends_all_but_its_own_share():
    assert ring_pass_bytes(one(8), one(8 * GB)) == pytest.approx(7 * GB)


def test_ring_all_gather_of_eight_ranks():
    # 7 steps of 2 us, and 7/8 of 4 GB at 100 GB/s
    time_s = ring_all_gather_s(one(8), one(4 * GB), one(100 * GB), one(2e-6))
    assert time_s == pytest.approx(7 * 2e-6 + 3.5 / 100)


@pytest.mark.parametrize("size", [2, 3, 8, 72])
def test_ring_all_reduce_reaches_the_link_as_bus_bandwidth(size):
    # nccl-tests, doc/PERFORMANCE.md: busbw of an all-reduce = S/t * 2(n-1)/n
    time_s = ring_all_reduce_s(one(size), one(GB), one(450 * GB), one(0))
    assert GB / time_s * 2 * (size - 1) / size == pytest.approx(450 * GB)


def test_ring_of_one_rank_takes_no_time():
    assert ring_all_reduce_s(one(1), one(GB), one(450 * GB), one(1e-6)) == 0


def test_tree_all_reduce_crosses_two_domains_once_and_more_twice():
    def across_s(domains):
        size = one(8 * domains)
        return tree_all_reduce_s(size, one(8), one(GB), one(450 * GB), one(50 * GB), one(0))

    assert across_s(2) == pytest.approx(1 / 50)
    assert across_s(4) == across_s(64) == pytest.approx(2 / 50)


def test_tree_all_reduce_in_one_domain_is_the_ring_in_it():
    time_s = tree_all_reduce_s(one(8), one(8), one(GB), one(450 * GB), one(50 * GB), one(0))
    assert time_s == pytest.approx(2 * 7 / 8 / 450)


def test_tree_latency_grows_with_the_logarithm():
    # 2 ceil(log2 1024) levels of 5 us
    time_s = tree_all_reduce_s(one(1024), one(8), one(0), one(450 * GB), one(50 * GB), one(5e-6))
    assert time_s == pytest.approx(20 * 5e-6)


def test_all_to_all_over_two_nodes_waits_for_the_nics():
    # of 16 GB half leaves the node at 50 GB/s; 7/16 stays in it at 450 GB/s, meanwhile
    time_s = all_to_all_s(one(16), one(8), one(16 * GB), one(450 * GB), one(50 * GB), one(1e-5))
    assert time_s == pytest.approx(8 / 50 + 1e-5)


def test_all_to_all_of_one_rank_takes_no_time():
    assert all_to_all_s(one(1), one(1), one(GB), one(450 * GB), one(50 * GB), one(1e-5)) == 0


def test_no_ring_beats_the_bytes_over_the_narrowest_cut():
    # whoever cuts a ring in two has to carry S/2 of an all-reduce each way, at least once
    size = np.arange(2.0, 600.0)
    assert np.all(ring_all_reduce_s(size, one(GB), one(50 * GB), one(0)) >= 0.5 / 50)


@pytest.mark.parametrize(
    ("ranks", "bus_gb_per_s"), [(4, 370.0), (5, 420.0), (6, 440.0), (7, 460.0), (8, 480.0)]
)
def test_nvls_all_reduce_gives_the_bus_bandwidth_published_for_h100(ranks, bus_gb_per_s):
    # NCCL issue 1455: all-reduce bus bandwidth of H100 SXM by number of GPUs, NVLS on.
    buffer = np.array([1e9])
    seconds = nvls_all_reduce_s(np.array([float(ranks)]), buffer, np.array([0.687 * 450e9]))
    bus = 2.0 * (ranks - 1.0) / ranks * buffer / seconds / 1e9
    assert bus[0] == pytest.approx(bus_gb_per_s, rel=0.02)
