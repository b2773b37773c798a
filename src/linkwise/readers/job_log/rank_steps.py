"""Steps that every rank prints of itself, with what it computed and what it waited.

A line names the rank in brackets, then the step, its time, and how much of it the rank computed and waited:
``[rank2]: n1: step 3 loss 5.7125 time 1.287 s compute 0.940 s wait 0.347 s``; what stands before and
between is free. Of each rank the first and the last steps are kept, and the longest of those between, so
that memory does not grow with the log.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from linkwise.readers.job_log.values import Evidence, RankStep, RankSteps

__all__ = ["STEP_WORD", "StepLines"]

STEP_WORD = b" s compute "
"""By which such a line is found."""
_FIRST, _LAST = 200, 400
_MOST_RANKS = 4096
_NUMBER = r"(\d{1,9}(?:\.\d{1,9})?)"
_STEP = re.compile(
    r"\[rank ?(?P<rank>\d{1,7})\]:?(?: (?P<host>[\w.-]{1,64}):)? .{0,80}?\bstep (?P<step>-?\d{1,12}) .{0,80}?"
    rf"\btime (?P<time>{_NUMBER}) s compute (?P<compute>{_NUMBER}) s wait (?P<wait>{_NUMBER}) s"
)


@dataclass(slots=True)
class _Rank:
    host: str | None
    first: list[RankStep] = field(default_factory=list)
    last: deque[RankStep] = field(default_factory=lambda: deque(maxlen=_LAST))
    longest: RankStep | None = None
    count: int = 0

    def take(self, step: RankStep) -> None:
        self.count += 1
        if len(self.first) < _FIRST:
            self.first.append(step)
            return
        if len(self.last) == _LAST:
            leaving = self.last[0]
            if self.longest is None or leaving.time_s > self.longest.time_s:
                self.longest = leaving
        self.last.append(step)


@dataclass(slots=True)
class StepLines:
    """The steps read so far."""

    count: int = 0
    _ranks: dict[int, _Rank] = field(default_factory=dict)

    def take(self, text: str, evidence: Evidence) -> None:
        """Take a line, if it is one of a step.

        Parameters
        ----------
        text
            The line.
        evidence
            The same as evidence.
        """
        found = _STEP.search(text)
        if found is None:
            return
        rank = int(found["rank"])
        if rank not in self._ranks and len(self._ranks) >= _MOST_RANKS:
            return
        self.count += 1
        of_rank = self._ranks.setdefault(rank, _Rank(host=found["host"]))
        of_rank.take(
            RankStep(
                number=int(found["step"]),
                time_s=float(found["time"]),
                compute_s=float(found["compute"]),
                wait_s=float(found["wait"]),
                evidence=evidence,
            )
        )

    def ranks(self) -> Iterator[RankSteps]:
        """Yield what each rank told."""
        for rank, told in sorted(self._ranks.items()):
            between = [] if told.longest is None else [told.longest]
            yield RankSteps(
                rank=rank, host=told.host, steps=(*told.first, *between, *told.last), count=told.count
            )
