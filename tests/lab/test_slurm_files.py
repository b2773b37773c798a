"""Files of a Slurm in a lab: its tree of switches, its nodes, their names."""

from pathlib import Path

import pytest

from linkwise.cli.main import run
from linkwise.errors import ExitCode
from linkwise.lab.slurm_files import network_batches, slurm_texts
from tests.lab.test_design import cluster, design_of

HOME = Path("/run/x/slurm")


def texts(kind="single-switch", *, has_cgroup_v2=False, **more):
    return slurm_texts("x", design_of(cluster(kind, **more)), HOME, has_cgroup_v2=has_cgroup_v2)


@pytest.mark.parametrize(
    ("kind", "more", "tree"),
    [
        ("single-switch", {}, ["SwitchName=leaf0 Nodes=n0,n1,n2,n3"]),
        (
            "leaf-spine, oversubscription: 2",
            {"nodes": 2},
            [
                "SwitchName=leaf0 Nodes=n0",
                "SwitchName=leaf1 Nodes=n1",
                "SwitchName=spine Switches=leaf0,leaf1",
            ],
        ),
        # Every node hangs on every rail: for a scheduler they are one group.
        ("rail-optimized", {"nics": 2}, ["SwitchName=leaf0-leaf1 Nodes=n0,n1,n2,n3"]),
        ("rail-only", {"nics": 2}, ["SwitchName=rail0-rail1 Nodes=n0,n1,n2,n3"]),
    ],
)
def test_tree_of_switches_is_that_of_the_lab(kind, more, tree):
    found = texts(kind, **more)
    assert found["topology.conf"].splitlines() == tree
    assert "TopologyPlugin=topology/tree\n" in found["slurm.conf"]


def test_one_node_has_no_tree():
    found = texts(nodes=1)
    assert "topology.conf" not in found
    assert "topology" not in found["slurm.conf"]
    assert found["hosts"].splitlines()[-1] == "198.19.0.1 n0"


def test_nodes_have_gpus_and_names_that_mean_the_links_of_the_lab():
    found = texts(nodes=2, gpus=4)
    assert (
        "NodeName=n1 NodeAddr=198.19.0.2 CPUs=8 RealMemory=4000 Gres=gpu:emulated:4\n" in found["slurm.conf"]
    )
    assert found["gres.conf"] == f"NodeName=n0,n1 Name=gpu Type=emulated File={HOME}/dev/gpu[0-3]\n"
    assert found["hosts"].splitlines()[2:] == ["198.18.0.1 n0", "198.18.0.2 n1"]


@pytest.mark.parametrize(("has_v2", "plugin"), [(False, "cgroup/v1"), (True, "cgroup/v2")])
def test_control_groups_are_those_of_the_machine_and_hold_nothing(has_v2, plugin):
    said = texts(has_cgroup_v2=has_v2)["cgroup.conf"]
    assert said.startswith(f"CgroupPlugin={plugin}\n")
    assert "=yes" not in said.replace("IgnoreSystemd=yes", "")


def test_network_of_slurm_is_inside_the_lab():
    lines = [line for batch in network_batches("x", design_of(cluster(nodes=2))) for line in batch.lines]
    assert all("netns lw-x-" in line for line in lines if line.startswith("link add"))


def test_without_root_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    for words in (["up"], ["down"], ["status"], ["shell", "sinfo"]):
        assert run(["lab", "slurm", *words]) == ExitCode.WRONG_INPUT
        assert "which takes root; use sudo" in capsys.readouterr().err
