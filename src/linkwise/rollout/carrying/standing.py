"""Where a rollout stands, in one word that scripts can act on."""

from __future__ import annotations

from enum import StrEnum

from linkwise.errors import ExitCode
from linkwise.rollout.carrying import actions
from linkwise.rollout.carrying.actions import Action, Waiting
from linkwise.rollout.carrying.progress import Cause, Progress
from linkwise.rollout.targets import target_words

__all__ = ["Standing", "exit_code_of", "next_words", "standing_of"]


class Standing(StrEnum):
    """Where a rollout stands."""

    NOT_BEGUN = "not begun"
    UNDER_WAY = "under way"
    WAITING = "waiting"
    SUSPENDED = "suspended"
    ROLLING_BACK = "rolling back"
    ROLLED_BACK = "rolled back"
    NOT_PROVEN = "rolled back, not proven"
    PROMOTED = "promoted"


def standing_of(progress: Progress, action: Action | None = None) -> Standing:
    """Return where a rollout stands.

    Parameters
    ----------
    progress
        How far it is.
    action
        What comes next; ``None`` where that is not known, so that waiting is not told from going on.
    """
    if progress.rollback is not None:
        proven = {None: Standing.ROLLING_BACK, True: Standing.ROLLED_BACK, False: Standing.NOT_PROVEN}
        return proven[progress.rollback.is_proven]
    if progress.suspended is not None:
        return Standing.SUSPENDED
    if progress.is_promoted:
        return Standing.PROMOTED
    if not progress.has_begun:
        return Standing.NOT_BEGUN
    return Standing.WAITING if isinstance(action, actions.Wait) else Standing.UNDER_WAY


def exit_code_of(progress: Progress, action: Action | None = None) -> ExitCode:
    """Return the exit code of a command that ends where a rollout stands.

    Parameters
    ----------
    progress, action
        As for `standing_of`.
    """
    standing = standing_of(progress, action)
    if standing is Standing.NOT_PROVEN:
        return ExitCode.AGAINST
    if standing in (Standing.SUSPENDED, Standing.ROLLED_BACK, Standing.ROLLING_BACK):
        cause = progress.cause
        if cause is Cause.FAIL:
            return ExitCode.AGAINST
        not_measured = (Cause.ERROR, Cause.NO_DATA, Cause.CLUSTER)
        return ExitCode.NOT_MEASURED if cause in not_measured else ExitCode.INCONCLUSIVE
    return ExitCode.INCONCLUSIVE if standing is Standing.WAITING else ExitCode.DONE


def next_words(action: Action) -> str:
    """Return what comes next, for a person.

    Parameters
    ----------
    action
        The action.
    """
    words = _WORDS.get(type(action))
    if words is not None:
        return words
    if isinstance(action, actions.Measure):
        return (
            f"measure {action.step.name} on {target_words(action.step.target)} ({action.wanted.side.value})"
        )
    if isinstance(action, actions.Wait) and action.what is Waiting.SOAK and action.until is not None:
        return f"{action.step} soaks until {action.until:%Y-%m-%d %H:%M:%S} UTC; then run again"
    if isinstance(action, actions.Wait):
        who = " and ".join(action.who)
        return f"{action.step} waits for the approval of {who}"
    if isinstance(action, actions.Judge):
        return f"judge {action.verdict.step}"
    if isinstance(action, actions.PassStep):
        return f"put {action.step} behind, and go on"
    if isinstance(action, actions.Suspend):
        return f"suspend: {action.why}"
    if isinstance(action, actions.Stopped):
        return _stopped_words(action)
    return "nothing, until somebody decides"


def _stopped_words(action: actions.Stopped) -> str:
    """Return who may do what about a stop: on the same evidence the same verdict follows a mere resume."""
    judged = (Cause.FAIL.value, Cause.INCONCLUSIVE.value)
    way_on = (
        "change the candidate and 'resume --accept-file', or 'waive'"
        if action.entry.facts.get("cause") in judged
        else "mend what stopped it, then 'resume'"
    )
    way_back = "" if action.is_rolled_back else "; or 'rollback'"
    return f"nothing, until somebody decides: {way_on}{way_back}"


_WORDS: dict[type, str] = {
    actions.Begin: "begin",
    actions.Recover: "take in the run that is under way or was cut off",
    actions.BeginRollback: "take the way back",
    actions.RunCommand: "run the command of the rollback",
    actions.Restore: "restore what was promoted last",
    actions.EndRollback: "write down whether the way back is proven",
    actions.Promote: "promote the candidate",
    actions.Done: "nothing: it is promoted",
}
