"""Routes on a fat tree: laws, and loads of hashed flows against the exact law and published runs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.errors import InputError
from linkwise.network.fat_tree import FatTree
from linkwise.network.flows import load_bound_s

MEBI = 2**20


def _tree(gpus, *, rail_optimized=False, gpus_per_node=8, up=32):
    """Switches of 64 ports and links of 400 Gbit/s."""
    return FatTree(
        gpus=gpus,
        gpus_per_node=gpus_per_node,
        down=32,
        up=up,
        leaves_per_pod=32,
        rail_optimized=rail_optimized,
        link_bytes_per_s=50e9,
    )


def _shift(gpus, by):
    source = np.arange(gpus)
    return source, (source + by) % gpus


@st.composite
def pairs(draw):
    tree = _tree(8 * draw(st.integers(2, 600)), rail_optimized=draw(st.booleans()))
    source = draw(st.integers(0, tree.gpus - 1))
    target = draw(st.integers(0, tree.gpus - 1).filter(lambda gpu: gpu != source))
    return tree, np.array([source]), np.array([target]), draw(st.integers(0, 9))


@given(pairs())
def test_a_route_goes_up_as_far_as_it_must(instance):
    tree, source, target, seed = instance
    routes = tree.routes(source, target, np.zeros(1, dtype=np.int64), seed=seed)
    from_leaf, to_leaf = tree.leaf_of(source)[0], tree.leaf_of(target)[0]
    same_pod = from_leaf // tree.leaves_per_pod == to_leaf // tree.leaves_per_pod
    assert len(routes.links) == (2 if from_leaf == to_leaf else 4 if same_pod else 6)
    assert np.all(routes.links < tree.family_sizes.sum())
    family = np.searchsorted(np.cumsum(tree.family_sizes), routes.links, side="right")
    assert list(family) == {2: [0, 5], 4: [0, 1, 4, 5], 6: [0, 1, 2, 3, 4, 5]}[len(routes.links)]


@given(pairs())
def test_the_way_back_crosses_none_of_the_same_links(instance):
    tree, source, target, seed = instance
    key = np.zeros(1, dtype=np.int64)
    there = tree.routes(source, target, key, seed=seed)
    back = tree.routes(target, source, key, seed=seed)
    assert not set(there.links) & set(back.links)


def test_rails_keep_a_ring_of_equal_ranks_on_one_leaf():
    tree = _tree(256, rail_optimized=True)
    source, target = _shift(256, 8)
    routes = tree.routes(source, target, np.zeros(256, dtype=np.int64), seed=0)
    assert len(routes.links) == 2 * 256


@pytest.mark.parametrize(
    ("gpus", "megabytes", "seconds"),
    [(64, 64, 2.642412e-3), (64, 1024, 42.278584e-3), (512, 1024, 42.865787e-3)],
)
def test_ring_all_reduce_takes_what_a_simulator_of_flows_gives(gpus, megabytes, seconds):
    """Steps of a ring on 400 Gbit/s without collisions; figures of SimGrid 3.32, all printed digits."""
    tree = _tree(gpus, gpus_per_node=1, rail_optimized=True)
    source, target = _shift(gpus, 1)
    routes = tree.routes(source, target, np.zeros(gpus, dtype=np.int64), seed=0)
    sizes = np.full(gpus, megabytes * MEBI / gpus)
    steps = 2 * (gpus - 1)
    assert steps * load_bound_s(routes, sizes, tree.capacities) == pytest.approx(seconds, rel=1e-6)


@pytest.mark.parametrize(("queue_pairs", "worst"), [(1, 6.95), (4, 3.431), (16, 2.108)])
def test_the_worst_link_of_hashed_flows_has_the_load_that_was_measured(queue_pairs, worst):
    """8,192 GPUs, each sends to another pod: load of the worst link, mean over seeds, within 12 %."""
    tree = _tree(8192)
    source, target = _shift(8192, 1024)
    key = np.repeat(np.arange(queue_pairs), 8192)
    sizes = np.full(8192 * queue_pairs, 50e9 / queue_pairs)
    loads = [
        load_bound_s(
            tree.routes(np.tile(source, queue_pairs), np.tile(target, queue_pairs), key, seed=seed),
            sizes,
            tree.capacities,
        )
        for seed in range(20)
    ]
    assert np.mean(loads) == pytest.approx(worst, rel=0.12)


@pytest.mark.parametrize(
    ("gpus", "queue_pairs", "times_ideal"),
    [(8192, 1, 4.55), (8192, 4, 2.23), (65536, 1, 5.35), (65536, 4, 2.58)],
)
def test_gradient_rings_of_pipeline_stages_collide_as_often_as_was_measured(gpus, queue_pairs, times_ideal):
    """Tensor 8 in the node, 16 stages on nodes that follow one another, rings of equal rails: mean over seeds."""
    tree = _tree(gpus, rail_optimized=True)
    source, target = _shift(gpus, 16 * 8)
    key = np.repeat(np.arange(queue_pairs), gpus)
    sizes = np.full(gpus * queue_pairs, 50e9 / queue_pairs)
    many = [np.tile(each, queue_pairs) for each in (source, target)]
    loads = [load_bound_s(tree.routes(*many, key, seed=seed), sizes, tree.capacities) for seed in range(20)]
    assert np.mean(loads) == pytest.approx(times_ideal, rel=0.12)


def test_more_uplinks_than_flows_still_collide_and_oversubscription_is_paid():
    source, target = _shift(8192, 1024)
    key = np.zeros(8192, dtype=np.int64)
    sizes = np.full(8192, 1e9)
    whole, half = _tree(8192), _tree(8192, up=16)
    assert load_bound_s(half.routes(source, target, key, seed=1), sizes, half.capacities) > load_bound_s(
        whole.routes(source, target, key, seed=1), sizes, whole.capacities
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gpus": 0}, "1 or more"),
        ({"gpus": 12}, "no multiple of the 8 of a node"),
        ({"rail_optimized": True, "leaves_per_pod": 12}, "no multiple of the 8 rails"),
        ({"down": 20}, "no multiple of the 8 GPUs of a node"),
    ],
)
def test_a_fat_tree_that_cannot_be_wired_is_refused(change, words):
    figures = {
        "gpus": 64,
        "gpus_per_node": 8,
        "down": 32,
        "up": 32,
        "leaves_per_pod": 32,
        "rail_optimized": False,
        "link_bytes_per_s": 50e9,
    }
    with pytest.raises(InputError, match=words):
        FatTree(**{**figures, **change})
