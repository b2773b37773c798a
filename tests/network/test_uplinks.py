"""Up-links of leaves: what they let through of a collective."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.cluster import load_cluster
from linkwise.cluster.reading import parse_cluster
from linkwise.errors import InputError
from linkwise.network.bisection import bisection_bytes_per_s
from linkwise.network.clos import wiring_of
from linkwise.network.cluster_setting import assumptions_of, setting_of
from linkwise.network.collective_time import collective_times
from linkwise.network.setting import OPERATIONS
from linkwise.network.uplinks import uplinks_of

GIB = 2.0**30


def cluster(nodes=100, kind="leaf-spine", oversubscription=1.0, node="dgx-h100", routing="adaptive"):
    parts = "link: infiniband-ndr-400, switch: quantum-2-qm9700"
    fabric = f"{{kind: {kind}, {parts}, oversubscription: {oversubscription}, routing: {routing}}}"
    return parse_cluster(f"linkwise: cluster/1\nnodes: {nodes}\nnode: {node}\nfabric: {fabric}\n")


def seconds(operation, there, size=GIB, gpus=None):
    return collective_times(operation, setting_of(there, gpus=gpus), np.array([size])).time_s[0]


@pytest.mark.parametrize("kind", ["leaf-spine", "fat-tree"])
@pytest.mark.parametrize(("oversubscription", "least_s"), [(3.0, 29.8e-3), (20.0, 148e-3)])
def test_all_to_all_takes_what_the_up_links_take(kind, oversubscription, least_s):
    there = cluster(kind=kind, oversubscription=oversubscription)
    assert seconds("all_to_all", there) > least_s > 0.99 * seconds("all_to_all", cluster(kind=kind))


def test_up_links_of_one_leaf_by_hand():
    # 48 links down take 6 nodes of 8; 100 / 6 = 17 leaves, of which 48 GPUs share 16 links up.
    found = uplinks_of(cluster(oversubscription=3.0), ranks=800, domain_gpus=8)
    assert found.leaf_gpus == 48
    up = found.ring_bytes_per_s
    assert up == pytest.approx(16 * 50e9)
    assert found.exchange_s_per_byte == pytest.approx(48 * 752 / 800 / up)


def test_gpus_below_one_leaf_need_no_up_links():
    assert seconds("all_to_all", cluster(oversubscription=20.0), gpus=16) == seconds(
        "all_to_all", cluster(), gpus=16
    )


def test_rings_of_rails_pass_the_up_links_once():
    rails = {"kind": "rail-optimized", "nodes": 256}
    for operation in ("all_reduce", "all_gather", "broadcast"):
        there = cluster(oversubscription=3.0, **rails)
        assert seconds(operation, there) == pytest.approx(seconds(operation, cluster(**rails)))


def test_rings_wait_where_they_outgrow_the_up_links():
    # 60 links down take 7 nodes, and the leaf has 3 up: 8 rings of a NIC each meet those.
    slow, fast = (cluster(oversubscription=each) for each in (20.0, 1.0))
    assert uplinks_of(slow, ranks=800, domain_gpus=8).ring_bytes_per_s < 8 * 50e9
    assert seconds("all_gather", slow) > 1.5 * seconds("all_gather", fast)


def test_racks_over_leaves_are_taken_whole():
    there = cluster(nodes=180, node="gb200-nvl72", oversubscription=3.0)
    found = uplinks_of(there, ranks=720, domain_gpus=72)
    assert found is None or found.leaf_gpus % 72 == 0


def test_unknown_switches_pass_all_that_leaves_a_domain_at_the_oversubscription():
    text = "linkwise: cluster/1\nnodes: 100\nnode: aws-p5\nfabric: {kind: fat-tree, oversubscription: 4}\n"
    there = parse_cluster(text)
    found = uplinks_of(there, ranks=800, domain_gpus=8)
    assert found.leaf_gpus == 0
    assert found.exchange_s_per_byte == pytest.approx(4.0 * (800 - 8) / 800 / (there.node_bytes_per_s / 8))
    said = " ".join(assumptions_of(there, setting_of(there), "all_to_all"))
    assert "the switches are not known; all that an all-to-all sends out" in said


@pytest.mark.parametrize("oversubscription", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("routing", ["adaptive", "{ecmp: {queue_pairs: 1}}"])
def test_leaf_spine_that_spines_cannot_join_is_no_faster_than_a_fat_tree(oversubscription, routing):
    flat, tree = (
        cluster(nodes=1024, kind=kind, oversubscription=oversubscription, routing=routing)
        for kind in ("leaf-spine", "fat-tree")
    )
    found = [uplinks_of(each, ranks=8192, domain_gpus=8) for each in (flat, tree)]
    assert found[0] == found[1]
    said = " ".join(assumptions_of(flat, setting_of(flat), "all_to_all"))
    assert "leaves need" in said
    assert "priced as fat-tree" in said
    assert "priced as fat-tree" not in " ".join(assumptions_of(tree, setting_of(tree), "all_to_all"))


def test_switches_that_do_not_suffice_are_said_and_not_called_unknown():
    there = load_cluster("dgx-h100:12500")
    said = " ".join(assumptions_of(there, setting_of(there), "all_to_all"))
    assert "more than three tiers of 64 ports join" in said
    assert "not known" not in said


def test_assumptions_say_how_oversubscription_is_priced():
    there = cluster(oversubscription=3.0)
    words = " ".join(assumptions_of(there, setting_of(there), "all_to_all"))
    assert "48 GPUs of a leaf group" in words
    assert "not priced" not in words
    assert "costs nothing" in " ".join(assumptions_of(there, setting_of(there, gpus=16), "all_to_all"))


def crossing_bytes(operation, ranks):
    """Return what each half of the ranks must send or receive at least, over the size of the buffer."""
    half = ranks // 2
    if operation == "all_to_all":
        return half * (ranks - half) / ranks
    return half / ranks if operation in ("all_gather", "reduce_scatter") else 1.0


@settings(max_examples=100, deadline=None)
@given(
    nodes=st.integers(2, 300),
    kind=st.sampled_from(["leaf-spine", "fat-tree", "rail-optimized", "dragonfly-plus"]),
    oversubscription=st.floats(1.0, 30.0),
    node=st.sampled_from(["dgx-h100", "dgx-b200", "mi300x-8"]),
    operation=st.sampled_from(OPERATIONS),
)
def test_no_time_beats_the_bytes_over_the_bisection(nodes, kind, oversubscription, node, operation):
    there = cluster(nodes, kind, round(oversubscription, 2), node)
    try:
        wiring = wiring_of(there)
    except InputError:
        return
    cut = bisection_bytes_per_s(wiring, link_bytes_per_s=50e9)
    least = crossing_bytes(operation, there.gpus) * GIB / cut
    assert seconds(operation, there) >= least * (1 - 1e-9)


@pytest.mark.parametrize("operation", ["all_reduce", "all_gather", "all_to_all"])
@pytest.mark.parametrize("kind", ["fat-tree", "rail-optimized"])
def test_hashes_never_make_faster_and_more_queue_pairs_collide_less(operation, kind):
    times = [
        seconds(operation, cluster(nodes=256, kind=kind, routing=f"{{ecmp: {{queue_pairs: {pairs}}}}}"))
        for pairs in (1, 2, 4, 16)
    ]
    even = seconds(operation, cluster(nodes=256, kind=kind))
    assert times == sorted(times, reverse=True)
    assert times[-1] >= even * (1 - 1e-9)


def test_rings_collide_where_all_nics_of_a_node_share_a_leaf_and_not_on_rails():
    """The 8 NICs of the last node of a leaf choose among 32 links; on rails each has its leaf alone."""
    hashed = {"nodes": 256, "routing": "ecmp"}
    assert seconds("all_gather", cluster(kind="fat-tree", **hashed)) > 1.5 * seconds(
        "all_gather", cluster(kind="fat-tree", nodes=256)
    )
    assert seconds("all_gather", cluster(kind="rail-optimized", **hashed)) == pytest.approx(
        seconds("all_gather", cluster(kind="rail-optimized", nodes=256))
    )


def test_pinned_and_sprayed_flows_do_not_collide():
    times = {seconds("all_to_all", cluster(routing=how)) for how in ("adaptive", "spray", "pinned")}
    assert len(times) == 1
