"""Ranks that are slower than the others, or no longer with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from linkwise.evidence.outliers import LEAST_MEMBERS, fleet_of
from linkwise.monitor.job_steps import Rank

__all__ = ["Straggler", "stragglers_of"]

_LEAST_STEPS = 16
"""Of a rank, before its median is compared (assumed) [1]."""
_MARGIN_OF_FEW = 0.1
"""Among fewer than eight ranks there is no spread to judge by; a tenth is more than ranks differ by that wait
for each other (assumed) [1]."""
_STEPS_BEHIND = 2
"""Ranks print one after the other, so that one step behind is usual [1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """A rank that is out of step.

    Parameters
    ----------
    name
        As the log names it.
    why
        A sentence.
    """

    name: str
    why: str


def stragglers_of(
    ranks: Mapping[str, Rank], *, last_step: int, now_s: float, patience_s: float
) -> tuple[Straggler, ...]:
    """Return the ranks that are slow by their own step times, then those that fell behind.

    Parameters
    ----------
    ranks
        What each rank told.
    last_step
        Of the job.
    now_s
        By the clock by which `ranks` were heard [s].
    patience_s
        How long a rank may say nothing [s].

    Notes
    -----
    Ranks wait for each other in collectives, so that step times of all are alike where a framework prints
    those of the whole step: a slow rank shows where ranks print their own work. A rank that was heard and is
    silent while others go on shows in any log.
    """
    if len(ranks) < 2:
        return ()
    return (*_slow(ranks), *_behind(ranks, last_step, now_s, patience_s))


def _slow(ranks: Mapping[str, Rank]) -> tuple[Straggler, ...]:
    names = [name for name, each in ranks.items() if len(each.times_s) >= _LEAST_STEPS]
    times = [median(ranks[name].times_s) for name in names]
    if len(names) < 2:
        return ()
    if len(names) >= LEAST_MEMBERS:
        fleet = fleet_of({at: 1 / time_s for at, time_s in enumerate(times) if time_s > 0})
        slow = fleet.low
    else:
        slow = tuple(
            at
            for at, time_s in enumerate(times)
            if len(times) > 2 and time_s > (1 + _MARGIN_OF_FEW) * median(times)
        )
    middle = median(times)
    return tuple(
        Straggler(
            name=names[at],
            why=f"its steps take {times[at]:.4g} s, those of the others {middle:.4g} s "
            f"({times[at] / middle - 1:+.0%})",
        )
        for at in slow
    )


def _behind(
    ranks: Mapping[str, Rank], last_step: int, now_s: float, patience_s: float
) -> tuple[Straggler, ...]:
    return tuple(
        Straggler(
            name=each.name,
            why=f"its last step was {each.last_step}, {now_s - each.at_s:.0f} s ago; "
            f"others are at {last_step}",
        )
        for each in ranks.values()
        if last_step - each.last_step >= _STEPS_BEHIND and now_s - each.at_s > patience_s
    )
