"""The inputs of a running job: files that may not exist yet, folders that fill, pipes, standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from linkwise.errors import DocumentError, Fault
from linkwise.monitor.tail import FileTail, PipeTail, Tail
from linkwise.readers.job_log.sources import files_in

__all__ = ["Inputs"]

_MOST_FILES = 20_000


@dataclass(slots=True)
class Inputs:
    """What is followed.

    Parameters
    ----------
    paths
        Files, folders, or ``-`` for standard input.
    """

    paths: Sequence[str]
    _given: set[str] = field(default_factory=set)
    _files: list[FileTail] = field(default_factory=list)

    def check(self) -> tuple[str, ...]:
        """Return the files that are not there yet.

        Raises
        ------
        DocumentError
            With a fault for each whose folder does not exist either.
        """
        absent = [each for each in self.paths if each != "-" and not Path(each).exists()]
        faults = [
            Fault(path=each, message="neither the file nor its folder exists; name the log of the job")
            for each in absent
            if not Path(each).absolute().parent.is_dir()
        ]
        if faults:
            raise DocumentError(faults)
        return tuple(absent)

    def new(self) -> Iterator[Tail]:
        """Yield the inputs that were not there when this was last asked.

        Notes
        -----
        A file that was followed and is found under another name was rotated, and is no new one.
        """
        for given in self.paths:
            if given == "-" and given not in self._given:
                self._given.add(given)
                yield PipeTail(name="<stdin>", descriptor=sys.stdin.fileno())
            elif given != "-":
                yield from self._new_files(Path(given))

    def _new_files(self, path: Path) -> Iterator[Tail]:
        is_folder = path.is_dir()
        known = {each.identity for each in self._files} if is_folder else set()
        for each in _listed(path) if is_folder else (path,):
            name = str(each)
            if name in self._given or len(self._given) >= _MOST_FILES:
                continue
            if is_folder:
                try:
                    found = each.stat()
                except OSError:
                    continue
                if (found.st_dev, found.st_ino) in known:
                    continue
            self._given.add(name)
            if each.is_fifo():
                # Open for writing too, so that it does not end whenever a writer goes.
                yield PipeTail(name=name, descriptor=os.open(each, os.O_RDWR | os.O_NONBLOCK))
                continue
            tail = FileTail(name=name, path=each)
            self._files.append(tail)
            yield tail


def _listed(folder: Path) -> Iterator[Path]:
    try:
        yield from files_in(folder)
    except OSError:
        return
