"""Slurm's topology.conf and topology.yaml."""

from pathlib import Path

import pytest

from linkwise.errors import DocumentError
from linkwise.readers.slurm_topology import (
    is_slurm_topology,
    is_slurm_topology_yaml,
    parse_slurm_topology,
    parse_slurm_topology_yaml,
)

DATA = Path(__file__).parents[1] / "data/imports"
TREE = "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[3-4]\nSwitchName=top Switches=a,b\n"


def test_tree_is_read_in_any_case_of_its_keys():
    text = (DATA / "slurm-tree.conf").read_text()
    assert is_slurm_topology(text)
    topology = parse_slurm_topology(text)
    assert (len(topology.nodes), len(topology.switches), topology.tiers) == (32, 3, 2)
    assert "gpu-032" in topology.nodes
    assert topology.switches[-1].children == ("leaf1", "leaf2")


def test_blocks_are_read():
    topology = parse_slurm_topology((DATA / "slurm-block.conf").read_text())
    assert [len(block.nodes) for block in topology.blocks] == [18, 18]
    assert (topology.block_sizes, topology.tiers) == ((18, 36), 0)


def test_default_topology_of_the_yaml_is_read():
    text = (DATA / "slurm-topology.yaml").read_text()
    assert is_slurm_topology_yaml(text)
    topology = parse_slurm_topology_yaml(text)
    assert (len(topology.nodes), len(topology.switches), topology.tiers) == (24, 6, 3)


def test_first_topology_with_switches_or_blocks_is_read_where_none_is_the_default():
    text = (
        (DATA / "slurm-topology.yaml").read_text().replace("cluster_default: true", "cluster_default: false")
    )
    assert parse_slurm_topology_yaml(text).tiers == 3
    alone = text[: text.index("- topology: by-switch")] + text[text.index("- topology: by-block") :]
    blocks = parse_slurm_topology_yaml(alone)
    assert (blocks.block_sizes, len(blocks.blocks), len(blocks.nodes)) == ((8, 16), 1, 8)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            TREE.replace("Switches=a,b", "Switches=a,c"),
            "f:3: top has the child 'c', which has no line of its own",
        ),
        (TREE.replace("=b ", "=a "), "f:2: the switch 'a' is here and in line 1; keep one"),
        (TREE + "SwitchName=x Switches=y\nSwitchName=y Switches=x\n", "is above itself"),
        (TREE.replace("n[3-4]", "n[4-3]"), "f:2: the range 4-3"),
        (TREE + "NodeName=x\n", "f:4: 'NodeName=x' names no switch and no block"),
        (TREE + "what is this\n", "f:4: 'what is this' is not KEY=VALUE"),
        (TREE + "SwitchName=x Ports=3\n", "f:4: unknown key 'ports'"),
        (TREE + "BlockName=x Nodes=n1\n", "has switches and blocks"),
        ("BlockName=a Nodes=n1\nBlockName=b Nodes=n1\n", "f:2: the node 'n1' is in the blocks a and b"),
        ("BlockName=a Nodes=n1\nBlockSizes=0\n", "f:2: BlockSizes '0' are not whole numbers"),
        ("SwitchName=a\n", "no switch and no block has nodes"),
        ("SwitchName=s[1-100000] Nodes=n[1-100000]\n", "f:1: stands for more than 1,000,000 names in all"),
    ],
)
def test_fault_of_the_conf_is_told(text, said):
    with pytest.raises(DocumentError) as told:
        parse_slurm_topology(text, path="f")
    assert said in str(told.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("topology: x\ntree: 1\n", "is not a list of topologies"),
        ("- topology: x\n  flat: true\n", "no topology is a tree or has blocks"),
        ("- topology: x\n  tree:\n    leaves: []\n", "f:2: 0.tree: has no list of switches"),
        ("- topology: x\n  tree:\n    switches:\n      - nodes: n1\n", "is no switch with a name"),
        (
            "- topology: x\n  tree:\n    switches:\n      - switch: a\n        nodes: [n1]\n",
            "f:4: 0.tree.switches.0: the nodes of 'a' are not text",
        ),
        ("- topology: x\n  tree: [\n", "not valid YAML"),
    ],
)
def test_fault_of_the_yaml_is_told(text, said):
    with pytest.raises(DocumentError) as told:
        parse_slurm_topology_yaml(text, path="f")
    assert said in str(told.value)
