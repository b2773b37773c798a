"""Which links a message crosses: the rail of the lower address, trunks between leaves, loopback inside."""

from linkwise.lab.routes import Tier, counter_of, links_of, path_between, payload_bytes_per_s
from tests.lab.test_design import cluster, design_of


def tiers(design, one, two):
    return [(link.tier, link.device) for link in path_between(design, one, two)]


def test_a_message_inside_a_node_is_on_its_loopback():
    design = design_of(cluster())
    assert tiers(design, 0, 1) == [(Tier.INSIDE, "lo")]


def test_a_message_between_leaves_crosses_both_trunks():
    design = design_of(cluster("leaf-spine, oversubscription: 2"))
    assert tiers(design, 0, 2) == [
        (Tier.NIC, "eth0"),
        (Tier.UP, "leaf0up"),
        (Tier.DOWN, "leaf1dn"),
        (Tier.LEAF, "n1e0"),
    ]


def test_ranks_of_two_rails_meet_on_that_of_the_lower_address():
    # counted with torch 2.13.0 on three nodes of two rails: rank 1 sends to rank 2 over the first rail
    design = design_of(cluster("rail-optimized", gpus=2, nics=2))
    assert tiers(design, 1, 2) == [(Tier.NIC, "eth0"), (Tier.LEAF, "n1e0")]
    assert tiers(design, 2, 1) == [(Tier.NIC, "eth0"), (Tier.LEAF, "n0e0")]
    assert tiers(design, 1, 3) == [(Tier.NIC, "eth1"), (Tier.LEAF, "n1e1")]


def test_every_path_is_made_of_links_of_the_lab():
    for kind in ("leaf-spine, oversubscription: 2", "rail-optimized", "rail-only", "single-switch"):
        design = design_of(cluster(kind, gpus=2, nics=2))
        links = set(links_of(design))
        pairs = [(one, two) for one in range(8) for two in range(8) if one != two]
        assert all(set(path_between(design, *pair)) <= links for pair in pairs)


def test_a_link_carries_its_rate_less_headers_and_is_counted_where_it_is_shaped():
    design = design_of(cluster("leaf-spine, oversubscription: 2"), dilation=5000)
    path = path_between(design, 0, 2)
    rates = [payload_bytes_per_s(design, link, loopback_bytes_per_s=1e9) for link in path]
    assert [round(rate) for rate in rates] == [
        9564069,
        4782034,
        4782034,
        9564069,
    ]  # 1448 / 1514 of 10, 5 MB/s
    assert counter_of("x", path[0]) == "lw-x-n0 eth0"
    assert counter_of("x", path[1]) == "lw-x-sw leaf0up"
