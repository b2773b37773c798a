"""Laws of every table of links: conservation, cuts, other names, more links."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from linkwise.cluster.link_table import LinkTable, TableLink
from linkwise.cluster.link_table_fit import link_table_misfits
from linkwise.network.link_collisions import link_collisions
from linkwise.network.link_cuts import link_bisection
from linkwise.network.link_failures import worst_link_failures
from linkwise.network.link_graph import UNREACHED, link_graph
from linkwise.network.link_loads import exchange_loads, shift_loads
from linkwise.report.link_drawing import link_topology_svg

LAWS = settings(max_examples=30, deadline=None)


def table(rows):
    return LinkTable(
        links=tuple(
            TableLink(ends=ends, link=None, bytes_per_s=float(rate), count=count, place="")
            for ends, (rate, count) in rows.items()
        )
    )


@st.composite
def tables(draw, most_nodes=7, most_switches=5):
    """Draw a table whose nodes all reach one another."""
    nodes = draw(st.integers(2, most_nodes))
    switches = [f"s{place}" for place in range(draw(st.integers(1, most_switches)))]
    size = st.tuples(st.integers(1, 4), st.integers(1, 3))
    rows = {}
    for node in range(nodes):
        for switch in draw(st.lists(st.sampled_from(switches), min_size=1, max_size=2, unique=True)):
            rows[f"node-{node}", switch] = draw(size)
    for pair in itertools.combinations(switches, 2):
        if draw(st.booleans()):
            rows[pair] = draw(size)
    found = table(rows)
    faults = list(link_table_misfits(found, nodes=nodes, nics_of=lambda _node: (8, 4.0), ports=None))
    assume(not any("reach" in fault or "no node" in fault for fault in faults))
    return nodes, found


@LAWS
@given(tables(), st.integers(1, 8))
def test_what_leaves_arrives_and_nothing_is_lost(drawn, node_gpus):
    nodes, links = drawn
    graph = link_graph(links, nodes=nodes)
    loads = exchange_loads(graph, nodes=nodes, node_gpus=node_gpus)
    sent = node_gpus * (nodes - 1) / nodes
    assert loads.lost_bytes == 0
    out, came = (
        np.bincount(graph.end_node, weights=each, minlength=nodes)
        for each in (loads.out_bytes, loads.in_bytes)
    )
    assert out == pytest.approx([sent] * nodes)
    assert came == pytest.approx([sent] * nodes)
    # what enters a switch leaves it
    inward, outward = np.zeros(len(graph.names)), np.zeros(len(graph.names))
    np.add.at(inward, graph.head, loads.trunk_bytes)
    np.add.at(inward, graph.end_switch, loads.out_bytes)
    np.add.at(outward, graph.tail, loads.trunk_bytes)
    np.add.at(outward, graph.end_switch, loads.in_bytes)
    assert inward == pytest.approx(outward)


def carried(graph, inside):
    """Return the greatest flow from some nodes to the others, by another program; rates are whole numbers."""
    switches, nodes = len(graph.names), graph.nodes
    size = switches + nodes + 2
    links = np.zeros((size, size), dtype=np.int32)
    np.add.at(links, (graph.tail, graph.head), graph.bytes_per_s.astype(np.int32))
    ends = switches + graph.end_node
    np.add.at(links, (ends, graph.end_switch), graph.end_bytes_per_s.astype(np.int32))
    links[graph.end_switch, ends] = links[ends, graph.end_switch]
    for node in range(nodes):
        at = switches + node
        if node in inside:
            links[size - 2, at] = 10**6
            links[:switches, at] = 0
        else:
            links[at, size - 1] = 10**6
            links[at, :switches] = 0
    return maximum_flow(csr_array(links), size - 2, size - 1).flow_value


@LAWS
@given(tables())
def test_bisection_is_the_narrowest_cut_of_all_halves(drawn):
    nodes, links = drawn
    graph = link_graph(links, nodes=nodes)
    narrowest = min(carried(graph, set(half)) for half in itertools.combinations(range(nodes), nodes // 2))
    found = link_bisection(graph)
    assert found.exact
    assert found.bytes_per_s == pytest.approx(narrowest)


@LAWS
@given(tables())
def test_no_traffic_beats_the_cut(drawn):
    nodes, links = drawn
    graph = link_graph(links, nodes=nodes)
    half = nodes // 2
    least = half * (nodes - half) / nodes / link_bisection(graph).bytes_per_s
    assert exchange_loads(graph, nodes=nodes, node_gpus=1).slowest_s(graph) >= least * (1 - 1e-9)


@LAWS
@given(tables(), st.randoms(use_true_random=False))
def test_other_names_and_another_order_change_nothing(drawn, random):
    nodes, links = drawn
    order = list(range(nodes))
    random.shuffle(order)
    names = {f"node-{node}": f"node-{order[node]}" for node in range(nodes)}
    rows = {
        tuple(names.get(end, f"x{end}") for end in random.sample(row.ends, 2)): (row.bytes_per_s, row.count)
        for row in random.sample(links.links, len(links.links))
    }
    one, other = link_graph(links, nodes=nodes), link_graph(table(rows), nodes=nodes)
    assert link_bisection(one).bytes_per_s == pytest.approx(link_bisection(other).bytes_per_s)
    times = [exchange_loads(each, nodes=nodes, node_gpus=2).slowest_s(each) for each in (one, other)]
    assert times[0] == pytest.approx(times[1])


@LAWS
@given(tables(), st.integers(0, 100))
def test_a_wider_link_never_narrows_the_bisection(drawn, place):
    nodes, links = drawn
    row = links.links[place % len(links.links)]
    rows = {each.ends: (each.bytes_per_s, each.count + (each is row)) for each in links.links}
    before, after = (
        link_bisection(link_graph(each, nodes=nodes)).bytes_per_s for each in (links, table(rows))
    )
    assert after >= before * (1 - 1e-9)


@LAWS
@given(tables(), st.sampled_from([1, 2, 4]))
def test_failures_drawings_and_hashes_of_any_table(drawn, queue_pairs):
    nodes, links = drawn
    graph = link_graph(links, nodes=nodes)
    for each in worst_link_failures(graph, gpus_per_node=4):
        assert 0.0 <= each.remaining_fraction <= 1.0
        assert 0 <= each.cut_off_gpus <= nodes * 4
        assert each.part == "node" or each.gpus + each.cut_off_gpus == nodes * 4
    found = link_collisions(graph, queue_pairs=queue_pairs, seeds=4)
    assert found.mean > 0
    assert link_topology_svg(graph, title="t").startswith("<svg")
    assert (graph.distances(graph.end_switch) < UNREACHED).sum() >= len(set(graph.end_switch))
    assert shift_loads(graph, nodes=nodes).lost_bytes == 0
