"""A verdict as the text that is kept, and back."""

from __future__ import annotations

import dataclasses
from typing import Any

from linkwise.errors import InputError
from linkwise.rollout.canonical import canonical_text, number_of, number_word, parse_object
from linkwise.rollout.plan import Severity
from linkwise.rollout.verdicts import ObjectiveVerdict, Outcome, StepVerdict

__all__ = ["verdict_of_text", "verdict_text"]

_NUMBERS = ("value", "low", "high", "bar", "chance_of_miss")


def verdict_text(verdict: StepVerdict) -> str:
    """Return a verdict in its one spelling.

    Parameters
    ----------
    verdict
        Of a step.
    """
    return canonical_text(
        {
            "step": verdict.step,
            "outcome": verdict.outcome.value,
            "sentence": verdict.sentence,
            "to_approve": list(verdict.to_approve),
            "objectives": [_objective(each) for each in verdict.objectives],
        }
    )


def _objective(verdict: ObjectiveVerdict) -> dict[str, object]:
    found: dict[str, Any] = dataclasses.asdict(verdict)
    found["outcome"] = verdict.outcome.value
    found["severity"] = verdict.severity.value
    for name in _NUMBERS:
        found[name] = None if found[name] is None else number_word(found[name])
    for name in ("values", "references"):
        found[name] = [number_word(each) for each in found[name]]
    found["run_ids"] = list(verdict.run_ids)
    return found


def verdict_of_text(text: str) -> StepVerdict:
    """Return the verdict of a kept text.

    Parameters
    ----------
    text
        As `verdict_text` wrote it.

    Raises
    ------
    InputError
        When it is not.
    """
    found = parse_object(text, what="a kept verdict")
    try:
        return StepVerdict(
            step=str(found["step"]),
            outcome=Outcome(found["outcome"]),
            sentence=str(found["sentence"]),
            to_approve=tuple(map(str, found["to_approve"])),
            objectives=tuple(map(_objective_of, found["objectives"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"a kept verdict is none of ours, or was altered ({error})") from None


def _objective_of(found: dict[str, Any]) -> ObjectiveVerdict:
    read = dict(found)
    read["outcome"] = Outcome(found["outcome"])
    read["severity"] = Severity(found["severity"])
    for name in _NUMBERS:
        read[name] = None if found[name] is None else number_of(found[name])
    for name in ("values", "references"):
        read[name] = tuple(map(number_of, found[name]))
    read["run_ids"] = tuple(map(str, found["run_ids"]))
    return ObjectiveVerdict(**read)
