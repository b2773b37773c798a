"""What each action does, and how it is written down.

An action that only decides is one transaction. One with an effect is written down before and after it; where
its end is missing, the next one finds that and asks what became of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linkwise.rollout.carrying import actions
from linkwise.rollout.carrying.acting import Acting
from linkwise.rollout.carrying.actions import Action
from linkwise.rollout.carrying.beginning import begin_facts, begin_texts, check_way_back
from linkwise.rollout.carrying.ledger import gpu_time_facts
from linkwise.rollout.carrying.measured_run import measure_run, recover_run
from linkwise.rollout.carrying.promoting import promote
from linkwise.rollout.carrying.restoring import begin_rollback, restore, run_command
from linkwise.rollout.carrying.rollback_steps import verified
from linkwise.rollout.store.decisions import Kind
from linkwise.rollout.store.verdict_text import verdict_text

__all__ = ["perform"]


def perform(action: Action, acting: Acting) -> bool:
    """Do one action, and return whether it was done: not where something was decided meanwhile.

    Parameters
    ----------
    action
        One that does something.
    acting
        What it was decided on.
    """
    return _EFFECTS[type(action)](action, acting)


def _begin(_: actions.Begin, acting: Acting) -> bool:
    loaded = acting.loaded
    check_way_back(loaded, acting.ground.store)
    why = f"{loaded.rollout.change.what} goes out to {loaded.scope}"
    return acting.decide(Kind.BEGUN, why=why, facts=begin_facts(loaded), texts=begin_texts(loaded))


def _judge(action: actions.Judge, acting: Acting) -> bool:
    verdict = action.verdict
    done = acting.decide(
        Kind.JUDGED,
        why=verdict.sentence,
        step=verdict.step,
        facts={
            "outcome": verdict.outcome.value,
            "to_approve": list(verdict.to_approve),
            **gpu_time_facts(acting.loaded.rollout, verdict),
            "objectives": {each.objective: each.outcome.value for each in verdict.objectives},
        },
        texts={"verdict": verdict_text(verdict)},
    )
    if done:
        acting.ground.tell(verdict.sentence)
    return done


def _suspend(action: actions.Suspend, acting: Acting) -> bool:
    done = acting.decide(
        Kind.SUSPENDED, why=action.why, step=action.step, facts={"cause": action.cause.value}
    )
    if done:
        acting.ground.tell(f"suspended: {action.why}")
    return done


def _pass(action: actions.PassStep, acting: Acting) -> bool:
    waiver = action.waiver
    why = (
        "its verdict is pass"
        if waiver is None
        else f"waived by {waiver.by} until {waiver.until}: {waiver.why}"
    )
    done = acting.decide(Kind.STEP_PASSED, why=why, step=action.step, facts={"is_waived": waiver is not None})
    if done:
        acting.ground.tell(f"{action.step}: behind")
    return done


def _end_rollback(action: actions.EndRollback, acting: Acting) -> bool:
    verdict = action.verdict
    is_proven = verified(verdict)
    done = acting.decide(
        Kind.ROLLBACK_VERIFIED if is_proven else Kind.ROLLBACK_UNPROVEN,
        why=action.why,
        facts={"outcome": "" if verdict is None else verdict.outcome.value},
        texts={} if verdict is None else {"verdict": verdict_text(verdict)},
    )
    if done:
        acting.ground.tell(f"rollback {'proven' if is_proven else 'NOT proven'}: {action.why}")
    return done


def _promote(_: actions.Promote, acting: Acting) -> bool:
    done = promote(acting)
    if done:
        acting.ground.tell(f"promoted; {acting.ground.promoted} holds it")
    return done


_EFFECTS: dict[type[Any], Callable[[Any, Acting], bool]] = {
    actions.Begin: _begin,
    actions.Recover: recover_run,
    actions.Measure: measure_run,
    actions.Judge: _judge,
    actions.Suspend: _suspend,
    actions.BeginRollback: lambda action, acting: begin_rollback(acting, step=action.step, why=action.why),
    actions.RunCommand: lambda action, acting: run_command(acting, action.argv),
    actions.Restore: lambda action, acting: restore(acting, action.to),
    actions.EndRollback: _end_rollback,
    actions.PassStep: _pass,
    actions.Promote: _promote,
}
"""What does each action."""
