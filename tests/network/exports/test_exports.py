"""Exports, read back as the programs they are for read them."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from linkwise.cluster import load_cluster
from linkwise.errors import InputError
from linkwise.network.clos import wiring_of
from linkwise.network.exports import EXPORTS
from linkwise.network.exports.places import places_of

YAML_1_2 = YAML(typ="safe", pure=True)
systems = st.sampled_from(["dgx-h100", "dgx-b200", "gb200-nvl72", "dgx-a100"])


def _members(text):
    """Return the numbers of a host list: ``name-[0-3]`` or ``name-7``."""
    found = re.fullmatch(r"[a-z]+-(?:\[(\d+)-(\d+)\]|(\d+))", text)
    first, last, alone = found.groups()
    return [int(alone)] if alone else list(range(int(first), int(last) + 1))


def _fields(line):
    return dict(word.split("=", 1) for word in line.split())


def _lines(text):
    return [_fields(line) for line in text.splitlines() if not line.startswith("#")]


@given(systems, st.integers(1, 1500))
def test_every_node_is_once_in_a_slurm_tree_with_one_top(system, nodes):
    switches = _lines(EXPORTS["slurm-tree"](load_cluster(f"{system}:{nodes}")))
    listed = [node for each in switches if "Nodes" in each for node in _members(each["Nodes"])]
    assert listed == list(range(nodes))
    names = {each["SwitchName"] for each in switches}
    children = [
        f"{each['Switches'].rsplit('-', 1)[0].split('-[')[0]}-{number}"
        for each in switches
        if "Switches" in each
        for number in _members(each["Switches"])
    ]
    assert len(set(children)) == len(children)
    assert len(names - set(children)) == 1


@given(systems, st.integers(1, 1500))
def test_every_node_is_once_in_a_block_and_sizes_double(system, nodes):
    cluster = load_cluster(f"{system}:{nodes}")
    *blocks, sizes = _lines(EXPORTS["slurm-block"](cluster))
    assert [node for block in blocks for node in _members(block["Nodes"])] == list(range(nodes))
    asked = [int(size) for size in sizes["BlockSizes"].split(",")]
    assert asked == [asked[0] * 2**power for power in range(len(asked))]
    assert asked[-1] <= nodes
    assert len(_members(blocks[0]["Nodes"])) == asked[0]


@given(systems, st.integers(1, 300))
def test_yaml_of_slurm_says_what_the_two_files_say(system, nodes):
    cluster = load_cluster(f"{system}:{nodes}")
    tree, block = YAML_1_2.load(EXPORTS["slurm-yaml"](cluster))
    switches = _lines(EXPORTS["slurm-tree"](cluster))
    assert [each["switch"] for each in tree["tree"]["switches"]] == [each["SwitchName"] for each in switches]
    *blocks, sizes = _lines(EXPORTS["slurm-block"](cluster))
    assert [each["nodes"] for each in block["block"]["blocks"]] == [each["Nodes"] for each in blocks]
    assert ",".join(map(str, block["block"]["block_sizes"])) == sizes["BlockSizes"]
    assert tree["cluster_default"] is True
    assert block["cluster_default"] is False


def test_blocks_of_a_rack_are_its_nvlink_domain():
    *blocks, _ = _lines(EXPORTS["slurm-block"](load_cluster("gb200-nvl72:36")))
    assert [block["Nodes"] for block in blocks] == ["node-[0-17]", "node-[18-35]"]


def test_layers_of_topograph_nest():
    cluster = load_cluster("dgx-h100:1024")
    places = places_of(cluster)
    instances = json.loads(EXPORTS["topograph"](cluster))["instances"]
    assert [each["id"] for each in instances] == [f"node-{node}" for node in range(1024)]
    pods = {}
    for each in instances:
        unit, pod, *_ = each["network_layers"]
        assert pods.setdefault(unit, pod) == pod
    assert len(pods) == places.units


@pytest.mark.parametrize("cluster", ["dgx-h100:64", "gb200-nvl72:36", "dgx-h100:1024"])
def test_levels_of_kueue_are_labels_that_every_node_has(cluster):
    topology, *nodes = YAML_1_2.load_all(EXPORTS["kueue"](load_cluster(cluster)))
    levels = [each["nodeLabel"] for each in topology["spec"]["levels"]]
    assert levels[-1] == "kubernetes.io/hostname"
    seen = {}
    for node in nodes:
        labels = node["metadata"]["labels"]
        path = tuple(labels[level] for level in levels[:-1])
        for depth in range(len(path)):  # the same domain is never under two
            assert seen.setdefault((depth, path[depth]), path[: depth + 1]) == path[: depth + 1]
    assert len(nodes) == int(cluster.split(":")[1])


def test_lab_has_every_cable_and_no_interface_twice():
    cluster = load_cluster("dgx-b200:8")
    lab = YAML_1_2.load(EXPORTS["containerlab"](cluster))
    wiring = wiring_of(cluster)
    ends = [end for link in lab["topology"]["links"] for end in link["endpoints"]]
    assert len(ends) == 2 * (wiring.node_cables + wiring.spine_cables + wiring.core_cables)
    assert len(set(ends)) == len(ends)
    assert {end.split(":")[0] for end in ends} == set(lab["topology"]["nodes"])


def test_a_lab_that_no_machine_runs_is_refused():
    with pytest.raises(InputError, match="use fewer nodes"):
        EXPORTS["containerlab"](load_cluster("dgx-h100:2048"))


def test_astra_sim_has_a_dimension_for_domains_and_one_between_them():
    network = YAML_1_2.load(EXPORTS["astra-sim"](load_cluster("dgx-h100:32")))
    assert network == {
        "topology": ["Switch", "Switch"],
        "npus_count": [8, 32],
        "bandwidth": [450, 50],
        "latency": [600, 5000],
    }
    alone = YAML_1_2.load(EXPORTS["astra-sim"](load_cluster("dgx-h100:1")))
    assert alone["npus_count"] == [8]


@pytest.mark.parametrize(
    ("system", "pair"), [("gh200-4", 150), ("mi300x-8", 64), ("mi355x-8", 76.5), ("azure-nc-a100-v4", 300)]
)
def test_a_full_mesh_is_fully_connected_at_the_rate_of_a_pair(system, pair):
    network = YAML_1_2.load(EXPORTS["astra-sim"](load_cluster(f"{system}:4")))
    assert network["topology"] == ["FullyConnected", "Switch"]
    assert network["bandwidth"][0] == pytest.approx(pair)


@pytest.mark.parametrize("system", ["dgx-1-v100", "aws-p3dn"])
def test_a_hybrid_mesh_is_refused(system):
    with pytest.raises(InputError, match="neither a switch nor a full mesh"):
        EXPORTS["astra-sim"](load_cluster(f"{system}:4"))


def test_half_a_domain_is_no_dimension():
    with pytest.raises(InputError, match="do not fill"):
        EXPORTS["astra-sim"](load_cluster("gb200-nvl72:19"))
