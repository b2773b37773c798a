"""A rollout carried out for real on simulated measurements: each run is a process that writes samples.

``python -m tests.rollout.simulated FOLDER`` carries one on, as `linkwise rollout run` would; tests kill it.
"""

import datetime as dt
import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from linkwise.launch.run.processes import RUN_VARIABLE, living
from linkwise.rollout.carrying.carrying import carry_out
from linkwise.rollout.carrying.ground import Ground, Loaded, StepSize
from linkwise.rollout.plan import Rollback, Step, Target, TargetKind
from linkwise.rollout.runs import RunState, Side, StepRun
from linkwise.rollout.store.lock import HeldBy
from linkwise.rollout.store.store import Store
from tests.rollout.making import at_least, objective, rollout

OPENED = []
"""Stores that a test opened; a fixture closes them."""
METRIC = "collective.busbw"
PROGRAM = """
exec >>"$0/samples"; pause=$1; shift
for each in "$@"; do echo "$each"; [ "$pause" = 0 ] || sleep "$pause"; done
echo end
"""
"""What a run does: samples one by one, then a word that says it is whole."""


def steps(*names, objectives=("bandwidth",), approvals=(), soak_s=0.0):
    """Return steps of one node, two nodes..."""
    return tuple(
        Step(
            name=name,
            target=Target(kind=TargetKind.NODES, amount=place + 1),
            objectives=objectives,
            approvals=approvals,
            soak_s=soak_s,
        )
        for place, name in enumerate(names)
    )


def three_steps(**more):
    """Return a rollout with three steps that is compared with its control."""
    plan = rollout(objective(at_least(0.95)), rollback=Rollback(verify=("bandwidth",)), **more)
    return replace(plan, steps=steps("one", "two", "all"), digest="f" * 64)


@dataclass
class Processes:
    """A `Measure` whose runs are processes of their own; they go on when their keeper is killed.

    `levels` are bytes per second by side, or functions of the request.
    """

    levels: dict = field(default_factory=lambda: dict.fromkeys(Side, 100000000000.0))
    count: int = 5
    pause_s: float = 0.0
    seen: dict = field(default_factory=dict)
    states: dict = field(default_factory=dict)
    measured: list = field(default_factory=list)

    def measure(self, request):
        self.measured.append((request.step.name, request.side, request.turn))
        request.folder.mkdir(parents=True)
        process = subprocess.Popen(self._argv(request), env={**os.environ, RUN_VARIABLE: request.run_id})
        process.wait()
        return self._read(request)

    def _argv(self, request):
        level = self.levels[request.side]
        level = level(request) if callable(level) else level
        samples = (repr(level * random.gauss(1, 0.01)) for _ in range(self.count))
        return ["/bin/sh", "-c", PROGRAM, str(request.folder), f"{self.pause_s:g}", *samples]

    def recover(self, request):
        if not request.folder.exists():
            return None
        while list(living(request.run_id)):
            time.sleep(0.01)
        if not (request.folder / "samples").exists():
            return None
        return self._read(request)

    def _read(self, request):
        lines = (request.folder / "samples").read_text().splitlines()
        is_whole = lines[-1:] == ["end"]
        state = self.states.get(request.side, RunState.VALID) if is_whole else RunState.CUT
        return StepRun(
            run_id=request.run_id, step="", workload="", side=request.side, configuration="", turn=0,
            state=state, reason="" if state is RunState.VALID else "as the test wants",
            samples={METRIC: tuple(map(float, lines[: len(lines) - is_whole]))},
            started=dt.datetime.now(tz=dt.UTC), gpu_s=8.0, gpus=8, nodes=("node-0",), seen=self.seen,
        )  # fmt: skip


@dataclass
class Clock:
    """A clock that tests set; it goes on by a second whenever it is read."""

    now: dt.datetime = dt.datetime(2026, 11, 30, 8, 0, tzinfo=dt.UTC)

    def __call__(self):
        self.now += dt.timedelta(seconds=1)
        return self.now

    def sleep(self, seconds):
        self.now += dt.timedelta(seconds=seconds)


def loaded(plan, path=Path("rollout.yaml")):
    """Return a plan as if it had been read."""
    sizes = {
        step.name: StepSize(nodes=int(step.target.amount), gpus=8 * int(step.target.amount),
                            words=f"{step.target.amount:g} nodes")
        for step in plan.steps
    }  # fmt: skip
    return Loaded(rollout=plan, text=f"# {plan.digest}\n", path=path, scope="test on local", sizes=sizes)


def ground(folder, plan, *, measure=None, clock=None, where=None, tell=None, sign=None):
    """Return what a rollout is carried out with; `plan` may be a function that is asked each time."""
    clock = clock or Clock()
    store = Store(where or str(folder / "store.sqlite"), may_make=True, sign=sign)
    OPENED.append(store)
    return Ground(
        store=store,
        load=lambda: loaded(plan() if callable(plan) else plan, folder / "rollout.yaml"),
        measure=measure or Processes(),
        who="tester@control-7",
        runs=folder / "runs",
        promoted=folder / "promoted.json",
        clock=clock,
        sleep=getattr(clock, "sleep", time.sleep),
        tell=tell or silent,
    )


def silent(_line):
    """Take a line of progress."""


def say(line):
    """Print a line of progress at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def never(_passed):
    """Say that no number of steps is enough."""
    return False


def holder(who="tester"):
    return HeldBy(who=who, host="host", process=os.getpid(), since=dt.datetime.now(tz=dt.UTC))


def carry(there, *, is_enough=never, waits=False):
    return carry_out(there, by=holder(), is_enough=is_enough, waits=waits)


def main(folder, pause_s="0.002", where=None):
    """Carry the rollout of three steps on to its end, on the clock of the machine."""
    plan = replace(three_steps(), sampling=replace(three_steps().sampling, warmup=1))
    there = ground(
        folder, plan, where=where, measure=Processes(pause_s=float(pause_s)),
        clock=lambda: dt.datetime.now(tz=dt.UTC),
        tell=say,
    )  # fmt: skip
    say(carry_out(there, by=holder(), is_enough=never).action)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
