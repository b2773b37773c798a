"""Bisection of fabrics worked by hand."""

import pytest

from linkwise.cluster import FabricKind
from linkwise.network.bisection import bisection_bytes_per_s, full_bisection_bytes_per_s
from linkwise.network.clos import wire

NDR = 50e9


def bisection(nodes, kind=FabricKind.RAIL_OPTIMIZED, **more):
    return bisection_bytes_per_s(wire(kind=kind, nodes=nodes, nics=8, ports=64, **more), link_bytes_per_s=NDR)


def test_fabric_that_does_not_block_carries_the_nics_of_half_the_nodes():
    assert bisection(64) == 32 * 8 * NDR
    assert bisection(2048) == 1024 * 8 * NDR
    wiring = wire(kind=FabricKind.FAT_TREE, nodes=64, nics=8, ports=64)
    assert full_bisection_bytes_per_s(wiring, link_bytes_per_s=NDR) == 32 * 8 * NDR


def test_half_of_a_group_does_not_leave_its_leaves():
    assert bisection(32, oversubscription=7.0) == 16 * 8 * NDR


def test_oversubscription_narrows_what_groups_send_to_one_another():
    # 84 nodes: two groups of 42, each with 8 leaves of 21 links up
    assert bisection(84, oversubscription=2.0) == pytest.approx(8 * 21 * NDR)


def test_rails_that_are_not_joined_add_up():
    assert bisection(64, kind=FabricKind.RAIL_ONLY) == 32 * 8 * NDR


def test_one_node_has_none():
    assert bisection(1) == 0
