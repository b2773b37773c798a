"""Laws of every fabric that can be wired: ports, up-links, cables, cuts, failures."""

import itertools
from collections import Counter, defaultdict
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from linkwise.cluster import FabricKind
from linkwise.errors import InputError
from linkwise.network.bisection import bisection_bytes_per_s, full_bisection_bytes_per_s
from linkwise.network.cabling import Tier, cable_runs
from linkwise.network.clos import wire
from linkwise.network.failures import worst_failures
from linkwise.network.reach import reach_nodes
from linkwise.report.topology_drawing import topology_svg

LAWS = settings(max_examples=60, deadline=None)
KINDS = [
    FabricKind.SINGLE_SWITCH,
    FabricKind.LEAF_SPINE,
    FabricKind.FAT_TREE,
    FabricKind.RAIL_OPTIMIZED,
    FabricKind.RAIL_ONLY,
    FabricKind.DRAGONFLY_PLUS,
]


@st.composite
def fabrics(draw, most_nodes=150, kinds=tuple(KINDS)):
    """Draw a fabric that can be wired."""
    try:
        return wire(
            kind=draw(st.sampled_from(kinds)),
            nodes=draw(st.integers(1, most_nodes)),
            nics=draw(st.sampled_from([1, 2, 3, 4, 8])),
            ports=draw(st.integers(4, 40)),
            oversubscription=draw(st.sampled_from([1.0, 1.5, 2.0, 3.0, 7.0])),
            planes=draw(st.integers(1, 2)),
        )
    except InputError:
        assume(False)


@LAWS
@given(fabrics())
def test_no_port_is_used_twice_and_no_switch_has_more_than_it_has(wiring):
    used = Counter()
    for run in cable_runs(wiring):
        used[run.network, run.lower, run.lower_port] += 1
        used[run.network, run.upper, run.upper_port] += 1
        for end, port in ((run.lower, run.lower_port), (run.upper, run.upper_port)):
            assert end.startswith("node") or 1 <= int(port) <= wiring.ports
    assert set(used.values()) == {1}


@LAWS
@given(fabrics())
def test_list_has_as_many_cables_and_switches_as_were_counted(wiring):
    runs = list(cable_runs(wiring))
    tiers = Counter(run.tier for run in runs)
    assert tiers[Tier.NODE_LEAF] == wiring.node_cables
    assert tiers[Tier.LEAF_SPINE] == wiring.spine_cables
    assert tiers[Tier.SPINE_CORE] == wiring.core_cables
    assert tiers[Tier.GLOBAL] == wiring.global_cables
    assert len(runs) == wiring.node_cables + wiring.switch_cables
    ends = {(run.network, end) for run in runs for end in (run.lower, run.upper)}
    assert len(ends) == wiring.switches + wiring.networks * wiring.nodes
    nics = {(run.lower, run.lower_port) for run in runs if run.tier is Tier.NODE_LEAF}
    assert len(nics) == wiring.nodes * wiring.nics * wiring.planes


@LAWS
@given(fabrics())
def test_trunks_between_two_tiers_are_alike(wiring):
    between = Counter(
        (run.network, run.lower, run.upper)
        for run in cable_runs(wiring)
        if run.tier in (Tier.LEAF_SPINE, Tier.SPINE_CORE)
    )
    expected = {Tier.LEAF_SPINE: wiring.spine_trunk, Tier.SPINE_CORE: wiring.core_trunk}
    for (_, lower, _), links in between.items():
        assert links == expected[Tier.LEAF_SPINE if lower.startswith("leaf") else Tier.SPINE_CORE]


@LAWS
@given(fabrics(kinds=(FabricKind.DRAGONFLY_PLUS,)))
def test_groups_of_dragonfly_are_joined_alike_and_their_spines_share_the_links(wiring):
    assume(wiring.pods > 1)
    between, of_spine = Counter(), Counter()
    for run in cable_runs(wiring):
        if run.tier is Tier.GLOBAL and run.network == 1:
            ends = [int(end.removeprefix("spine-")) - 1 for end in (run.lower, run.upper)]
            between[tuple(sorted(end // wiring.pod_spines for end in ends))] += 1
            of_spine.update(ends)
    assert set(between) == set(itertools.combinations(range(wiring.pods), 2))
    assert set(between.values()) == {wiring.pair_links}
    assert max(of_spine.values()) - min(of_spine[spine] for spine in range(wiring.spines)) <= 1
    assert max(of_spine.values()) <= wiring.pod_leaves * wiring.spine_trunk


@LAWS
@given(st.sampled_from([1.0, 1.5, 2.0, 4.0]), st.integers(2, 200), st.integers(16, 64))
def test_links_up_keep_the_oversubscription_that_was_asked_for(asked, nodes, ports):
    wiring = wire(kind=FabricKind.RAIL_OPTIMIZED, nodes=nodes, nics=4, ports=ports, oversubscription=asked)
    assert wiring.oversubscription <= asked + 1e-9
    assert wiring.down_links + wiring.up_links <= ports
    assert wiring.core_links == 0 or wiring.core_links >= wiring.pod_leaves * wiring.spine_trunk


def carried(wiring, side):
    """Return the greatest flow from the nodes of one side to the others in one network [links]."""
    number: dict[str, int] = {"source": 0, "sink": 1}
    links: Counter = Counter()
    for run in cable_runs(wiring):
        if run.network == 1:
            lower, upper = (number.setdefault(end, len(number)) for end in (run.lower, run.upper))
            links[lower, upper] += 1
            links[upper, lower] += 1
    endless = wiring.nodes * wiring.node_links + 1
    for node in range(wiring.nodes):
        end = number[f"node-{node}"]
        links[(0, end) if node in side else (end, 1)] += endless
    rows, columns = zip(*links, strict=True)
    graph = csr_array(
        (np.array(list(links.values()), dtype=np.int32), (rows, columns)), shape=(len(number), len(number))
    )
    return maximum_flow(graph, 0, 1).flow_value


@settings(max_examples=60, deadline=None)
@given(fabrics(most_nodes=7))
def test_bisection_is_the_narrowest_cut_of_all_halves(wiring):
    assume(wiring.nodes > 1)
    halves = itertools.combinations(range(wiring.nodes), wiring.nodes // 2)
    narrowest = min(carried(wiring, set(half)) for half in halves)
    found = bisection_bytes_per_s(wiring, link_bytes_per_s=1.0) / wiring.networks
    if wiring.pair_links and wiring.nodes % (wiring.pod_leaves * wiring.group_nodes):
        # the spines of the last, smaller group are taken to stay together
        assert narrowest <= found <= narrowest + wiring.pair_links
    else:
        assert found == narrowest


@settings(max_examples=60, deadline=None)
@given(fabrics(most_nodes=80), st.randoms(use_true_random=False))
def test_bisection_is_no_wider_than_any_half(wiring, random):
    assume(wiring.nodes > 1)
    found = bisection_bytes_per_s(wiring, link_bytes_per_s=1.0)
    half = random.sample(range(wiring.nodes), wiring.nodes // 2)
    slack = wiring.pair_links if wiring.nodes % (wiring.pod_leaves * wiring.group_nodes) else 0
    assert found <= wiring.networks * (carried(wiring, set(half)) + slack)
    assert found <= wiring.networks * (carried(wiring, set(range(wiring.nodes // 2))) + slack)
    assert found <= full_bisection_bytes_per_s(wiring, link_bytes_per_s=1.0)


@LAWS
@given(fabrics())
def test_failure_leaves_no_more_than_there_was(wiring):
    found = worst_failures(wiring, gpus_per_node=8)
    assert len({each.part for each in found}) == len(found)
    for each in found:
        assert 0.0 <= each.remaining_fraction <= 1.0
        assert 0 < each.gpus <= wiring.nodes * 8
        assert each.cut_off_gpus in (0, each.gpus)
        assert each.cut_off_gpus == 0 or each.remaining_fraction == pytest.approx(0.0)


@LAWS
@given(fabrics(most_nodes=2000))
def test_boxes_of_a_drawing_stand_beside_one_another_inside_the_picture(wiring):
    picture = ET.fromstring(topology_svg(wiring, title="t"))
    rows = defaultdict(list)
    for box in picture.iter("{http://www.w3.org/2000/svg}rect"):
        if box.get("rx"):
            rows[box.get("y")].append((float(box.get("x")), float(box.get("width"))))
    assert len(rows) == wiring.tiers + 1
    for boxes in rows.values():
        boxes.sort()
        assert boxes[0][0] > 110
        assert sum(boxes[-1]) < 1010
        assert all(left + width <= following for (left, width), (following, _) in itertools.pairwise(boxes))


def tiers(kind, nodes, **more):
    """Return the tiers that so many nodes need; 4 where three do not do."""
    try:
        return wire(kind=kind, nodes=nodes, **more).tiers
    except InputError:
        return 4


@LAWS
@given(
    st.sampled_from(KINDS),
    st.sampled_from([1, 2, 4, 8]),
    st.integers(18, 64),
    st.sampled_from([1.0, 2.0, 3.0]),
)
def test_one_node_more_than_tiers_reach_needs_another(kind, nics, ports, oversubscription):
    reach = reach_nodes(kind=kind, nics=nics, ports=ports, oversubscription=oversubscription)
    assert list(reach) == sorted(reach)
    for number, nodes in enumerate(reach, start=1):
        more = {"nics": nics, "ports": ports, "oversubscription": oversubscription}
        assert tiers(kind, nodes, **more) <= number
        assert tiers(kind, nodes + 1, **more) > number
