"""What one failure leaves, worked by hand."""

import pytest

from linkwise.cluster import FabricKind
from linkwise.network.clos import wire
from linkwise.network.failures import worst_failures


def failures(kind, nodes, **more):
    wiring = wire(kind=kind, nodes=nodes, nics=8, ports=64, **more)
    return {each.part: each for each in worst_failures(wiring, gpus_per_node=8)}


def left(found):
    return {part: (each.remaining_fraction, each.gpus, each.cut_off_gpus) for part, each in found.items()}


def test_rail_optimised_superpod_of_two_units():
    found = failures(FabricKind.RAIL_OPTIMIZED, 64)
    assert left(found) == {
        "nic": (7 / 8, 8, 0),
        "node-leaf link": (7 / 8, 8, 0),
        "leaf-spine link": (31 / 32, 32, 0),
        "leaf": (7 / 8, 256, 0),  # every node of the unit keeps seven rails
        "spine": (7 / 8, 512, 0),  # of 8
        "node": (0, 8, 8),
    }
    assert (found["leaf"].count, found["spine"].count, found["nic"].count) == (16, 8, 512)


def test_leaf_of_a_fat_tree_cuts_its_nodes_off():
    found = failures(FabricKind.FAT_TREE, 64)
    assert left(found)["leaf"] == (0, 32, 32)
    assert left(found)["leaf-spine link"] == (31 / 32, 32, 0)


def test_planes_share_a_failure():
    found = failures(FabricKind.FAT_TREE, 64, planes=2)
    assert left(found)["leaf"] == (1 / 2, 32, 0)
    assert left(found)["node-leaf link"] == (15 / 16, 8, 0)
    assert left(found)["leaf-spine link"] == (pytest.approx(63 / 64), 32, 0)
    assert left(found)["nic"] == (7 / 8, 8, 0)


def test_three_tiers_lose_little_with_a_core():
    found = failures(FabricKind.RAIL_OPTIMIZED, 2048)
    assert left(found)["core"] == (pytest.approx(255 / 256), 16384, 0)
    assert left(found)["spine-core link"] == (pytest.approx(1023 / 1024), 1024, 0)
    assert left(found)["spine"] == (pytest.approx(31 / 32), 1024, 0)


def test_links_to_spare_absorb_a_failure():
    # 20 nodes: 20 links down and 21 up on each leaf
    assert failures(FabricKind.RAIL_OPTIMIZED, 20)["leaf-spine link"].remaining_fraction == 1.0


def test_one_switch_is_a_single_point_of_failure():
    found = failures(FabricKind.SINGLE_SWITCH, 8)
    assert left(found)["leaf"] == (0, 64, 64)
    assert "spine" not in found


def test_switch_of_a_rail_takes_one_nic_of_every_node():
    assert left(failures(FabricKind.RAIL_ONLY, 64))["leaf"] == (7 / 8, 512, 0)
