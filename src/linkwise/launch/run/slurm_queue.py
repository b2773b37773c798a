"""Where a job stands in the queue of Slurm, and why it waits, in words.

References
----------
SchedMD, squeue(1), output format and job reason codes, release 22.05.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkwise.launch.run.launch_place import State

__all__ = ["QueueNews", "QueuePlace", "ask_slurm", "queue_place", "waiting_text"]

_ANSWER_S = 20.0
"""How long squeue may take [s]."""
_CHANGED_S, _UNCHANGED_S = 60.0, 600.0
"""Between two messages: where the reason is another one, and where nothing changed; assumed [s]."""

_MEANINGS: Mapping[str, str] = {
    "Resources": "what it asks for is in use",
    "Priority": "others of higher priority come first",
    "Dependency": "it waits for another job",
    "BeginTime": "it was told to begin later",
    "JobHeldUser": "it is held; 'scontrol release' lets it go",
    "JobHeldAdmin": "an administrator holds it",
    "Licenses": "a licence it asks for is in use",
    "Reservation": "it waits for its reservation",
    "QOSMaxJobsPerUserLimit": "you have as many jobs running as your quality of service allows",
    "AssocGrpGRES": "your account has as many GPUs as it may",
    "PartitionNodeLimit": "it asks for more nodes than its partition gives to a job",
    "PartitionTimeLimit": "it asks for more time than its partition gives",
    "PartitionDown": "its partition is down",
    "ReqNodeNotAvail": "a node it needs is down or reserved",
    "BadConstraints": "no node is as it asks for",
}
"""Reasons that Slurm gives, as it writes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePlace:
    """Where a job stands in the queue.

    Parameters
    ----------
    partition
        Whose queue.
    position, waiting
        Which of how many that wait there, by priority, from 1 [1].
    starts
        When Slurm expects to start it, as it writes it; empty where it does not say.
    """

    partition: str
    position: int
    waiting: int
    starts: str = ""


def queue_place(job: str, ask: Callable[[tuple[str, ...]], str]) -> QueuePlace | None:
    """Return where a job stands; ``None`` where squeue does not show it among those that wait.

    Parameters
    ----------
    job
        Its number.
    ask
        Runs a command of Slurm and returns what it prints.
    """
    said = ask(("squeue", "-h", "-t", "PENDING", "--sort=-p,i", "-o", "%i|%P|%S"))
    rows = [row for row in (line.split("|") for line in said.splitlines()) if len(row) == 3]
    own = next((row for row in rows if row[0] == job), None)
    if own is None:
        return None
    same = [row[0] for row in rows if row[1] == own[1]]
    starts = "" if own[2] in ("N/A", "Unknown", "(null)") else own[2]
    return QueuePlace(partition=own[1], position=same.index(job) + 1, waiting=len(same), starts=starts)


def waiting_text(job: str, reason: str, place: QueuePlace | None) -> str:
    """Return what to say of a job that waits.

    Parameters
    ----------
    job
        Its number.
    reason
        In the word of Slurm; empty where it gave none.
    place
        Where it stands; ``None`` where that is not known.
    """
    meaning = _MEANINGS.get(reason.split(",", maxsplit=1)[0].strip("()"))
    why = f": {reason}" if reason else ""
    told = f"{why}, {meaning}" if meaning else why
    if place is None:
        return f"job {job} waits in the queue{told}"
    starts = f"; Slurm expects to start it at {place.starts}" if place.starts else ""
    queue = f"the queue of {place.partition}, {place.position} of {place.waiting}"
    return f"job {job} waits in {queue}{told}{starts}"


def ask_slurm(words: tuple[str, ...]) -> str:
    """Return what a command of Slurm prints; nothing where it gives no answer.

    Parameters
    ----------
    words
        The command.
    """
    try:
        return subprocess.run(  # noqa: S603 (a command of Slurm)
            list(words), check=False, capture_output=True, text=True, timeout=_ANSWER_S
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


class QueueNews:
    """Says why a job waits and where in the queue: once Slurm gives a reason, then seldom.

    Parameters
    ----------
    say
        Called with a sentence.
    ask
        Runs a command of Slurm and returns what it prints.
    clock
        The time, which never goes back [s].
    """

    def __init__(
        self,
        *,
        say: Callable[[str], None],
        ask: Callable[[tuple[str, ...]], str] = ask_slurm,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say, self._ask, self._clock = say, ask, clock
        self._told: tuple[str, float] | None = None

    def tell(self, state: State, handle: str) -> None:
        """Say it, where the last time is long enough ago.

        Parameters
        ----------
        state
            As the scheduler gave it.
        handle
            Number of the job.
        """
        now_s = self._clock()
        if not state.reason:
            return  # it was submitted just now: Slurm has not looked at it yet
        if self._told is not None:
            reason, told_s = self._told
            if now_s - told_s < (_UNCHANGED_S if reason == state.reason else _CHANGED_S):
                return
        self._told = (state.reason, now_s)
        self._say(waiting_text(handle, state.reason, queue_place(handle, self._ask)))
