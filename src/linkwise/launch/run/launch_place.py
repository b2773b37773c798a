"""Where a launched job runs on when its launcher is gone: this machine, or Slurm."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from linkwise.errors import InputError
from linkwise.launch.run.processes import RUN_VARIABLE, living, signal_all, still_living

__all__ = ["LaunchPlace", "LocalLaunch", "Phase", "SlurmLaunch", "State"]

_GRACE_S = 20.0
"""From asking a job to end to killing it: torchrun gives its ranks half of it [s]."""
_SCHEDULER_S = 60.0
"""How long a command of Slurm may take [s]."""
_TICK_S = 0.1
_KEPT_DESCRIPTOR = 9
"""The last that every shell can name."""
_EXEC_S = 1.0
"""Far longer than loading a program takes [s]."""

_KEEPER = (
    'trap \'kill -TERM "$child" 2>/dev/null\' TERM INT; trap "" HUP; cd "$1" || exit; end=$2; shift 2; '
    '"$@" & child=$!; while :; do wait "$child"; code=$?; kill -0 "$child" 2>/dev/null || break; done; '
    'echo "$code" > "$end.part" && mv "$end.part" "$end"'
)
"""Starts a command and writes its exit code down: who launched it may be gone by then."""


class Phase(StrEnum):
    """How far a job is."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How far a job is.

    Parameters
    ----------
    phase
        In a word.
    exit_code
        Of a job that ended; ``None`` where nobody wrote it down.
    reason
        Why it waits, or why it ended, in the words of the scheduler; may be empty.
    hosts
        Nodes it was given, where a scheduler chose them.
    is_cancelled
        Whether it was not the job that ended, but the scheduler that ended it.
    """

    phase: Phase
    exit_code: int | None = None
    reason: str = ""
    hosts: tuple[str, ...] = ()
    is_cancelled: bool = False


class LaunchPlace(Protocol):
    """Where a job is launched."""

    @property
    def name(self) -> str:
        """Return its name on the command line."""
        ...

    def command(self, folder: Path) -> tuple[str, ...]:
        """Return what is run in the run folder.

        Parameters
        ----------
        folder
            The run folder.
        """
        ...

    def start(self, folder: Path, environment: Mapping[str, str], *, run_id: str) -> str:
        """Start the job, and return what `state` and `stop` find it by.

        Parameters
        ----------
        folder
            The run folder.
        environment
            All variables.
        run_id
            Unlike that of any other run.
        """
        ...

    def state(self, folder: Path, handle: str, *, run_id: str) -> State:
        """Return how far the job is.

        Parameters
        ----------
        folder, run_id
            As for `start`.
        handle
            What `start` returned.
        """
        ...

    def stop(self, handle: str, *, run_id: str) -> None:
        """Stop all of the job.

        Parameters
        ----------
        handle, run_id
            As for `state`.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalLaunch:
    """The machine itself: the job is a session of its own, whose output is a file.

    Parameters
    ----------
    script
        Name of the script in the run folder.
    grace_s
        From asking a job to end to killing it [s].
    name
        On the command line.
    kept_open
        An open file that the job keeps open as long as it lives, such as a lock that it holds; ``None`` for
        none.
    """

    script: str
    grace_s: float = _GRACE_S
    name: str = "local"
    kept_open: int | None = None

    def command(self, folder: Path) -> tuple[str, ...]:
        """Return the rendered script.

        Parameters
        ----------
        folder
            As for `LaunchPlace`.
        """
        return ("bash", str(folder / self.script))

    def start(self, folder: Path, environment: Mapping[str, str], *, run_id: str) -> str:
        """Start the script, and return its process.

        Parameters
        ----------
        folder, environment, run_id
            As for `LaunchPlace`.

        Raises
        ------
        InputError
            When there is no shell, or the output cannot be written.
        """
        words = ("keeper", str(folder), str(folder / "exit-code"), *self.command(folder))
        append = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(folder / "output.log"), append, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        if self.kept_open is not None:
            actions.append((os.POSIX_SPAWN_DUP2, self.kept_open, _KEPT_DESCRIPTOR))
        try:
            first = os.posix_spawn(
                "/bin/sh",
                ["/bin/sh", "-c", _KEEPER, *words],
                {**environment, RUN_VARIABLE: run_id},
                file_actions=actions,
                setsid=True,
            )
        except OSError as error:
            raise InputError(f"{folder}: the job cannot be started ({error.strerror})") from None
        until = time.monotonic() + _EXEC_S
        while not _is_of_run(str(first), run_id) and time.monotonic() < until:
            time.sleep(0.001)  # while a program is loaded, the kernel shows no environment of it
        return str(first)

    def state(self, folder: Path, handle: str, *, run_id: str) -> State:
        """Return how far the job is.

        Parameters
        ----------
        folder, handle, run_id
            As for `LaunchPlace`.
        """
        with contextlib.suppress(ChildProcessError, ValueError, OSError):
            os.waitpid(int(handle), os.WNOHANG)
        is_alive = _is_of_run(handle, run_id)
        with contextlib.suppress(OSError, ValueError):
            return State(phase=Phase.ENDED, exit_code=int((folder / "exit-code").read_text(encoding="ascii")))
        return State(phase=Phase.RUNNING if is_alive else Phase.ENDED)

    def stop(self, handle: str, *, run_id: str) -> None:
        """Ask the job to end, and kill what does not.

        Parameters
        ----------
        handle, run_id
            As for `LaunchPlace`.
        """
        until = time.monotonic() + self.grace_s
        if _is_of_run(handle, run_id):
            signal_all([int(handle)], signal.SIGTERM)
        else:
            signal_all(living(run_id), signal.SIGTERM)
        while left := still_living(run_id):
            with contextlib.suppress(ChildProcessError, ValueError, OSError):
                os.waitpid(int(handle), os.WNOHANG)
            if time.monotonic() > until:
                signal_all(left, signal.SIGKILL)
            time.sleep(_TICK_S)


def _is_of_run(handle: str, run_id: str) -> bool:
    wanted = f"{RUN_VARIABLE}={run_id}".encode()
    try:
        return handle.isdigit() and wanted in Path(f"/proc/{handle}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


Shell = Callable[[Sequence[str], Path | None, Mapping[str, str] | None], "subprocess.CompletedProcess[str]"]


def _run(
    words: Sequence[str], cwd: Path | None, environment: Mapping[str, str] | None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 (commands of Slurm)
        list(words),
        cwd=cwd,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=_SCHEDULER_S,
    )


_WAITS = frozenset(("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"))
_RUNS = frozenset(("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"))
_LOST = re.compile(r"\*|down|fail|unknown", re.IGNORECASE)
"""A star marks a node that does not answer."""
_FIELD = re.compile(r"\b(JobState|Reason|ExitCode|NodeList)=(\S*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmLaunch:
    """Slurm: sbatch submits the rendered script, and Slurm runs it whether or not somebody watches.

    Parameters
    ----------
    script
        Name of the script in the run folder.
    options
        Options of sbatch: partition, account.
    shell
        Runs a command of Slurm.
    """

    script: str
    options: tuple[str, ...] = ()
    shell: Shell = _run
    name: str = "slurm"

    def command(self, folder: Path) -> tuple[str, ...]:
        """Return the command that submits the script.

        Parameters
        ----------
        folder
            As for `LaunchPlace`.
        """
        output = f"--output={folder / 'output.log'}"
        return ("sbatch", "--parsable", "--export=ALL", output, *self.options, self.script)

    def start(self, folder: Path, environment: Mapping[str, str], *, run_id: str) -> str:
        """Submit the job, and return its number.

        Parameters
        ----------
        folder, environment, run_id
            As for `LaunchPlace`.

        Raises
        ------
        InputError
            When Slurm does not take it.
        """
        done = self._said(self.command(folder), folder, {**environment, RUN_VARIABLE: run_id})
        number = done.stdout.strip().split(";")[0]
        if done.returncode or not number.isdigit():
            why = " ".join((done.stderr or done.stdout).split())[-400:]
            raise InputError(f"sbatch refused the job: {why or f'exit code {done.returncode}'}")
        return number

    def state(self, folder: Path, handle: str, *, run_id: str) -> State:  # noqa: ARG002 (as all places)
        """Return how far the job is.

        Parameters
        ----------
        folder, handle, run_id
            As for `LaunchPlace`.
        """
        done = self._said(("scontrol", "show", "job", "--oneliner", handle), None, None)
        found = dict(_FIELD.findall(done.stdout))
        word = found.get("JobState", "")
        if not word:
            return self._after(handle, done.stderr)
        nodes = found.get("NodeList", "")
        reason = found.get("Reason", "").replace("None", "")
        if word in _WAITS:
            return State(phase=Phase.WAITING, reason=reason)
        hosts = self._hosts(nodes) if nodes and nodes != "(null)" else ()
        if word in _RUNS:
            return State(phase=Phase.RUNNING, reason=reason, hosts=hosts)
        why = "" if word in ("COMPLETED", "FAILED") else self._why(word, reason, hosts)
        code = _code(found.get("ExitCode", ""))
        code = None if why and code == 0 else code  # of a lost node, say: the job has none of its own
        return State(phase=Phase.ENDED, exit_code=code, reason=why, hosts=hosts, is_cancelled=bool(why))

    def _why(self, word: str, reason: str, hosts: Sequence[str]) -> str:
        """Return why Slurm ended a job, and which of its nodes do not answer."""
        why = f"Slurm ended it: {word} {reason}".strip()
        if word != "NODE_FAIL" or not hosts:
            return why
        said = self._said(("sinfo", "-h", "-N", "-n", ",".join(hosts), "-o", "%N %T"), None, None).stdout
        states = dict(row for row in (line.split() for line in said.splitlines()) if len(row) == 2)
        lost = [f"{node} is {state}" for node, state in states.items() if _LOST.search(state)]
        return f"{why}, {', '.join(lost)}" if lost else why

    def _after(self, handle: str, said: str) -> State:
        """Return the state of a job that the controller has forgotten, by the accounting if there is one."""
        if "Invalid job id" not in said:
            return State(phase=Phase.RUNNING, reason=" ".join(said.split())[-200:])  # it does not answer now
        done = self._said(("sacct", "-nPX", "-j", handle, "-o", "State,ExitCode"), None, None)
        word, _, code = done.stdout.strip().partition("|")
        if done.returncode or not code:
            return State(phase=Phase.ENDED, reason="Slurm has forgotten the job, and keeps no account of it")
        return State(phase=Phase.ENDED, exit_code=_code(code), reason="" if word == "COMPLETED" else word)

    def _hosts(self, nodes: str) -> tuple[str, ...]:
        return tuple(self._said(("scontrol", "show", "hostnames", nodes), None, None).stdout.split())

    def stop(self, handle: str, *, run_id: str) -> None:  # noqa: ARG002 (as all places)
        """Cancel the job, and wait until Slurm has ended it.

        Parameters
        ----------
        handle, run_id
            As for `LaunchPlace`.
        """
        self._said(("scancel", handle), None, None)
        until = time.monotonic() + _SCHEDULER_S
        while self.state(Path(), handle, run_id="").phase is not Phase.ENDED and time.monotonic() < until:
            time.sleep(5 * _TICK_S)

    def _said(
        self, words: Sequence[str], folder: Path | None, environment: Mapping[str, str] | None
    ) -> subprocess.CompletedProcess[str]:
        try:
            return self.shell(words, folder, environment)
        except FileNotFoundError:
            if words[0] == "sacct":
                return subprocess.CompletedProcess(list(words), 1, "", "")
            raise InputError(f"{words[0]} is not here: --on slurm runs on a node that can submit") from None
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(list(words), 1, "", f"{words[0]} gave no answer")


def _code(text: str) -> int | None:
    """Return the exit code of ``2:0``, and of a signal as in ``0:9`` its negative."""
    code, _, number = text.partition(":")
    if not code.isdigit():
        return None
    return -int(number) if number.isdigit() and int(number) else int(code)
