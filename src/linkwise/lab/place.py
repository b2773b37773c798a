"""The lab as a place: jobs of torchrun that run on its nodes, one launcher in each namespace.

Two of them, as everywhere: `LabPlace` for a bench, which lives as long as who started it, and `lab_launch`
for a launched job, which outlives its launcher and holds the lock of the lab for as long.

References
----------
Linux, ip-netns(8). PyTorch, documentation of torchrun, 2025.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from linkwise.figures import Basis
from linkwise.lab.design import LabDesign
from linkwise.lab.wires import node_namespace
from linkwise.launch.run.checks import Expected
from linkwise.launch.run.launch_place import LocalLaunch
from linkwise.launch.run.node_agent import HOST_VARIABLE, NODE_VARIABLE
from linkwise.launch.run.place import RENDEZVOUS_VARIABLES, Command, TorchJob
from linkwise.launch.run.preflight import look_command
from linkwise.launch.run.record import recorded_settings
from linkwise.settings.recommended import Setting

__all__ = [
    "SCRIPT",
    "LabPlace",
    "hosts_of",
    "interfaces_of",
    "lab_launch",
    "lab_settings",
    "launch_script",
    "look_commands",
    "nodes_script",
]

SCRIPT = "start-lab.sh"
_GRACE_S = 5
"""What the other nodes have to say why they end, once one has [s]."""
_POLL_S = 0.2
_FIRST_PORT, _PORTS = 20_000, 10_000
"""Below the ports that the kernel gives to connections."""
_NODES = """\
#!/bin/bash
# Starts every node of {lab}, each in its network namespace; once one fails, the others are ended.
set -uo pipefail
exec 3<&0
pids=()
{starts}
end() {{ kill -TERM "${{pids[@]}}" 2>/dev/null; }}
# A wait, unlike a command, ends at once when this script is asked to end.
pause() {{
    sleep "$1" &
    local sleeper=$!
    wait "$sleeper" || {{ kill "$sleeper"; wait "$sleeper"; }} 2>/dev/null
}}
trap end TERM INT
first=0
# Each is asked by its number: of two that end together, wait -n may tell of one alone.
while ((${{#pids[@]}} > 0)); do
    pause {poll_s}
    for node in "${{!pids[@]}}"; do
        if kill -0 "${{pids[node]}}" 2>/dev/null; then continue; fi
        wait "${{pids[node]}}"
        code=$?
        unset "pids[node]"
        if ((code != 0 && first == 0)); then
            first=$code
            pause {grace_s}
            end
        fi
    done
done
exit "$first"
"""


def hosts_of(lab: str, design: LabDesign) -> tuple[str, ...]:
    """Return the names that nodes have in records.

    Parameters
    ----------
    lab
        Name of the lab.
    design
        What it is.
    """
    return tuple(f"{lab}-n{node}" for node in range(design.nodes))


def interfaces_of(design: LabDesign) -> tuple[str, ...]:
    """Return the interfaces by which ranks reach one another: the NICs, or the loopback of a single node.

    Parameters
    ----------
    design
        What the lab is.
    """
    return tuple(f"eth{index}" for index in range(design.nics_per_node)) or ("lo",)


def lab_settings(design: LabDesign) -> tuple[Setting, ...]:
    """Return the variables that a job needs there beside those of every job on CPUs.

    Parameters
    ----------
    design
        What the lab is.
    """
    return (
        Setting(
            name="GLOO_SOCKET_IFNAME",
            value=",".join(interfaces_of(design)),
            reason="the NICs of a node of the lab; of several gloo takes one after the other, call by call",
            source="PyTorch documentation, torch.distributed; torch/csrc/distributed/c10d/"
            "ProcessGroupGloo.cpp",
            basis=Basis.DATASHEET,
        ),
    )


def nodes_script(lab: str, design: LabDesign, words: Mapping[int, Sequence[str]]) -> str:
    """Return the script that runs a command on every node, and waits for all.

    Parameters
    ----------
    lab
        Name of the lab.
    design
        What it is.
    words
        Program and arguments for each node; ``$folder`` may stand in them for the folder of the script.
    """
    starts = [
        f"ip netns exec {node_namespace(lab, node)} env {HOST_VARIABLE}={host} {NODE_VARIABLE}={node} "
        f"{' '.join(words[node])} <&3 &\npids+=($!)"
        for node, host in enumerate(hosts_of(lab, design))
    ]
    return _NODES.format(lab=lab, starts="\n".join(starts), grace_s=_GRACE_S, poll_s=_POLL_S)


def launch_script(lab: str, design: LabDesign, start: str) -> str:
    """Return the script that launches the rendered script of torchrun on every node.

    Parameters
    ----------
    lab
        Name of the lab.
    design
        What it is.
    start
        Name of the rendered script, beside this one.
    """
    path = f'"$(dirname "${{BASH_SOURCE[0]}}")"/{shlex.quote(start)}'
    head = _head(design)
    return nodes_script(
        lab,
        design,
        {node: ("bash", path, *((str(node), head) if head else ())) for node in range(design.nodes)},
    )


def _head(design: LabDesign) -> str:
    """Return the address of node 0, at which the others meet; empty for a single node."""
    return next((nic.address for nic in design.nics if nic.node == 0), "")


def look_commands(lab: str, design: LabDesign, folder: Path, python: str) -> tuple[tuple[str, ...], ...]:
    """Return what looks at every node before a job starts there.

    Parameters
    ----------
    lab
        Name of the lab.
    design
        What it is.
    folder
        The run folder.
    python
        The Python that has torch.
    """
    return tuple(
        (
            *("ip", "netns", "exec", node_namespace(lab, node)),
            *("env", f"{HOST_VARIABLE}={host}", f"{NODE_VARIABLE}={node}"),
            *look_command(folder, python),
        )
        for node, host in enumerate(hosts_of(lab, design))
    )


def lab_launch(lock: int | None) -> LocalLaunch:
    """Return the place where jobs of the lab are launched.

    Parameters
    ----------
    lock
        The open lock of the lab, which the job holds until it ends; ``None`` to follow a job that holds it.
    """
    return LocalLaunch(script=SCRIPT, name="lab", kept_open=lock)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabPlace:
    """The lab as the place of a bench; who runs one holds the lock of the lab (`lab.life.lab_in_use`).

    Parameters
    ----------
    lab
        Name of the lab.
    design
        What it is.
    """

    lab: str
    design: LabDesign
    name: str = "lab"

    def command(self, job: TorchJob, *, run_id: str, inherited: Mapping[str, str]) -> Command:
        """Return what starts torchrun on every node.

        Parameters
        ----------
        job, run_id, inherited
            As for `linkwise.launch.run.place.Place`.

        Notes
        -----
        The namespaces are the lab's own, so that its ports are free but for those of a job that has just
        ended there: every run takes another.
        """
        port = _FIRST_PORT + int(run_id, 16) % _PORTS
        words = {node: self._torchrun(job, node, port) for node in range(self.design.nodes)}
        own = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        settings = {
            **{name: value for name, value in own.items() if name not in inherited},
            **{each.name: each.value for each in lab_settings(self.design)},
            **job.settings,
        }
        command = Command(
            argv=("bash", "-c", nodes_script(self.lab, self.design, words)),
            settings=settings,
            unset=RENDEZVOUS_VARIABLES,
        )
        return replace(command, expected=self._expected(recorded_settings(command.environment(inherited))))

    def _torchrun(self, job: TorchJob, node: int, port: int) -> tuple[str, ...]:
        head = _head(self.design) or "127.0.0.1"
        words = (job.python, "-m", "torch.distributed.run", "--nnodes", str(self.design.nodes))
        ranks = ("--nproc-per-node", str(self.design.ranks_per_node), "--max-restarts", "0")
        meeting = ("--node-rank", str(node), "--master-addr", head, "--master-port", str(port))
        return tuple(map(shlex.quote, (*words, *ranks, *meeting, job.script, *job.arguments)))

    def _expected(self, settings: Mapping[str, str]) -> Expected:
        return Expected(
            nodes=self.design.nodes,
            ranks_per_node=self.design.ranks_per_node,
            hosts=hosts_of(self.lab, self.design),
            device="cpu",
            settings=settings,
            protocol="",
            has_nvlink=False,
            interfaces=interfaces_of(self.design),
        )
