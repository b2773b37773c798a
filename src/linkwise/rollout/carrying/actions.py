"""What may come next in a rollout, one thing at a time."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum

from linkwise.rollout.carrying.progress import Cause, Waiver
from linkwise.rollout.carrying.schedule import WantedRun
from linkwise.rollout.plan import Step
from linkwise.rollout.runs import StepRun
from linkwise.rollout.store.decisions import Entry
from linkwise.rollout.verdicts import StepVerdict

__all__ = [
    "Action",
    "Begin",
    "BeginRollback",
    "Done",
    "EndRollback",
    "Judge",
    "Measure",
    "PassStep",
    "Promote",
    "Recover",
    "Restore",
    "RunCommand",
    "Stopped",
    "Suspend",
    "Wait",
    "Waiting",
]


class Waiting(StrEnum):
    """For what a rollout waits."""

    SOAK = "soak"
    APPROVAL = "approval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Write down what goes out, and where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recover:
    """Take in what a run left whose keeper was killed.

    Parameters
    ----------
    run
        As it was written when it started.
    step
        What it was for.
    """

    run: StepRun
    step: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Measure one run.

    Parameters
    ----------
    step
        What it is for.
    wanted
        The run.
    """

    step: Step
    wanted: WantedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Write down the verdict of a step.

    Parameters
    ----------
    verdict
        What the evidence says.
    """

    verdict: StepVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspend:
    """Stop until a person decides.

    Parameters
    ----------
    cause, why, step
        For what reason.
    """

    cause: Cause
    why: str
    step: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginRollback:
    """Take the way back.

    Parameters
    ----------
    step, why
        Where it stopped, and the reason.
    """

    step: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommand:
    """Run the command that restores what was there before.

    Parameters
    ----------
    argv
        Program and arguments.
    """

    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """Write what was promoted last into the file that launchers read.

    Parameters
    ----------
    to
        Digest of the configuration.
    """

    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRollback:
    """Write down whether the way back is proven.

    Parameters
    ----------
    verdict
        What its objectives say; ``None`` where they could not be asked.
    why
        In words.
    """

    verdict: StepVerdict | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PassStep:
    """Put a step behind.

    Parameters
    ----------
    step
        Its name.
    waiver
        By which it passes though it did not; ``None`` for one that did.
    """

    step: str
    waiver: Waiver | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Promote:
    """Make the candidate what others are compared with and go back to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Do nothing for now.

    Parameters
    ----------
    what
        For what.
    step
        Name of the step.
    until
        When it ends by itself, in UTC; ``None`` where a person must act.
    who
        Who must approve.
    """

    what: Waiting
    step: str
    until: dt.datetime | None = None
    who: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """Nothing, until a person decides.

    Parameters
    ----------
    entry
        What stopped it.
    is_rolled_back
        Whether the way back was taken already.
    """

    entry: Entry
    is_rolled_back: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Nothing: it was promoted."""


Action = (
    Begin
    | Recover
    | Measure
    | Judge
    | Suspend
    | BeginRollback
    | RunCommand
    | Restore
    | EndRollback
    | PassStep
    | Promote
    | Wait
    | Stopped
    | Done
)
