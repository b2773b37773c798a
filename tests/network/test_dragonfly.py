"""Dragonfly+ fabrics that exist or were published, and what their links between groups let through."""

import numpy as np
import pytest

from linkwise.cluster import FabricKind
from linkwise.cluster.reading import parse_cluster
from linkwise.errors import InputError
from linkwise.network.bisection import bisection_bytes_per_s
from linkwise.network.clos import wire, wiring_of
from linkwise.network.cluster_setting import assumptions_of, setting_of
from linkwise.network.collective_time import collective_times
from linkwise.network.collisions import collisions_of
from linkwise.network.dragonfly import detour_slowdown, direct_slowdown
from linkwise.network.failures import worst_failures
from linkwise.network.reach import reach_nodes
from linkwise.network.uplinks import uplinks_of

NDR = 50e9


def dragonfly(nodes, nics=8, ports=64, **more):
    return wire(kind=FabricKind.DRAGONFLY_PLUS, nodes=nodes, nics=nics, ports=ports, **more)


def cluster(nodes=2048, more=""):
    fabric = f"{{kind: dragonfly-plus, link: infiniband-ndr-400, switch: quantum-2-qm9700{more}}}"
    return parse_cluster(f"linkwise: cluster/1\nnodes: {nodes}\nnode: dgx-h100\nfabric: {fabric}\n")


def test_group_of_jupiter_has_15_leaves_and_16_spines():
    # apps.fz-juelich.de/jsc/hps/jupiter/configuration.html: 240 nodes of four NDR200 links in a group, 15
    # switches of level 1 and 16 of level 2; 64 NDR ports take 128 such links. 25 of its groups have such nodes.
    wiring = dragonfly(25 * 240, nics=4, ports=128, groups=25)
    assert (wiring.pods, wiring.pod_leaves, wiring.pod_spines) == (25, 15, 16)
    assert wiring.pair_links == 16 * 60 // 24


@pytest.mark.parametrize("ports", [36, 40, 64])
def test_largest_fabric_has_a_quarter_of_the_ports_squared_hosts_in_a_group(ports):
    # Shpiner et al. 2017: k^2 / 4 hosts in a group without blocking, and a group more than it has global links
    hosts = ports**2 // 4
    assert reach_nodes(kind=FabricKind.DRAGONFLY_PLUS, nics=1, ports=ports)[1] == hosts * (hosts + 1)
    full = dragonfly(hosts * 3, nics=1, ports=ports)
    assert (full.pods, full.pod_leaves, full.pod_spines, full.pair_links) == (
        3,
        ports // 2,
        ports // 2,
        hosts // 2,
    )


def test_sixteen_groups_by_hand():
    # 32 leaves of 4 nodes in a group, 1,024 ports of its spines over 15 others: 68 links each
    wiring = dragonfly(2048)
    assert (wiring.leaves, wiring.spines, wiring.cores, wiring.tiers) == (512, 512, 0, 2)
    assert (wiring.pair_links, wiring.global_cables) == (68, 120 * 68)
    assert bisection_bytes_per_s(wiring, link_bytes_per_s=NDR) == 8 * 8 * 68 * NDR


@pytest.mark.parametrize(("groups", "ports"), [(9, 16), (17, 32), (33, 32)])
def test_load_of_links_between_groups(groups, ports):
    # h = 1 global link for each host: uniform traffic loads them 1 - 1/g, all of a group to the next g - 1
    wiring = dragonfly(groups * ports**2 // 4, nics=1, ports=ports)
    assert wiring.pods == groups
    assert wiring.global_oversubscription == pytest.approx(1 - 1 / groups)
    assert direct_slowdown(wiring) == groups - 1
    assert detour_slowdown(wiring) == pytest.approx(2 * (groups - 1) / groups)


def test_one_group_is_a_leaf_spine_fabric():
    wiring = dragonfly(64)
    assert (wiring.pods, wiring.leaves, wiring.spines, wiring.pair_links) == (1, 16, 16, 0)


def test_groups_as_many_as_stated():
    wiring = dragonfly(128, groups=4)
    # 32 nodes are 8 leaves of 32 up, 8 spines of 32 down and as many ports free; 256 over three others
    assert (wiring.pods, wiring.pod_leaves, wiring.pod_spines, wiring.pair_links) == (4, 8, 8, 85)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"nodes": 9, "ports": 8}, "the 8 NICs of a node end on one leaf, but of the 8 ports"),
        (
            {"nodes": 1000, "groups": 2},
            "need 125 leaves each, and a spine gives 32 of its 64 ports to leaves; cho",
        ),
        ({"nodes": 1000, "groups": 300}, "take 1,000 nodes in 250 groups, not 300; write groups: 250"),
        ({"nodes": 8, "groups": 2}, "groups has no effect: 64 links of nodes fit the 64 ports"),
        ({"nodes": 31, "nics": 1, "ports": 4}, "the spines of one have 4 ports for those"),
    ],
)
def test_what_cannot_be_wired_says_which_ports_break(more, says):
    with pytest.raises(InputError, match=says):
        dragonfly(**more)


def test_failures_of_links_between_groups():
    found = {each.part: each for each in worst_failures(dragonfly(2048), gpus_per_node=8)}
    assert found["global link"].remaining_fraction == pytest.approx(67 / 68)
    assert (found["global link"].count, found["global link"].gpus) == (8160, 2048)
    # of 32 spines with 1,020 links to other groups one has 32
    assert found["spine"].remaining_fraction == pytest.approx(min(31 / 32, 988 / 1020))


def test_hashes_collide_between_groups_too():
    found = collisions_of(dragonfly(512), queue_pairs=1)
    assert found.mean > found.up_mean > 1
    assert found.up_mean == pytest.approx(found.exact_mean, rel=0.1)


def test_law_is_not_given_where_few_spines_lead_to_a_group():
    wiring = dragonfly(10 * 64, nics=1, ports=16)
    assert wiring.pair_links < wiring.pod_spines
    found = collisions_of(wiring, queue_pairs=2)
    assert (found.exact_mean, found.seeds) == (None, 20)
    assert found.mean >= 1


def test_links_between_groups_limit_what_leaves_a_group():
    ranks, group, pair = 16384, 1024, 68 * NDR
    adaptive = uplinks_of(cluster(), ranks=ranks, domain_gpus=8)
    halves = ranks / 4 / bisection_bytes_per_s(wiring_of(cluster()), link_bytes_per_s=NDR)
    assert adaptive.exchange_s_per_byte == pytest.approx(
        max(group * (ranks - group) / ranks / (15 * pair), halves, 32 * (ranks - 32) / ranks / (32 * NDR))
    )
    assert adaptive.leaf_gpus == 32
    assert adaptive.ring_bytes_per_s == 32 * NDR


def test_two_groups_of_sixteen_have_their_direct_links_unless_routing_is_adaptive():
    size, ranks = np.array([2.0**34]), 2048
    times = [
        collective_times("all_to_all", setting_of(cluster(more=more), gpus=ranks), size).time_s[0]
        for more in ("", ", routing: spray")
    ]
    assert times[1] > times[0]
    # 1,024 GPUs on either side of 68 links
    assert times[1] >= 1024 * 1024 / ranks * size[0] / (68 * NDR)


def test_assumptions_name_the_paths():
    for more, words in (("", "past third groups, too"), (", routing: pinned", "on shortest paths alone")):
        there = cluster(more=more)
        assert words in " ".join(assumptions_of(there, setting_of(there), "all_reduce"))
