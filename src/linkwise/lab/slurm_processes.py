"""The processes of a Slurm in a lab: started in its namespaces, found there, ended there."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from linkwise.errors import InputError
from linkwise.lab.design import LabDesign
from linkwise.lab.shell import Shell
from linkwise.lab.slurm_files import HEAD, network_ends, node_name
from linkwise.lab.wires import node_namespace, switch_namespace

__all__ = [
    "READY",
    "SLURM",
    "check_programs",
    "controllers",
    "end_slurm",
    "inside",
    "is_job_running",
    "missing_nodes",
    "munge_argv",
]

SLURM = "slurm"
"""Name of the folder of a Slurm in that of its lab."""
READY = "ready"
"""Name of the file in it that says that all of it stood once."""
_PROGRAMS = ("nsenter", "unshare", "munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "sinfo")
_PATH = f"{os.defpath}:/usr/sbin:/sbin:/usr/local/sbin"
_CONTROLLERS = ("munged", "slurmctld")
_PATIENCE_S = 10.0
_HOST = 'mount --bind "$1" /etc/hosts && hostname "$2" && shift 2 && exec "$@"'
"""Gives a process the names of the lab and a name of its own: both are of its namespaces alone."""


def check_programs() -> None:
    """Refuse to go on without the programs of Slurm.

    Raises
    ------
    InputError
        If one is not there.
    """
    path = f"{os.environ.get('PATH', '')}:{_PATH}"
    lacking = [each for each in _PROGRAMS if shutil.which(each, path=path) is None]
    if lacking:
        raise InputError(
            f"a Slurm in the lab needs {', '.join(lacking)}, not found here; install Slurm and munge "
            "(Debian and Ubuntu: apt install slurmctld slurmd slurm-client munge)"
        )


def inside(lab: str, home: Path, words: Sequence[str], *, node: int | None) -> tuple[str, ...]:
    """Return the command that runs a command on a node of the lab's Slurm, under its name.

    Parameters
    ----------
    lab
        Name of the lab.
    home
        Folder of the Slurm.
    words
        The command.
    node
        Which node; the head where it is ``None``.

    Notes
    -----
    ``ip netns exec`` would hide the control groups that slurmd looks for. Unmounting elsewhere is seen
    inside, so that a shell in one lab does not hold on to the namespaces of another that goes down.
    """
    namespace = switch_namespace(lab) if node is None else node_namespace(lab, node)
    name = HEAD if node is None else node_name(node)
    enter = ("nsenter", f"--net=/run/netns/{namespace}", "unshare", "--uts", "--mount")
    return (*enter, "--propagation", "slave", "sh", "-c", _HOST, "sh", str(home / "hosts"), name, *words)


def munge_argv(lab: str, home: Path) -> tuple[str, ...]:
    """Return the command that starts munged.

    Parameters
    ----------
    lab, home
        As for `inside`.
    """
    files = ("socket=munge.sock", "key-file=munge.key", "pid-file=munged.pid", "log-file=munged.log")
    options = [f"--{name}={home / file}" for name, _, file in (each.partition("=") for each in files)]
    return inside(lab, home, ("munged", "--force", *options, f"--seed-file={home / 'munge.seed'}"), node=None)


def _processes(namespace: str, shell: Shell) -> Iterator[tuple[int, str]]:
    """Yield the processes in a namespace and the names of their programs."""
    for word in shell(("ip", "netns", "pids", namespace), "").split():
        with contextlib.suppress(OSError):
            yield int(word), Path(f"/proc/{word}/comm").read_text(encoding="utf-8").strip()


def controllers(lab: str, shell: Shell) -> Mapping[str, int]:
    """Return the processes of munged and slurmctld that there are, by name.

    Parameters
    ----------
    lab
        Name of the lab.
    shell
        Runs programs of the system.
    """
    found = _processes(switch_namespace(lab), shell)
    return {name: pid for pid, name in found if name in _CONTROLLERS}


def missing_nodes(lab: str, design: LabDesign, shell: Shell) -> tuple[int, ...]:
    """Return the nodes that no slurmd runs on.

    Parameters
    ----------
    lab, shell
        As for `controllers`.
    design
        The lab.
    """
    return tuple(
        node
        for node in range(design.nodes)
        if not any(name == "slurmd" for _, name in _processes(node_namespace(lab, node), shell))
    )


def is_job_running(home: Path, design: LabDesign, shell: Shell) -> bool:
    """Return whether Slurm runs a job in a lab.

    Parameters
    ----------
    home
        Folder of the Slurm, in that of its lab.
    design, shell
        As for `missing_nodes`.
    """
    return home.exists() and any(
        name == "slurmstepd"
        for node in range(design.nodes)
        for _, name in _processes(node_namespace(home.parent.name, node), shell)
    )


def end_slurm(lab: str, design: LabDesign, home: Path, shell: Shell) -> None:
    """End a Slurm with all its jobs, and remove its network and its folder. Nobody else works in the lab.

    Parameters
    ----------
    lab, design, shell
        As for `missing_nodes`.
    home
        Folder of the Slurm.

    Raises
    ------
    InputError
        If a process does not end.

    Notes
    -----
    What runs on nodes is ended whoever started it: a process of a job may have left its session.
    """
    (home / READY).unlink(missing_ok=True)  # what is ended by halves is cleared by the next command
    until = time.monotonic() + _PATIENCE_S
    while left := [*controllers(lab, shell).values(), *_on_nodes(lab, design, shell)]:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > until:
            raise InputError(f"processes {shlex.join(map(str, left[:5]))} of Slurm do not end; try again")
        time.sleep(0.02)
    for device in network_ends(design):
        with contextlib.suppress(InputError):  # one that was not made yet
            shell(("ip", "-n", switch_namespace(lab), "link", "del", device), "")
    shutil.rmtree(home, ignore_errors=True)


def _on_nodes(lab: str, design: LabDesign, shell: Shell) -> Iterator[int]:
    for node in range(design.nodes):
        yield from (pid for pid, _ in _processes(node_namespace(lab, node), shell) if pid != os.getpid())
