"""How the steps of the ranks went: whether one host computes longer, or all wait longer, from some step on.

Notes
-----
In a job whose ranks wait for one another all steps take the same time, whoever is slow. What differs is
what a rank computes itself: where the ranks of one host compute longer than they did and the others wait
for them, the host is slow; where nobody computes longer and all wait, the way between them is. A change is
taken for one where every step after it is longer than every step before it, so that single slow steps are
none.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from linkwise.diagnose.facts import Facts
from linkwise.readers.job_log.values import Evidence, RankStep, RankSteps

__all__ = ["Change", "Gap", "Pace", "pace_of"]

_GROWN = 1.5
"""What is taken for slower than before: far above the noise of steps, and of a busy host (assumed) [1]."""
_FEWEST_AFTER = 2
"""Steps that must follow a change: one slow step is none [1]."""
_FAR, _APART = 3.0, 1.25
"""With two steps on a side times must rise by so much; with more, the least after is so far above the most
before (assumed: what a host with five ready processes a core does to steps is less) [1]."""
_GAP, _GAP_S = 3.0, 1.0
"""A step is a gap where it takes so many times the usual, and so much longer [1, s]."""
_MOST_GAP_STEPS = 2
"""An outage that falls on the border of two steps makes both long [1]."""
_BACK = 1.5
"""A step is as usual again below so many times the usual [1]."""
_OTHERS = 0.3
"""What other long steps may lose, of what the gap lost: with more there is not one outage [1]."""
_ALIKE = 0.5
"""Share of what all lost that a rank must have waited, or computed, for that to be the reason [1]."""
_LEAST = 0.1
"""Share of a step that a rank must compute more for it to matter [1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Steps that are longer from one on.

    Parameters
    ----------
    step
        The first of them.
    before_s, after_s
        Medians [s].
    slow_ranks
        Those that compute longer.
    are_all_waiting
        Whether none computes longer and all wait longer, by more than a busy host does to steps.
    compute_before_s, compute_after_s
        Medians of those ranks; of all where there are none [s].
    evidence
        A line before and one after of each rank.
    """

    step: int
    before_s: float
    after_s: float
    slow_ranks: tuple[int, ...]
    are_all_waiting: bool
    compute_before_s: float
    compute_after_s: float
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A single step in which all waited.

    Parameters
    ----------
    step
        Its number.
    lost_s, usual_s
        What it took more than the others, and the median of those [s].
    evidence
        Its lines, and those of the step after.
    """

    step: int
    lost_s: float
    usual_s: float
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Steps that all ranks told of.

    Parameters
    ----------
    numbers
        Of the steps, in order; the first that was told is left out, as it warms up.
    steps
        Of each rank, in the same order.
    """

    numbers: tuple[int, ...]
    steps: Mapping[int, Sequence[RankStep]]

    @cached_property
    def times_s(self) -> tuple[float, ...]:
        """Return each step, of the rank in the middle [s]."""
        return tuple(
            statistics.median(each[at].time_s for each in self.steps.values())
            for at in range(len(self.numbers))
        )

    def change(self) -> Change | None:
        """Return the lasting change for the worse; ``None`` without one."""
        slow = {
            rank: at
            for rank, told in self.steps.items()
            if (at := _change_at([each.compute_s for each in told])) is not None and self._explains(rank, at)
        }
        if slow:
            return self._told(min(slow.values()), tuple(sorted(slow)))
        at = _change_at(self.times_s)
        return None if at is None else self._told(at, ())

    def _explains(self, rank: int, at: int) -> bool:
        """Return whether what a rank computes more from a step on is most of what all lose from there on.

        Notes
        -----
        A rank that waits longer also computes a little more while it does: it looks for data, and copies it.
        """
        own = [each.compute_s for each in self.steps[rank]]
        more_s, lost_s = _rise(own, at), _rise(self.times_s, at)
        return _is_clear(own, at) and more_s > max(
            _ALIKE * lost_s, _LEAST * statistics.median(self.times_s[:at])
        )

    def gap(self) -> Gap | None:
        """Return the one outage in which all waited and none computed longer; ``None`` without just one.

        Notes
        -----
        Ranks come out of it one after the other, so that it may reach into the step after.
        """
        usual_s = statistics.median(self.times_s)
        groups = sorted(_long_steps(self.times_s, _BACK * usual_s), key=self._lost_s(usual_s), reverse=True)
        if not groups:
            return None
        first, *others = groups
        lost_s = self._lost_s(usual_s)(first)
        if lost_s < max((_GAP - 1) * usual_s, _GAP_S) or len(first) > _MOST_GAP_STEPS:
            return None
        if first[-1] == len(self.numbers) - 1 or any(
            self._lost_s(usual_s)(each) > _OTHERS * lost_s for each in others
        ):
            return None
        for told in self.steps.values():
            own_s = statistics.median(each.compute_s for each in told)
            if sum(told[at].compute_s - own_s for at in first) > (1 - _ALIKE) * lost_s:
                return None
        places = (*first, first[-1] + 1)
        return Gap(
            step=self.numbers[first[0]],
            lost_s=lost_s,
            usual_s=usual_s,
            evidence=tuple(told[at].evidence for at in places for told in self.steps.values()),
        )

    def _lost_s(self, usual_s: float) -> Callable[[range], float]:
        return lambda steps: sum(self.times_s[at] - usual_s for at in steps)

    def _all_wait(self, at: int) -> bool:
        lost_s = _rise(self.times_s, at)
        return all(
            _rise([each.wait_s for each in told], at) > _ALIKE * lost_s for told in self.steps.values()
        )

    def _told(self, at: int, slow: tuple[int, ...]) -> Change:
        chosen = slow or tuple(self.steps)
        compute = [
            statistics.median(each.compute_s for rank in chosen for each in self.steps[rank][part])
            for part in (slice(0, at), slice(at, None))
        ]
        return Change(
            step=self.numbers[at],
            before_s=statistics.median(self.times_s[:at]),
            after_s=statistics.median(self.times_s[at:]),
            slow_ranks=slow,
            are_all_waiting=not slow and _is_clear(self.times_s, at) and self._all_wait(at),
            compute_before_s=compute[0],
            compute_after_s=compute[1],
            evidence=tuple(told[place].evidence for place in (at, at - 1) for told in self.steps.values()),
        )


def pace_of(facts: Facts) -> Pace | None:
    """Return the steps that all ranks told of; ``None`` with fewer than two ranks or four steps.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    ranks = facts.log.rank_steps
    if len(ranks) < 2:
        return None
    told = {each.rank: _last_run(each) for each in ranks}
    common = set.intersection(*(set(each) for each in told.values()))
    numbers = tuple(sorted(common))[1:]
    if len(numbers) < _FEWEST_AFTER + 1:
        return None
    return Pace(
        numbers=numbers, steps={rank: [each[number] for number in numbers] for rank, each in told.items()}
    )


def _last_run(rank: RankSteps) -> dict[int, RankStep]:
    """Return the steps by number since the count last began anew, as it does after a restart."""
    found: dict[int, RankStep] = {}
    for each in rank.steps:
        if found and each.number <= max(found):
            found = {}
        found[each.number] = each
    return found


def _long_steps(times_s: Sequence[float], limit_s: float) -> Iterator[range]:
    """Yield the runs of adjacent steps that are longer."""
    start = None
    for at, each in enumerate((*times_s, 0.0)):
        if each > limit_s:
            start = at if start is None else start
        elif start is not None:
            yield range(start, at)
            start = None


def _rise(values: Sequence[float], at: int) -> float:
    return statistics.median(values[at:]) - statistics.median(values[:at])


def _is_clear(values: Sequence[float], at: int) -> bool:
    """Return whether a rise is more than what a busy host does to steps: few steps must rise by more.

    Notes
    -----
    What ranks wait hangs on who has a core, unlike what they compute: of two or three steps all may be slow
    by chance.
    """
    before, after = values[:at], values[at:]
    is_far = statistics.median(after) >= _FAR * statistics.median(before)
    is_long = len(before) > _FEWEST_AFTER and len(after) > _FEWEST_AFTER
    return is_far or (is_long and min(after) >= _APART * max(before))


def _change_at(values: Sequence[float]) -> int | None:
    """Return where values rise for good: all after are above all before, by the factor that counts."""
    for at in range(1, len(values) - _FEWEST_AFTER + 1):
        before, after = values[:at], values[at:]
        if min(after) > max(before) and statistics.median(after) >= _GROWN * statistics.median(before):
            return at
    return None
