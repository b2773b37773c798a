"""A real Slurm in a lab: a controller at the switches, a slurmd on every node, a shell that sees them."""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from linkwise.errors import InputError
from linkwise.lab.design import LabDesign
from linkwise.lab.folder import LabFolder
from linkwise.lab.life import Ground, check_root, find_lab, lab_in_use
from linkwise.lab.slurm_files import HEAD, gpu_devices, network_batches, node_name, slurm_texts
from linkwise.lab.slurm_processes import (
    READY,
    SLURM,
    check_programs,
    controllers,
    end_slurm,
    inside,
    missing_nodes,
    munge_argv,
)

__all__ = ["SlurmNode", "SlurmState", "shell_command", "slurm_down", "slurm_state", "slurm_up"]

_HARMLESS = re.compile(r"pmix|MPI:|state file|backup state|MailProg|Domain socket|hwloc")
"""What the daemons call an error at every first start."""
_PATIENCE_S = 20.0
_TICK_S = 0.1
_NULL_DEVICE = os.makedev(1, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmNode:
    """A node as Slurm sees it.

    Parameters
    ----------
    name
        Of the node.
    state
        In Slurm's word: ``idle``, ``allocated``, ``down*``...
    """

    name: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmState:
    """A Slurm in a lab.

    Parameters
    ----------
    lab
        Name of the lab.
    home
        Its folder.
    is_up
        Whether all of it stood once and its controller runs.
    nodes
        As the controller sees them; none where it gives no answer.
    missing
        Daemons that do not run.
    running, waiting
        Jobs [1].
    """

    lab: str
    home: Path
    is_up: bool
    nodes: tuple[SlurmNode, ...] = ()
    missing: tuple[str, ...] = ()
    running: int = 0
    waiting: int = 0


def slurm_up(name: str | None, *, ground: Ground) -> SlurmState:
    """Return the Slurm of a lab, having started what of it does not run.

    Parameters
    ----------
    name
        Of the lab; the only one where it is ``None``.
    ground
        Where it is.

    Raises
    ------
    InputError
        If there is no root, no such lab or no Slurm to install it from, or a daemon does not start; then
        nothing of it is left.
    """
    check_root()
    check_programs()
    with lab_in_use(name, ground=ground, is_beside_slurm=True) as (lab, design):
        home = ground.home / lab / SLURM
        if not (home / READY).exists():
            end_slurm(lab, design, home, ground.shell)
        try:
            _start(lab, design, home, ground)
        except BaseException:
            if not (home / READY).exists():
                end_slurm(lab, design, home, ground.shell)
            raise
        (home / READY).touch()
        return _state(lab, design, home, ground)


def _start(lab: str, design: LabDesign, home: Path, ground: Ground) -> None:
    if not home.exists():
        _write(lab, design, home)
        for batch in network_batches(lab, design):
            ground.shell(batch.argv, "".join(f"{line}\n" for line in batch.lines))
    there = controllers(lab, ground.shell)
    conf = ("-f", str(home / "slurm.conf"))
    if "munged" not in there:
        ground.shell(munge_argv(lab, home), "")
    if "slurmctld" not in there:
        ground.shell(inside(lab, home, ("slurmctld", *conf), node=None), "")
    for node in missing_nodes(lab, design, ground.shell):
        ground.shell(inside(lab, home, ("slurmd", *conf), node=node), "")
    _wait(lab, design, home, ground)


def _write(lab: str, design: LabDesign, home: Path) -> None:
    """Write all files of a Slurm: a folder that nobody else reads, with a key of its own."""
    home.mkdir(mode=0o700)
    for name in ("dev", "state", "spool"):
        (home / name).mkdir()
    has_v2 = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    for name, text in slurm_texts(lab, design, home, has_cgroup_v2=has_v2).items():
        (home / name).write_text(text, encoding="utf-8")
    key = home / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))
    for path in gpu_devices(design, home):
        try:
            os.mknod(path, 0o666 | stat.S_IFCHR, _NULL_DEVICE)
        except PermissionError:
            raise InputError(
                f"{path}: null devices stand for GPUs, and this container may not make devices; give it "
                "CAP_MKNOD, or run outside it"
            ) from None


def _wait(lab: str, design: LabDesign, home: Path, ground: Ground) -> None:
    """Wait until every node is there for jobs."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        nodes = _nodes(lab, home, ground)
        if len(nodes) == design.nodes and all(_is_there(each.state) for each in nodes):
            return
        if time.monotonic() > until or next(_missing(lab, design, ground), None) is not None:
            raise InputError(_unready(lab, design, nodes, home, ground))
        time.sleep(_TICK_S)


def _is_there(state: str) -> bool:
    return state.rstrip("~#%$@+") in ("idle", "allocated", "mixed", "completing", "draining", "drained")


def _unready(lab: str, design: LabDesign, nodes: Sequence[SlurmNode], home: Path, ground: Ground) -> str:
    """Return what to say of a Slurm that does not come up, with the last error in its logs."""
    told = ", ".join(f"{each.name} is {each.state}" for each in nodes if not _is_there(each.state))
    missing = ", ".join(_missing(lab, design, ground))
    what = f"{missing} ended" if missing else told or "its controller gives no answer"
    what += "" if missing else f" for {_PATIENCE_S:.0f} s"
    errors = [
        f"{path.name}: {line.rpartition('] ')[2]}"
        for path in sorted(home.glob("*.log"))
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
        if any(word in line for word in ("error:", "fatal:")) and not _HARMLESS.search(line)
    ]
    said = f"; its logs say: {' | '.join(errors[-2:])[:400]}" if errors else ""
    return f"Slurm in lab {lab} does not come up: {what}{said}"


def _missing(lab: str, design: LabDesign, ground: Ground) -> Iterator[str]:
    there = controllers(lab, ground.shell)
    yield from (each for each in ("munged", "slurmctld") if each not in there)
    for node in missing_nodes(lab, design, ground.shell):
        yield f"slurmd of {node_name(node)}"


def _nodes(lab: str, home: Path, ground: Ground) -> tuple[SlurmNode, ...]:
    """Return the nodes as the controller sees them; none where it gives no answer."""
    try:
        said = ground.shell(_asked(lab, home, ("sinfo", "-h", "-N", "-o", "%N %T")), "")
    except InputError:
        return ()
    rows = (line.split() for line in said.splitlines())
    return tuple(SlurmNode(name=row[0], state=row[1]) for row in rows if len(row) == 2)


def _asked(lab: str, home: Path, words: Sequence[str]) -> tuple[str, ...]:
    return inside(lab, home, ("env", f"SLURM_CONF={home / 'slurm.conf'}", *words), node=None)


def slurm_down(name: str | None, *, ground: Ground) -> str:
    """Return the name of a lab, having ended its Slurm with all jobs of it.

    Parameters
    ----------
    name, ground
        As for `slurm_up`.

    Raises
    ------
    InputError
        If there is no root or no such lab, another command works in it, or it has no Slurm.
    """
    check_root()
    with lab_in_use(name, ground=ground, is_beside_slurm=True) as (lab, design):
        home = ground.home / lab / SLURM
        if not home.exists():
            raise InputError(f"lab {lab} has no Slurm; 'linkwise lab slurm up {lab}' starts one")
        end_slurm(lab, design, home, ground.shell)
    return lab


def slurm_state(name: str | None, *, ground: Ground) -> SlurmState:
    """Return the Slurm of a lab as it is now.

    Parameters
    ----------
    name, ground
        As for `slurm_up`.

    Raises
    ------
    InputError
        If there is no root, no such lab, or it does not stand as a whole.
    """
    check_root()
    folder = find_lab(name, ground=ground)
    return _state(folder.name, _design(folder), folder.path / SLURM, ground)


def _design(folder: LabFolder) -> LabDesign:
    design = folder.read()
    if design is None:
        again = f"'linkwise lab down {folder.name}' clears it"
        raise InputError(f"lab {folder.name} does not stand as a whole; {again}")
    return design


def _state(lab: str, design: LabDesign, home: Path, ground: Ground) -> SlurmState:
    if not home.exists():
        return SlurmState(lab=lab, home=home, is_up=False)
    missing = tuple(_missing(lab, design, ground))
    is_up = (home / READY).exists() and not {"munged", "slurmctld"} & set(missing)
    jobs: list[str] = []
    if is_up:
        jobs = ground.shell(_asked(lab, home, ("squeue", "-h", "-o", "%T")), "").split()
    waiting = jobs.count("PENDING")
    return SlurmState(
        lab=lab,
        home=home,
        is_up=is_up,
        nodes=_nodes(lab, home, ground) if is_up else (),
        missing=missing,
        running=len(jobs) - waiting,
        waiting=waiting,
    )


def shell_command(
    name: str | None, words: Sequence[str], *, node: int | None, environ: Mapping[str, str], ground: Ground
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the command that runs a command on a node of a lab's Slurm, and its variables.

    Parameters
    ----------
    name, ground
        As for `slurm_up`.
    words
        The command; the user's shell where it is empty.
    node
        Which node; the head, from which jobs are submitted, where it is ``None``.
    environ
        Variables of this process.

    Raises
    ------
    InputError
        If there is no such node, or no Slurm in the lab.
    """
    check_root()
    folder = find_lab(name, ground=ground)
    design, home = _design(folder), folder.path / SLURM
    if not (home / READY).exists():
        raise InputError(f"lab {folder.name} has no Slurm; 'linkwise lab slurm up {folder.name}' starts one")
    if node is not None and node >= design.nodes:
        raise InputError(f"--node {node}: lab {folder.name} has nodes 0 to {design.nodes - 1}")
    chosen = tuple(words) or (environ.get("SHELL") or "/bin/sh",)
    here = HEAD if node is None else node_name(node)
    added = {"SLURM_CONF": str(home / "slurm.conf"), "PS1": f"[{here} of lab {folder.name}] # "}
    return inside(folder.name, home, chosen, node=node), {**environ, **added}
