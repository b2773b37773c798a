"""What a job over gloo uses: TCP, between nodes and inside them."""

from __future__ import annotations

from dataclasses import fields

from linkwise.diagnose.ends import Ends, is_gloo_job
from linkwise.diagnose.facts import Facts
from linkwise.diagnose.transport import InUse, Transport

__all__ = ["gloo_transport"]


def gloo_transport(facts: Facts) -> Transport | None:
    """Return what is in use; ``None`` where it is no job over gloo alone.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    gloo has no transport but TCP that PyTorch uses: ranks of one node talk over its loopback. What NCCL has
    beside that is left without a value and without a hint.
    """
    if not is_gloo_job(facts):
        return None
    ends = Ends(facts=facts)
    lines = facts.seen("rank_joined", "gloo_closed", "gloo_timeout", "gloo_unconnected", "gloo_no_address")
    first = lines[0].evidence
    joined = facts.seen("rank_joined")
    nodes = len(ends.hosts) or None
    values: dict[str, InUse] = {}
    if ends.is_whole:
        values["ranks"] = InUse(value=len(ends.ranks), evidence=first)
    if nodes is not None and len(ends.host_of) == len(ends.ranks):
        values["nodes"] = InUse(value=nodes, evidence=first)
    if nodes != 1:
        values["inter_node"] = InUse(value="TCP (gloo)", evidence=first)
    if nodes is not None and len(ends.host_of) > nodes:
        values["intra_node"] = InUse(value="TCP (gloo)", evidence=first)
    if joined:
        values["bootstrap_interface"] = InUse(value=joined[0].fields["device"], evidence=joined[0].evidence)
    return Transport(**{each.name: values.get(each.name, InUse()) for each in fields(Transport)})
