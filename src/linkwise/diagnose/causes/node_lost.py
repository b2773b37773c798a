"""A node of the job is gone, with all that ran on it."""

from __future__ import annotations

from linkwise.diagnose.ends import Ends, is_gloo_job
from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding

__all__ = ["node_lost"]

_QUIET = (
    "No connection to it was closed, so that the others waited until their timeout: the host lost power or"
    " its network, or crashed."
)
_CLOSED = (
    "Its connections were closed at once: all its processes ended together, as when a container or a virtual"
    " machine is taken away."
)


def node_lost(facts: Facts) -> Finding | None:
    """Return the finding when all ranks of a host and its agent fell silent, and the others lost them.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    A host that loses power or its way to the others closes no connection: the others wait until their
    timeout. Where its links alone are gone its ranks go on, time out like the others, and say so where
    their output is kept. A single rank on a host that froze looks the same but for its agent, who still
    speaks; where no agent speaks at all, nothing tells the two apart.
    """
    if not is_gloo_job(facts):
        return None
    ends = Ends(facts=facts)
    if ends.is_told:
        return None
    if ends.own_errors or ends.kills or not ends.errors:
        return None
    lost = [
        host for host in ends.hosts if ends.ranks_on(host) <= ends.silent and host not in ends.heard_hosts
    ]
    ranks = frozenset().union(*(ends.ranks_on(host) for host in lost))
    if not lost or 2 * len(lost) > len(ends.hosts) or ranks != ends.silent:
        return None
    if len(ranks) == 1 and not ends.exits:
        return None
    named = " and ".join(lost)
    how = _QUIET if ends.timeouts else _CLOSED
    doubt = "" if len(ranks) > len(lost) else " Where the output is cut, a rank that froze looks the same."
    return finding(
        "node_lost",
        Severity.BROKEN,
        # Silence is no proof: the output may be cut, and one rank alone may be frozen.
        Confidence.MEDIUM if len(ranks) > len(lost) else Confidence.LOW,
        proof=list(ends.errors.values()),
        where=ends.where(ranks),
        explanation=(
            f"Nothing came from {named} any more, neither from its ranks"
            f" ({', '.join(map(str, sorted(ranks)))}) nor from their launcher, while ranks elsewhere"
            f" reported errors. {how}{doubt}"
        ),
        fix=(
            (
                f"look after {named} and keep it out until then (scontrol update NodeName=... State=DRAIN;"
                " kubectl cordon); start again from the last checkpoint without it"
            ),
            "torchrun --nnodes MIN:MAX --max-restarts N goes on with the nodes that are left",
        ),
        next_check=f"ping {lost[0]}; sinfo -N -n {lost[0]} or kubectl get node; its console and its"
        " hardware log",
    )
