"""Fabrics as they are built, with the prices of their parts, worked by hand."""

import datetime as dt
from dataclasses import replace

import pytest

from linkwise.cluster import load_cluster
from linkwise.cluster.cluster import CableKind
from linkwise.cluster.prices import Hardware, Prices
from linkwise.cluster.reading import parse_cluster
from linkwise.network.built_fabric import BuiltFabric, UnbuiltFabric, built_fabric, priced_parts

BOUGHT = Hardware(lifetime_s=1e8, switches={"quantum-2-qm9700": 3e4}, cables={CableKind.DAC: 150.0})


def parts(cluster, hardware=BOUGHT, **prices):
    stated = Prices(date=dt.date(2026, 11, 30), hardware=hardware, **prices)
    there = replace(cluster, prices=stated)
    return {each.part: each for each in priced_parts(there, built_fabric(there))}


def test_a_fabric_is_built_of_its_switches_and_cable_ends():
    built = built_fabric(load_cluster("dgx-h100:32"))
    assert isinstance(built, BuiltFabric)
    assert built.power_w == pytest.approx(12 * 747 + 384 * 17 + 256 * 9)


@pytest.mark.parametrize(
    ("cluster", "reason"),
    [
        ("dgx-h100:1", None),
        ("aws-p5:2", "its switch is not known"),
    ],
)
def test_a_fabric_is_not_built_where_there_is_none_or_its_switch_is_not_known(cluster, reason):
    assert built_fabric(load_cluster(cluster)) == UnbuiltFabric(reason=reason)


def test_a_fabric_is_not_built_where_it_cannot_be_wired():
    text = "linkwise: cluster/1\nnodes: 300\nnode: dgx-h100\nfabric: {kind: leaf-spine}\n"
    assert "75 leaves need 75 ports of a spine" in built_fabric(parse_cluster(text)).reason


def test_cables_between_groups_and_of_tables_are_counted():
    text = "linkwise: cluster/1\nnodes: 256\nnode: dgx-h100\nfabric: {kind: dragonfly-plus}\n"
    dragonfly = built_fabric(parse_cluster(text))
    # two groups of 32 leaves and 32 spines, 1,024 links between them
    assert dragonfly.optics.cables == {"optical": 2048 + 2048 + 1024}
    rows = "[{from: node-0, to: s, count: 8}, {from: node-1, to: s, count: 8}, {from: s, to: t}, {from: t, to: s2}]"
    rows = rows.replace("]", ", {from: s2, to: node-2, count: 8}]")
    table = built_fabric(
        parse_cluster(
            f"linkwise: cluster/1\nnodes: 3\nnode: dgx-h100\nfabric: {{kind: links, links: {rows}}}\n"
        )
    )
    assert (table.wiring.switches, table.optics.cables) == (3, {"optical": 24 + 2})
    assert table.power_w > 3 * 747


def test_parts_are_counted_and_priced():
    text = "linkwise: cluster/1\nnodes: 8\nnode: dgx-h100\nfabric: {kind: rail-optimized, node_cables: dac}\n"
    found = parts(parse_cluster(text))
    # 64 links on one switch.
    assert (found["switch"].count, found["switch"].total_usd) == (1, 3e4)
    assert (found["cable"].item, found["cable"].count, found["cable"].total_usd) == ("dac", 64, 9600.0)
    assert "transceiver" not in found


def test_nics_are_priced_apart_or_paid_with_the_node_or_missing():
    cluster = load_cluster("dgx-h100:2")
    assert parts(cluster)["NIC"].is_missing
    assert parts(cluster, gpu_usd_per_s=1.0)["NIC"].included == "node"
    assert parts(cluster, replace(BOUGHT, systems={"dgx-h100": 1.0}))["NIC"].included == "node"
    apart = parts(cluster, replace(BOUGHT, systems={"dgx-h100": 1.0}, nics={"connectx-7": 1500.0}))["NIC"]
    assert (apart.included, apart.total_usd) == (None, 16 * 1500.0)


def test_half_of_a_twin_port_module_costs_half_of_it():
    text = "linkwise: cluster/1\nnodes: 4\nnode: dgx-b200\nfabric: {link: infiniband-xdr-800, switch: quantum-x800-q3400}\n"
    cluster = replace(
        parse_cluster(
            text.replace("dgx-b200", "{gpu: b200-sxm, gpus_per_node: 8, nic: connectx-8, nics: 8}")
        ),
        prices=Prices(
            date=dt.date(2026, 11, 30),
            hardware=replace(BOUGHT, transceivers={"osfp-1600g-2xdr4": 2000.0}),
        ),
    )
    found = {each.item: each for each in priced_parts(cluster, built_fabric(cluster))}
    assert found["osfp-1600g-2xdr4"].unit_usd == 2000.0
    assert found["half of osfp-1600g-2xdr4"].unit_usd == 1000.0
