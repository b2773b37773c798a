"""A command of the rollout file, run to its end: to put a configuration in force, or on the way back."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from linkwise.launch.run.processes import RUN_VARIABLE, living, signal_all

__all__ = ["EndedCommand", "end_command", "run_to_end"]

_LONGEST_S = 3600.0
"""After which it is ended; assumed: drivers are updated and images pulled on every node meanwhile [s]."""
_MOST_OUTPUT_BYTES = 262_144
_TOOK_TOO_LONG = 124
_NOT_STARTED = 127
"""As `timeout` and shells say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedCommand:
    """How a command ended.

    Attributes
    ----------
    exit_code
        Its own; 124 where it took too long, 127 where it could not be started.
    output
        The end of what it printed.
    """

    exit_code: int
    output: str


def run_to_end(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    mark: str,
    folder: Path | None = None,
    longest_s: float = _LONGEST_S,
) -> EndedCommand:
    """Return how a command ended.

    Parameters
    ----------
    argv
        Program and arguments; no shell reads them.
    environment
        Its variables.
    mark
        Unlike that of any other command; whoever comes after a kill ends by it what is left.
    folder
        Where it runs; where this process does if left out.
    longest_s
        After which it is ended [s].

    Notes
    -----
    What it leaves running stays where it ended well, for it may have started a service; otherwise that is
    ended with it.
    """
    code = _TOOK_TOO_LONG
    with tempfile.TemporaryFile() as file:
        try:
            process = subprocess.Popen(  # noqa: S603 (a list of words of the file; no shell)
                list(argv),
                cwd=folder,
                env={**environment, RUN_VARIABLE: mark},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            said = f"{argv[0]} could not be started: {error.strerror}\n"
            return EndedCommand(exit_code=_NOT_STARTED, output=said)
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(timeout=longest_s)
        finally:
            if code:
                end_command(mark)
            process.wait()
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _MOST_OUTPUT_BYTES))
        said = file.read().decode("utf-8", errors="replace")
    if code == _TOOK_TOO_LONG and process.returncode < 0:
        said += f"\n{argv[0]} was ended after {longest_s:.0f} s\n"
    return EndedCommand(exit_code=code, output=said)


def end_command(mark: str) -> None:
    """End what still runs of a command.

    Parameters
    ----------
    mark
        That of the command; nothing is done for an empty one.
    """
    if mark:
        signal_all(living(mark), signal.SIGKILL)
