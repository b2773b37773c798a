"""The tree of Slurm's topology.conf, as Slurm's controller itself reads it."""

import os
import re
import shutil
import socket
import subprocess
import time

import pytest

from linkwise.cluster import load_cluster
from linkwise.network.exports import EXPORTS
from linkwise.network.exports.places import places_of

NODES = 80
CONFIG = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
TopologyPlugin=topology/tree
NodeName=node-[0-{last}] NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES
"""


@pytest.fixture
def folder(tmp_path_factory):
    """Return a folder with a short name: the path of a socket may have 107 characters."""
    path = tmp_path_factory.mktemp("s")
    (path / "state").mkdir()
    path.chmod(0o755)
    return path


@pytest.fixture
def slurm(folder):
    """Return a call of scontrol on a controller that was given a tree."""
    missing = [name for name in ("slurmctld", "scontrol", "munged") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"needs {', '.join(missing) or 'root'}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    values = {"host": socket.gethostname(), "port": port, "folder": folder, "last": NODES - 1}
    config = folder / "slurm.conf"
    config.write_text(CONFIG.format(**values), encoding="utf-8")
    tree = EXPORTS["slurm-tree"](load_cluster(f"dgx-h100:{NODES}"))
    (folder / "topology.conf").write_text(tree, encoding="utf-8")
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o400)
    munge = subprocess.Popen(
        [
            "munged",
            "--foreground",
            "--force",
            f"--key-file={folder}/munge.key",
            f"--socket={folder}/munge.sock",
            f"--pid-file={folder}/munge.pid",
            f"--log-file={folder}/munge.log",
            f"--seed-file={folder}/munge.seed",
        ],
        stderr=subprocess.DEVNULL,
    )
    environment = {**os.environ, "SLURM_CONF": str(config)}
    _wait_for(lambda: (folder / "munge.sock").exists())
    controller = subprocess.Popen(["slurmctld", "-D", "-f", str(config)], stderr=subprocess.DEVNULL)

    def scontrol(*words):
        line = ["scontrol", *words]
        return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=30, check=False)

    try:
        _wait_for(lambda: scontrol("ping").stdout.rstrip().endswith("UP"))
        yield scontrol
    finally:
        for process in (controller, munge):
            process.terminate()
            process.wait(timeout=30)


def _wait_for(holds, seconds=30.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "the daemon did not start"
        time.sleep(0.1)


@pytest.mark.requires("slurm")
def test_controller_sees_the_tree_that_was_meant(slurm):
    shown = slurm("show", "topology").stdout
    switches = dict(re.findall(r"SwitchName=(\S+) Level=(\d)", shown))
    assert switches == {"spine": "1", "unit-0": "0", "unit-1": "0", "unit-2": "0"}
    assert "Switches=unit-[0-2]" in shown
    places = places_of(load_cluster(f"dgx-h100:{NODES}"))
    for first, last in places.spans(places.unit_nodes):
        assert f"Nodes=node-[{first}-{last}]" in shown
