"""The way between nodes carries nothing any more, while all ranks are alive."""

from __future__ import annotations

from linkwise.diagnose.ends import Ends, is_gloo_job
from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding

__all__ = ["link_down"]


def link_down(facts: Facts) -> Finding | None:
    """Return the finding when ranks of several nodes waited in vain, and none of them is missing.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    A link that is down closes no connection: nothing is said until a call has waited as long as it may,
    then all ranks say so at once, and those of one node lose the connections among themselves after that.
    Ranks that call different collectives wait for one another as well; that is told as less sure.
    """
    if not is_gloo_job(facts):
        return None
    ends = Ends(facts=facts)
    if ends.is_told:
        return None
    waited = {ends.host_of.get(each.rank) for each in ends.timeouts if each.rank is not None}
    spoke = {ends.host_of.get(rank) for rank in ends.errors}
    if not waited or ends.own_errors or ends.kills or ends.forced or ends.silent:
        return None
    if len(ends.hosts) < 2 or None in spoke or spoke != set(ends.hosts):
        return None
    if not ends.facts.log.rank_steps:
        return None
    left = _unreached(ends)
    if len(left) == 1:
        place = f"All nodes but {left[0]} are seen to reach another: it is likely the link of that node."
    elif len(left) < len(ends.hosts):
        place = f"The others are seen to reach one another: it is likely the link of {' or '.join(left[:8])}."
    else:
        place = f"Which of the links between {_listed(ends.hosts)} it is, the output does not show."
    return finding(
        "link_down",
        Severity.BROKEN,
        Confidence.MEDIUM,
        proof=[*ends.timeouts, *ends.errors.values()],
        where=left,
        explanation=(
            f"After steps that went well, ranks on {_listed(ends.hosts)} waited for one another until the"
            " timeout; no rank is missing and none died: the network between the nodes carried nothing any"
            f" more. {place}"
        ),
        fix=(
            "bring the link up or replace cable, transceiver or switch port; keep the node out until then",
            (
                "where all links are up: ranks may have called different collectives; compare the lines of"
                " their tracebacks"
            ),
        ),
        next_check="ip -s link and ethtool INTERFACE on the nodes; ping between them; the log of the switch",
    )


def _unreached(ends: Ends) -> tuple[str, ...]:
    """Return the nodes that no other is seen to reach; all where that tells nothing.

    Notes
    -----
    A rank that times out closes its connections, and ranks that it can still reach say so: such a line shows
    that the way between the two nodes works. With one link down it takes at least three nodes to tell.
    """
    addresses = {
        each.fields["address"]: each.fields["host"]
        for each in ends.facts.seen("rank_joined")
        if "address" in each.fields
    }
    reached: set[str] = set()
    for each in ends.facts.seen("gloo_closed"):
        own = None if each.rank is None else ends.host_of.get(each.rank)
        peer = addresses.get(each.fields.get("peer", ""))
        if own is not None and peer is not None and own != peer:
            reached |= {own, peer}
    return tuple(host for host in ends.hosts if host not in reached) or ends.hosts


def _listed(hosts: tuple[str, ...]) -> str:
    return ", ".join(hosts[:8]) + (" ..." if len(hosts) > 8 else "")
