"""What is below a set of switches, for clusters whose wiring is known and those whose is not."""

import re

import pytest

from linkwise.cluster import load_cluster
from linkwise.cluster.reading import parse_cluster
from linkwise.network.tiers import Tier, describe, tiers_of


def _cluster(nodes, fabric, node="dgx-h100"):
    return parse_cluster(f"linkwise: cluster/1\nnodes: {nodes}\nnode: {node}\nfabric: {fabric}\n")


def test_leaves_of_rails_take_as_many_nodes_as_they_have_links():
    (leaf,) = tiers_of(load_cluster("dgx-h100:64"), domain_gpus=8)
    assert leaf == Tier(gpus=256, down_links=32.0, up_links=32.0, sets=16)


def test_three_tiers_have_pods():
    leaf, pod = tiers_of(load_cluster("dgx-h100:1024"), domain_gpus=8)
    assert leaf.gpus < pod.gpus < 8192
    assert pod.down_links <= pod.up_links
    assert pod.gpus % leaf.gpus == 0


def test_racks_stay_whole_below_a_set():
    cluster = load_cluster("gb200-nvl72:1152")
    for tier in tiers_of(cluster, domain_gpus=72):
        assert tier.gpus % 72 == 0


@pytest.mark.parametrize("text", ["dgx-h100:1", "dgx-h100:16", "gb200-nvl72:18"])
def test_no_tier_where_nothing_leaves_the_leaves(text):
    cluster = load_cluster(text)
    assert tiers_of(cluster, domain_gpus=cluster.nvlink_domain_gpus) == ()


def test_unknown_switches_leave_each_domain_alone_below_its_leaves():
    cluster = _cluster(16, "{kind: leaf-spine, link: roce-400, oversubscription: 4}")
    assert tiers_of(cluster, domain_gpus=8) == (Tier(gpus=8, down_links=4.0, up_links=1.0, sets=1),)
    (said,) = describe(cluster, domain_gpus=8)
    assert "switches are not known" in said


def test_leaf_spine_with_more_leaves_than_a_spine_has_ports_gets_a_third_tier():
    fabric = "{{kind: {}, oversubscription: 4, routing: {{ecmp: {{queue_pairs: 1}}}}}}"
    flat, tree = (_cluster(1024, fabric.format(kind)) for kind in ("leaf-spine", "fat-tree"))
    assert tiers_of(flat, domain_gpus=8) == tiers_of(tree, domain_gpus=8)
    said = " ".join(describe(flat, domain_gpus=8))
    assert "leaves need" in said
    assert "priced as fat-tree" in said


def test_switches_that_do_not_suffice_are_said():
    (said,) = describe(load_cluster("dgx-h100:12500"), domain_gpus=8)
    assert "3,128 leaves are more than three tiers of 64 ports join" in said
    fabric = "{kind: rail-optimized, oversubscription: 2, routing: {ecmp: {queue_pairs: 1}}}"
    said = " ".join(describe(_cluster(20_000, fabric), domain_gpus=8))
    assert "not known" not in said
    assert "collisions are not priced" in said


def test_pass_to_another_rail_is_said_not_to_be_priced():
    # Seven eighths of 50 GB/s over the rate inside the node; 8.2 to 11.2 % in Wang et al., Rail-only, 2023.
    said = " ".join(describe(_cluster(16, "{kind: rail-only}"), domain_gpus=8))
    (percent,) = re.findall(r"up to (\d+)% longer", said)
    assert 10 <= int(percent) <= 14
    slow = "{gpu: h100-pcie, gpus_per_node: 8, gpu_links: pcie, nic: connectx-7, nics: 8, link: roce-400}"
    said = " ".join(describe(_cluster(16, "{kind: rail-only}", node=slow), domain_gpus=8))
    assert int(re.findall(r"up to (\d+)% longer", said)[0]) > 50
    assert "rail-only" not in " ".join(describe(_cluster(16, "{kind: fat-tree}"), domain_gpus=8))


def test_routing_and_tiers_are_said():
    (said,) = describe(load_cluster("dgx-h100:64"), domain_gpus=8)
    assert "256 GPUs a leaf group" in said
    assert "adaptive routing spreads flows evenly" in said
    hashed = _cluster(64, "{routing: {ecmp: {queue_pairs: 4}}}")
    (said,) = describe(hashed, domain_gpus=8)
    assert "queue pairs of a connection: 4" in said
    unknown = _cluster(16, "{kind: leaf-spine, link: roce-400, routing: ecmp}")
    (said,) = describe(unknown, domain_gpus=8)
    assert "collisions are not priced" in said


def test_group_of_dragonfly_is_a_pod_with_its_links_to_other_groups():
    leaf, group = tiers_of(_cluster(2048, "{kind: dragonfly-plus}"), domain_gpus=8)
    assert leaf == Tier(gpus=32, down_links=32.0, up_links=32.0, sets=512)
    assert group == Tier(gpus=1024, down_links=1024.0, up_links=15 * 68.0, sets=16)
    said = " ".join(describe(_cluster(2048, "{kind: dragonfly-plus}"), domain_gpus=8))
    assert "1,024 GPUs a dragonfly group" in said


LINKS = (
    "{kind: links, links: ["
    + ", ".join(f"{{from: node-{node}, to: leaf-{node // 2}, count: 8}}" for node in range(8))
    + ", "
    + ", ".join(f"{{from: leaf-{leaf}, to: spine, count: 4}}" for leaf in range(4))
    + "]}"
)


def test_table_has_the_cuts_around_leaves_and_halves():
    cluster = _cluster(8, LINKS)
    leaf, half = tiers_of(cluster, domain_gpus=8)
    assert leaf == Tier(gpus=16, down_links=16.0, up_links=4.0, sets=4)
    assert half == Tier(gpus=32, down_links=32.0, up_links=8.0, sets=2)
    assert "narrowest cuts around sets of 16 GPUs and 32 GPUs" in " ".join(describe(cluster, domain_gpus=8))


def test_table_on_one_switch_has_no_tier():
    rows = ", ".join(f"{{from: node-{node}, to: s, count: 8}}" for node in range(4))
    cluster = _cluster(4, f"{{kind: links, links: [{rows}]}}")
    assert tiers_of(cluster, domain_gpus=8) == ()
    assert "no link between switches is used" in " ".join(describe(cluster, domain_gpus=8))
