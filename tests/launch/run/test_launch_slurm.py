"""A launch on a Slurm of two nodes that is started for it and stopped again: four ranks of gloo, two on each."""

import json
import time

import pytest

from linkwise.cli.main import run
from tests.cli.test_launch import CONFIG
from tests.launch.render.test_slurm import slurm

__all__ = ["slurm"]
CLUSTER = """\
linkwise: cluster/1
name: two-nodes
nodes: 2
node: {gpu: h100-sxm, gpus_per_node: 2, nic: connectx-7, nics: 2, link: infiniband-ndr-400}
fabric: {kind: single-switch, link: infiniband-ndr-400, switch: quantum-2-qm9700}
"""


@pytest.fixture
def words(slurm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLURM_CONF", slurm("printenv", "SLURM_CONF").stdout.strip())
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    for _ in range(100):
        if slurm("sinfo", "-h", "-t", "idle", "-o", "%D").stdout.strip() == "2":
            break
        time.sleep(0.1)
    job = ["--model", "config.json", "--framework", "ddp", "--sequence-length", "32", "--global-batch", "8"]
    job += ["--tokens", "4000", "--cluster", "cluster.yaml"]
    return ["launch", *job, "--on", "slurm", "--device", "cpu", "-o", "run"]


@pytest.mark.full
@pytest.mark.requires("slurm")
@pytest.mark.requires("torch")
def test_job_of_two_nodes_runs_under_slurm_and_is_proved(words, capsys, slurm, tmp_path):
    code = run([*words, "--format", "json"])
    said = capsys.readouterr()
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    output = (tmp_path / "run" / "output.log").read_text()
    assert code == 0, f"{record['reason']}\n{record['checks']}\n{output[-1000:]}\n{said.err}"
    nodes = slurm("sinfo", "-h", "-N", "-o", "%N").stdout.split()
    assert sorted(record["hosts"]) == sorted(record["expected"]["hosts"]) == sorted(nodes)
    assert (record["outcome"], record["valid"], record["place"]) == ("done", True, "slurm")
    assert len(record["samples"]) == 16


@pytest.mark.full
@pytest.mark.requires("slurm")
def test_job_that_slurm_cannot_start_is_cancelled(words, slurm, tmp_path):
    host = slurm("sinfo", "-h", "-N", "-o", "%N").stdout.split()[0]
    slurm("scontrol", "update", f"nodename={host}", "state=drain", "reason=test")
    assert run([*words, "--queue-within", "3 s"]) == 1
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    assert record["outcome"] == "not started"
    assert record["reason"].startswith("it was queued for 3 s (")
    assert slurm("squeue", "-h").stdout == ""
