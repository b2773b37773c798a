"""The verb collect: one script, that every shell runs, that only reads, and that hides what it is asked to."""

import os
import shutil
import subprocess
import tarfile
import time
from importlib.resources import files
from pathlib import Path

import pytest

from linkwise.cli.main import run
from linkwise.errors import ExitCode
from linkwise.settings.node import parse_node_facts

SCRIPT = Path(str(files("linkwise.cli").joinpath("collect.sh")))
SHELLS = [words for words in (["dash"], ["bash"], ["busybox", "sh"]) if shutil.which(words[0])]


def gather(words, **environment):
    return subprocess.run(
        words, capture_output=True, text=True, timeout=60, env={**os.environ, **environment}, check=False
    )


@pytest.mark.parametrize("shell", SHELLS, ids=lambda words: words[0])
def test_every_shell_gathers_and_says_what_was_missing(shell, tmp_path):
    done = gather(
        [*shell, str(SCRIPT), "-o", str(tmp_path / "facts")], NCCL_DEBUG="INFO", HF_TOKEN="hf_secret"
    )
    assert (done.returncode, done.stderr) == (0, "")
    texts = {path.name: path.read_text() for path in (tmp_path / "facts").iterdir()}
    assert texts["env.txt"].startswith("$ env")
    assert "NCCL_DEBUG=INFO" in texts["env.txt"]
    assert "not there:" in texts["collected.txt"]
    assert all(text.startswith("$ ") for name, text in texts.items() if name != "skipped.txt")
    assert "hf_secret" not in "".join(texts.values())


def test_command_that_hangs_costs_its_limit_once(tmp_path):
    tool = tmp_path / "bin/nvidia-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nsleep 100\n")
    tool.chmod(0o755)
    fast = tmp_path / "collect.sh"
    fast.write_text(SCRIPT.read_text().replace("gather gpu-list 5", "gather gpu-list 1"))
    start = time.monotonic()
    done = gather(
        ["sh", str(fast), "-o", str(tmp_path / "facts")], PATH=f"{tool.parent}:{os.environ['PATH']}"
    )
    assert done.returncode == 0
    assert time.monotonic() - start < 15
    assert "(stopped after 1 s)" in (tmp_path / "facts/gpu-list.txt").read_text()
    assert "gpu-query: nvidia-smi did not answer before" in (tmp_path / "facts/skipped.txt").read_text()


@pytest.mark.parametrize("shell", SHELLS, ids=lambda words: words[0])
def test_mask_hides_each_address_by_the_same_word(shell, tmp_path):
    name = os.uname().nodename
    tool = tmp_path / "bin/rdma"
    tool.parent.mkdir()
    tool.write_text(
        "#!/bin/sh\necho 'inet 10.1.2.3/24 fe80::1/64 10.9.9.9 link/ether aa:bb:cc:dd:ee:ff via 10.1.2.3'\n"
        f"echo 'pci 0000:1b:00.0 at 12:34:56'\necho 'host {name} {name}.example.org {name}7'\n"
    )
    tool.chmod(0o755)
    done = gather(
        [*shell, str(SCRIPT), "-m", "-o", str(tmp_path / "facts")],
        PATH=f"{tool.parent}:{os.environ['PATH']}",
        MASTER_ADDR="head.example.org",
        NCCL_SOCKET_IFNAME="eth0",
    )
    assert (done.returncode, done.stderr) == (0, "")
    texts = {path.name: path.read_text() for path in (tmp_path / "facts").iterdir()}
    told = "".join(texts.values())
    for secret in ("10.1.2.3", "10.9.9.9", "fe80::1", "aa:bb:cc", "head.example", f"{name}."):
        assert secret not in told
    words = texts["rdma-link.txt"].splitlines()[1].split()
    assert words[1].removesuffix("/24") == words[-1]
    assert words[3] != words[-1]
    assert "pci 0000:1b:00.0 at 12:34:56" in texts["rdma-link.txt"]
    assert f"host node node {name}7" in texts["rdma-link.txt"]
    assert "NCCL_SOCKET_IFNAME=eth0" in texts["env.txt"]


def test_verb_runs_the_script_and_writes_an_archive(tmp_path, capsys, request, monkeypatch):
    target = tmp_path / "facts.tar.gz"
    assert run(["collect", "-o", str(target), "--mask"]) == ExitCode.DONE
    assert str(target) in capsys.readouterr().err
    with tarfile.open(target) as archive:
        names = archive.getnames()
        links = archive.extractfile("facts/ip-link.txt") if "facts/ip-link.txt" in names else None
        if links is not None:
            assert "lo" in parse_node_facts(links.read().decode()).interfaces
    assert "facts/collected.txt" in names
    if links is not None:
        words = ["env", "--check", "examples/faulty.sbatch", "--node", str(target), "--format", "json"]
        monkeypatch.chdir(request.config.rootpath)
        assert run(words) == ExitCode.AGAINST
    assert not (tmp_path / "facts").exists()


def test_verb_prints_the_script_and_the_mask_is_in_it(capsys):
    assert run(["collect"]) == ExitCode.DONE
    plain = capsys.readouterr().out
    assert plain == SCRIPT.read_text()
    assert run(["collect", "--mask"]) == ExitCode.DONE
    masked = capsys.readouterr().out
    assert [line for line in masked.splitlines() if line not in plain.splitlines()] == ["mask=1"]


def test_what_is_there_is_left_alone(tmp_path, capsys):
    (tmp_path / "facts").mkdir()
    for target in (tmp_path / "facts", tmp_path / "no/facts"):
        assert run(["collect", "-o", str(target)]) == ExitCode.WRONG_INPUT
    told = capsys.readouterr().err
    assert "exists and is left alone" in told
    assert "there is no directory" in told
    done = gather(["sh", str(SCRIPT), "-o", str(tmp_path / "facts")])
    assert done.returncode == 2
    assert list((tmp_path / "facts").iterdir()) == []


def test_script_only_reads():
    # Every redirection goes below $out, to /dev/null, or to another stream; nothing is set, loaded or removed elsewhere.
    text = SCRIPT.read_text()
    for line in text.splitlines():
        code = line.split("#")[0]
        if "rm " in code or "mv " in code:
            assert "$out" in code or "$archive" in code or "$each" in code, line
    for word in ("sudo", "modprobe", "sysctl -w", "setpci", "nvidia-smi -pm", "ip link set", "tee "):
        assert word not in text


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="needs shellcheck")
def test_script_is_clean_to_shellcheck():
    done = gather(["shellcheck", "-s", "sh", str(SCRIPT)])
    assert done.stdout == ""
