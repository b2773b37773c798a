"""The folder of a launched run: rendered files, what was seen of nodes and ranks, output, logs, record.

``record.json`` (`linkwise.launch/1`) is whole at any time; ``output.log`` is what the launcher printed,
``logs*/`` are the logs of ranks and of NCCL, ``seen/`` is what the agent of each node wrote, ``exit-code``
the end.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from linkwise.errors import InputError
from linkwise.launch.run.node_files import agent_texts, nodes_in, ranks_in, refusal_in
from linkwise.launch.run.proof import SeenRank

__all__ = ["LaunchFolder"]

_RESERVE_BYTES = 262_144
"""Kept free for the last record, should the disk be full by then [bytes]."""
_TAIL_BYTES = 65_536
_SHIM = '#!/bin/sh\nexec {python} "${{LINKWISE_RUN_FOLDER:?}}/agent/node_agent.py" "$@"\n'
_ROOT_CAUSE = re.compile(r"Root Cause.{0,400}?rank\s*:\s*\d{1,7} \(local_rank: (\d{1,7})\)", re.DOTALL)


class LaunchFolder:
    """The folder of one run, held by one launcher at a time.

    Parameters
    ----------
    path
        The folder, which is there.

    Raises
    ------
    InputError
        When another launcher holds it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        try:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise InputError(f"{path}: is no folder of a run ({error.strerror})") from None
        try:
            # The folder itself is locked: no file is left behind.
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            raise InputError(f"{path}: another launcher follows this run; end it, or wait for it") from None

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of it."""
        (self.path / ".reserve").unlink(missing_ok=True)
        os.close(self._descriptor)

    def fill(
        self, texts: Mapping[str, str], *, executable: frozenset[str], wanted: Mapping[str, Any], python: str
    ) -> None:
        """Write what the job is started from.

        Parameters
        ----------
        texts
            Rendered files by name.
        executable
            Names of those that are commands.
        wanted
            What the agent of a node holds it to.
        python
            The Python that has torch.

        Raises
        ------
        InputError
            When it cannot be written.
        """
        try:
            (self.path / "agent").mkdir()
            (self.path / "logs").mkdir()
            (self.path / ".reserve").write_bytes(os.urandom(_RESERVE_BYTES))
            for name, text in {**texts, **agent_texts(wanted)}.items():
                (self.path / name).write_text(text, encoding="utf-8")
            quoted = "'" + python.replace("'", "'\\''") + "'"
            (self.path / "agent" / "torchrun").write_text(_SHIM.format(python=quoted), encoding="utf-8")
            for name in (*executable, "agent/torchrun"):
                (self.path / name).chmod((self.path / name).stat().st_mode | stat.S_IXUSR)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written ({error.strerror})") from None

    def write_record(self, text: str, *, is_last: bool) -> None:
        """Write the record, so that at no time there is half of it.

        Parameters
        ----------
        text
            The record.
        is_last
            Whether what was kept free for it may be used.

        Raises
        ------
        InputError
            When it cannot be written.
        """
        if is_last:
            (self.path / ".reserve").unlink(missing_ok=True)
        part = self.path / ".record.json"
        try:
            part.write_text(text + "\n", encoding="utf-8")
            part.replace(self.path / "record.json")
        except OSError as error:
            part.unlink(missing_ok=True)
            raise InputError(f"{self.path}: the record cannot be written ({error.strerror})") from None

    def ranks(self) -> tuple[SeenRank, ...]:
        """Return the ranks that were seen so far."""
        return ranks_in(self.path)

    def nodes(self) -> tuple[dict[str, Any], ...]:
        """Return what nodes said they have."""
        return nodes_in(self.path)

    def refusal(self) -> tuple[str, ...]:
        """Return why a node did not let the job start; empty where none refused."""
        return refusal_in(self.path)

    def written_bytes(self) -> int:
        """Return how large the output and all logs are, by which a job that hangs is known [bytes]."""
        found = [
            self.path / "output.log",
            *(each for logs in self.path.glob("logs*") for each in _files(logs)),
        ]
        total = 0
        for each in found:
            with contextlib.suppress(OSError):
                total += each.stat().st_size
        return total

    def free_bytes(self) -> int:
        """Return what is free for its files [bytes]."""
        return shutil.disk_usage(self.path).free

    def tail(self) -> tuple[str, ...]:
        """Return the last lines of the output, and of the rank that torchrun says failed first."""
        output = _end_of(self.path / "output.log")
        found = _ROOT_CAUSE.findall("\n".join(output))
        return tuple(output) if not found else (*output, *self._last_words(found[-1]))

    def _last_words(self, local_rank: str) -> list[str]:
        logs = [
            each for folder in self.path.glob("logs*") for each in folder.rglob(f"{local_rank}/stderr.log")
        ]
        words = [_end_of(each) for each in sorted(logs, key=str)]
        return next((each[-1:] for each in reversed(words) if each), [])


def _files(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        for name in names:
            yield Path(parent, name)


def _end_of(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            text = file.read(_TAIL_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()]
