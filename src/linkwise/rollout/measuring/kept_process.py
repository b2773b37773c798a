"""A process that outlives who started it, and is found again by what it leaves in its folder."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from linkwise.errors import InputError

__all__ = ["KeptProcess", "find_process", "start_process"]

_SHELL = (
    'trap : INT TERM HUP; echo $$ >"$1/pid.part" && mv "$1/pid.part" "$1/pid"; folder=$1; shift; '
    '"$@" >"$folder/result.json" 2>"$folder/messages.log" </dev/null; '
    'echo $? >"$folder/exit_code.part" && mv "$folder/exit_code.part" "$folder/exit_code"'
)
"""It stands around the program so that its end is written down when nobody waits for it. Nothing that is
given becomes text of the shell: it gets arguments."""
_POLL_S = 0.1
_GRACE_S = 15.0
_APPEARS_S = 2.0
"""From the start of a process to the file that names it, on a busy machine; assumed [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptProcess:
    """A process and the folder that its output goes to.

    Parameters
    ----------
    folder
        Holds ``result.json`` (what it prints), ``messages.log`` (standard error) and, once it ended,
        ``exit_code``.
    mark
        A word in its command line, unlike that of any other process.
    child
        The process, where this one started it; ``None`` where it was found.
    """

    folder: Path
    mark: str
    child: subprocess.Popen[bytes] | None = None

    @property
    def exit_code(self) -> int | None:
        """Return its exit code; ``None`` while it runs, and where it left none."""
        try:
            return int((self.folder / "exit_code").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None

    @property
    def is_running(self) -> bool:
        """Return whether it still runs: a process of its number that bears its mark."""
        if self.exit_code is not None:
            return False
        if self.child is not None and self.child.poll() is not None:
            return False
        pid = self._pid()
        return pid is not None and _bears(pid, self.mark)

    def wait(self, *, sleep: Callable[[float], None] = time.sleep) -> int | None:
        """Return its exit code once it ended; ``None`` where it was killed and left none.

        Parameters
        ----------
        sleep
            Waits for some seconds.
        """
        while self.is_running or (self.child is not None and self.child.poll() is None):
            sleep(_POLL_S)
        if self.child is not None:
            self.child.wait()
        return self.exit_code

    def stop(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        """End it and all it started: first asked, then killed.

        Parameters
        ----------
        clock
            The time, which never goes back [s].
        """
        pid = self._pid()
        if pid is None:
            return
        for number, patience_s in (
            (signal.SIGINT, _GRACE_S),
            (signal.SIGTERM, _GRACE_S),
            (signal.SIGKILL, 1),
        ):
            if not self.is_running:
                break
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, number)
            self._wait_until(clock() + patience_s, clock)
        if self.child is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.child.wait(timeout=1)

    def _wait_until(self, until_s: float, clock: Callable[[], float]) -> None:
        while clock() < until_s and self.is_running:
            time.sleep(_POLL_S)

    def _pid(self) -> int | None:
        try:
            return int((self.folder / "pid").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None if self.child is None else self.child.pid


def start_process(
    argv: Sequence[str], *, environment: Mapping[str, str], folder: Path, mark: str
) -> KeptProcess:
    """Return a process that was started in a session of its own.

    Parameters
    ----------
    argv
        Program and arguments.
    environment
        All its variables.
    folder
        Where its output goes; exists.
    mark
        Unlike that of any other process.

    Raises
    ------
    InputError
        When no shell can be started.
    """
    words = ["/bin/sh", "-c", _SHELL, f"linkwise-run-{mark}", str(folder), *argv]
    try:
        child = subprocess.Popen(  # noqa: S603 (arguments, no text of a shell)
            words, env=dict(environment), stdin=subprocess.DEVNULL, start_new_session=True
        )
    except OSError as error:
        raise InputError(f"{argv[0]}: cannot be started ({error.strerror})") from None
    return KeptProcess(folder=folder, mark=mark, child=child)


def find_process(folder: Path, mark: str) -> KeptProcess | None:
    """Return the process whose output goes to a folder; ``None`` where none was started.

    Parameters
    ----------
    folder, mark
        As when it was started.
    """
    until_s = time.monotonic() + _APPEARS_S
    while not (folder / "pid").exists():
        if time.monotonic() > until_s or not folder.is_dir():
            return None
        time.sleep(_POLL_S)
    return KeptProcess(folder=folder, mark=mark)


def _bears(pid: int, mark: str) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return f"linkwise-run-{mark}".encode() in words
