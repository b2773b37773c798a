"""Fabrics with missing and slow parts, worked by hand."""

import numpy as np
import pytest

from linkwise.cluster.reading import parse_cluster
from linkwise.errors import InputError
from linkwise.network.bisection import bisection_bytes_per_s
from linkwise.network.changed_fabric import changed_fabric, leaf_fraction, uplink_fraction
from linkwise.network.clos import wiring_of
from linkwise.network.cluster_setting import setting_of
from linkwise.network.collective_time import collective_times
from linkwise.network.failures import worst_failures

RATE = 50e9


def cluster(*changes, kind="fat-tree", nodes=32, planes=1):
    listed = "".join(f"  - {{{each}}}\n" for each in changes)
    link = "infiniband-ndr-400" if planes == 1 else "infiniband-hdr-200"
    parts = f"kind: {kind}, link: {link}, switch: quantum-2-qm9700, planes: {planes}"
    head = f"linkwise: cluster/1\nnodes: {nodes}\nnode: dgx-h100\nfabric: {{{parts}}}\n"
    return parse_cluster(f"{head}changes:\n{listed}" if changes else head)


def changed(*changes, **shape):
    there = cluster(*changes, **shape)
    return changed_fabric(there, wiring_of(there))


# 32 nodes of 8 NICs on leaves of 64 ports: 8 leaves of 4 nodes, 32 links up, 8 to each of 4 spines.


def test_slow_and_missing_up_links_by_hand():
    found = changed("links: leaf 1 spine 2, fraction: 0.5", "switches: spine 1, missing: true")
    assert found.up[0].tolist() == [20.0] + [24.0] * 7
    assert found.oversubscription == pytest.approx(32 / 20)
    # The leaf with 20 links up and three with 24 are half of the nodes.
    assert found.bisection_bytes_per_s(link_bytes_per_s=RATE) == pytest.approx((20 + 3 * 24) * RATE)
    failures = {each.part: each for each in found.failures(worst_failures(found.wiring, gpus_per_node=8))}
    assert failures["leaf-spine link"].remaining_fraction == pytest.approx(19 / 32)
    assert failures["spine"].remaining_fraction == pytest.approx(12 / 32)
    assert failures["nic"].remaining_fraction == pytest.approx(7 / 8)


def test_one_link_of_a_trunk_is_an_eighth_of_it():
    found = changed("links: leaf 3 spine 4 link 2, missing: true")
    assert found.up[0].tolist() == [32.0, 32.0, 31.0] + [32.0] * 5


def test_failure_of_a_nic_comes_on_top_of_a_slow_one():
    found = changed("nics: node 3 nic 2, rate: 100 Gbit/s")
    failures = {each.part: each for each in found.failures(worst_failures(found.wiring, gpus_per_node=8))}
    assert failures["nic"].remaining_fraction == pytest.approx(6.25 / 8)


def test_missing_nodes_leave_fewer_to_halve():
    found = changed("nodes: node 4-7, missing: true")  # all of the second leaf
    # 28 nodes are left; 14 are three leaves and half of one, 16 links to its other half.
    assert found.bisection_bytes_per_s(link_bytes_per_s=RATE) == pytest.approx((3 * 32 + 16) * RATE)


@pytest.mark.parametrize("kind", ["rail-optimized", "rail-only", "fat-tree", "single-switch"])
@pytest.mark.parametrize("planes", [1, 2])
def test_bisection_never_grows_by_changes(kind, planes):
    nodes = 8 if kind == "single-switch" else 32
    there = cluster("nics: node 1 nic 3, fraction: 0.5", kind=kind, nodes=nodes, planes=planes)
    wiring = wiring_of(there)
    found = changed_fabric(there, wiring).bisection_bytes_per_s(link_bytes_per_s=RATE)
    assert 0 < found <= bisection_bytes_per_s(wiring, link_bytes_per_s=RATE)
    assert changed_fabric(there, wiring).node_links.sum() == pytest.approx(planes * (nodes * 8 - 0.5))


@pytest.mark.parametrize("kind", ["rail-optimized", "rail-only", "fat-tree"])
@pytest.mark.parametrize("nodes", [1, 2, 7, 33, 100, 500])
@pytest.mark.parametrize("planes", [1, 2])
def test_changes_that_touch_no_link_leave_the_fabric_as_built(kind, nodes, planes):
    there = cluster("gpus: node 0 gpu 0, fraction: 0.5", kind=kind, nodes=nodes, planes=planes)
    wiring = wiring_of(there)
    found = changed_fabric(there, wiring)
    built = worst_failures(wiring, gpus_per_node=8)
    for before, after in zip(built, found.failures(built), strict=True):
        assert after.remaining_fraction == pytest.approx(before.remaining_fraction)
    assert found.oversubscription == pytest.approx(wiring.oversubscription)
    assert found.bisection_bytes_per_s(link_bytes_per_s=RATE) == pytest.approx(
        bisection_bytes_per_s(wiring, link_bytes_per_s=RATE)
    )


def test_missing_leaf_of_a_rail_takes_a_nic_from_its_nodes():
    there = cluster("switches: leaf 3, missing: true", kind="rail-optimized", nodes=64)
    wiring = wiring_of(there)
    assert wiring.leaf_node_links == 1
    assert leaf_fraction(there) == pytest.approx(7 / 8)
    # Nodes 32 to 63 have leaves of their own.
    later = cluster("switches: leaf 9, missing: true", kind="rail-optimized", nodes=64)
    assert (leaf_fraction(later, 256), leaf_fraction(later)) == (1.0, pytest.approx(7 / 8))
    across = setting_of(there).group.network_bytes_per_s
    assert across == pytest.approx(7 * RATE)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            "links: leaf 9 spine 1, missing: true",
            "changes.0 (leaf 9 spine 1): leaf 9 is not there: the fabric",
        ),
        ("links: leaf 1 spine 1 link 9, missing: true", "link 9 is not there"),
        ("links: leaf 2 spine *, missing: true", "leave leaf 2 no link to a spine"),
        ("switches: leaf 2, missing: true", "cut 4 nodes, the first of them node 4, off the fabric"),
        ("switches: network 2 leaf 2, missing: true", "network 2 is not there"),
    ],
)
def test_changes_that_do_not_fit_the_wiring_are_refused(change, says):
    there = cluster(change)
    with pytest.raises(InputError) as caught:
        changed_fabric(there, wiring_of(there))
    assert says in str(caught.value)


def test_links_that_two_changes_name_are_refused():
    with pytest.raises(InputError, match=r"changes\.1 .* names links that other changes name"):
        changed("switches: spine 2, missing: true", "links: leaf 1 spine 2, fraction: 0.5")


def test_networks_that_are_not_joined_have_to_be_named():
    with pytest.raises(InputError, match="8 networks that are not joined; say which: 'network 1 leaf 1'"):
        changed("switches: leaf 1, missing: true", kind="rail-only")


def test_leaf_whose_nodes_are_missing_may_be_missing():
    found = changed("switches: leaf 2, missing: true", "nodes: node 4-7, missing: true")
    assert found.nodes_left == 28


def test_all_to_all_waits_for_the_worst_leaf():
    whole, less = cluster(), cluster("switches: spine 1-2, missing: true")
    assert uplink_fraction(less) == pytest.approx(0.5)
    sizes = np.array([2.0**30])
    times = [collective_times("all_to_all", setting_of(there), sizes).time_s[0] for there in (whole, less)]
    # 224 of 256 ranks' blocks of every buffer leave a leaf of 32 GPUs, whose 16 links carry 50 GB/s each.
    assert times[1] > 32 * 224 / 256 * 2.0**30 / (16 * RATE) > 0.99 * times[0]


def test_links_of_a_fabric_that_cannot_be_wired_are_refused_with_their_place():
    head = "linkwise: cluster/1\nnodes: 4\nnode: aws-p5\nchanges: [{links: leaf 1 spine 1, missing: true}]\n"
    with pytest.raises(
        InputError, match=r"changes\.0 \(leaf 1 spine 1\): its place is known only in a fabric"
    ):
        uplink_fraction(parse_cluster(head))
