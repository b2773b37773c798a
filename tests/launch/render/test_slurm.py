"""The batch script on a Slurm of two nodes that is started for it and stopped again.

Two slurmd of one host stand for two nodes, null devices for GPUs; a program in the place of torchrun writes what
it got. Nothing outside a temporary folder is touched.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from linkwise.cluster import load_cluster
from linkwise.launch.render import render
from linkwise.layout import Layout
from tests.launch.render.starts import start_of

CONF = """\
ClusterName=rendered
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={d}/munge.sock
StateSaveLocation={d}/state
SlurmdSpoolDir={d}/%n
SlurmctldPidFile={d}/slurmctld.pid
SlurmdPidFile={d}/%n.pid
SlurmctldLogFile={d}/slurmctld.log
SlurmdLogFile={d}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
GresTypes=gpu
SlurmdParameters=config_overrides
NodeName={host} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 RealMemory=100 Gres=gpu:h100:8
NodeName={host}x NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 RealMemory=100 Gres=gpu:h100:8
PartitionName=all Nodes={host},{host}x Default=YES State=UP
"""
CGROUP = "CgroupPlugin=cgroup/v1\nConstrainCores=no\nConstrainRAMSpace=no\nConstrainDevices=no\n"
SAY = '#!/bin/bash\nprintf "%s\\n" "$@" > "$folder/said-$SLURM_NODEID"\necho "NCCL_DEBUG_FILE=$NCCL_DEBUG_FILE"\n'


def free_ports(count):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


def started(words, pid, log):
    """Start a daemon, and wait for the file that says which process it is."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    for _ in range(100):
        if pid.exists() and pid.read_text().strip():
            return int(pid.read_text())
        time.sleep(0.05)
    pytest.skip(f"{words[0]} does not start here: {(done.stderr or log.read_text())[-300:]}")


@pytest.fixture
def slurm():
    if os.geteuid() != 0 or not all(map(shutil.which, ("slurmctld", "slurmd", "munged", "srun", "scontrol"))):
        pytest.skip("needs root, slurmctld, slurmd and munged")
    host = socket.gethostname().split(".")[0]
    # Paths of sockets are short, and munged wants folders that nobody else writes to.
    d = Path(subprocess.check_output(["mktemp", "-d", "-p", "/run"], text=True).strip())
    running = []
    try:
        d.chmod(0o755)
        for number in range(8):
            os.mknod(d / f"gpu{number}", 0o600 | 0o020000, os.makedev(1, 3))
        (d / "key").write_bytes(os.urandom(128))
        (d / "key").chmod(0o400)
        (d / "slurm.conf").write_text(CONF.format(d=d, host=host, ports=free_ports(3)))
        (d / "gres.conf").write_text(f"NodeName={host},{host}x Name=gpu Type=h100 File={d}/gpu[0-7]\n")
        (d / "cgroup.conf").write_text(CGROUP)
        munge = [
            "munged",
            "--force",
            f"--key-file={d}/key",
            f"--socket={d}/munge.sock",
            f"--seed-file={d}/seed",
        ]
        munge += [f"--pid-file={d}/munged.pid", f"--log-file={d}/munged.log"]
        running.append(started(munge, d / "munged.pid", d / "munged.log"))
        conf = ["-f", str(d / "slurm.conf")]
        running.append(started(["slurmctld", *conf], d / "slurmctld.pid", d / "slurmctld.log"))
        running.extend(
            started(["slurmd", *conf, "-N", node], d / f"{node}.pid", d / f"{node}.log")
            for node in (host, f"{host}x")
        )
        environment = {**os.environ, "SLURM_CONF": str(d / "slurm.conf")}
        yield lambda *words, **more: subprocess.run(
            words, capture_output=True, text=True, timeout=60, check=False, **{"env": environment, **more}
        )
    finally:
        for pid in reversed(running):
            os.kill(pid, signal.SIGTERM)
        for _ in range(100):
            if not any(Path(f"/proc/{pid}").exists() for pid in running):
                break
            time.sleep(0.05)
        shutil.rmtree(d, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.requires("slurm")
def test_sbatch_runs_the_script_on_two_nodes(slurm, tmp_path):
    start = start_of(Layout(tensor=8), cluster=load_cluster("dgx-h100:2"))
    for name, text in render("slurm", start).files.items():
        (tmp_path / name).write_text(text)
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "torchrun").write_text(SAY)
    (programs / "torchrun").chmod(0o755)
    for _ in range(100):
        if slurm("sinfo", "-h", "-t", "idle", "-o", "%D").stdout.strip() == "2":
            break
        time.sleep(0.1)
    submitted = slurm(
        "sbatch",
        "--parsable",
        f"--export=ALL,PATH={programs}:{os.environ['PATH']}",
        "job.sbatch",
        "--more",
        "a b",
        cwd=tmp_path,
    )
    job = submitted.stdout.strip()
    for _ in range(200):
        if not slurm("squeue", "-h", "-j", job).stdout.strip():
            break
        time.sleep(0.1)
    output = "".join(each.read_text() for each in tmp_path.glob("*.out"))
    assert "JobState=COMPLETED" in slurm("scontrol", "show", "job", job).stdout, submitted.stderr + output
    said = [(tmp_path / f"said-{node}").read_text().splitlines() for node in (0, 1)]
    for node, words in enumerate(said):
        assert f"--node-rank={node}" in words
        assert f"--master-addr={socket.gethostname().split('.')[0]}" in words
        assert words[-2:] == ["--more", "a b"]
    assert said[0][said[0].index("--redirects=3") :] == said[1][said[1].index("--redirects=3") :]
    assert output.count(f"NCCL_DEBUG_FILE={tmp_path}/logs-{job}/nccl.%h.%p.log") == 2
