"""The script that is started: forks an agent for every node, which forks the ranks of its own.

Called as ``start.py PLAN``, a file of JSON: ``kind`` (a module of this folder), ``ranks`` (``namespace`` and
``device`` of each), ``address``, ``port``, ``timeout_s``, ``grace_s``, ``parent``, and what the kind reads.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_KINDS = ("collectives", "training")
_LOOK_S = 0.02
_NICENESS = -15
"""Ranks sleep and wait most of a step; a core they want they get before what else the machine does."""
_PATIENCE_S = 5.0
"""How long an agent has to end its ranks when it is told to [s]."""


def main(plan_path: str) -> int:
    """Run one plan and return the exit code: 0 where every rank ended well.

    Parameters
    ----------
    plan_path
        File with the plan.
    """
    plan = json.loads(Path(plan_path).read_text(encoding="utf-8"))
    # A script finds modules beside it first; last, and by the name of their folder, they shadow none.
    sys.path.append(str(Path(__file__).parents[1]))
    sys.path.remove(str(Path(__file__).parent))
    agent = importlib.import_module("torch_job.agent")
    agent.end_with(int(plan["parent"]))
    with contextlib.suppress(PermissionError):  # a root that may not: times are then those of a busy machine
        os.setpriority(os.PRIO_PROCESS, 0, _NICENESS)
    if plan["kind"] not in _KINDS:
        raise SystemExit(f"unknown job {plan['kind']!r}")
    job = importlib.import_module(f"torch_job.{plan['kind']}")
    session = importlib.import_module("torch_job.session")
    own = os.getpid()
    if hasattr(job, "measure_alone") and not _is_measured_alone(plan, agent, job, session):
        return 1
    nodes = dict.fromkeys(each["namespace"] for each in plan["ranks"])
    runs = {
        namespace: functools.partial(agent.run_agent, namespace, plan, job, session) for namespace in nodes
    }
    agents = {_fork(agent, run, own): namespace for namespace, run in runs.items()}
    for pid, namespace in agents.items():
        session.say("agent", namespace=namespace, pid=pid)
    return _waited(set(agents), grace_s=float(plan["grace_s"]))


def _is_measured_alone(plan: dict[str, Any], agent: Any, job: Any, session: Any) -> bool:
    """Have every rank measure what it computes alone, before any joins the others; return whether all did."""
    meeting = multiprocessing.get_context("fork").Barrier(len(plan["ranks"]))
    left = [
        agent.fork_rank(rank, functools.partial(job.measure_alone, rank, plan, meeting), session, os.getpid())
        for rank in range(len(plan["ranks"]))
    ]
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in left]
    return not any(codes)


def _fork(agent: Any, run: Callable[[], int], parent: int) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        agent.end_with(parent)
        code = run()
    finally:
        os._exit(code)


def _waited(agents: set[int], *, grace_s: float) -> int:
    """Wait for all agents; once one has failed, and the ranks of others have had time to say so, end them."""
    failed_at = None
    told_at = None
    while agents:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            agents.discard(pid)
            if os.waitstatus_to_exitcode(status) and failed_at is None:
                failed_at = time.monotonic()
            continue
        time.sleep(_LOOK_S)
        now = time.monotonic()
        if failed_at is not None and told_at is None and now > failed_at + grace_s:
            told_at = now
            _signal(agents, signal.SIGTERM)
        elif told_at is not None and now > told_at + _PATIENCE_S:
            _signal(agents, signal.SIGKILL)
    return 0 if failed_at is None else 1


def _signal(agents: set[int], number: signal.Signals) -> None:
    for each in agents:
        os.kill(each, number)


if __name__ == "__main__":
    _CODE = main(sys.argv[1])
    sys.stdout.flush()
    os._exit(_CODE)  # taking torch down object by object takes a second
