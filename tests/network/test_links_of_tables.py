"""Explicit links: loads, cuts, failures and collisions by hand, and beside the fabrics of a kind."""

from collections import Counter

import numpy as np
import pytest

from linkwise.cluster import FabricKind
from linkwise.cluster.link_table import LinkTable, TableLink
from linkwise.cluster.reading import parse_cluster
from linkwise.errors import InputError
from linkwise.network.bisection import bisection_bytes_per_s
from linkwise.network.cabling import cable_runs
from linkwise.network.clos import wire
from linkwise.network.cluster_setting import assumptions_of, setting_of
from linkwise.network.collective_time import collective_times
from linkwise.network.collisions import collisions_of
from linkwise.network.link_collisions import link_collisions
from linkwise.network.link_cuts import halves_flow_bytes_per_s, link_bisection
from linkwise.network.link_failures import worst_link_failures
from linkwise.network.link_graph import graph_of, link_graph
from linkwise.network.link_loads import exchange_loads, shift_loads
from linkwise.network.uplinks import uplinks_of

RATE = 50e9


def graph(*rows, nodes):
    links = (
        TableLink(ends=(one, other), link=None, bytes_per_s=RATE, count=count, place="")
        for one, other, count in rows
    )
    return link_graph(LinkTable(links=tuple(links)), nodes=nodes)


def table_of(wiring):
    """Return the table that a fabric of a kind has, its networks told apart by their names."""
    found = Counter(
        (
            run.lower if run.lower.startswith("node") else f"{run.network}:{run.lower}",
            f"{run.network}:{run.upper}",
        )
        for run in cable_runs(wiring)
    )
    links = (
        TableLink(ends=ends, link=None, bytes_per_s=RATE, count=count, place="")
        for ends, count in found.items()
    )
    return link_graph(LinkTable(links=tuple(links)), nodes=wiring.nodes)


def two_leaves(up=4):
    return graph(
        ("node-0", "a", 8),
        ("node-1", "a", 8),
        ("node-2", "b", 8),
        ("node-3", "b", 8),
        ("a", "b", up),
        nodes=4,
    )


def ring_of_switches(count=6):
    rows = [(f"node-{place}", f"s{place}", 1) for place in range(count)]
    rows += [(f"s{place}", f"s{(place + 1) % count}", 1) for place in range(count)]
    return graph(*rows, nodes=count)


def test_exchange_between_two_leaves_by_hand():
    # 32 GPUs: each of 16 sends 1/32 to each of 16 on the other side, 8 bytes over 4 cables
    loads = exchange_loads(two_leaves(), nodes=4, node_gpus=8)
    assert loads.trunk_bytes == pytest.approx([8.0, 8.0])
    assert loads.slowest_s(two_leaves()) == pytest.approx(8.0 / (4 * RATE))
    # a node sends 24/32 of each of its 8 GPUs over 8 cables
    assert loads.out_bytes == pytest.approx([6.0] * 4)
    assert loads.in_bytes == pytest.approx([6.0] * 4)


def test_exchange_within_domains_takes_no_link():
    loads = exchange_loads(two_leaves(), nodes=4, node_gpus=8, domain_nodes=2)
    assert loads.out_bytes == pytest.approx([4.0] * 4)
    assert exchange_loads(two_leaves(), nodes=4, node_gpus=8, domain_nodes=4).out_bytes.sum() == 0


def test_shift_passes_between_leaves_once():
    loads = shift_loads(two_leaves(), nodes=4)
    assert loads.trunk_bytes == pytest.approx([1.0, 1.0])
    assert loads.slowest_s(two_leaves()) == pytest.approx(1.0 / (4 * RATE))


def test_ring_of_switches_by_hand():
    # each node sends 1/6 to five others: 1 + 1 trunks to neighbours, 2 + 2, 3 either way (half each)
    loads = exchange_loads(ring_of_switches(), nodes=6, node_gpus=1)
    assert loads.trunk_bytes == pytest.approx([(1 + 2 + 1.5) / 6] * 12)
    found = link_bisection(ring_of_switches())
    assert (found.bytes_per_s, found.exact) == (2 * RATE, True)


def test_traffic_splits_by_rate_or_by_cable():
    fast = TableLink(ends=("a", "x"), link=None, bytes_per_s=3 * RATE, count=1, place="")
    links = [
        TableLink(ends=("node-0", "a"), link=None, bytes_per_s=RATE, count=4, place=""),
        TableLink(ends=("node-1", "b"), link=None, bytes_per_s=RATE, count=4, place=""),
        fast,
        TableLink(ends=("x", "b"), link=None, bytes_per_s=3 * RATE, count=1, place=""),
        TableLink(ends=("a", "y"), link=None, bytes_per_s=RATE, count=1, place=""),
        TableLink(ends=("y", "b"), link=None, bytes_per_s=RATE, count=1, place=""),
    ]
    there = link_graph(LinkTable(links=tuple(links)), nodes=2)
    by_rate = shift_loads(there, nodes=2).trunk_bytes[: len(there.tail) // 2]
    by_cable = shift_loads(there, nodes=2, by_cables=True).trunk_bytes[: len(there.tail) // 2]
    assert sorted(by_rate) == pytest.approx([0.25, 0.25, 0.75, 0.75])
    assert sorted(by_cable) == pytest.approx([0.5] * 4)


def test_cable_between_two_nodes_is_a_network():
    there = graph(("node-0", "node-1", 8), nodes=2)
    assert (there.switches, len(there.names)) == (0, 1)
    assert link_bisection(there).bytes_per_s == 8 * RATE
    assert shift_loads(there, nodes=2).slowest_s(there) == pytest.approx(1 / (8 * RATE))


def test_failures_by_hand():
    found = {each.part: each for each in worst_link_failures(two_leaves(up=4), gpus_per_node=8)}
    assert found["switch-switch link"].remaining_fraction == pytest.approx(3 / 4)
    assert found["node-switch link"].remaining_fraction == 1.0  # the cables between leaves are slower still
    assert (found["switch"].cut_off_gpus, found["switch"].gpus) == (16, 16)
    assert (found["switch-switch link"].count, found["node-switch link"].count) == (4, 32)
    lonely = {each.part: each for each in worst_link_failures(two_leaves(up=1), gpus_per_node=8)}
    assert lonely["switch-switch link"].cut_off_gpus == 16


def test_hashes_over_two_cables_by_hand():
    # one flow each way over two cables never collides; sixteen do
    few = graph(("node-0", "a", 1), ("node-1", "b", 1), ("a", "b", 2), nodes=2)
    assert link_collisions(few, queue_pairs=1).mean == 1.0
    many = link_collisions(two_leaves(up=16), queue_pairs=1)
    # sixteen flows over sixteen cables: the fullest has 3.08 in the mean; two directions, slightly more
    assert 3.0 < many.mean < 3.6
    assert link_collisions(two_leaves(up=16), queue_pairs=16).mean < many.mean


@pytest.mark.parametrize(
    ("kind", "nodes", "more"),
    [
        (FabricKind.FAT_TREE, 64, {}),
        (FabricKind.FAT_TREE, 60, {"oversubscription": 3.0}),
        (FabricKind.RAIL_OPTIMIZED, 64, {"oversubscription": 2.0}),
        (FabricKind.RAIL_OPTIMIZED, 288, {}),
        (FabricKind.RAIL_ONLY, 128, {}),
        (FabricKind.LEAF_SPINE, 40, {"planes": 2}),
        (FabricKind.DRAGONFLY_PLUS, 256, {}),
    ],
)
def test_table_of_a_fabric_of_a_kind_says_the_same(kind, nodes, more):
    wiring = wire(kind=kind, nodes=nodes, nics=8, ports=64, **more)
    there = table_of(wiring)
    assert link_bisection(there).bytes_per_s == pytest.approx(
        bisection_bytes_per_s(wiring, link_bytes_per_s=RATE)
    )
    assert there.switches == wiring.switches
    assert int(there.tiers.max()) == wiring.tiers
    assert len(np.unique(there.networks())) == wiring.networks
    assert int(there.cables.sum()) == 2 * wiring.switch_cables
    loads = exchange_loads(there, nodes=nodes, node_gpus=8)
    assert loads.lost_bytes == 0
    assert loads.out_bytes.sum() == pytest.approx(loads.in_bytes.sum())


def test_collisions_are_those_of_the_fabric_of_a_kind():
    wiring = wire(kind=FabricKind.RAIL_OPTIMIZED, nodes=64, nics=8, ports=64)
    for queue_pairs in (1, 4):
        found, kind = (
            link_collisions(table_of(wiring), queue_pairs=queue_pairs),
            collisions_of(wiring, queue_pairs=queue_pairs),
        )
        assert found.mean == pytest.approx(kind.mean, rel=0.06)


def cluster(rows, nodes=4, routing="adaptive"):
    fabric = f"{{kind: links, links: [{', '.join(rows)}], routing: {routing}}}"
    return parse_cluster(f"linkwise: cluster/1\nnodes: {nodes}\nnode: dgx-h100\nfabric: {fabric}\n")


def narrow(up, routing="adaptive"):
    rows = [f"{{from: node-{node}, to: leaf-{node // 2}, count: 8}}" for node in range(4)]
    return cluster([*rows, f"{{from: leaf-0, to: leaf-1, count: {up}}}"], routing=routing)


def test_collectives_wait_for_the_narrowest_link():
    size = np.array([2.0**30])
    times = {
        (operation, up): collective_times(operation, setting_of(narrow(up)), size).time_s[0]
        for operation in ("all_to_all", "all_reduce")
        for up in (1, 16)
    }
    # half of 32 GPUs send half of their buffers over one cable
    assert times["all_to_all", 1] >= 8 * size[0] / RATE
    # a tree sends the buffer over it once up and once down, each in its own direction
    assert times["all_reduce", 1] >= size[0] / RATE
    assert times["all_to_all", 16] < 0.2 * times["all_to_all", 1]
    assert times["all_reduce", 16] < times["all_reduce", 1]
    found = uplinks_of(narrow(2), ranks=32, domain_gpus=8)
    assert found.ring_bytes_per_s == pytest.approx(2 * RATE)
    assert found.exchange_s_per_byte == pytest.approx(8 / (2 * RATE))


def test_gpus_on_one_leaf_do_not_wait():
    assert uplinks_of(narrow(1), ranks=16, domain_gpus=8).ring_bytes_per_s == pytest.approx(8 * RATE)


def test_assumptions_name_the_table():
    there = narrow(4)
    assert "most loaded link of the table" in " ".join(assumptions_of(there, setting_of(there), "all_reduce"))


def test_cluster_without_a_table_has_no_graph():
    there = parse_cluster("linkwise: cluster/1\nnodes: 4\nnode: dgx-h100\n")
    with pytest.raises(InputError, match="has no table of links"):
        graph_of(there)


def test_flow_between_two_sets_of_nodes():
    assert halves_flow_bytes_per_s(two_leaves(), np.array([0, 1])) == 4 * RATE
    assert halves_flow_bytes_per_s(two_leaves(), np.array([0, 2])) == 16 * RATE
