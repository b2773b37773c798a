"""The folders in which labs keep what they are, and the locks by which they do not collide.

``/run/linkwise/lab/NAME`` holds ``lab.json`` and ``lock``. A process that builds a lab, runs a job in it or
takes it down holds the lock for as long; the kernel lets it go with the process, however that ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from linkwise.errors import InputError
from linkwise.lab.design import LabDesign

__all__ = ["HOME", "JOB", "LabFolder", "check_name", "is_free", "lab_folders", "locked"]

HOME = Path("/run/linkwise/lab")
"""Emptied when the machine starts, as namespaces are."""
JOB = "job-"
"""How the folder of a job begins, in that of its lab: what a killed job left goes with the lab."""
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,18}[a-z0-9])?")
_MOST_STATE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LabFolder:
    """The folder of one lab.

    Parameters
    ----------
    path
        The folder; its name is that of the lab.
    """

    path: Path

    @property
    def name(self) -> str:
        """Return the name of the lab."""
        return self.path.name

    @property
    def lock(self) -> Path:
        """Return the file that is locked."""
        return self.path / "lock"

    def write(self, design: LabDesign, *, is_up: bool) -> None:
        """Write what the lab is, whole or not at all.

        Parameters
        ----------
        design
            What is built.
        is_up
            Whether all of it stands.
        """
        text = json.dumps({"schema": "linkwise.lab/1", "is_up": is_up, "design": asdict(design)}, indent=2)
        part = self.path / "lab.json.part"
        part.write_text(text + "\n", encoding="utf-8")
        part.replace(self.path / "lab.json")

    def read(self) -> LabDesign | None:
        """Return what the lab is; ``None`` where it does not stand, or its file is damaged."""
        try:
            with (self.path / "lab.json").open(encoding="utf-8") as file:
                state = json.loads(file.read(_MOST_STATE_BYTES))
            return _design(state["design"]) if state["is_up"] is True else None
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None

    def remove(self) -> None:
        """Remove the folder and the files of a lab in it; no other file is touched."""
        for name in ("lab.json", "lab.json.part", "lock"):
            (self.path / name).unlink(missing_ok=True)
        for each in (self.path / "slurm", *self.path.glob(f"{JOB}*")):
            shutil.rmtree(each, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.path.rmdir()


def _design(values: object) -> LabDesign:
    from pydantic import TypeAdapter

    return TypeAdapter(LabDesign).validate_python(values)


def check_name(name: str) -> str:
    """Return the name of a lab, if it can be one.

    Parameters
    ----------
    name
        As it was given.

    Raises
    ------
    InputError
        If it has other characters or is too long.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name[:40]!r} is no name for a lab; use up to 20 small letters, digits and hyphens inside"
        )
    return name


def lab_folders(home: Path) -> tuple[LabFolder, ...]:
    """Return the folders of all labs, by name.

    Parameters
    ----------
    home
        Where they are.
    """
    if not home.is_dir():
        return ()
    return tuple(
        LabFolder(path=path)
        for path in sorted(home.iterdir())
        if path.is_dir() and not path.is_symlink() and _NAME.fullmatch(path.name)
    )


@contextlib.contextmanager
def locked(path: Path, *, held: str, patience_s: float = 0.3) -> Iterator[int]:
    """Hold a lock; it is let go at the end, or when the process ends.

    Parameters
    ----------
    path
        File that is locked; made where it is not there.
    held
        What is said where another process holds it.
    patience_s
        How long it is waited for; others hold it for a moment to see whether it is free [s].

    Yields
    ------
    int
        The open file, which a child may inherit to hold the lock as long as it lives.

    Raises
    ------
    InputError
        If another process holds it.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; the lab needs root") from None
    try:
        if not _is_locked(handle, patience_s):
            raise InputError(held)
        yield handle
    finally:
        os.close(handle)


def _is_locked(handle: int, patience_s: float) -> bool:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.01)
        else:
            return True


def is_free(path: Path) -> bool:
    """Return whether nobody holds a lock.

    Parameters
    ----------
    path
        File that is locked.
    """
    try:
        with locked(path, held="", patience_s=0.0):
            return True
    except InputError:
        return False
