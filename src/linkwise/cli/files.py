"""Files that a command writes beside what it prints: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from linkwise.errors import InputError

__all__ = ["check_target", "write_whole"]


def check_target(option: str, target: Path) -> None:
    """Refuse the name of a file that can never be written, before the work is done.

    Parameters
    ----------
    option
        The option it was given with, for the message.
    target
        The file.

    Raises
    ------
    InputError
        When it is a directory, or lies in none.
    """
    if target.is_dir():
        raise InputError(f"{option} {target} is a directory; give the name of a file")
    if not target.parent.is_dir():
        raise InputError(f"{option} {target}: there is no directory {target.parent}")


def write_whole(option: str, target: Path, text: str) -> None:
    """Write a file so that at no time there is half of it.

    Parameters
    ----------
    option
        The option it was given with, for the message.
    target
        The file; one that is there is replaced, a link, a pipe or a device is written to as it is.
    text
        What it will hold.

    Raises
    ------
    InputError
        When it, or its directory, cannot be written to.
    """
    if target.is_symlink() or (target.exists() and not target.is_file()):
        _write_in_place(option, target, text)
        return
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".part")
    except OSError as error:
        raise InputError(f"{option} {target}: cannot be written ({error.strerror})") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _write_in_place(option: str, target: Path, text: str) -> None:
    try:
        with target.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        raise InputError(f"{option} {target}: cannot be written ({error.strerror})") from None
