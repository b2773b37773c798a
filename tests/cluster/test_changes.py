"""Changes of a cluster: selectors, what is left, and which are refused."""

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.cluster.changes import gpu_speed_fraction, gpus_left, network_fraction
from linkwise.cluster.document import HEADER, ClusterDocument
from linkwise.cluster.reading import parse_cluster
from linkwise.documents.reading import json_schema
from linkwise.errors import DocumentError


def cluster(*changes, head="nodes: 32\nnode: dgx-h100"):
    listed = "".join(f"  - {{{each}}}\n" for each in changes)
    return parse_cluster(f"linkwise: cluster/1\n{head}\nchanges:\n{listed}", path="c.yaml")


def refusal(*changes, **head):
    with pytest.raises(DocumentError) as caught:
        cluster(*changes, **head)
    return str(caught.value)


def test_slowest_nic_and_fewest_nics_decide_for_all():
    slow = cluster("nics: node 3 nic 2, rate: 100 Gbit/s")
    assert slow.node_bytes_per_s == pytest.approx(0.25 * 8 * 50e9)
    one_less = cluster("nics: node 3 nic 2, missing: true")
    assert one_less.node_bytes_per_s == pytest.approx(7 * 50e9)
    both = cluster("nics: node 3 nic 2, missing: true", "nics: 'node 0-7 nic 4,5', fraction: 0.5")
    assert both.gpu_network_bytes_per_s == pytest.approx(0.5 * 7 / 8 * 50e9)
    assert (both.nodes, both.nics_per_node, both.nic_bytes_per_s) == (32, 8, 50e9)


def test_only_nodes_that_take_part_count():
    there = cluster("nics: node 3 nic 2, fraction: 0.5", "gpus: node 30 gpu 1, fraction: 0.9")
    assert (network_fraction(there, 24), network_fraction(there, 32)) == (1.0, 0.5)
    assert (gpu_speed_fraction(there, 240), gpu_speed_fraction(there)) == (1.0, 0.9)
    # With node 0 missing the first three nodes are 1, 2 and 3.
    shifted = cluster("nics: node 3 nic 2, fraction: 0.5", "nodes: node 0, missing: true")
    assert network_fraction(shifted, 24) == 0.5


def test_missing_nodes_and_nodes_without_a_gpu_are_left_out():
    there = cluster("nodes: 'node 5-6', missing: true", "gpus: node 9 gpu 0, missing: true")
    assert (there.nodes, there.nodes_in_use, there.gpus) == (32, 29, 232)
    numbers = cluster("nodes: 5-6, missing: true", "nodes: 9, missing: true")
    assert numbers.gpus == there.gpus
    assert any("3 of 32 nodes are left out" in words for words in there.assumptions)


def test_domains_that_span_nodes_use_what_each_has_left():
    racks = "nodes: 72\nnode: gb200-nvl72"  # four racks of 18 trays
    one_tray = cluster("nodes: node 20, missing: true", head=racks)
    assert (one_tray.gpus, one_tray.nvlink_domain_gpus) == (4 * 68, 68)
    half_a_rack = cluster("nodes: node 18-26, missing: true", head=racks)
    assert (half_a_rack.gpus, half_a_rack.nvlink_domain_gpus) == (3 * 72, 72)


@given(
    domains=st.integers(1, 6),
    size=st.integers(2, 6),
    lost=st.sets(st.integers(0, 35), max_size=10),
)
def test_gpus_left_are_never_more_than_nodes_left(domains, size, lost):
    nodes = domains * size
    missing = {node for node in lost if node < nodes}
    gpus, domain = gpus_left(nodes=nodes, node_gpus=4, domain_nodes=size, missing=missing)
    assert gpus <= 4 * (nodes - len(missing))
    assert gpus % domain == 0 if domain else gpus == 0
    assert missing or gpus == 4 * nodes


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("nics: nic 2, missing: true", "c.yaml:5: changes.0.nics: 'nic 2' does not select nics; write it as"),
        ("nics: 3, missing: true", "c.yaml:5: changes.0.nics: '3' does not select nics; write it as"),
        ("nics: node 3 nic x, missing: true", "'node 3 nic x' does not select nics"),
        ("nics: node 32 nic 0, missing: true", "node 32 is not there: the cluster has nodes 0 to 31"),
        ("nics: node 0 nic 8, missing: true", "nic 8 is not there: a node has nics 0 to 7"),
        ("gpus: node 0 gpu 9, fraction: 0.5", "gpu 9 is not there"),
        ("nics: node 0 nic 5-2, missing: true", "the first number is larger than the last"),
        ("links: leaf 0 spine 1, missing: true", "leaf 0: counted from 1"),
        ("nics: node 0 nic 0, rate: 400 Gbit/s", "c.yaml:5: changes.0.rate: has no effect"),
        ("nics: node 0 nic 0, fraction: 1.0", "changes.0.fraction"),
        ("nics: node 0 nic 0, missing: false", "changes.0.missing"),
        ("nodes: node 0, rate: 1 Gbit/s", "nodes have a speed and no rate"),
        ("switches: leaf 1, fraction: 0.5", "a switch is there or missing"),
        ("nics: node 0 nic 0", "says too little; say one of rate, fraction and missing: true"),
        ("nics: node 0 nic 0, missing: true, fraction: 0.5", "fraction and missing do not go together"),
        ("nics: node 0 nic 0, nodes: node 1, missing: true", "nics and nodes do not go together"),
        ("nics: node 0 nic *, missing: true", "node 0 has no NIC left; write {nodes: node 0, missing: true}"),
        ("nodes: node *, missing: true", "changes: leave no node to train on"),
        ("nodes: node 0-31, missing: true", "leave no node to train on"),
    ],
)
def test_change_is_refused_with_its_place(change, says):
    assert says in refusal(change)


def test_changes_without_effect_are_refused():
    overlap = refusal("nics: node 0-3 nic 1, fraction: 0.5", "nics: node 2 nic 0-7, fraction: 0.9")
    assert "changes.1.nics: names a part of node 2 that changes.0 names; keep one" in overlap
    idle = refusal("nodes: node 0, missing: true", "nics: node 0 nic 1, fraction: 0.5")
    assert "changes.1.nics: has no effect: its nodes are missing" in idle
    alone = "nodes: 1\nnode: dgx-h100\nfabric: {kind: none}"
    assert "has no effect: there is no fabric" in refusal("nics: node 0 nic 1, fraction: 0.5", head=alone)
    few = "nodes: 32\nnode: dgx-h100\ngpus: 64"
    assert "the 64 GPUs in use are those of other nodes" in refusal(
        "gpus: node 8 gpu 0, fraction: 0.9", head=few
    )
    assert gpu_speed_fraction(cluster("gpus: node 7 gpu 0, fraction: 0.9", head=few)) == 0.9
    more = refusal("nodes: node 0, missing: true", head="nodes: 2\nnode: dgx-h100\ngpus: 16")
    assert "16 GPUs are more than the 8 that changes leave" in more


def test_changes_of_too_many_parts_are_refused_before_they_are_counted_out():
    head = "nodes: 10000000\nnode: dgx-h100"
    assert "name more than 1,000,000 parts" in refusal("nics: node * nic 0, fraction: 0.5", head=head)


def test_json_schema_accepts_what_is_read():
    schema = json_schema(ClusterDocument, HEADER)
    changes = [{"nodes": 5, "missing": True}, {"nics": "node 1 nic 0", "rate": "100 Gbit/s"}]
    whole = {"linkwise": "cluster/1", "nodes": 32, "node": "dgx-h100", "changes": changes}
    jsonschema.validate(whole, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(whole | {"changes": [{"nics": "node 1 nic 0", "fraction": 1.5}]}, schema)


@given(st.text(alphabet="node ic-,*0129", max_size=30))
def test_selector_of_any_text_is_read_or_refused(text):
    try:
        there = cluster(f'nics: "{text}", fraction: 0.5')
    except DocumentError:
        return
    assert network_fraction(there) == 0.5
