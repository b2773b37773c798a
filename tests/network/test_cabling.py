"""Where cables lead."""

from linkwise.cluster import FabricKind
from linkwise.network.cabling import Tier, cable_runs
from linkwise.network.clos import wire


def runs(**more):
    given = {"kind": FabricKind.RAIL_OPTIMIZED, "nodes": 64, "nics": 8, "ports": 64}
    return list(cable_runs(wire(**(given | more))))


def test_nic_of_a_node_leads_to_the_leaf_of_its_rail():
    (found,) = [run for run in runs() if (run.lower, run.lower_port) == ("node-33", "nic-2")]
    assert (found.tier, found.upper, found.upper_port) == (Tier.NODE_LEAF, "leaf-11", "2")


def test_leaf_has_its_links_to_every_spine():
    up = [run for run in runs() if run.lower == "leaf-16"]
    assert [run.lower_port for run in up] == [str(port) for port in range(33, 65)]
    assert [run.upper for run in up[:5]] == ["spine-1"] * 4 + ["spine-2"]


def test_spine_leads_to_the_cores_of_its_group():
    up = [run for run in runs(nodes=512) if run.lower == "spine-34"]
    # pod 2, second spine: cores 3 and 4 of groups of two
    assert {run.upper for run in up} == {"core-3", "core-4"}


def test_ports_of_a_nic_lead_to_networks_of_their_own():
    found = [run for run in runs(planes=2) if run.lower == "node-0" and run.lower_port.startswith("nic-3")]
    assert [(run.network, run.lower_port) for run in found] == [(1, "nic-3/1"), (2, "nic-3/2")]


def test_rail_only_has_a_network_for_each_nic():
    found = [run for run in runs(kind=FabricKind.RAIL_ONLY) if run.lower == "node-9"]
    assert [(run.network, run.lower_port, run.upper) for run in found[:2]] == [
        (1, "nic-0", "leaf-1"),
        (2, "nic-1", "leaf-1"),
    ]
