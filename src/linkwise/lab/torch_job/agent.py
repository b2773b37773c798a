"""The agent of a node: starts the ranks of the node, waits for them, and says how each ended.

What it prints is what agents of torchrun print, so that an output reads like that of any other job. It knows
its own ranks and nothing of the rest.
"""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["end_with", "fork_rank", "run_agent"]

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
_LOOK_S = 0.02
_CLOSING_S = 2.0
"""How long a rank has to end when it is told to [s]."""


def end_with(parent: int) -> None:
    """Have the kernel end this process when its parent ends, however that happens.

    Parameters
    ----------
    parent
        The pid that the parent must have.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def run_agent(namespace: str, plan: Mapping[str, Any], job: Any, session: Any) -> int:
    """Run the ranks of one node and return the exit code: 0 where every one ended well.

    Parameters
    ----------
    namespace
        Of the node.
    plan
        As `start` reads it.
    job, session
        The modules of the job and of its ranks.
    """
    agent = _Agent(namespace, plan, session)
    _enter(namespace)
    own = os.getpid()
    for rank, each in enumerate(plan["ranks"]):
        if each["namespace"] == namespace:
            work = functools.partial(_joined, rank, plan, job, session)
            agent.ranks[fork_rank(rank, work, session, own)] = rank
    for pid, rank in agent.ranks.items():
        session.say("started", rank=rank, pid=pid)
    # After the fork: a rank ends by the signal itself.
    signal.signal(signal.SIGTERM, agent.stop)
    return agent.wait()


class _Agent:
    def __init__(self, namespace: str, plan: Mapping[str, Any], session: Any) -> None:
        self.ranks: dict[int, int] = {}
        self._host = namespace.rpartition("-")[2]
        self._session = session
        self._grace_s = float(plan["grace_s"])
        self._local = {
            rank: place
            for place, rank in enumerate(
                rank for rank, each in enumerate(plan["ranks"]) if each["namespace"] == namespace
            )
        }
        self._is_told = False

    def stop(self, *_: object) -> None:
        """Take note of a signal that says that the job is to end."""
        self._is_told = True

    def wait(self) -> int:
        """Wait for the ranks; once one has failed, and the others have had time to say so, end them."""
        close_at = float("inf")
        has_failed = False
        while self.ranks:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                self._ended(pid, code)
                if code and not has_failed:
                    has_failed, close_at = True, time.monotonic() + self._grace_s
                continue
            if self._is_told:
                self._say("Received 15 death signal, shutting down workers")
                self._is_told, close_at = False, 0.0
            if time.monotonic() > close_at:
                self._close()
                return 1
            time.sleep(_LOOK_S)
        return int(has_failed)

    def _close(self) -> None:
        for pid in self.ranks:
            self._say(f"Sending process {pid} closing signal SIGTERM")
            os.kill(pid, signal.SIGTERM)
        end = time.monotonic() + _CLOSING_S
        while self.ranks and time.monotonic() < end:
            self._reap()
        for pid in self.ranks:
            self._say(f"Unable to shutdown process {pid} via 15, forcefully exiting via 9")
            os.kill(pid, signal.SIGKILL)
        while self.ranks:
            self._reap()

    def _reap(self) -> None:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            self._ended(pid, os.waitstatus_to_exitcode(status))
        else:
            time.sleep(_LOOK_S)

    def _ended(self, pid: int, code: int) -> None:
        rank = self.ranks.pop(pid)
        if code:
            self._say(
                f"failed (exitcode: {code}) local_rank: {self._local[rank]} (pid: {pid}) rank: {rank}"
                f" host: {self._host}"
            )
        self._session.say("ended", rank=rank, exit_code=code)

    def _say(self, text: str) -> None:
        self._session.print_line(f"{self._host}: agent: {text}")


def fork_rank(rank: int, work: Callable[[], None], session: Any, parent: int) -> int:
    """Return the pid of a process that does the work of a rank, and ends with this one.

    Parameters
    ----------
    rank
        Its number.
    work
        What it does; what goes wrong is said.
    session
        The module of the ranks.
    parent
        Pid of this process.
    """
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        end_with(parent)
        work()
        code = 0
    except BaseException as error:  # noqa: BLE001 (the reason of any rank must get out, whatever it is)
        lines = "".join(traceback.format_exception(error)).splitlines()
        os.write(2, "".join(f"[rank{rank}]: {line}\n" for line in lines).encode("utf-8", "replace"))
        session.say("failed", rank=rank, error=f"{type(error).__name__}: {error}"[:1000])
    finally:
        os._exit(code)


def _joined(rank: int, plan: Mapping[str, Any], job: Any, session: Any) -> None:
    joined = session.join(rank, plan)
    job.measure(joined, plan)
    joined.leave()


def _enter(namespace: str) -> None:
    handle = os.open(f"/var/run/netns/{namespace}", os.O_RDONLY)
    if _LIBC.setns(handle, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), f"cannot enter the namespace {namespace}")
    os.close(handle)
