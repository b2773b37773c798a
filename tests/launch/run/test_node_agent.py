"""What the agent of a node finds lacking, and who its ranks are."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from linkwise.launch.run import node_agent
from linkwise.launch.run.node_agent import complaints, differences
from linkwise.launch.run.node_files import agent_texts
from linkwise.launch.run.node_sight import ranks_of

NODE = {
    "node": 0,
    "host": "n0",
    "gpus": 8,
    "shm_bytes": 1e9,
    "memlock_bytes": -1,
    "interfaces": ["lo", "eth0"],
    "devices": ["mlx5_0"],
    "free_bytes": 1e9,
    "versions": {"torch": "2.13.0", "python": "3.11.7"},
}


@pytest.mark.parametrize(
    ("wanted", "word"),
    [
        ({"gpus": 9}, "8 GPUs are seen, 9 are planned"),
        ({"shm_bytes": 2e9}, "/dev/shm"),
        ({"free_bytes": 2e9}, "run folder"),
        ({"interfaces": ["ib0"]}, "no interface is 'ib0'; there are lo, eth0"),
        ({"interfaces": ["^lo,eth"]}, "no interface"),
        ({"devices": ["=mlx5"]}, "no RDMA device"),
    ],
)
def test_what_is_lacking_is_said(wanted, word):
    (said,) = complaints(NODE, wanted)
    assert word in said


def test_node_that_has_all_is_not_complained_of():
    wanted = {"gpus": 8, "memlock_bytes": "unlimited", "interfaces": ["^lo"], "devices": ["mlx5"]}
    assert complaints(NODE, wanted) == []
    assert "ulimit -l" in complaints({**NODE, "memlock_bytes": 65536}, wanted)[0]
    assert "has no torch" in complaints({**NODE, "versions": {}}, wanted)[0]


def test_taken_port_is_said_by_the_node_that_needs_it():
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        (said,) = complaints(NODE, {"port": port})
        assert f"port {port} is taken" in said
        assert complaints({**NODE, "node": 1}, {"port": port}) == []


def test_versions_that_differ_are_named_with_their_hosts():
    other = {**NODE, "host": "n1", "versions": {"torch": "2.12.0", "python": "3.11.7"}}
    assert differences([NODE, other]) == [
        "torch differs: 2.12.0 on n1, 2.13.0 on n0; install the same everywhere"
    ]
    assert differences([NODE, NODE]) == []


def test_ranks_are_the_children_that_were_told_a_rank():
    settings = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "NCCL_DEBUG": "INFO", "SECRET": "x"}
    child = subprocess.Popen([sys.executable, "-c", "input()"], env=settings, stdin=subprocess.PIPE)
    try:
        until = time.monotonic() + 10
        while not (found := ranks_of(os.getpid(), host="n0")) and time.monotonic() < until:
            time.sleep(0.01)
    finally:
        child.communicate(b"\n")
    told = {"rank": 1, "ranks": 2, "host": "n0", "settings": {"NCCL_DEBUG": "INFO"}, "store_port": ""}
    assert found == [{**told, "pid": child.pid}]


def agent(folder, monkeypatch, **wanted):
    (folder / "agent").mkdir(exist_ok=True)
    told = {"nodes": 1, "per_node": 1, "patience_s": 0.1, **wanted}
    (folder / "agent" / "wanted.json").write_text(json.dumps(told))
    monkeypatch.setenv(node_agent.FOLDER_VARIABLE, str(folder))
    monkeypatch.setattr(node_agent, "facts", lambda _: NODE)
    return node_agent.main(["job.py"])


def test_node_that_does_not_answer_is_named(tmp_path, monkeypatch, capfd):
    assert agent(tmp_path, monkeypatch, nodes=2) == 3
    assert "node 1 of 2 did not answer in 0 s; n0 did" in capfd.readouterr().err
    assert json.loads((tmp_path / "seen" / "refused-0.json").read_text())


def test_second_launch_on_a_host_is_refused(tmp_path, monkeypatch, capfd):
    with socket.socket(socket.AF_UNIX) as held:
        held.bind("\0linkwise-launch/n0/cpu")
        assert agent(tmp_path, monkeypatch) == 3
    assert "another launch runs on its CPUs" in capfd.readouterr().err


def test_ranks_end_once_the_launcher_wrote_that_the_run_is_over(tmp_path):
    # As on a node that the scheduler has lost: nobody else ends what runs there.
    for name, text in agent_texts({"nodes": 1, "per_node": 1, "patience_s": 1.0, "device": "cpu"}).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    for package in ("torch", "torch/distributed", "torch-2.13.0.dist-info"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "torch-2.13.0.dist-info" / "METADATA").write_text("Name: torch\nVersion: 2.13.0\n")
    run = "import time\nprint('runs', flush=True)\ntime.sleep(60)\n"
    (tmp_path / "torch" / "distributed" / "run.py").write_text(run)
    (tmp_path / "record.json").write_text('{"outcome": "running"}')
    variables = {
        "PYTHONPATH": str(tmp_path),
        "LINKWISE_RUN_FOLDER": str(tmp_path),
        "LINKWISE_HOST": str(os.getpid()),
    }
    words = [sys.executable, str(tmp_path / "agent" / "node_agent.py"), "job.py"]
    with subprocess.Popen(words, env=variables, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"runs\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.0)
        (tmp_path / "record.json").write_text('{"outcome": "failed"}')
        assert process.wait(10.0) == 128 + signal.SIGTERM
