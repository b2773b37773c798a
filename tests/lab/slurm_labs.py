"""A lab with a Slurm in it for tests, and its commands as somebody on its head node gives them."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from linkwise.lab.design import LabDesign
from linkwise.lab.faults import FaultKind, Injection
from linkwise.lab.folder import HOME
from linkwise.lab.life import Ground, take_down, take_up
from linkwise.lab.slurm import slurm_up
from linkwise.lab.slurm_processes import SLURM
from linkwise.lab.wires import namespaces_of, node_namespace, switch_namespace
from tests.lab.test_design import cluster, design_of

CONFIG = {
    "model_type": "gpt2",
    "n_layer": 2,
    "n_embd": 64,
    "n_head": 2,
    "n_positions": 128,
    "vocab_size": 256,
}
CLUSTER = """\
linkwise: cluster/1
name: in-the-lab
nodes: {nodes}
node: {{gpu: h100-sxm, gpus_per_node: {gpus}, nics: 1, nic_bytes_per_s: 400 Gbit/s, link: infiniband-ndr-400}}
fabric: {{kind: single-switch}}
"""
TOOL = (sys.executable, "-c", "from linkwise.cli.main import main; main()")


@dataclass(frozen=True)
class SlurmLab:
    """A lab whose Slurm is up."""

    name: str
    design: LabDesign
    ground: Ground

    @property
    def home(self):
        """Return the folder of the Slurm."""
        return self.ground.home / self.name / SLURM

    def words(self, *words, node=None):
        """Return a command as it is given on a node, the head without."""
        where = () if node is None else ("--node", str(node))
        return [*TOOL, "lab", "slurm", "shell", "--name", self.name, *where, "--", *words]

    def run(self, *words, node=None, timeout=120, **more):
        """Run a command on a node, and return how it ended."""
        argv = self.words(*words, node=node)
        return subprocess.run(argv, capture_output=True, text=True, timeout=timeout, check=False, **more)

    def says(self, *words):
        """Return what a command on the head node prints."""
        done = self.run(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def processes(self, program, node):
        """Return the processes of a program on a node."""
        said = self.ground.shell(("ip", "netns", "pids", node_namespace(self.name, node)), "")
        return [int(pid) for pid in said.split() if comm(pid) == program]

    def fault(self, kind, node):
        """Return a fault of the lab that has been put in at a node; `mend` takes it out."""
        step = {"event": "step begins", "step": 0, "at_s": 0.0}
        put = Injection(
            kind=FaultKind(kind),
            node=node,
            step=0,
            lab=self.name,
            design=self.design,
            shell=self.ground.shell,
        )
        put.watch(step)
        return put

    @contextmanager
    def without_node(self, node):
        """Take a node away: its links, that to the controller, and its slurmd; bring it back at the end."""
        fault = self.fault("link-down", node)
        port = ("ip", "-n", switch_namespace(self.name), "link", "set", f"m{node}")
        self.ground.shell((*port, "down"), "")
        for daemon in self.processes("slurmd", node):
            os.kill(daemon, signal.SIGKILL)
        try:
            yield
        finally:
            fault.mend()
            self.ground.shell((*port, "up"), "")
            slurm_up(self.name, ground=self.ground)

    def idle(self):
        """Wait until no job is there and every node is free again."""
        until = time.monotonic() + 45
        while time.monotonic() < until:
            if not self.says("squeue", "-h") and self.says("sinfo", "-h", "-o", "%T") == "idle":
                return
            time.sleep(0.1)
        raise AssertionError(self.says("sinfo") + self.says("squeue"))

    def sent_bytes(self, node, device):
        """Return what a device of a node has sent."""
        argv = ("ip", "-n", node_namespace(self.name, node), "-j", "-s", "link", "show", device)
        return json.loads(self.ground.shell(argv, ""))[0]["stats64"]["tx"]["bytes"]


def comm(pid):
    """Return the program of a process; nothing once it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def left_of(name):
    """Return what is left of a lab: namespaces, processes that name its folder, files, control groups."""
    ground = Ground()
    found = list(namespaces_of(name, ground.namespaces()))
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if f"/{name}/slurm".encode() in words and int(entry.name) != os.getpid():
            found.append(f"{entry.name} {comm(entry.name)}")
    found += [str(path) for path in (HOME / name,) if path.exists()]
    return found + [str(path) for path in Path("/sys/fs/cgroup").glob("**/slurm_n[0-7]") if path.is_dir()]


@contextmanager
def slurm_lab(name, *, nodes=2, gpus=2, kind="single-switch", dilation=None):
    """Give a lab with a Slurm; whatever happens, both are taken down."""
    ground = Ground()
    design = design_of(cluster(kind, nodes=nodes, gpus=gpus), dilation=dilation)
    take_up(design, name=name, ground=ground)
    try:
        slurm_up(name, ground=ground)
        yield SlurmLab(name, design, ground)
    finally:
        if (HOME / name).exists() or namespaces_of(name, ground.namespaces()):
            take_down(name, ground=ground)


def is_bridge_there(name):
    """Return whether the network of Slurm is in a lab."""
    return "mgmt" in Ground().shell(("ip", "-n", switch_namespace(name), "-br", "link"), "")
