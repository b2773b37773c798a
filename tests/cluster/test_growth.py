from dataclasses import replace

import pytest

from linkwise.cluster import load_cluster
from linkwise.cluster.growth import grown_cluster, growth_limit
from linkwise.cluster.reading import parse_cluster
from linkwise.errors import InputError
from linkwise.network.clos import wiring_of


def read(text):
    return parse_cluster(f"linkwise: cluster/1\n{text}")


@pytest.mark.parametrize(
    ("small", "times", "large"),
    [
        ("dgx-h100:4", 4, "dgx-h100:16"),
        ("gb200-nvl72:4", 16, "gb200-nvl72:64"),
        ("gb200-nvl72:18", 2, "gb200-nvl72:36"),
        ("mgx-pcie-l40s-8:2", 8, "mgx-pcie-l40s-8:16"),
    ],
)
def test_grown_cluster_is_the_larger_cluster_of_the_same_nodes(small, times, large):
    grown = grown_cluster(load_cluster(small), times)
    assert grown == replace(load_cluster(large), name=small)
    assert grown_cluster(load_cluster(small), 1) == load_cluster(small)


def test_grown_cluster_of_a_node_used_in_part_uses_as_many_gpus_of_each_node():
    grown = grown_cluster(read("nodes: 1\nnode: dgx-h100\ngpus: 4\n"), 4)
    assert (grown.nodes, grown.gpus, grown.gpus_per_node, grown.nvlink_domain_gpus) == (4, 16, 4, 4)
    assert grown.nodes_in_use == 4


def test_growth_limit_of_one_switch_is_its_ports():
    fabric = "fabric: {kind: single-switch, link: infiniband-ndr-400, switch: quantum-2-qm9700}\n"
    most, why = growth_limit(read(f"nodes: 2\nnode: dgx-h100\n{fabric}"))
    assert most == 8  # 64 ports, 8 NICs a node
    assert "quantum-2-qm9700" in why


def test_growth_limit_without_a_fabric_is_one_domain():
    most, _ = growth_limit(read("nodes: 4\nnode: gb200-nvl72\nfabric: {kind: none}\n"))
    assert most == 18
    most, _ = growth_limit(read("nodes: 1\nnode: dgx-h100\nfabric: {kind: none}\n"))
    assert most == 1


@pytest.mark.parametrize("text", ["dgx-h100:4", "gb200-nvl72:18"])
def test_growth_limit_of_fabrics_of_several_tiers_is_not_known(text):
    assert growth_limit(load_cluster(text)) is None


def test_larger_clusters_keep_slow_nics_and_lose_changes_of_switches():
    there = parse_cluster(
        "linkwise: cluster/1\nnodes: 64\nnode: dgx-h100\nchanges:\n  - {nodes: node 5, missing: true}\n"
        "  - {nics: node 1 nic 0, fraction: 0.5}\n  - {switches: spine 1, missing: true}\n"
    )
    assert grown_cluster(there, 1).changes == there.changes
    twice = grown_cluster(there, 2)
    assert (twice.gpus, len(twice.changes)) == (2 * 63 * 8, 2)
    assert twice.node_bytes_per_s == there.node_bytes_per_s


def test_ports_of_a_switch_are_counted_alike_wherever_a_fabric_is_checked():
    # A port is split into eight links at most, however slow they are: 64 ports end 512 links of 10 Gbit/s.
    text = (
        "nodes: {}\nnode: dgx-h100\nfabric: {{kind: single-switch, link: ethernet-10, switch: tomahawk-6}}\n"
    )
    assert growth_limit(read(text.format(8)))[0] == 64
    wiring_of(read(text.format(64)))
    with pytest.raises(InputError, match="more than the 512 that one tomahawk-6 has"):
        read(text.format(65))
