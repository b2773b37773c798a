"""The lab as a place: launched jobs and benches on its nodes, and what proves that they used its links."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from linkwise.bench.collectives import CollectivesPlan
from linkwise.bench.torch_run import TorchBench, run_torch
from linkwise.cli.main import run
from linkwise.cli.places import lab_named
from linkwise.errors import InputError
from linkwise.lab.design import design_of
from linkwise.lab.folder import HOME, is_free
from linkwise.lab.life import Ground, lab_in_use, take_down
from linkwise.lab.place import LabPlace, hosts_of, interfaces_of, launch_script, nodes_script
from linkwise.launch.run.place import TorchJob
from linkwise.launch.run.processes import living
from tests.cli.test_launch import CONFIG
from tests.lab.test_design import DOCUMENT, cluster

ONE = {"nodes": 2, "gpus": 2, "nics": 1, "kind": "single-switch"}
TWO = {"nodes": 2, "gpus": 2, "nics": 2, "kind": "rail-only"}
RANKS = """\
import os, sys, time, torch, torch.distributed as dist
if os.environ.get("TORCH_OTHER"):
    os.environ["GLOO_SOCKET_IFNAME"] = os.environ["TORCH_OTHER"]  # a habit of many programs
dist.init_process_group("gloo")
given = torch.ones(1000)
for step in range(1, 1 + int(os.environ.get("TORCH_STEPS", "9"))):
    dist.all_reduce(given)
    if dist.get_rank() == 0:
        print(f"step {step} loss 1.0 time 0.1000 s tokens/s 10", flush=True)
    if os.environ.get("TORCH_DIE") and dist.get_rank() == 3 and step == 3:
        os.kill(os.getpid(), 9)
    time.sleep(0.05)
dist.barrier()
dist.destroy_process_group()
"""


@contextmanager
def lab_of(shape, path, name):
    """Build a lab from a document, and take it down."""
    (path / "cluster.yaml").write_text(DOCUMENT.format(**shape))
    assert run(["lab", "up", str(path / "cluster.yaml"), "--name", name]) == 0
    try:
        yield name
    finally:
        take_down(name, ground=Ground())


@pytest.fixture
def words(tmp_path, monkeypatch):
    """Return the words that launch a small job in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("NCCL_", "GLOO_", "UCX_", "FI_"))]:
        monkeypatch.delenv(name)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "ranks.py").write_text(RANKS)
    job = ["--model", "config.json", "--framework", "ddp", "--sequence-length", "32", "--global-batch", "8"]
    return ["launch", *job, "--tokens", "2304", "--cluster", "cluster.yaml"]


@pytest.fixture
def name():
    return f"p{os.getpid()}"


def left_in(name):
    return [pid for state in ("n0", "n1", "sw") for pid in _pids(f"lw-{name}-{state}")]


def _pids(namespace):
    return subprocess.run(
        ["ip", "netns", "pids", namespace], capture_output=True, text=True, check=True
    ).stdout.split()


def record(path="run"):
    return json.loads((Path(path) / "record.json").read_text())


def seen(told):
    return {each["what"]: (each["is_as_planned"], each["seen"]) for each in told["checks"]}


def test_word_names_a_lab():
    assert lab_named("lab") is None
    assert lab_named("lab:a") == "a"
    for word in ("lab:", "lan", "slurm:x"):
        with pytest.raises(InputError, match="place"):
            lab_named(word)


def test_every_node_is_started_in_its_namespace_and_knows_the_first():
    design = design_of(cluster(nodes=2, gpus=2))
    text = launch_script("x", design, "start.sh")
    for node in (0, 1):
        assert f"ip netns exec lw-x-n{node} env LINKWISE_HOST=x-n{node} LINKWISE_NODE={node} bash" in text
        assert f"/start.sh {node} 198.18.0.1 <&3 &" in text
    assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0
    assert interfaces_of(design_of(cluster(nodes=1, gpus=2))) == ("lo",)


def test_bench_is_told_what_its_ranks_must_be():
    design = design_of(cluster(nodes=2, gpus=2))
    place = LabPlace(lab="x", design=design)
    job = TorchJob(script="a b.py", ranks=4, python="/p y", settings={"GLOO_SOCKET_IFNAME": "eth7"})
    command = place.command(job, run_id="10", inherited={"OMP_NUM_THREADS": "2", "RANK": "5"})
    assert (command.expected.hosts, command.expected.interfaces) == (hosts_of("x", design), ("eth0",))
    assert command.expected.settings == {"GLOO_SOCKET_IFNAME": "eth7", "OMP_NUM_THREADS": "2"}
    assert "RANK" in command.unset
    assert "'/p y' -m torch.distributed.run --nnodes 2" in command.argv[2]
    assert "--master-port 20016 'a b.py' <&3 &" in command.argv[2]


@pytest.mark.requires("netns")
def test_cluster_of_another_shape_is_refused(words, tmp_path, name, capsys):
    with lab_of(ONE, tmp_path, name):
        assert run([*words[:-1], "dgx-h100:1", "--on", f"lab:{name}", "--dry-run"]) == 2
        assert f"lab {name} emulates four (2 nodes of 2), not dgx-h100:1" in capsys.readouterr().err
        assert run([*words, "--on", f"lab:{name}", "--restarts", "1"]) == 2
        assert run([*words, "--on", f"lab:{name}", "--device", "cuda"]) == 2
        assert run(["bench", "collectives", "--on", f"lab:{name}", "--ranks", "3"]) == 2
        assert "3 ranks: the lab has 2 nodes of 2" in capsys.readouterr().err
        with lab_in_use(name, ground=Ground()):
            assert run([*words, "--on", f"lab:{name}", "-o", "run"]) == 2
        assert "is busy" in capsys.readouterr().err
        assert run([*words, "--on", f"lab:{name}", "--dry-run"]) == 0
        assert f"ip netns exec lw-{name}-n1" in capsys.readouterr().out
        assert not (tmp_path / "run").exists()
    assert run([*words, "--on", "lab:none-such"]) == 2


@pytest.mark.full
@pytest.mark.requires("netns")
@pytest.mark.requires("torch")
def test_launched_job_runs_on_the_nodes_of_the_lab_and_is_proved(words, tmp_path, name):
    with lab_of(ONE, tmp_path, name):
        assert run([*words, "--on", f"lab:{name}", "--script", "ranks.py", "-o", "run"]) == 0
        told = record()
        assert (told["place"], told["outcome"], told["valid"]) == ("lab", "done", True)
        assert told["hosts"] == [f"{name}-n0", f"{name}-n1"]
        assert seen(told)["interface"] == (True, "eth0")
        assert len(told["samples"]) == 9
        assert left_in(name) == []
        assert is_free(HOME / name / "lock")


@pytest.mark.full
@pytest.mark.requires("netns")
@pytest.mark.requires("torch")
def test_job_that_takes_another_interface_is_invalid_and_says_so(words, tmp_path, name, monkeypatch, capsys):
    with lab_of(TWO, tmp_path, name):
        on = ["--on", f"lab:{name}", "--script", "ranks.py", "-o"]
        monkeypatch.setenv("TORCH_OTHER", "eth1")
        assert run([*words, *on, "one", "--set", "GLOO_SOCKET_IFNAME=eth0"]) == 1
        assert (record("one")["outcome"], record("one")["valid"]) == ("done", False)
        assert seen(record("one"))["interface"][0] is False
        assert "connections on eth1 (rank 0)" in seen(record("one"))["interface"][1]
        assert record("one")["step_time"] is None
        assert "the run is invalid (interface)" in capsys.readouterr().out.replace("\n", " ")
        assert run([*words, *on, "two"]) == 1  # planned are both NICs
        assert seen(record("two"))["interface"] == (False, "connections on eth1, none on eth0")
        monkeypatch.delenv("TORCH_OTHER")
        assert run([*words, *on, "three"]) == 0
        assert seen(record("three"))["interface"] == (True, "eth0, eth1")


@pytest.mark.full
@pytest.mark.requires("netns")
@pytest.mark.requires("torch")
def test_job_that_takes_the_loopback_fails_and_is_not_proved(words, tmp_path, name, monkeypatch):
    with lab_of(ONE, tmp_path, name):
        monkeypatch.setenv("TORCH_OTHER", "lo")
        assert run([*words, "--on", f"lab:{name}", "--script", "ranks.py", "-o", "run"]) == 1
        told = record()
        assert (told["outcome"], told["valid"]) == ("failed", False)
        assert seen(told)["interface"][0] is not True
        assert left_in(name) == []


@pytest.mark.full
@pytest.mark.requires("netns")
@pytest.mark.requires("torch")
def test_rank_that_is_killed_ends_the_job_of_all_nodes(words, tmp_path, name, monkeypatch):
    with lab_of(ONE, tmp_path, name):
        monkeypatch.setenv("TORCH_DIE", "1")
        assert run([*words, "--on", f"lab:{name}", "--script", "ranks.py", "-o", "run"]) == 1
        told = record()
        assert told["outcome"] == "failed"
        assert "rank 3 was killed by signal 9" in told["reason"]
        assert len(told["samples"]) >= 2
        assert left_in(name) == []


@pytest.mark.full
@pytest.mark.requires("netns")
@pytest.mark.requires("torch")
def test_job_holds_the_lab_when_its_launcher_is_killed_and_is_followed_again(
    words, tmp_path, name, monkeypatch
):
    with lab_of(ONE, tmp_path, name):
        monkeypatch.setenv("TORCH_STEPS", "100")
        start = [sys.executable, "-c", "from linkwise.cli.main import main; main()"]
        argv = [*start, *words, "--on", f"lab:{name}", "--script", "ranks.py"]
        launcher = subprocess.Popen([*argv, "-o", "run"], stderr=subprocess.PIPE, text=True)
        assert "runs in" in launcher.stderr.readline()
        launcher.send_signal(signal.SIGKILL)
        launcher.wait()
        launcher.stderr.close()
        assert not is_free(HOME / name / "lock")
        assert run(["launch", "--attach", "run"]) == 0
        assert record()["valid"] is True
        assert is_free(HOME / name / "lock")


@pytest.mark.requires("netns")
@pytest.mark.requires("torch")
def test_bench_runs_over_the_links_of_the_lab(tmp_path, name, capsys):
    with lab_of(ONE, tmp_path, name):
        capsys.readouterr()
        words = ["bench", "collectives", "--on", f"lab:{name}", "--sizes", "256KiB", "--repeats", "5"]
        assert run([*words, "-o", str(tmp_path / "run"), "--format", "json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["place"], told["ranks"]) == ("lab", 4)
        assert told["runs"][0]["hosts"] == [f"{name}-n0", f"{name}-n1"]
        assert told["runs"][0]["valid"] is True
        # A ring sends 1.5 times the buffer over the NIC, of 40 Mbit/s here, so that it takes 79 ms at least
        assert told["rows"][0]["time"]["median_s"] > 1.5 * 262_144 * 8 / 40e6
        kept = json.loads((tmp_path / "run" / "record.json").read_text())
        assert seen(kept)["interface"] == (True, "eth0")


@pytest.mark.full
@pytest.mark.requires("netns")
@pytest.mark.requires("torch")
def test_bench_of_training_on_the_lab_agrees_in_its_losses(tmp_path, name, capsys):
    with lab_of(ONE, tmp_path, name):
        capsys.readouterr()
        words = ("--layers", "4", "--hidden", "32", "--heads", "4", "--sequence-length", "16", "--steps", "5")
        assert run(["bench", "training", "--on", f"lab:{name}", *words, "--format", "json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["losses_agree"] is True
        assert [cut["cut"] for cut in told["cuts"]] == ["ddp", "fsdp", "tensor", "pipeline"]


@pytest.mark.full
@pytest.mark.requires("netns")
@pytest.mark.requires("torch")
def test_bench_whose_ranks_take_another_interface_is_invalid(tmp_path, name, capsys, monkeypatch):
    with lab_of(TWO, tmp_path, name), lab_in_use(name, ground=Ground()) as (held, design):
        place = LabPlace(lab=held, design=design)
        bench = TorchBench(device="cpu", ranks=4, place=place, settings={"GLOO_SOCKET_IFNAME": "eth1"})
        told = CollectivesPlan(operations=("all_reduce",), sizes_bytes=(4096,)).told(4)
        finished = run_torch(bench, "collectives", told)
        assert finished.record.is_valid is False
        assert "none on eth0" in next(
            each.seen for each in finished.record.checks if each.what == "interface"
        )
        assert run_torch(replace(bench, settings={}), "collectives", told).record.is_valid is True
        assert list(living(finished.record.run_id)) == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize("codes", [(0, 0), (0, 3), (3, 0), (7, 7)], ids=str)
def test_nodes_that_end_together_end_the_job_with_the_code_of_one(codes, tmp_path):
    # The namespaces are left out: `ip netns exec NAME` becomes a program that drops its arguments.
    script = nodes_script("x", design_of(cluster(**ONE)), {n: ("exit-with", str(codes[n])) for n in (0, 1)})
    (tmp_path / "ip").write_text('#!/bin/bash\nshift 3; shift\nshift 2; exec "$@"\n')
    (tmp_path / "exit-with").write_text('#!/bin/bash\nexit "$1"\n')
    for program in ("ip", "exit-with"):
        (tmp_path / program).chmod(0o755)
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for _ in range(5):
        done = subprocess.run(["bash", "-c", script.replace("pause 5", "pause 0.1")], env=path, check=False)
        assert done.returncode == max(codes)


@pytest.mark.parametrize(("ranks", "nodes", "nics"), [(4, 2, 2), (2, 1, 0), (1, 1, 0)])
def test_the_first_ranks_of_a_lab_are_a_lab(ranks, nodes, nics):
    part = design_of(cluster(**ONE)).first(ranks)
    assert (part.ranks, part.nodes, len(part.nics)) == (ranks, nodes, nics)
    assert interfaces_of(part) == (("eth0",) if nodes > 1 else ("lo",))


@pytest.mark.parametrize("ranks", [0, 3, 5, -1])
def test_ranks_that_end_within_a_node_are_refused(ranks):
    with pytest.raises(InputError, match="2 nodes of 2"):
        design_of(cluster(**ONE)).first(ranks)
