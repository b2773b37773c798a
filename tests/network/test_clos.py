"""Counts of switches worked by hand, and what cannot be wired."""

import pytest

from linkwise.cluster import FabricKind, cluster_from_shorthand
from linkwise.cluster.parts import switch_ends
from linkwise.cluster.reading import parse_cluster
from linkwise.errors import InputError
from linkwise.network.clos import wire, wiring_of


def switches(wiring):
    return wiring.leaves, wiring.spines, wiring.cores


def rails(nodes, ports=64, **more):
    return wire(kind=FabricKind.RAIL_OPTIMIZED, nodes=nodes, nics=8, ports=ports, **more)


def test_all_links_on_one_switch_need_no_spine():
    assert switches(rails(8)) == (1, 0, 0)
    assert switches(wire(kind=FabricKind.SINGLE_SWITCH, nodes=8, nics=8, ports=64)) == (1, 0, 0)


def test_few_nodes_put_several_rails_on_a_leaf():
    # 16 nodes leave room for two rails on each leaf of 32 links down
    wiring = rails(16)
    assert switches(wiring) == (4, 2, 0)
    assert [wiring.leaf_of(5, nic) for nic in range(8)] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_rail_of_a_group_is_one_leaf():
    wiring = rails(64)
    assert {wiring.leaf_of(node, 3) for node in range(32)} == {3}
    assert {wiring.leaf_of(node, 3) for node in range(32, 64)} == {11}


def test_superpod_of_127_nodes_has_32_leaves_and_16_spines():
    # NVIDIA DGX H100 SuperPOD reference architecture: 4 scalable units of 32 nodes less one for the manager.
    assert switches(rails(127)) == (32, 16, 0)


def test_all_nics_of_a_node_are_on_one_leaf_of_a_fat_tree():
    wiring = wire(kind=FabricKind.FAT_TREE, nodes=10, nics=8, ports=40)
    # 20 links down hold two nodes of 8
    assert switches(wiring) == (5, 2, 0)
    assert [wiring.leaf_of(node, 7) for node in range(4)] == [0, 0, 1, 1]


def test_oversubscription_lowers_the_links_up():
    wiring = rails(126, oversubscription=2.0)
    # 42 down of 64; 24 leaves x 21 up / 64 = 7.9, but 21 spread evenly over 21 spines, 22 over 11
    assert (wiring.down_links, wiring.leaves, wiring.up_links, wiring.spines) == (42, 24, 22, 11)
    assert wiring.oversubscription == pytest.approx(42 / 22)


def test_third_tier_begins_where_a_spine_has_no_port_for_every_leaf():
    assert rails(256).tiers == 2
    # 9 pods of 8 leaves, 8 spines of 32 links up, 8 groups of 8 cores: 72 and 64; 135 is one less
    three = rails(257)
    assert (three.tiers, three.leaves, three.spines + three.cores) == (3, 72, 135)


def test_rail_only_has_a_network_for_each_rail():
    wiring = wire(kind=FabricKind.RAIL_ONLY, nodes=64, nics=8, ports=64)
    assert (wiring.networks, switches(wiring), wiring.switches) == (8, (1, 0, 0), 8)
    larger = wire(kind=FabricKind.RAIL_ONLY, nodes=128, nics=8, ports=64)
    assert (larger.networks, switches(larger)) == (8, (4, 2, 0))


def test_ports_split_into_slower_links():
    assert switch_ends("spectrum-4-sn5600", "roce-400") == 128
    assert switch_ends("quantum-2-qm9700", "infiniband-ndr-400") == 64
    assert switch_ends("tomahawk-6", "ethernet-10") == 8 * 64


@pytest.mark.parametrize(
    ("kind", "nodes", "ports", "says"),
    [
        (FabricKind.SINGLE_SWITCH, 9, 64, "72 links, more than the 64 ports of one switch"),
        (FabricKind.LEAF_SPINE, 257, 64, "65 leaves need 65 ports of a spine, and a switch has 64"),
        (FabricKind.FAT_TREE, 9, 8, "the 8 NICs of a node end on one leaf, but of the 8 ports"),
        (FabricKind.FAT_TREE, 8193, 64, "2,049 leaves are more than three tiers of 64 ports join"),
        (FabricKind.RAIL_OPTIMIZED, 8193, 64, "more than three tiers of 64 ports join"),
        (FabricKind.RAIL_OPTIMIZED, 2, 1, "leave none for nodes"),
    ],
)
def test_what_cannot_be_wired_says_which_ports_break(kind, nodes, ports, says):
    with pytest.raises(InputError, match=says):
        wire(kind=kind, nodes=nodes, nics=8, ports=ports)


@pytest.mark.parametrize(
    ("shorthand", "says"),
    [("gb200-nvl72:1", None), ("aws-p5:20", "the switch of aws-p5:20 is not known")],
)
def test_fabric_needs_a_switch_that_is_known(shorthand, says):
    if says is None:
        assert wiring_of(cluster_from_shorthand(shorthand)).leaves == 1
        return
    with pytest.raises(InputError, match=says):
        wiring_of(cluster_from_shorthand(shorthand))


def test_cluster_without_fabric_is_not_wired():
    cluster = parse_cluster("linkwise: cluster/1\nnodes: 1\nnode: dgx-h100\nfabric: {kind: none}\n")
    with pytest.raises(InputError, match="has no fabric"):
        wiring_of(cluster)


def test_oversubscription_of_one_switch_is_not_reached():
    fabric = "fabric: {kind: fat-tree, oversubscription: 2}"
    cluster = parse_cluster(f"linkwise: cluster/1\nnodes: 8\nnode: dgx-h100\n{fabric}\n")
    wiring = wiring_of(cluster)
    assert (wiring.leaves, wiring.spines, wiring.oversubscription) == (1, 0, 1.0)


def test_arithmetic_gives_the_counts():
    lines = "\n".join(rails(64).arithmetic)
    assert "64 x 8 = 512" in lines
    assert "16 leaves x 32 links up / 64 ports = 8" in lines
