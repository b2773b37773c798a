"""Labs come up, go down, and what killed processes left of them is cleared."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from linkwise.errors import InputError
from linkwise.lab.design import LabDesign
from linkwise.lab.folder import HOME, LabFolder, check_name, is_free, lab_folders, locked
from linkwise.lab.shell import Shell, system_shell
from linkwise.lab.slurm_processes import READY, SLURM, end_slurm, is_job_running
from linkwise.lab.wires import batches_of, lab_of, namespaces_of

__all__ = [
    "Ground",
    "LabState",
    "clear_leftovers",
    "find_lab",
    "lab_in_use",
    "lab_locked",
    "lab_states",
    "take_down",
    "take_up",
]

_MOST_LABS = 99
_PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where labs are built.

    Parameters
    ----------
    home
        Folder of their folders.
    shell
        Runs programs of the system.
    """

    home: Path = HOME
    shell: Shell = system_shell

    def namespaces(self) -> tuple[str, ...]:
        """Return the names of all network namespaces that have one."""
        lines = self.shell(("ip", "netns", "list"), "").splitlines()
        return tuple(line.split()[0] for line in lines if line.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class LabState:
    """A lab that is there.

    Parameters
    ----------
    name
        Of the lab.
    design
        What it is; ``None`` where it does not stand as a whole.
    is_busy
        Whether a process builds it, runs a job in it or takes it down.
    namespaces
        Those there are of it.
    processes
        Those that run in them [1].
    """

    name: str
    design: LabDesign | None
    is_busy: bool
    namespaces: tuple[str, ...]
    processes: int


def take_up(design: LabDesign, *, name: str | None = None, ground: Ground) -> str:
    """Return the name of a lab, having built it.

    Parameters
    ----------
    design
        What is built.
    name
        Its name; the first free of ``lab1``, ``lab2``... where it is ``None``.
    ground
        Where.

    Raises
    ------
    InputError
        If there is no root, a lab of the name is there, or a command fails; then nothing is left.
    """
    check_root()
    clear_leftovers(ground)
    with _registry(ground):
        folder = _new_folder(ground, None if name is None else check_name(name))
        hold = contextlib.ExitStack()
        hold.enter_context(locked(folder.lock, held=f"lab {folder.name} is being built"))
        folder.write(design, is_up=False)
    with hold:
        try:
            for batch in batches_of(folder.name, design):
                ground.shell(batch.argv, "".join(f"{line}\n" for line in batch.lines))
            folder.write(design, is_up=True)
        except BaseException:
            _remove(folder, ground)
            raise
    return folder.name


def take_down(name: str, *, ground: Ground) -> int:
    """Return how many processes were ended, having removed a lab with all that runs in it.

    Parameters
    ----------
    name
        Of the lab.
    ground
        Where it is.

    Raises
    ------
    InputError
        If there is no such lab, or it is being built or taken down.
    """
    check_root()
    folder = LabFolder(path=ground.home / check_name(name))
    if folder not in lab_folders(ground.home) and not namespaces_of(name, ground.namespaces()):
        there = ", ".join(each.name for each in lab_folders(ground.home)) or "none"
        raise InputError(f"there is no lab {name!r}; there are: {there}")
    ended = _end_processes(namespaces_of(name, ground.namespaces()), ground)
    folder.path.mkdir(mode=0o700, exist_ok=True)
    held = f"lab {name} is busy: another process builds it or takes it down"
    # A job that was in the lab lets go of its lock a moment after its processes end.
    with locked(folder.lock, held=held, patience_s=_PATIENCE_S):
        _remove(folder, ground)
    return ended


def find_lab(name: str | None, *, ground: Ground) -> LabFolder:
    """Return the folder of the lab of a name, or of the only one.

    Parameters
    ----------
    name
        Of the lab, or ``None``.
    ground
        Where labs are.

    Raises
    ------
    InputError
        If there is none, or several and no name.
    """
    folders = {each.name: each for each in lab_folders(ground.home)}
    if not folders:
        raise InputError("there is no lab; 'linkwise lab up CLUSTER' builds one")
    if name is None and len(folders) > 1:
        raise InputError(f"there are several labs; name one: {', '.join(folders)}")
    wanted = next(iter(folders)) if name is None else name
    if wanted not in folders:
        raise InputError(f"there is no lab {wanted[:40]!r}; there are: {', '.join(folders)}")
    return folders[wanted]


def lab_states(ground: Ground) -> tuple[LabState, ...]:
    """Return all labs that are there, whole or not.

    Parameters
    ----------
    ground
        Where they are.
    """
    return tuple(
        LabState(
            name=name,
            design=design,
            is_busy=is_busy,
            namespaces=namespaces,
            processes=len(tuple(_processes(namespaces, ground))),
        )
        for name, design, is_busy, namespaces in _labs(ground)
    )


def _labs(ground: Ground) -> Iterator[tuple[str, LabDesign | None, bool, tuple[str, ...]]]:
    """Yield name, design, whether it is held, and namespaces of all labs, whole or not."""
    check_root()
    present = ground.namespaces()
    folders = {each.name: each for each in lab_folders(ground.home)}
    orphans = {lab for lab in map(lab_of, present) if lab is not None and lab not in folders}
    for name in sorted({*folders, *orphans}):
        folder = folders.get(name)
        yield (
            name,
            None if folder is None else folder.read(),
            folder is not None and not is_free(folder.lock),
            namespaces_of(name, present),
        )


def clear_leftovers(ground: Ground) -> tuple[str, ...]:
    """Return the names of the labs of which something was left, having cleared it.

    Parameters
    ----------
    ground
        Where labs are.

    Notes
    -----
    Left over is a lab that does not stand as a whole and that nobody works on; and namespaces with the prefix
    of labs whose folder is gone. A lab that stands stays, whoever built it; a Slurm in it that never stood as
    a whole goes.
    """
    with _registry(ground):
        cleared = []
        for name, design, is_busy, _ in _labs(ground):
            if design is None and not is_busy:
                _remove(LabFolder(path=ground.home / name), ground)
                cleared.append(name)
            elif design is not None and not is_busy:
                _clear_slurm(ground.home / name, design, ground)
        return tuple(cleared)


def _clear_slurm(lab: Path, design: LabDesign, ground: Ground) -> None:
    home = lab / SLURM
    if home.exists() and not (home / READY).exists():
        end_slurm(lab.name, design, home, ground.shell)


def check_root() -> None:
    """Refuse to go on without root.

    Raises
    ------
    InputError
        If the process is not root.
    """
    if os.geteuid() != 0:
        raise InputError("the lab makes network namespaces and shapes links, which takes root; use sudo")


@contextlib.contextmanager
def _registry(ground: Ground) -> Iterator[None]:
    """Hold the lock of all labs, waiting for others who hold it for a moment."""
    ground.home.mkdir(parents=True, exist_ok=True)
    held = "another lab is being registered; try again"
    with locked(ground.home / ".lock", held=held, patience_s=_PATIENCE_S):
        yield


def _new_folder(ground: Ground, name: str | None) -> LabFolder:
    for each in (name,) if name is not None else (f"lab{n}" for n in range(1, _MOST_LABS + 1)):
        path = ground.home / each
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return LabFolder(path=path)
    if name is not None:
        raise InputError(f"a lab {name!r} is there already; take it down, or give another --name")
    raise InputError(f"there are {_MOST_LABS} labs already; take some down")


def _remove(folder: LabFolder, ground: Ground) -> None:
    """Remove processes, namespaces with all in them, and the folder of a lab."""
    present = namespaces_of(folder.name, ground.namespaces())
    _end_processes(present, ground)
    for name in present:
        ground.shell(("ip", "netns", "del", name), "")
    folder.remove()


def _processes(namespaces: Sequence[str], ground: Ground) -> Iterator[int]:
    for name in namespaces:
        try:
            said = ground.shell(("ip", "netns", "pids", name), "")
        except InputError:
            if name in ground.namespaces():
                raise
            continue  # another command took its lab down meanwhile
        yield from map(int, said.split())


def _end_processes(namespaces: Sequence[str], ground: Ground) -> int:
    """Return how many processes were in the namespaces; none is when this returns."""
    ended: set[int] = set()
    deadline = time.monotonic() + _PATIENCE_S
    while here := {pid for pid in _processes(namespaces, ground) if pid != os.getpid()}:
        for pid in here:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        ended |= here
        if time.monotonic() > deadline:
            raise InputError(f"processes {sorted(here)[:5]} in the lab do not end; try again")
        time.sleep(0.02)
    return len(ended)


@contextlib.contextmanager
def lab_in_use(
    name: str | None, *, ground: Ground, is_beside_slurm: bool = False
) -> Iterator[tuple[str, LabDesign]]:
    """Hold a lab for a job: no other runs in it, and it is not taken down by halves.

    Parameters
    ----------
    name, ground, is_beside_slurm
        As for `lab_locked`.

    Yields
    ------
    tuple
        Its name and what it is.
    """
    with lab_locked(name, ground=ground, is_beside_slurm=is_beside_slurm) as (found, design, _):
        yield found, design


@contextlib.contextmanager
def lab_locked(
    name: str | None, *, ground: Ground, is_beside_slurm: bool = False
) -> Iterator[tuple[str, LabDesign, int]]:
    """Hold a lab, and give its open lock for a job that holds it on.

    Parameters
    ----------
    name
        Of the lab; the only one where it is ``None``.
    ground
        Where it is.
    is_beside_slurm
        Whether a job of the lab's Slurm may run meanwhile.

    Yields
    ------
    tuple
        Its name, what it is, and the open lock.

    Raises
    ------
    InputError
        If there is no such lab, another job runs in it, or it does not stand as a whole.
    """
    check_root()
    folder = find_lab(name, ground=ground)
    held = f"lab {folder.name} is busy: another job runs in it; wait for it, or take up another lab"
    with locked(folder.lock, held=held) as lock:
        design = folder.read()
        if design is None:
            raise InputError(
                f"lab {folder.name} does not stand as a whole; 'linkwise lab down {folder.name}' clears it"
            )
        if not is_beside_slurm and is_job_running(folder.path / SLURM, design, ground.shell):
            raise InputError(
                f"lab {folder.name} is busy: its Slurm runs a job; wait for it ('linkwise lab slurm status "
                f"{folder.name}'), or take up another lab"
            )
        yield folder.name, design, lock
