"""The law of the fullest link against counting by hand, and what is drawn."""

import itertools
from collections import Counter

import numpy as np
import pytest

from linkwise.cluster import FabricKind
from linkwise.network.clos import wire
from linkwise.network.collisions import collisions_of, exact_law, leaf_law, leaving_permutation, most_loaded


def fabric(nodes, **more):
    return wire(kind=FabricKind.RAIL_OPTIMIZED, nodes=nodes, nics=8, ports=64, **more)


@pytest.mark.parametrize(("flows", "links"), [(1, 1), (1, 4), (3, 2), (5, 3), (6, 4)])
def test_law_is_that_of_all_placements_counted(flows, links):
    counted = Counter(max(Counter(each).values()) for each in itertools.product(range(links), repeat=flows))
    law = exact_law(flows=flows, links=links)
    total = links**flows
    assert law.mean == pytest.approx(sum(k * many for k, many in counted.items()) / total)
    assert law.first == min(counted)
    at_most_first = sum(many for k, many in counted.items() if k <= law.first) / total
    assert law.cumulative[0] == pytest.approx(at_most_first)


def test_quantile_is_not_exceeded_with_its_chance():
    # two flows on two links: one each or both on one, as likely
    law = exact_law(flows=2, links=2)
    assert (law.quantile(0.5), law.quantile(0.51), law.mean) == (1, 2, pytest.approx(1.5))


def test_law_of_leaves_that_differ_counts_each():
    # 33 nodes: groups of 17 and 16 nodes on 16 leaves
    wiring = fabric(33)
    law = leaf_law(wiring)
    chance = exact_law(flows=17, links=wiring.up_links).cumulative
    assert law.mean > exact_law(flows=17, links=wiring.up_links, repeats=8).mean
    assert law.cumulative[-1] == pytest.approx(1.0)
    assert len(chance)


def test_fabric_of_one_switch_has_no_collisions():
    found = collisions_of(fabric(4), queue_pairs=1)
    assert (found.mean, found.exact_p95, found.seeds) == (1.0, 1.0, 0)


def test_more_queue_pairs_collide_less_and_same_seeds_give_the_same():
    few, many = (collisions_of(fabric(64), queue_pairs=pairs) for pairs in (1, 8))
    assert many.mean < few.mean
    assert collisions_of(fabric(64), queue_pairs=1) == few


def test_oversubscribed_leaf_is_compared_with_itself_evenly_loaded():
    plain, narrow = fabric(128), fabric(128, oversubscription=4.0)
    assert 1.0 < collisions_of(narrow, queue_pairs=1).mean < collisions_of(plain, queue_pairs=1).mean


def test_too_many_flows_are_not_drawn():
    found = collisions_of(fabric(2048), queue_pairs=256)
    assert (found.seeds, found.mean) == (0, None)
    assert found.exact_mean == pytest.approx(1.25, abs=0.01)


def test_permutation_leaves_every_leaf():
    leaf = np.repeat(np.arange(4), 8)
    target = leaving_permutation(leaf, np.random.default_rng(7))
    assert sorted(target) == list(range(32))
    assert not np.any(leaf == leaf[target])


def test_flows_that_stay_on_their_leaf_load_no_link():
    leaf = np.zeros(8, dtype=np.int64)
    assert most_loaded(fabric(64), leaf, leaf, np.random.default_rng(0)).every == 0
