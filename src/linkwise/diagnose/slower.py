"""What to say of steps that take longer than others, where no finding tells why."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.pace import pace_of

__all__ = ["gap_note", "slower_reason"]


def gap_note(facts: Facts) -> str:
    """Return what to add of one step that took much longer than the others; empty without one.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    pace = pace_of(facts)
    gap = None if pace is None else pace.gap()
    if gap is None:
        return ""
    return f"; step {gap.step} took {gap.lost_s:.2g} s longer than the others, and ranks waited in it"


def slower_reason(facts: Facts) -> str | None:
    """Return what to say of steps that take longer from one on; ``None`` where they do not.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    pace = pace_of(facts)
    change = None if pace is None else pace.change()
    if pace is None or change is None:
        return None
    told = (
        f"since step {change.step} a step takes {change.after_s:.3g} s instead of {change.before_s:.3g} s"
        f" ({change.evidence[0].file}:{change.evidence[0].line})"
    )
    if len(change.slow_ranks) == len(pace.steps):
        return f"{told}, and all ranks here compute longer: the program does more, or all are slowed alike"
    return f"{told}, and the ranks here wait; what for is not here: give the output of all ranks"
