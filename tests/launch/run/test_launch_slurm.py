"""Launches on the real Slurm of a lab: nodes are network namespaces, ranks meet over its links with gloo.

One run is in the quick tests; the faults are in `test_slurm_faults`.
"""

import json
import os

import pytest

from tests.lab.slurm_labs import slurm_lab
from tests.launch.run.slurm_launches import launch_words, record_in

pytestmark = [
    pytest.mark.requires("netns"),
    pytest.mark.requires("slurm"),
    pytest.mark.requires("torch"),
    pytest.mark.slow,
]


def test_job_of_two_nodes_runs_on_the_slurm_of_a_lab_over_its_links_and_is_proved(tmp_path):
    with slurm_lab(f"l{os.getpid()}", nodes=2, gpus=2) as lab:
        done = lab.run(*launch_words(tmp_path, steps=16), "--format", "json", cwd=tmp_path)
        record = record_in(tmp_path)
        assert done.returncode == 0, f"{record['reason']}\n{record['checks']}\n{done.stderr}"
        assert json.loads(done.stdout) == record
        assert record["hosts"] == record["expected"]["hosts"] == ["n0", "n1"]
        assert (record["outcome"], record["valid"], record["place"]) == ("done", True, "slurm")
        assert len(record["samples"]) == 16
        # 120,000 parameters of 4 bytes and 16 steps are 7.7 MB; what Slurm itself says is far less.
        assert lab.sent_bytes(1, "eth0") > 5e6
        assert lab.sent_bytes(1, "mgmt0") < 1e6
