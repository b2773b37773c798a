"""What is below a set of switches, for clusters whose wiring is known and those whose is not."""

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
