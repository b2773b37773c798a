"""The processes of a job: started together, read line by line, and stopped to the last one."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from linkwise.errors import InputError

__all__ = ["LONGEST_LINE", "RUN_VARIABLE", "Processes", "living", "signal_all", "still_living"]

RUN_VARIABLE = "LINKWISE_RUN"
"""Variable that every process of a run inherits, by which those are found that left their session."""
LONGEST_LINE = 65_536
"""The rest of a longer line is dropped [bytes]."""

_CHUNK_BYTES = 65_536
_TICK_S = 0.2
_GRACE_S = 5.0
_KILL_S = 10.0
_DRAIN_S = 2.0
_EXEC_S = 0.05
"""Far longer than loading a program takes while nothing else does [s]."""


class Processes:
    """A job's first process and all it started.

    Output and errors are one stream of lines. Leaving the context stops whatever still runs. The
    job's standard input stays open as long as this process lives, by which ranks can tell that it is gone.

    Parameters
    ----------
    argv
        The command.
    environment
        All its variables.
    run_id
        Unlike that of any other run.

    Raises
    ------
    InputError
        When there is no such program, or it may not be started.
    """

    def __init__(self, argv: Sequence[str], *, environment: Mapping[str, str], run_id: str) -> None:
        self._run_id = run_id
        self._rest = b""
        try:
            self._first = subprocess.Popen(  # noqa: S603 (the user's own job; no shell)
                list(argv),
                env={**environment, RUN_VARIABLE: run_id},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise InputError(f"cannot start {argv[0]}: {error.strerror}") from None

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop what still runs."""
        self.stop()

    @property
    def exit_code(self) -> int | None:
        """Return the exit code of the first process; ``None`` while it runs."""
        return self._first.poll()

    def lines(self) -> Iterator[str | None]:
        """Yield lines as they come, and ``None`` a few times a second while none does; ends with the job."""
        ended_at: float | None = None
        while True:
            chunk = self._read()
            if chunk == b"":
                break
            yield from self._split(chunk) if chunk else (None,)
            if self._first.poll() is not None:
                # A process that was left behind may hold the stream open for good.
                ended_at = ended_at or time.monotonic()
                if chunk is None or time.monotonic() - ended_at > _DRAIN_S:
                    break
        if self._rest:
            yield self._rest.decode("utf-8", errors="replace")
            self._rest = b""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._first.wait(timeout=_GRACE_S)

    def _read(self) -> bytes | None:
        """Return what came, ``None`` where nothing did, and nothing at the end of the stream."""
        stream = self._first.stdout
        if stream is None or not select.select([stream], [], [], _TICK_S)[0]:
            return None
        return os.read(stream.fileno(), _CHUNK_BYTES)

    def _split(self, chunk: bytes) -> Iterator[str]:
        *whole, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[:LONGEST_LINE]
        for line in whole:
            yield line[:LONGEST_LINE].decode("utf-8", errors="replace").rstrip("\r")

    def stop(self) -> None:
        """Ask all processes to end, and kill after some seconds those that do not."""
        left = self._all()
        if left:
            signal_all(left[:1] if self._first.poll() is None else left, signal.SIGTERM)
            left = self._wait(_GRACE_S)
        until = time.monotonic() + _KILL_S
        while left and time.monotonic() < until:  # one that waits for a dead disk cannot be killed
            signal_all(left, signal.SIGKILL)
            left = self._wait(_TICK_S)
        for stream in (self._first.stdin, self._first.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._first.wait(timeout=_TICK_S)

    def _wait(self, limit_s: float) -> list[int]:
        until = time.monotonic() + limit_s
        while (left := self._all()) and time.monotonic() < until:
            time.sleep(0.02)
        return left

    def _all(self) -> list[int]:
        """Return the processes that still run, the first one first."""
        if self._first.poll() is None:
            return [self._first.pid, *(pid for pid in living(self._run_id) if pid != self._first.pid)]
        return still_living(self._run_id)


def signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to processes, some of which may be gone meanwhile, or another's.

    Parameters
    ----------
    pids
        The processes.
    number
        The signal.
    """
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def still_living(run_id: str) -> list[int]:
    """Return the living processes of a run, and none only if there is none.

    Parameters
    ----------
    run_id
        That of the run.

    Notes
    -----
    While a process loads a program, the kernel shows no environment of it: where none is found, a second look
    after a moment tells.
    """
    found = list(living(run_id))
    if not found:
        time.sleep(_EXEC_S)
        found = list(living(run_id))
    return found


def living(run_id: str) -> Iterator[int]:
    """Yield the living processes of a run.

    Parameters
    ----------
    run_id
        That of the run.

    Notes
    -----
    torchrun starts each rank in a session of its own, so that the process group does not hold them.
    """
    wanted = f"{RUN_VARIABLE}={run_id}".encode()
    for entry in Path("/proc").iterdir() if Path("/proc").is_dir() else ():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)
