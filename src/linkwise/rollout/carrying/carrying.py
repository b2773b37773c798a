"""A rollout carried out: one action at a time, each written down before and after its effect.

Everything that decides what comes next is in the store, so that a kill at any moment loses nothing: the next
`carry_out` finds the same place in the log.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

from linkwise.errors import InputError
from linkwise.rollout.carrying import actions
from linkwise.rollout.carrying.acting import Acting
from linkwise.rollout.carrying.actions import Action
from linkwise.rollout.carrying.effects import perform
from linkwise.rollout.carrying.fingerprint import changed, seen_by
from linkwise.rollout.carrying.ground import Ground, Loaded
from linkwise.rollout.carrying.next_action import Situation, next_action
from linkwise.rollout.carrying.progress import Progress, progress_of
from linkwise.rollout.carrying.restoring import begin_rollback
from linkwise.rollout.runs import StepRun
from linkwise.rollout.store.lock import HeldBy, Lock
from linkwise.rollout.store.reading import Record
from linkwise.rollout.store.store import Store

__all__ = ["Carried", "carry_out", "roll_back", "situation_of"]

_TICK_S = 10.0
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
        return _carry(ground, name, lock, is_enough=is_enough, waits=waits)


def roll_back(ground: Ground, *, by: HeldBy, why: str) -> Carried:
    """Take the way back, and prove it.

    Parameters
    ----------
    ground
        What it is carried out with.
    by
        Who holds it meanwhile.
    why
        The reason.

    Raises
    ------
    InputError
        When there is nothing to go back from, or somebody else carries the rollout out.
    """
    loaded = ground.load()
    name = loaded.rollout.name
    with ground.store.held(name, by=by) as lock:
        record = ground.store.record(name)
        progress = progress_of(record.entries)
        way = progress.rollback
        if way is not None and way.is_proven:
            raise InputError(f"{name!r} was rolled back ({way.why}); resume it, or leave it")
        if way is None or way.is_proven is False:
            acting = Acting(ground=ground, loaded=loaded, record=record, token=lock.token)
            if not begin_rollback(acting, step=_step_at(loaded, progress), why=why, is_told=True):
                raise InputError(f"something else was decided for {name!r} just now; look at its status")
        return _carry(ground, name, lock, is_enough=lambda _: True, waits=False)


def _step_at(loaded: Loaded, progress: Progress) -> str:
    """Return the step that is under way, or was last."""
    names = [step.name for step in loaded.rollout.steps]
    return next((name for name in names if not progress.has_passed(name)), names[-1])


def _carry(
    ground: Ground, name: str, lock: Lock, *, is_enough: Callable[[tuple[str, ...]], bool], waits: bool
) -> Carried:
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
        is_way_back = progress.rollback is not None
        is_at_a_step = isinstance(action, actions.Measure | actions.Wait) and not is_way_back
        is_waiting = isinstance(action, actions.Wait) and not waits
        is_end = isinstance(action, actions.Stopped | actions.Done)
        if is_end or is_waiting or (is_at_a_step and is_enough(passed)):
            return Carried(action=action, progress=progress, steps=passed)
        if isinstance(action, actions.Wait):
            _wait(ground, action)
            continue
        done = perform(action, Acting(ground=ground, loaded=loaded, record=record, token=lock.token))
        if done and isinstance(action, actions.PassStep):
            passed = (*passed, action.step)


def _next(ground: Ground, loaded: Loaded, record: Record | None) -> Action:
    action = next_action(situation_of(ground.store, loaded, record, now=ground.clock()))
    if isinstance(action, actions.Done) and record is not None:
        accepted = progress_of(record.entries).file
        if accepted != loaded.rollout.digest:
            raise InputError(
                f"{loaded.rollout.name!r} was promoted, and its file has changed since; what goes out now is "
                "another rollout: give it another name"
            )
    return action


def situation_of(store: Store, loaded: Loaded, record: Record | None, *, now: dt.datetime) -> Situation:
    """Return all that the next action hangs on.

    Parameters
    ----------
    store
        Where baselines are kept.
    loaded
        The file as it is now.
    record
        What the store holds; ``None`` before it began.
    now
        In UTC.
    """
    runs = record.runs if record else ()
    return Situation(
        rollout=loaded.rollout,
        entries=record.entries if record else (),
        runs=runs,
        baseline={
            step.name: _baseline(store, loaded, loaded.sizes[step.name].words, runs)
            for step in loaded.rollout.steps
        },
        nodes={name: size.nodes for name, size in loaded.sizes.items()},
        now=now,
    )


def _baseline(store: Store, loaded: Loaded, target: str, runs: tuple[StepRun, ...]) -> tuple[StepRun, ...]:
    """Return what was promoted last, unless it was measured on another software or hardware than this."""
    found = store.baseline(scope=loaded.scope, target=target)
    seen, kind = seen_by(runs), loaded.rollout.change.kind
    return tuple(run for run in found if not changed(run.seen, seen, kind=kind))


def _wait(ground: Ground, action: actions.Wait) -> None:
    left_s = _TICK_S
    if action.until is not None:
        left_s = min(left_s, max(0.0, (action.until - ground.clock()) / dt.timedelta(seconds=1)))
    ground.sleep(left_s)
