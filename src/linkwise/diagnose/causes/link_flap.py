"""A port goes down and up: a cable, a transceiver or a switch port is bad."""

from __future__ import annotations

from linkwise.diagnose.ends import Ends
from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.diagnose.pace import pace_of
from linkwise.diagnose.verbs import RETRY_EXCEEDED, completions, port_events

__all__ = ["link_flap"]


def link_flap(facts: Facts) -> Finding | None:
    """Return the finding when a NIC reports that its port went down, or the kernel does.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    events = port_events(facts)
    down = facts.seen("link_down")
    if not events and not (down and completions(facts)):
        return _counted(facts) or _paused(facts)
    hosts = list(dict.fromkeys(each.host for each in events if each.host))
    has_failed = bool(completions(facts)) or facts.has_failed
    return finding(
        "link_flap",
        Severity.BROKEN if has_failed else Severity.SLOW,
        Confidence.HIGH,
        proof=[*events, *down, *completions(facts)],
        where=hosts or None,
        explanation=(
            f"A port of {', '.join(hosts) or 'a host'} went down while the job ran. Transfers to it are"
            " retried until they are given up; errors on other hosts follow from that."
        ),
        fix=(
            "reseat or replace the cable or transceiver of the port; drain the host until then",
            "NCCL_IB_TIMEOUT=22 NCCL_IB_RETRY_CNT=7 bridge an outage of some seconds",
        ),
        next_check="dmesg | grep -i 'link' and mlxlink -d DEVICE on the host named here; the switch's log",
    )


def _paused(facts: Facts) -> Finding | None:
    """Find the one step in which all ranks waited and none computed longer, and that no error followed.

    Notes
    -----
    TCP sends again what a link that was down has lost, so that no call fails within its timeout; the step
    takes as long as the outage and up to twice that, for TCP waits longer each time. A rank that stood
    still, or that wrote to a file system, while it counted that as waiting, looks the same.
    """
    pace = pace_of(facts)
    gap = None if pace is None else pace.gap()
    ends = Ends(facts=facts)
    if gap is None or len(ends.hosts) < 2 or ends.errors:
        return None
    return finding(
        "link_flap",
        Severity.SLOW,
        Confidence.MEDIUM,
        proof=gap.evidence,
        where=ends.hosts,
        explanation=(
            f"Step {gap.step} took {gap.lost_s:.2g} s longer than the {gap.usual_s:.2g} s of the others. No"
            " rank computed longer in it, all waited, no error came, and the job went on as before: the"
            f" network between {', '.join(ends.hosts[:8])} carried nothing for up to that time. On which"
            " link, the output does not show; a file system that stood still on one rank would look the"
            " same."
        ),
        fix=(
            (
                "find the port that went down, and reseat or replace its cable or transceiver before it"
                " does so again"
            ),
        ),
        next_check="dmesg -T | grep -i link on each node, at the time of that step; the log of the switch",
    )


def _counted(facts: Facts) -> Finding | None:
    """Find a transfer that no peer answered while the counter of a port says that its link went down."""
    downs, unanswered = facts.seen("port_downs"), completions(facts, RETRY_EXCEEDED)
    if not downs or not unanswered:
        return None
    return finding(
        "link_flap",
        Severity.BROKEN,
        # The counter runs since the driver was loaded: the link may have gone down long before the job.
        Confidence.LOW,
        proof=[*unanswered, *downs],
        explanation=(
            "A peer did not answer, and the counter of a port says that its link went down at some time"
            " since the host came up. Whether that was during the job the counter does not say."
        ),
        fix=("reseat or replace the cable or transceiver of the port that counts on; drain its host",),
        next_check="read the counter again after the next failure; dmesg | grep -i 'link' on its host",
    )
