"""Programs that are written out, run with torch."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import linkwise.bench.torch_job
from linkwise.launch.render import programs

WORDS = [
    "--micro-batch",
    "1",
    "--accumulate",
    "1",
    "--steps",
    "2",
    "--sequence-length",
    "16",
    "--layers",
    "2",
    "--hidden",
    "32",
    "--heads",
    "2",
    "--ffn",
    "64",
    "--vocab",
    "64",
    "--precision",
    "bf16",
    "--learning-rate",
    "1e-4",
]
THEN = """
import pathlib
print("threads", *sorted({(each / "comm").read_text().strip() for each in pathlib.Path("/proc/self/task").iterdir()}))
"""
PROGRAM = "import runpy, sys; runpy.run_path(sys.argv[0], run_name='__main__')" + THEN


def ends_of(code, *arguments):
    """Return exit code and output of two ranks that run some code."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    told = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "GLOO_SOCKET_IFNAME": "lo"}
    environment = {**os.environ, **told, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    # A rank of bench ends when its standard input does.
    outputs = [rank.stdout.read() for rank in ranks]
    for rank in ranks:
        rank.communicate()
    return [(rank.returncode, output) for rank, output in zip(ranks, outputs, strict=True)]


@pytest.mark.full
@pytest.mark.requires("torch")
def test_no_thread_of_gloo_outlives_the_process_group():
    # One that did would want Python's lock while the interpreter ends, and abort the rank, seldom and under load.
    script = Path(programs.__path__[0]) / "train_ddp.py"
    code = f"import sys; sys.argv = [{str(script)!r}, *sys.argv[1:]]\n{PROGRAM}"
    for exit_code, output in ends_of(code, "--data", "2", *WORDS):
        assert exit_code == 0, output
        assert output.splitlines()[-1].startswith("threads "), output
        assert "gloo" not in output.splitlines()[-1], output


@pytest.mark.full
@pytest.mark.requires("torch")
def test_ranks_of_a_bench_leave_without_the_end_of_the_interpreter(tmp_path):
    # FSDP holds its group, and with it threads of gloo, whatever is destroyed.
    shape = {"layers": 2, "hidden": 32, "heads": 2, "sequence_length": 16, "vocabulary": 64}
    plan = {"device": "cpu", "timeout_s": 60, "cuts": ["ddp", "fsdp"], "steps": 1, "warmup": 0, "batch": 1,
            "micro_batches": 2, "shape": shape}  # fmt: skip
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    start = Path(linkwise.bench.torch_job.__path__[0]) / "start.py"
    code = (
        f"import sys; sys.argv = [{str(start)!r}, *sys.argv[1:]]; sys.path.insert(0, {str(start.parent)!r})\n"
    )
    code += PROGRAM
    found = ends_of(code, "training", str(tmp_path / "plan.json"))
    assert [exit_code for exit_code, _ in found] == [0, 0]
    assert '"event": "done"' in found[0][1]
    assert not any("threads" in output for _, output in found)
