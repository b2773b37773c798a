"""One node computes slower than it did, or than the others, and all wait for it."""

from __future__ import annotations

from linkwise.diagnose.ends import Ends
from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.diagnose.pace import Change, pace_of

__all__ = ["slow_node"]


def slow_node(facts: Facts) -> Finding | None:
    """Return the finding when the ranks of some hosts compute longer from a step on, and others do not.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    Where all ranks compute longer the program does more, and no node is slow. Where ranks of one host compute
    longer from the first step on, stages of a pipeline may differ by design, and nothing is said.
    """
    pace = pace_of(facts)
    change = None if pace is None else pace.change()
    if pace is None or change is None or not 0 < len(change.slow_ranks) < len(pace.steps):
        return None
    ends = Ends(facts=facts)
    slow = set(change.slow_ranks)
    hosts = list(dict.fromkeys(ends.host_of[rank] for rank in change.slow_ranks if rank in ends.host_of))
    whole = [host for host in hosts if ends.ranks_on(host) <= slow]
    is_clear = bool(hosts) and len(hosts) == len(whole) < len(ends.hosts)
    return finding(
        "slow_node",
        Severity.SLOW,
        Confidence.HIGH if is_clear else Confidence.MEDIUM,
        proof=change.evidence,
        where=ends.where(slow),
        explanation=_explained(change, hosts if is_clear else [], len(ends.hosts)),
        fix=(
            (
                "look for heat, a power cap, a slow GPU or a job of somebody else on the host; keep it out"
                " until then"
            ),
            "start again without it from the last checkpoint: every step of all waits for the slowest",
        ),
        next_check="nvidia-smi -q -d PERFORMANCE,CLOCK and top on the host, beside one that is well",
    )


def _explained(change: Change, hosts: list[str], known: int) -> str:
    ranks = ", ".join(map(str, change.slow_ranks[:8])) + (" ..." if len(change.slow_ranks) > 8 else "")
    who = f"All ranks of {' and '.join(hosts)} ({ranks})" if hosts else f"Rank {ranks}"
    of_node = (
        "" if hosts or known < 2 else " Other ranks of the same host are as before: look at their GPUs first."
    )
    return (
        f"{who} compute {change.compute_after_s:.3g} s a step since step {change.step}, and"
        f" {change.compute_before_s:.3g} s before; the others compute as before and wait for them. A step"
        f" takes {change.after_s:.3g} s instead of {change.before_s:.3g} s.{of_node}"
    )
