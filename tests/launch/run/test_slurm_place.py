"""Slurm as the place of a bench: its command, what lies in the run folder, and its queue."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from linkwise.launch.run.place import TorchJob
from linkwise.launch.run.slurm_place import SlurmPlace, SlurmQueue

# As srun 22.05 prints them.
WAITS = "srun: job 12 queued and waiting for resources"
GRANTED = "srun: job 12 has been allocated resources"


@pytest.fixture
def job(tmp_path):
    program = tmp_path / "installed" / "torch_job"
    program.mkdir(parents=True)
    (program / "start.py").write_text("print('starts')\n")
    return TorchJob(
        script=str(program / "start.py"), arguments=("pairs",), ranks=16, python="/opt/python", device="cuda"
    )


@pytest.fixture
def place():
    return SlurmPlace(
        nodes=2, ranks_per_node=8, queue_s=60.0, patience_s=30.0, options=("--partition=train",)
    )


@pytest.fixture
def staged(place, job, tmp_path):
    (tmp_path / "run").mkdir()
    return place.stage(job, tmp_path / "run")


def test_nodes_are_taken_whole_with_their_gpus(place, staged):
    command = place.command(staged, run_id="ab12", inherited={"MASTER_PORT": "1", "NCCL_DEBUG": "INFO"})
    for word in ("--nodes=2", "--ntasks-per-node=1", "--exclusive", "--gpus-per-node=8", "--partition=train"):
        assert word in command.argv
    assert command.argv[-2:] == (staged.script, "pairs")
    assert "MASTER_PORT" not in command.environment({"MASTER_PORT": "1"})
    assert command.stop[-1] == "linkwise-ab12"
    assert "--job-name=linkwise-ab12" in command.argv
    assert command.expected.settings == {"NCCL_DEBUG": "INFO", "OMP_NUM_THREADS": "1"}


def test_trial_on_cpus_asks_for_no_gpus_and_hides_them(place, staged):
    command = place.command(replace(staged, device="cpu"), run_id="ab12", inherited={})
    assert not any("gpus" in word for word in command.argv)
    assert command.expected.settings["CUDA_VISIBLE_DEVICES"] == ""


def test_programs_lie_in_the_run_folder_that_all_nodes_see(staged, tmp_path):
    folder = tmp_path / "run"
    assert staged.script == str(folder / "program" / "torch_job" / "start.py")
    wanted = json.loads((folder / "agent" / "wanted.json").read_text())
    assert (wanted["nodes"], wanted["per_node"], wanted["gpus"], wanted["meets"]) == (2, 8, 8, True)


def test_agents_start_torchrun_at_a_port_that_is_free_on_the_first_node(tmp_path, job):
    place = SlurmPlace(nodes=2, ranks_per_node=1, queue_s=60.0, patience_s=30.0)
    folder = tmp_path / "run"
    folder.mkdir()
    # Plays torchrun for the agent, which runs as this Python with a torch of its own.
    (tmp_path / "torch-2.13.0.dist-info").mkdir()
    (tmp_path / "torch-2.13.0.dist-info" / "METADATA").write_text("Name: torch\nVersion: 2.13.0\n")
    (tmp_path / "torch" / "distributed").mkdir(parents=True)
    for package in ("torch", "torch/distributed"):
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "torch" / "distributed" / "run.py").write_text("import sys; print(' '.join(sys.argv[1:]))\n")
    staged = place.stage(replace(job, device="cpu"), folder)
    agent = [sys.executable, str(folder / "agent" / "node_agent.py"), staged.script, "pairs"]
    name = f"host{os.getpid()}x"
    nodes = [
        subprocess.Popen(
            agent,
            stdout=subprocess.PIPE,
            text=True,
            env={
                "PYTHONPATH": str(tmp_path),
                "PATH": "/usr/bin:/bin",
                "LINKWISE_RUN_FOLDER": str(folder),
                "SLURM_NODEID": str(node),
                "SLURMD_NODENAME": f"{name}{node}",
            },
        )
        for node in (1, 0)
    ]
    try:
        said = {process.communicate(timeout=30)[0].strip() for process in nodes}
    finally:
        for process in nodes:
            process.terminate()
    port = json.loads((folder / "seen" / "node-0.json").read_text())["port"]
    meeting = f"--master-addr {name}0 --master-port {port} {staged.script} pairs"
    assert said == {f"--nnodes 2 --nproc-per-node 1 --node-rank {node} {meeting}" for node in (0, 1)}


def test_queue_is_known_by_what_srun_prints():
    queue = SlurmQueue(patience_s=1.0, ask=lambda words: "None\n" if words[3] == "1" else "Resources\n")
    assert queue.heard(WAITS) == "12"
    assert queue.heard(GRANTED) == ""
    assert queue.heard("step 12 of 20") is None
    assert (queue.reason("1"), queue.reason("12")) == ("", "Resources")
