"""`linkwise launch`: what it refuses, what it prints, and real jobs of torch with four ranks."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from linkwise.cli.main import run
from linkwise.launch.run.processes import living

CONFIG = {
    "model_type": "gpt2",
    "n_layer": 2,
    "n_embd": 64,
    "n_head": 2,
    "n_positions": 128,
    "vocab_size": 256,
}
CLUSTER = "linkwise: cluster/1\nname: one-node\nnodes: 1\nnode: dgx-h100\ngpus: 4\nfabric: {kind: none}\n"
RANKS = """\
import os, signal, sys, time, torch.distributed as dist
dist.init_process_group("gloo")
rank, again = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
for step in range(1, 1 + int(os.environ.get("TORCH_STEPS", "1000"))):
    dist.barrier()
    if rank == 0:
        print(f"step {step} loss 1.0 time 0.1000 s tokens/s 10", flush=True)
    if os.environ.get("TORCH_DIE") and rank == 2 and not again and step == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
dist.barrier()
dist.destroy_process_group()
"""


@pytest.fixture
def words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("NCCL_", "GLOO_", "UCX_", "FI_"))]:
        monkeypatch.delenv(name)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "ranks.py").write_text(RANKS)
    job = ["--model", "config.json", "--framework", "ddp", "--sequence-length", "32", "--global-batch", "8"]
    return ["launch", *job, "--tokens", "8000", "--cluster", "cluster.yaml"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--sbatch", "--partition=x"], "--sbatch has no effect without --on slurm"),
        (["--queue-within", "1 h"], "--queue-within has no effect without --on slurm"),
        (["--on", "slurm", "--restarts", "1"], "--restarts has no effect with --on slurm"),
        (["--on", "slurm", "--sbatch", "x"], "write an option of sbatch"),
        (["--script", "no.py"], "--script no.py: is no file here"),
        (["--set", "NCCL"], "write NAME=VALUE"),
        (["--set", "RANK=1"], "leave it out"),
        (["--start-within", "0 s"], "write a time above zero"),
        (["--time-limit", "0"], "is not between 0 and 8760 hours"),
        (["--attach", "run"], "has no effect with --attach"),
        (["--python", "/no/python"], "--python /no/python: cannot be started"),
        (["-o", "no/folder/run"], "-o no/folder/run: cannot be made"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(words, capsys, tmp_path, more, message):
    assert run([*words, *more]) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["cluster.yaml", "config.json", "ranks.py"]


def test_cluster_of_several_nodes_needs_slurm(words, capsys):
    assert run([*words[:-1], "dgx-h100:2"]) == 2
    assert "has 2 nodes, and --on local runs on this machine alone" in capsys.readouterr().err


def test_variable_of_the_shell_that_no_plan_names_is_refused(words, capsys, monkeypatch):
    monkeypatch.setenv("NCCL_IB_DISABLE", "1")
    assert run([*words, "--dry-run"]) == 2
    assert "plan it with --set NCCL_IB_DISABLE=1" in capsys.readouterr().err
    assert run([*words, "--dry-run", "--set", "NCCL_IB_DISABLE=1"]) == 0
    assert "export NCCL_IB_DISABLE=1" in capsys.readouterr().out


def test_folder_without_a_record_cannot_be_attached(tmp_path, capsys):
    assert run(["launch", "--attach", str(tmp_path)]) == 2
    assert "name the run folder of 'linkwise launch'" in capsys.readouterr().err


def test_dry_run_prints_what_slurm_would_get(words, capsys, tmp_path):
    assert run([*words, "--on", "slurm", "--sbatch=-A me", "--dry-run", "-o", "run"]) == 0
    out = capsys.readouterr().out
    assert f"sbatch --parsable --export=ALL --output={tmp_path}/run/output.log '-A me' job.sbatch" in out
    assert "#SBATCH --nodes=1" in out
    assert run([*words, "--dry-run", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"]["start.sh"].startswith("#!/bin/bash")
    assert not (tmp_path / "run").exists()


@contextmanager
def started(words, **settings):
    """Start the command line as a person does, and wait until rank 0 trains."""
    command = [sys.executable, "-c", "from linkwise.cli.main import main; main()", *words]
    process = subprocess.Popen(
        command, env={**os.environ, **settings}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(text, folder, limit_s=90):
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        output = folder / "output.log"
        if output.exists() and text in output.read_text():
            return
        time.sleep(0.1)
    raise AssertionError(output.read_text() if output.exists() else "no output")


def told(folder):
    return json.loads((folder / "record.json").read_text())


@pytest.mark.slow
@pytest.mark.requires("torch")
def test_four_ranks_of_the_planned_program_run_and_are_proved(words, capsys, tmp_path):
    assert run([*words, "--device", "cpu", "-o", "run", "--format", "json"]) == 0, capsys.readouterr().err
    result = json.loads(capsys.readouterr().out)
    assert result == told(tmp_path / "run")
    assert (result["schema"], result["outcome"], result["valid"]) == ("linkwise.launch/1", "done", True)
    assert result["versions"]["torch"].startswith("2.")
    assert [each["number"] for each in result["samples"]] == list(range(1, 33))
    assert result["step_time"]["count"] == 30
    assert list(living(result["id"])) == []


@pytest.mark.slow
@pytest.mark.requires("torch")
def test_lost_launcher_second_launch_and_killed_rank(words, capsys, tmp_path):
    words = [*words, "--device", "cpu", "--script", "ranks.py", "-o"]
    with started([*words, "run"]) as launcher:
        wait_for("step 3 ", tmp_path / "run")
        launcher.send_signal(signal.SIGKILL)
        launcher.wait()
    assert told(tmp_path / "run")["outcome"] == "running"
    assert run([*words, "other"]) == 1
    assert "another launch runs on its CPUs" in told(tmp_path / "other")["reason"]
    assert f"run folder {tmp_path / 'run'}" in told(tmp_path / "other")["reason"]
    ranks = json.loads((tmp_path / "run" / "seen" / "ranks-0.json").read_text())
    os.kill(next(each["pid"] for each in ranks if each["rank"] == 2), signal.SIGKILL)
    assert run(["launch", "--attach", "run"]) == 1
    result = told(tmp_path / "run")
    assert (result["outcome"], result["valid"], result["exit_code"]) == ("failed", True, 1)
    assert result["reason"].startswith("rank 2 was killed by signal 9 (SIGKILL)")
    assert list(living(result["id"])) == []


@pytest.mark.full
@pytest.mark.requires("torch")
def test_interrupt_ends_all_ranks(words, tmp_path):
    words = [*words, "--device", "cpu", "--script", "ranks.py", "-o", "run"]
    with started(words) as launcher:
        wait_for("step 3 ", tmp_path / "run")
        launcher.send_signal(signal.SIGTERM)
        assert launcher.wait(60) == 130
    result = told(tmp_path / "run")
    assert (result["outcome"], result["step_time"]) == ("interrupted", None)
    assert list(living(result["id"])) == []
    assert not list((tmp_path / "run").glob(".r*"))


@pytest.mark.full
@pytest.mark.requires("torch")
def test_killed_rank_starts_again_with_restarts(words, tmp_path):
    words = [*words, "--device", "cpu", "--script", "ranks.py", "-o", "run", "--restarts", "1"]
    words += ["--set", "TORCH_DIE=1", "--set", "TORCH_STEPS=8"]
    assert run(words) == 0
    settings = told(tmp_path / "run")["expected"]["settings"]
    assert settings["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] == "1"
