"""The script that is started: forks the ranks of a job into the namespaces of their nodes.

Called as ``start.py PLAN``, a file of JSON: ``kind`` (a module of this folder), ``ranks`` (``namespace`` and
``device`` of each), ``address``, ``port``, ``timeout_s``, ``grace_s``, ``parent``, and what the kind reads.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

_KINDS = ("collectives", "training")
_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
_LOOK_S = 0.02


def main(plan_path: str) -> int:
    """Run one plan and return the exit code: 0 where every rank ended well.

    Parameters
    ----------
    plan_path
        File with the plan.
    """
    plan = json.loads(Path(plan_path).read_text(encoding="utf-8"))
    _end_with(int(plan["parent"]))
    if plan["kind"] not in _KINDS:
        raise SystemExit(f"unknown job {plan['kind']!r}")
    # A script finds modules beside it first; last, and by the name of their folder, they shadow none.
    sys.path.append(str(Path(__file__).parents[1]))
    sys.path.remove(str(Path(__file__).parent))
    job = importlib.import_module(f"torch_job.{plan['kind']}")
    session = importlib.import_module("torch_job.session")
    own, ranks = os.getpid(), range(len(plan["ranks"]))
    if alone := getattr(job, "measure_alone", None):
        meeting = multiprocessing.get_context("fork").Barrier(len(ranks))

        def prepare(rank: int) -> None:
            alone(rank, plan, meeting)

        first = {_fork(rank, plan, prepare, session, own): rank for rank in ranks}
        if code := _waited(first, session, grace_s=0.0, is_told=False):
            return code

    def work(rank: int) -> None:
        joined = session.join(rank, plan)
        job.measure(joined, plan)
        joined.leave()

    children = {_fork(rank, plan, work, session, own): rank for rank in ranks}
    for pid, rank in children.items():
        session.say("started", rank=rank, pid=pid)
    return _waited(children, session, grace_s=float(plan["grace_s"]))


def _fork(rank: int, plan: dict[str, Any], work: Callable[[int], None], session: Any, parent: int) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        _end_with(parent)
        _enter(plan["ranks"][rank]["namespace"])
        work(rank)
        code = 0
    except BaseException as error:  # noqa: BLE001 (the reason of any rank must get out, whatever it is)
        lines = "".join(traceback.format_exception(error)).splitlines()
        os.write(2, "".join(f"[rank{rank}]: {line}\n" for line in lines).encode("utf-8", "replace"))
        session.say("failed", rank=rank, error=f"{type(error).__name__}: {error}"[:1000])
    finally:
        os._exit(code)


def _waited(children: dict[int, int], session: Any, *, grace_s: float, is_told: bool = True) -> int:
    """Wait for all ranks; once one has failed, and all links have had time to say so, end the others."""
    failed_at = None
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            time.sleep(_LOOK_S)
            if failed_at is not None and time.monotonic() > failed_at + grace_s:
                for other in children:
                    os.kill(other, signal.SIGKILL)
            continue
        rank = children.pop(pid, None)
        code = os.waitstatus_to_exitcode(status)
        if is_told:
            session.say("ended", rank=rank, exit_code=code)
        if code and failed_at is None:
            failed_at = time.monotonic()
    return 0 if failed_at is None else 1


def _end_with(parent: int) -> None:
    """Have the kernel end this process when its parent ends, however that happens."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _enter(namespace: str) -> None:
    handle = os.open(f"/var/run/netns/{namespace}", os.O_RDONLY)
    if _LIBC.setns(handle, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), f"cannot enter the namespace {namespace}")
    os.close(handle)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
