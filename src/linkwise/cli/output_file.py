"""Files that a verb writes beside what it prints."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from linkwise.errors import DocumentError, Fault, InputError

__all__ = ["check_targets", "write_whole"]


def check_targets(targets: Mapping[str, Path | None], *, source: str) -> None:
    """Refuse files that cannot be written, before anything is computed.

    Parameters
    ----------
    targets
        The file that each option names, by the spelling of the option; ``None`` where it is not given.
    source
        The file that is read, which must not be overwritten.

    Raises
    ------
    InputError
        With every fault.
    """
    given = {option: path for option, path in targets.items() if path is not None}
    faults = [fault for option, path in given.items() for fault in _faults(option, path, source)]
    if len({path.resolve() for path in given.values()}) < len(given):
        faults.append(f"{' and '.join(given)} name the same file; give each a name of its own")
    if faults:
        raise DocumentError(Fault(message=f"linkwise: {fault}") for fault in faults)


def _faults(option: str, path: Path, source: str) -> Iterator[str]:
    if path.is_dir():
        yield f"{option} {path} is a directory; give the name of a file"
    elif not path.parent.is_dir():
        yield f"{option} {path}: there is no directory {path.parent}"
    elif path.exists() and Path(source).exists() and path.samefile(source):
        yield f"{option} {path} is the file that is read; give another name"


def write_whole(target: Path, text: str, *, option: str) -> None:
    """Write a file so that at no time there is half of it; one that exists is replaced.

    Parameters
    ----------
    target
        Where to.
    text
        What to write.
    option
        The option that named it, for messages.

    Raises
    ------
    InputError
        If its directory cannot be written to.
    """
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
