"""A rollout carried out: one action at a time, each written down before and after its effect.

Everything that decides what comes next is in the store, so that a kill at any moment loses nothing: the next
`carry_out` finds the same place in the log.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

from linkwise.errors import InputError
from linkwise.rollout import actions
from linkwise.rollout.acting import Acting
from linkwise.rollout.actions import Action
from linkwise.rollout.effects import perform
from linkwise.rollout.fingerprint import changed, seen_by
from linkwise.rollout.ground import Ground, Loaded
from linkwise.rollout.next_action import Situation, next_action
from linkwise.rollout.progress import Progress, progress_of
from linkwise.rollout.runs import StepRun
from linkwise.rollout.store_lock import HeldBy
from linkwise.rollout.store_reading import Record

__all__ = ["Carried", "carry_out", "situation_of"]

_TICK_S = 2.0
"""How often a rollout that waits looks whether something was decided meanwhile [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """Where a rollout stands after it was carried on.

    Parameters
    ----------
    action
        What would come next.
    progress
        How far it is.
    steps
        Names of the steps that were put behind.
    """

    action: Action
    progress: Progress
    steps: tuple[str, ...]


def carry_out(
    ground: Ground, *, by: HeldBy, is_enough: Callable[[tuple[str, ...]], bool], waits: bool = False
) -> Carried:
    """Carry a rollout on until a gate, an end, or enough steps are behind.

    Parameters
    ----------
    ground
        What it is carried out with.
    by
        Who holds it meanwhile.
    is_enough
        Whether to stop before the next step, given the names of those that were put behind.
    waits
        Whether to sit out soaks and approvals.

    Raises
    ------
    InputError
        When somebody else carries it out, its log was altered, or the file cannot be used.
    """
    name = ground.load().rollout.name
    with ground.store.held(name, by=by) as lock:
        passed: tuple[str, ...] = ()
        while True:
            loaded = ground.load()
            if loaded.rollout.name != name:
                raise InputError(
                    f"the file names {loaded.rollout.name!r} now, and {name!r} is carried out; put it back"
                )
            record = ground.store.record(name) if ground.store.has(name) else None
            action = _next(ground, loaded, record)
            progress = progress_of(record.entries if record else ())
            is_at_a_step = isinstance(action, actions.Measure | actions.Wait) and not progress.rollback
            if is_at_a_step and is_enough(passed):
                return Carried(action=action, progress=progress, steps=passed)
            if isinstance(action, actions.Stopped | actions.Done):
                return Carried(action=action, progress=progress, steps=passed)
            if isinstance(action, actions.Wait):
                if not waits:
                    return Carried(action=action, progress=progress, steps=passed)
                _wait(ground, action)
                continue
            done = perform(action, Acting(ground=ground, loaded=loaded, record=record, token=lock.token))
            if done and isinstance(action, actions.PassStep):
                passed = (*passed, action.step)


def _next(ground: Ground, loaded: Loaded, record: Record | None) -> Action:
    action = next_action(situation_of(ground, loaded, record))
    if isinstance(action, actions.Done) and record is not None:
        accepted = progress_of(record.entries).file
        if accepted != loaded.rollout.digest:
            raise InputError(
                f"{loaded.rollout.name!r} was promoted, and its file has changed since; what goes out now is "
                "another rollout: give it another name"
            )
    return action


def situation_of(ground: Ground, loaded: Loaded, record: Record | None) -> Situation:
    """Return all that the next action hangs on.

    Parameters
    ----------
    ground
        What it is carried out with.
    loaded
        The file as it is now.
    record
        What the store holds; ``None`` before it began.
    """
    runs = record.runs if record else ()
    return Situation(
        rollout=loaded.rollout,
        entries=record.entries if record else (),
        runs=runs,
        baseline={
            step.name: _baseline(ground, loaded, loaded.sizes[step.name].words, runs)
            for step in loaded.rollout.steps
        },
        nodes={name: size.nodes for name, size in loaded.sizes.items()},
        now=ground.clock(),
    )


def _baseline(ground: Ground, loaded: Loaded, target: str, runs: tuple[StepRun, ...]) -> tuple[StepRun, ...]:
    """Return what was promoted last, unless it was measured on another software or hardware than this."""
    found = ground.store.baseline(scope=loaded.scope, target=target)
    seen, kind = seen_by(runs), loaded.rollout.change.kind
    return tuple(run for run in found if not changed(run.seen, seen, kind=kind))


def _wait(ground: Ground, action: actions.Wait) -> None:
    left_s = _TICK_S
    if action.until is not None:
        left_s = min(left_s, max(0.0, (action.until - ground.clock()) / dt.timedelta(seconds=1)))
    ground.sleep(left_s)
