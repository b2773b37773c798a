"""Shares of links up that groups use, and the slowdown, against flows on explicit links."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.network.contention import (
    exchange_crossing_fraction,
    hop_crossing_fraction,
    ring_crossing_fraction,
    slowdown,
)
from linkwise.network.fat_tree import FatTree
from linkwise.network.flows import load_bound_s

NIC = 50e9


def _array(*values):
    return [np.array([float(value)]) for value in values]


def _ring(size, stride, gpus=8192, *, local=1, below=256):
    return float(ring_crossing_fraction(*_array(size, size * stride, local, below, gpus))[0])


def _slowdown(crossing, *, down=32, up=32, sets=256, pairs=0, at_once=1):
    return float(slowdown(*_array(crossing, down, up, sets, pairs), at_once=at_once)[0])


def _loads(gpus, stride, size, *, pairs=1, up=32, seeds=20):
    """Return the load of the worst link of rings over rails, in units of what a NIC carries, by seed."""
    tree = FatTree(
        gpus=gpus,
        gpus_per_node=8,
        down=32,
        up=up,
        leaves_per_pod=256,
        rail_optimized=True,
        link_bytes_per_s=NIC,
    )
    source = np.arange(gpus)
    place, offset = source % (size * stride) // stride, source - source % (size * stride) + source % stride
    target = offset + (place + 1) % size * stride
    key = np.repeat(np.arange(pairs), gpus)
    many = [np.tile(each, pairs) for each in (source, target)]
    sizes = np.full(gpus * pairs, NIC / pairs)
    return [load_bound_s(tree.routes(*many, key, seed=seed), sizes, tree.capacities) for seed in range(seeds)]


def test_rings_leave_a_set_over_as_many_links_as_groups_lie_in_it():
    assert _ring(1024, 8) == 1 / 32  # node after node: one ring of each rail leaves the 32 nodes of a leaf
    assert _ring(64, 128) == 0.5  # every 16th node: 16 rings of a rail leave it
    assert _ring(16, 512) == 1.0  # every 64th node: no two ranks of a ring are below one leaf
    assert _ring(32, 8) == 0.0  # the ring lies below one leaf
    assert _ring(48, 8, gpus=8064) == 2 / 32  # two rings meet below some leaf
    assert _ring(1000, 8, gpus=8000) == 1 / 32  # one ring is all there is


def test_hops_of_stages_leave_a_set_at_its_end():
    assert hop_crossing_fraction(*_array(16, 8192, 1, 256, 8192))[0] == 1.0
    assert hop_crossing_fraction(*_array(16, 1024, 1, 256, 8192))[0] == 64 / 256
    assert hop_crossing_fraction(*_array(4, 256, 1, 256, 8192))[0] == 0.0


def test_exchanges_leave_a_set_with_the_peers_outside_it():
    assert exchange_crossing_fraction(*_array(64, 512, 1, 256, 8192))[0] == pytest.approx(32 / 63)
    assert exchange_crossing_fraction(*_array(64, 64, 8, 256, 8192))[0] == 0.0
    assert exchange_crossing_fraction(*_array(512, 512, 8, 256, 8192))[0] == pytest.approx(256 / 504)


def test_even_spreading_costs_what_crosses_times_the_oversubscription():
    assert _slowdown(1.0, up=8) == 4.0
    assert _slowdown(0.5, up=8) == 2.0
    assert _slowdown(1 / 32, up=8) == 1.0
    assert _slowdown(0.0, pairs=1) == 1.0


@pytest.mark.parametrize(("gpus", "pairs"), [(8192, 1), (8192, 4), (65536, 1)])
@pytest.mark.parametrize(("stride", "size"), [(128, 64), (512, 16)])
def test_hashes_cost_what_flows_on_explicit_links_do(gpus, pairs, stride, size):
    """Mean over seeds of the load bound, within 12 %: three standard errors of 20 seeds and the cores."""
    crossing = _ring(size, stride, gpus=gpus)
    leaves = gpus // 32
    drawn = np.mean(_loads(gpus, stride, size, pairs=pairs))
    assert _slowdown(crossing, sets=leaves, pairs=pairs) == pytest.approx(drawn, rel=0.12)


@pytest.mark.parametrize("up", [4, 8, 16])
def test_oversubscribed_hashes_cost_what_flows_on_explicit_links_do(up):
    drawn = np.mean(_loads(4096, 128, 32, up=up))
    assert _slowdown(0.5, up=up, sets=128, pairs=1) == pytest.approx(drawn, rel=0.12)


def test_many_flows_take_the_law_of_independent_counts():
    """2,000 flows are counted exactly, 2,048 by Poisson counts; the two agree within 1 %."""
    exact = _slowdown(1.0, down=500, up=64, sets=100, pairs=4)
    near = _slowdown(1.0, down=512, up=64, sets=100, pairs=4)
    assert near / exact == pytest.approx(512 / 500, rel=0.01)


@given(
    crossing=st.integers(1, 32).map(lambda links: links / 32),
    up=st.integers(1, 64),
    sets=st.integers(1, 512),
    pairs=st.sampled_from([0, 1, 2, 8]),
)
def test_sharing_never_makes_faster_and_hashes_never_beat_even_spreading(crossing, up, sets, pairs):
    even = _slowdown(crossing, up=up, sets=sets)
    hashed = _slowdown(crossing, up=up, sets=sets, pairs=pairs)
    assert 1.0 <= even <= hashed + 1e-12
    assert _slowdown(crossing, up=up, sets=sets, pairs=pairs, at_once=8) <= 1.02 * hashed


@given(
    size=st.integers(2, 64),
    stride=st.integers(1, 64),
    nodes=st.integers(1, 8),
    local=st.sampled_from([1, 2, 8]),
)
def test_shares_are_shares(size, stride, nodes, local):
    span, below = size * stride, 8 * nodes
    for share in (ring_crossing_fraction, hop_crossing_fraction, exchange_crossing_fraction):
        value = float(share(*_array(size, span, min(local, size), below, 64 * span))[0])
        assert 0.0 <= value <= 1.0
