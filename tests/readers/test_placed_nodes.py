"""Nodes as topograph and Kubernetes list them."""

import json
from pathlib import Path

import pytest

from linkwise.errors import DocumentError
from linkwise.readers.placed_nodes import (
    is_kubernetes_nodes,
    is_topograph,
    parse_kubernetes_nodes,
    parse_topograph,
)

DATA = Path(__file__).parents[1] / "data/imports"


def node(name, labels=None, capacity=None, **more):
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "status": {"capacity": capacity},
    } | more


def listed(*items):
    return json.dumps({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": list(items)})


def test_nodes_of_a_cloud_are_read():
    text = (DATA / "kubernetes-aws-p5.json").read_text()
    assert is_kubernetes_nodes(text)
    nodes = parse_kubernetes_nodes(text)
    first, last = nodes[0], nodes[-1]
    assert (first.gpu, first.gpus, first.nics) == ("NVIDIA-H100-80GB-HBM3", 8, 32)
    assert (first.instance_type, first.layers) == ("p5.48xlarge", ("nn-low0", "nn-mid0", "nn-top"))
    assert (last.gpu, last.gpus, last.nics) == (None, 0, None)


def test_domains_and_tiers_are_read():
    nodes = parse_kubernetes_nodes((DATA / "kubernetes-gb200.json").read_text())
    assert (nodes[0].domain, nodes[-1].domain) == (
        "9f0c2e0a-0000-4000-8000-000000000000.1",
        "9f0c2e0a-0000-4000-8000-000000000001.1",
    )
    assert nodes[-1].layers == ("leaf1", "spine0")


def test_older_labels_name_leaf_spine_and_core():
    labels = {
        f"network.topology.nvidia.com/{tier}": tier for tier in ("core", "leaf", "spine", "accelerator")
    }
    (found,) = parse_kubernetes_nodes(listed(node("n", labels)))
    assert (found.layers, found.domain) == (("leaf", "spine", "core"), "accelerator")


def test_physical_gpus_go_before_shared_ones():
    shared = node("n", {"nvidia.com/gpu.count": "8"}, {"nvidia.com/gpu": "32"})
    assert parse_kubernetes_nodes(listed(shared))[0].gpus == 8
    assert parse_kubernetes_nodes(listed(node("n", {}, {"amd.com/gpu": "8"})))[0].gpus == 8


def test_one_node_alone_is_read():
    assert parse_kubernetes_nodes(json.dumps(node("n", {}, {"nvidia.com/gpu": 4})))[0].gpus == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (listed(node("a"), node("a")), "f: the node 'a' is listed more than once"),
        (listed(node("a", kind="Pod")), "f: items[0]: 'Pod' is no node"),
        (listed(node("")), "f: items[0]: has no metadata.name"),
        (listed(node("a", {}, {"nvidia.com/gpu": "many"})), "f: items[0]: 'many' is not a number of GPUs"),
        (listed(7), "f: items[0]: '7' is no node"),
        (listed(), "f: items: is a Kubernetes list without nodes"),
        (listed(node("a"))[:-9], "f:1: not valid JSON: "),
        ('{"a":' * 100_000, "nested too deep"),
        ("[1, 2]", "f:1: is no JSON object"),
        ('{"a": ' + "9" * 5000 + "}", "not valid JSON"),
        ("[" * 6_000_000, "holds more than 5,000,000 values"),
    ],
)
def test_fault_of_kubernetes_is_told(text, said):
    with pytest.raises(DocumentError) as told:
        parse_kubernetes_nodes(text, path="f")
    assert said in str(told.value)
    assert len(str(told.value)) < 1000


@pytest.mark.parametrize(
    ("name", "count", "domain", "gpu"),
    [("topograph-labels.json", 12, "nvl-0", None), ("topograph-attributes.json", 8, "nvl-0", "H100")],
)
def test_both_forms_of_topograph_are_read(name, count, domain, gpu):
    text = (DATA / name).read_text()
    assert is_topograph(text)
    nodes = parse_topograph(text)
    assert len(nodes) == count
    assert (nodes[0].layers, nodes[0].domain, nodes[0].gpu) == (("leaf-0", "spine-a"), domain, gpu)


@pytest.mark.parametrize(
    ("instances", "said"),
    [
        ([{"network_layers": []}], "instances[0]: has no id"),
        ([{"id": "a", "network_layers": [1]}], "instances[0]: network_layers are no list of names"),
        ([{"id": "a"}, {"id": "a"}], "the node 'a' is listed more than once"),
        ([], "has no list of instances"),
        (None, "has no list of instances"),
    ],
)
def test_fault_of_topograph_is_told(instances, said):
    with pytest.raises(DocumentError) as told:
        parse_topograph(json.dumps({"instances": instances}))
    assert said in str(told.value)
