"""Laws of fair sharing, against a linear program, and worked examples."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from linkwise.errors import InputError
from linkwise.network.flows import Routes, finish_times_s, link_bytes, load_bound_s, max_min_rates


def _routes(paths, use=None):
    return Routes(
        links=np.array([link for path in paths for link in path], dtype=np.int64),
        starts=np.concatenate(([0], np.cumsum([len(path) for path in paths]))).astype(np.int64),
        **({} if use is None else {"use": np.array(use, dtype=np.float64)}),
    )


@st.composite
def instances(draw, most_flows=24):
    """Routes over a few links of uneven capacity."""
    links = draw(st.integers(1, 8))
    path = st.lists(st.integers(0, links - 1), min_size=1, max_size=4, unique=True)
    paths = draw(st.lists(path, min_size=1, max_size=most_flows))
    capacity = draw(st.lists(st.integers(1, 100), min_size=links, max_size=links))
    return _routes(paths), np.array(capacity, dtype=np.float64)


def _fair_by_linear_programs(routes, capacity):
    """Raise the least rate as far as it goes, fix those that cannot go further, and repeat (HiGHS)."""
    flows, links = routes.count, len(capacity)
    crosses = np.zeros((links, flows))
    crosses[routes.links, routes.flow_of_hop] += routes.use
    rates = np.full(flows, np.nan)
    while np.isnan(rates).any():
        fixed = ~np.isnan(rates)
        room = capacity - crosses[:, fixed] @ rates[fixed]
        free = np.flatnonzero(~fixed)
        # variables: the free rates, then their least
        bound = np.hstack((-np.eye(len(free)), np.ones((len(free), 1))))
        upper = np.vstack((np.hstack((crosses[:, free], np.zeros((links, 1)))), bound))
        right = np.concatenate((np.maximum(room, 0.0), np.zeros(len(free))))
        most = linprog(np.append(np.zeros(len(free)), -1.0), A_ub=upper, b_ub=right).x[-1]
        for place, flow in enumerate(free):
            aim = np.zeros(len(free))
            aim[place] = -1.0
            best = linprog(
                aim, A_ub=crosses[:, free], b_ub=np.maximum(room, 0.0), bounds=[(most * (1 - 1e-12), None)]
            )
            if best.status != 0 or best.x[place] <= most * (1.0 + 1e-7):
                rates[flow] = most
    return rates


@settings(max_examples=60, deadline=None)
@given(instances(most_flows=10))
def test_max_min_rates_are_those_of_linear_programs(instance):
    routes, capacity = instance
    np.testing.assert_allclose(
        max_min_rates(routes, capacity), _fair_by_linear_programs(routes, capacity), rtol=1e-9
    )


@given(instances())
def test_each_flow_has_a_full_link_on_which_none_is_faster(instance):
    routes, capacity = instance
    rates = max_min_rates(routes, capacity)
    load = link_bytes(routes, rates, len(capacity))
    assert np.all(load <= capacity * (1.0 + 1e-9))
    fastest = np.zeros(len(capacity))
    np.maximum.at(fastest, routes.links, rates[routes.flow_of_hop])
    full = load[routes.links] >= capacity[routes.links] * (1.0 - 1e-9)
    first = rates[routes.flow_of_hop] >= fastest[routes.links] * (1.0 - 1e-9)
    assert np.all(np.logical_or.reduceat(full & first, routes.starts[:-1]))


@given(instances())
def test_load_bound_is_the_time_of_equal_flows_that_share_fairly(instance):
    routes, capacity = instance
    sizes = np.full(routes.count, 7.0)
    ends = finish_times_s(routes, sizes, capacity)
    assert ends.max() == pytest.approx(load_bound_s(routes, sizes, capacity), rel=1e-9)


@given(instances(), st.data())
def test_no_schedule_beats_the_load_bound(instance, data):
    routes, capacity = instance
    sizes = data.draw(st.lists(st.floats(1, 1e6), min_size=routes.count, max_size=routes.count))
    ends = finish_times_s(routes, np.array(sizes), capacity)
    assert ends.max() >= load_bound_s(routes, np.array(sizes), capacity) * (1.0 - 1e-9)


@given(instances())
def test_twice_the_capacity_takes_half_the_time(instance):
    routes, capacity = instance
    sizes = np.arange(1.0, routes.count + 1.0)
    np.testing.assert_allclose(
        2.0 * finish_times_s(routes, sizes, 2.0 * capacity),
        finish_times_s(routes, sizes, capacity),
        rtol=1e-9,
    )


@given(instances())
def test_an_idle_link_changes_nothing(instance):
    routes, capacity = instance
    with_idle = np.append(capacity, 1.0)
    np.testing.assert_array_equal(max_min_rates(routes, with_idle), max_min_rates(routes, capacity))


def test_a_flow_over_two_links_leaves_to_others_what_it_cannot_use():
    # links of 10 and 4: flow 0 crosses both, flow 1 the first, flow 2 the second
    routes = _routes([[0, 1], [0], [1]])
    capacity = np.array([10.0, 4.0])
    np.testing.assert_allclose(max_min_rates(routes, capacity), [2.0, 8.0, 2.0])
    # of 8 bytes each: flow 1 ends first, then flows 0 and 2 together
    np.testing.assert_allclose(finish_times_s(routes, np.full(3, 8.0), capacity), [4.0, 1.0, 4.0])


def test_a_ring_is_as_slow_as_the_link_that_most_of_its_hops_cross():
    # one ring of three hops, two of them over link 0, beside a flow on link 0
    ring = _routes([[0], [0], [1]]).joined(3)
    both = Routes(links=np.append(ring.links, 0), starts=np.array([0, 3, 4]), use=np.ones(4))
    np.testing.assert_allclose(max_min_rates(both, np.array([9.0, 9.0])), [3.0, 3.0])


def test_ends_that_lie_close_may_be_merged():
    routes = _routes([[0]] * 50)
    sizes = np.linspace(1.0, 2.0, 50)
    exact = finish_times_s(routes, sizes, np.array([1.0]))
    merged = finish_times_s(routes, sizes, np.array([1.0]), merge_fraction=0.01)
    np.testing.assert_allclose(merged, exact, rtol=0.02)


def test_nothing_to_send_takes_no_time():
    empty = Routes(links=np.zeros(0, dtype=np.int64), starts=np.zeros(1, dtype=np.int64))
    assert load_bound_s(empty, np.zeros(0), np.ones(1)) == 0.0
    assert finish_times_s(empty, np.zeros(0), np.ones(1)).size == 0


@pytest.mark.parametrize(
    ("links", "starts", "words"),
    [
        ([0, 1], [0, 1], "starts must run"),
        ([0], [0, 1, 1], "flow 1 crosses no link"),
        ([-1], [0, 1], "counted from 0"),
    ],
)
def test_routes_that_are_none_are_refused(links, starts, words):
    with pytest.raises(InputError, match=words):
        Routes(links=np.array(links), starts=np.array(starts))


def test_flows_that_make_no_rings_are_refused():
    with pytest.raises(InputError, match="no multiple of 2"):
        _routes([[0], [0], [0]]).joined(2)


SIMULATED = json.loads((Path(__file__).parents[1] / "data" / "simgrid_flows.json").read_text())["cases"]


def _simulated(kind):
    return [case for case in SIMULATED if case["kind"] == kind]


@pytest.mark.parametrize("case", _simulated("flows"))
def test_finish_times_are_those_of_simgrid(case):
    """120 flows over 24 links of uneven capacity, each flow's end (tools/simgrid_flows.py)."""
    ends = finish_times_s(_routes(case["paths"]), np.array(case["bytes"]), np.array(case["capacity"]))
    np.testing.assert_allclose(ends, case["end_s"], rtol=1e-9)


@pytest.mark.parametrize("case", _simulated("rings"))
def test_rings_end_when_those_of_simgrid_do_chunk_by_chunk(case):
    """12 rings of 8 hops; every rank waits for the chunk of its neighbour (tools/simgrid_flows.py)."""
    rings = _routes(case["paths"]).joined(case["members"])
    ends = finish_times_s(rings, np.full(rings.count, case["bytes"]), np.array(case["capacity"]))
    assert ends.max() == pytest.approx(case["end_s"], rel=1e-6)
