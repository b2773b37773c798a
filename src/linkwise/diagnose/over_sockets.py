"""The cluster as a job has it that fell back to TCP sockets: the interfaces NCCL lists, at their rate."""

from __future__ import annotations

from dataclasses import dataclass, replace

from linkwise.catalog import lookup
from linkwise.cluster import Cluster, FabricKind, Routing
from linkwise.diagnose.facts import Facts
from linkwise.diagnose.transport import Transport

__all__ = ["OverSockets", "over_sockets"]

_ASSUMED_LINK = "ethernet-100"
"""Taken where no line says the rate: the fastest one whose share that NCCL reaches over TCP was measured."""
_LINKS = ("ethernet-10", "ethernet-25", "ethernet-100", "ethernet-200", "ethernet-400", "ethernet-800")


@dataclass(frozen=True, slots=True, kw_only=True)
class OverSockets:
    """A cluster whose nodes are joined by TCP alone.

    Parameters
    ----------
    cluster
        It, on one switch that is never the limit.
    note
        What its rate is taken from.
    """

    cluster: Cluster
    note: str


def over_sockets(facts: Facts, transport: Transport, cluster: Cluster) -> OverSockets | None:
    """Return the cluster with TCP between its nodes; ``None`` where nodes are of several kinds.

    Parameters
    ----------
    facts, transport
        What is known of the job, and what it uses.
    cluster
        What there is.

    Notes
    -----
    The rate is that of the network device in NCCL's graph where the log shows it. The Ethernet beside the
    fabric for training is in no cluster document, so that it is assumed otherwise, rather too fast than too
    slow: the job is at best as fast as this.
    """
    if cluster.parts:
        return None
    shown = [8 * float(each.fields["gbyte_s"]) for each in facts.seen("graph_nic")]
    rate_gbit_per_s = min(shown, default=0.0)
    name = _nearest(rate_gbit_per_s) if rate_gbit_per_s > 0 else _ASSUMED_LINK
    link = lookup.link(name)
    if rate_gbit_per_s > 0:
        link = replace(link, bytes_per_s=rate_gbit_per_s * 1e9 / 8)
    given = transport.nics_per_node.value
    count = given if isinstance(given, int) and given > 0 else 1
    fabric = replace(
        cluster.fabric,
        kind=FabricKind.SINGLE_SWITCH,
        link=link,
        switch=None,
        oversubscription=1.0,
        planes=1,
        groups=None,
        table=None,
        routing=Routing(),
    )
    return OverSockets(
        cluster=replace(
            cluster,
            fabric=fabric,
            nic=None,
            nics_per_node=count,
            nic_bytes_per_s=link.bytes_per_s,
            changes=(),
        ),
        note=_note(count, rate_gbit_per_s),
    )


def _nearest(rate_gbit_per_s: float) -> str:
    return min(_LINKS, key=lambda name: abs(lookup.link(name).bytes_per_s * 8e-9 - rate_gbit_per_s))


def _note(count: int, rate_gbit_per_s: float) -> str:
    ports = "one interface" if count == 1 else f"{count} interfaces"
    if rate_gbit_per_s > 0:
        return f"over {ports} of {rate_gbit_per_s:.3g} Gbit/s, as NCCL's graph shows"
    return f"over {ports} of 100 Gbit/s, which is assumed: no line says the rate"
