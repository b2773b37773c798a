"""A link between nodes carries less than it did, and all ranks wait for it."""

from __future__ import annotations

from linkwise.diagnose.ends import Ends
from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.diagnose.pace import pace_of

__all__ = ["slow_link"]


def slow_link(facts: Facts) -> Finding | None:
    """Return the finding when all ranks wait longer from a step on, and none computes longer.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    In a ring every rank waits for the slowest link, wherever it is, so that lines of steps do not show
    which one it is; counters of the links do. Ranks of one host alone have no link between nodes.
    """
    pace = pace_of(facts)
    change = None if pace is None else pace.change()
    ends = Ends(facts=facts)
    if change is None or not change.are_all_waiting or len(ends.hosts) < 2:
        return None
    hosts = ", ".join(ends.hosts[:8]) + (" ..." if len(ends.hosts) > 8 else "")
    return finding(
        "slow_link",
        Severity.SLOW,
        Confidence.MEDIUM,
        proof=change.evidence,
        where=ends.hosts,
        explanation=(
            f"Since step {change.step} a step takes {change.after_s:.3g} s instead of {change.before_s:.3g}"
            " s. No rank computes longer, and all of them wait: what they send one another takes longer."
            f" Which link between {hosts} it is, lines of steps cannot show, as all wait for the slowest."
        ),
        fix=(
            (
                "find the link by its counters, or by a measurement between pairs of nodes, and replace or"
                " drain it"
            ),
            "where no link is slow, look for another job or a backup that shares the network since then",
        ),
        next_check="linkwise bench pairs; ethtool INTERFACE (speed), ethtool -S and ip -s link (errors) on"
        " each node",
    )
