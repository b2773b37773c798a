"""Clusters whose nodes differ: the least of any, and what is refused."""

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise import catalog
from linkwise.cluster import GpuLinks
from linkwise.cluster.document import HEADER, ClusterDocument
from linkwise.cluster.growth import grown_cluster
from linkwise.cluster.reading import load_document, parse_cluster
from linkwise.cluster.variants import VariantAxes, cluster_variants
from linkwise.documents import json_schema
from linkwise.errors import DocumentError, InputError
from linkwise.estimate.energy import power_draw
from linkwise.network.clos import wiring_of
from linkwise.network.cluster_setting import setting_of
from linkwise.network.collective_time import collective_times
from linkwise.report.fabric import fabric_result

HDR = "fabric: {kind: fat-tree, link: infiniband-hdr-200, switch: quantum-qm8700}\n"


def mixed(*kinds, more=HDR, nodes=""):
    rows = "".join(f"  - {{node: {node}, nodes: {count}}}\n" for node, count in kinds)
    return parse_cluster(f"linkwise: cluster/1\n{nodes}node:\n{rows}{more}")


def faults(*kinds, more=HDR, nodes=""):
    with pytest.raises(DocumentError) as raised:
        mixed(*kinds, more=more, nodes=nodes)
    return [str(fault) for fault in raised.value.faults]


def test_slowest_gpu_and_narrowest_nics_of_two_kinds():
    cluster = mixed(("dgx-h100", 16), ("dgx-a100", 8))
    a100, h100 = catalog.gpu("a100-sxm-80gb"), catalog.gpu("h100-sxm")
    assert (cluster.nodes, cluster.gpus, cluster.gpus_per_node) == (24, 192, 8)
    assert cluster.gpu.name == a100.name
    assert cluster.gpu.flop_per_s["bf16"] == a100.flop_per_s["bf16"]
    assert "fp8" not in cluster.gpu.flop_per_s
    assert cluster.gpu.memory_bytes == min(a100.memory_bytes, h100.memory_bytes)
    assert cluster.node_bytes_per_s == 8 * 25e9
    assert [(part.name, part.nodes) for part in cluster.parts] == [("dgx-h100", 16), ("dgx-a100", 8)]
    assert cluster.name == "dgx-h100:16 + dgx-a100:8"
    assert any("all wait for the slowest" in line for line in cluster.assumptions)


def test_memory_and_rates_may_come_of_different_kinds():
    # H200 has more memory than B100's rates suggest: the least of each
    cluster = mixed(("dgx-h200", 2), ("dgx-b200", 2), more="")
    h200, b200 = catalog.gpu("h200-sxm"), catalog.gpu("b200-sxm")
    assert cluster.gpu.name == "h200-sxm"
    assert cluster.gpu.memory_bytes == min(h200.memory_bytes, b200.memory_bytes)
    assert cluster.gpu.figure("memory_bytes").value == cluster.gpu.memory_bytes
    assert cluster.gpu.nvlink_bytes_per_s == min(h200.nvlink_bytes_per_s, b200.nvlink_bytes_per_s)


def test_of_larger_nodes_as_many_gpus_are_used_as_the_smallest_has():
    four = "{gpu: h100-sxm, gpus_per_node: 4, nics: 4, nic: connectx-7, link: infiniband-ndr-400}"
    cluster = mixed(("dgx-h100", 1), (four, 2), more="fabric: {switch: quantum-2-qm9700}\n")
    assert (cluster.gpus, cluster.gpus_per_node, cluster.nvlink_domain_gpus) == (12, 4, 4)
    assert cluster.node_bytes_per_s == 4 * 50e9
    with pytest.raises(InputError, match="nodes with 4 and 8 NICs are not wired by rule"):
        wiring_of(cluster)


def test_slowest_links_between_gpus_count():
    cluster = mixed(("dgx-h100", 1), ("mgx-pcie-l40s-8", 1), more="fabric: {link: roce-400}\n")
    assert cluster.gpu_links is GpuLinks.PCIE
    assert (cluster.nvlink_domain_gpus, cluster.gpu.nvlink_bytes_per_s) == (1, None)


def test_racks_and_boxes_share_domains_of_a_box():
    cluster = mixed(("gb200-nvl72", 18), ("dgx-b200", 2), more="fabric: {link: infiniband-ndr-400}\n")
    # trays of four GPUs: of a box four are used, and 72 and 4 GPUs have domains of 4 in common
    assert (cluster.gpus_per_node, cluster.nvlink_domain_gpus, cluster.gpus) == (4, 4, 80)


def test_fabric_counts_the_gpus_that_are_there():
    cluster = mixed(("dgx-h100", 16), ("dgx-a100", 8))
    result = fabric_result(cluster, wiring_of(cluster))
    assert (result.gpus, result.nodes, result.cables.node_leaf) == (192, 24, 192)


def test_table_of_links_takes_each_node_as_it_is():
    four = "{gpu: h100-sxm, gpus_per_node: 8, nics: 4, nic: connectx-7, link: infiniband-ndr-400}"
    rows = "{from: node-0, to: s, count: 8}, {from: node-1, to: s, count: 4}"
    table = f"fabric: {{kind: links, links: [{rows}]}}\n"
    cluster = mixed(("dgx-h100", 1), (four, 1), more=table)
    assert cluster.node_bytes_per_s == 4 * 50e9
    more = table.replace("count: 4", "count: 5")
    assert any(
        "5 links of node-1 are more than its 4 NICs" in fault
        for fault in faults(("dgx-h100", 1), (four, 1), more=more)
    )


def test_power_is_the_mean_of_all_nodes():
    cluster = mixed(("dgx-h100", 1), ("dgx-a100", 3))
    h100, a100 = (catalog.system(name).power_w for name in ("dgx-h100", "dgx-a100"))
    assert power_draw(cluster).figure.value == pytest.approx((h100 + 3 * a100) / 4)


def test_variants_and_growth_keep_the_kinds(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(
        "linkwise: cluster/1\nnode:\n  - {node: dgx-h100, nodes: 2}\n  - {node: dgx-a100, nodes: 2}\n" + HDR
    )
    found = cluster_variants(load_document(str(path)), VariantAxes(oversubscription=(1.0, 2.0)))
    assert [len(each.parts) for each in found] == [2, 2]
    assert [part.nodes for part in grown_cluster(found[0], 3).parts] == [6, 6]


@pytest.mark.parametrize(
    ("kinds", "nodes", "says"),
    [
        ((("dgx-h100", 16), ("dgx-a100", 8)), "nodes: 20\n", "nodes: 20 nodes are not the 24 of all kinds"),
        ((("dgx-h100", 16), ("dgx-h100", 8)), "", "node.1: is the same as one above"),
        ((("dgx-h100", 16),), "", "node: "),
        ((("dgx-h100", 16), ("dgx-a100", 0)), "", "node.1.nodes: 0 is not accepted"),
        ((("dgx-h100", 16), ("dgx-z100", 1)), "", "unknown system 'dgx-z100'"),
    ],
)
def test_kinds_that_do_not_fit_are_refused(kinds, nodes, says):
    assert any(says in fault for fault in faults(*kinds, nodes=nodes))


def test_link_that_one_kind_cannot_carry_is_refused():
    assert any(
        "more than a NIC of the node" in fault
        for fault in faults(("dgx-h100", 1), ("dgx-a100", 1), more="fabric: {link: infiniband-ndr-400}\n")
    )


def test_collectives_wait_for_the_narrowest_nics():
    def seconds(cluster):
        return collective_times("all_gather", setting_of(cluster), np.array([2.0**30])).time_s[0]

    half = "{gpu: h100-sxm, gpus_per_node: 8, nics: 4, nic: connectx-7, link: infiniband-ndr-400}"
    table = f"linkwise: cluster/1\nnodes: 8\nnode: {half}\n"
    there = mixed(("dgx-h100", 4), (half, 4), more="")
    assert seconds(there) == pytest.approx(seconds(parse_cluster(table)))
    assert seconds(there) > 1.5 * seconds(parse_cluster("linkwise: cluster/1\nnodes: 8\nnode: dgx-h100\n"))


def test_schema_takes_a_list_of_kinds_for_the_number_of_nodes():
    schema = json_schema(ClusterDocument, HEADER)
    kinds = [{"node": "dgx-h100", "nodes": 2}, {"node": "dgx-a100", "nodes": 2}]
    jsonschema.validate({"linkwise": "cluster/1", "node": kinds}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"linkwise": "cluster/1", "node": "dgx-h100"}, schema)


def test_kinds_without_a_common_link_ask_for_one():
    assert any(
        "nothing joins them: name a link" in fault
        for fault in faults(("dgx-h100", 1), ("dgx-a100", 1), more="")
    )


SYSTEMS = ["dgx-h100", "dgx-a100", "dgx-h200", "dgx-b200"]


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(SYSTEMS), st.integers(1, 4)),
        min_size=2,
        max_size=3,
        unique_by=lambda kind: kind[0],
    )
)
def test_mixed_nodes_have_no_more_than_any_of_their_kinds(kinds):
    cluster = mixed(*kinds)
    for system, _ in kinds:
        alone = parse_cluster(f"linkwise: cluster/1\nnodes: {cluster.nodes}\nnode: {system}\n{HDR}")
        assert cluster.node_bytes_per_s <= alone.node_bytes_per_s
        assert cluster.gpu.nvlink_bytes_per_s <= alone.gpu.nvlink_bytes_per_s
        assert cluster.gpu.memory_bytes <= alone.gpu.memory_bytes
        assert cluster.gpu.flop_per_s["bf16"] <= alone.gpu.flop_per_s["bf16"]
