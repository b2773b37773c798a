"""What each group of ranks reaches through the NICs once its links up are shared: a term for each group.

All groups of a kind send at the same time. `TIER_COLUMNS` say what is below a set of switches
(`linkwise.network.tiers`); where no group leaves its leaves they are neutral.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linkwise.cluster import Cluster, RoutingKind
from linkwise.estimate.term import Floats, Term
from linkwise.network.contention import (
    PEERS_AT_ONCE,
    exchange_crossing_fraction,
    hop_crossing_fraction,
    ring_crossing_fraction,
    slowdown,
)
from linkwise.network.tiers import Tier, tiers_of

__all__ = ["TERMS", "TIER_COLUMNS", "tier_columns"]

_TIERS = ("leaf", "pod")
_OF_TIER = ("gpus", "down_links", "up_links", "sets")
TIER_COLUMNS = (*(f"{tier}_{what}" for tier in _TIERS for what in _OF_TIER), "queue_pairs")
"""GPUs below a set of switches, its links down and up, and the sets, of leaves and of pods; then hashes."""

_SOURCE = "derived; fullest of hashed links: von Mises, 1939, Kolchin et al., Random Allocations, 1978"
Crossing = Callable[[Floats, Floats, Floats, Floats, Floats], Floats]


def tier_columns(cluster: Cluster | None, *, gpus: int, domain_gpus: int) -> dict[str, float]:
    """Return the tiers of a fabric as columns, by the names of `TIER_COLUMNS`.

    Parameters
    ----------
    cluster
        What there is; ``None`` where nothing is known of the fabric: then no group leaves its leaves.
    gpus
        GPUs in use [1].
    domain_gpus
        GPUs that reach each other without the fabric [1].
    """
    found = () if cluster is None else tiers_of(cluster, domain_gpus=domain_gpus)
    neutral = Tier(gpus=gpus, down_links=1.0, up_links=1.0, sets=1)
    columns = {
        f"{name}_{what}": float(getattr(tier, what))
        for name, tier in zip(_TIERS, (*found, neutral, neutral), strict=False)
        for what in _OF_TIER
    }
    hashed = cluster is not None and cluster.fabric.routing.kind is RoutingKind.ECMP and found
    pairs = cluster.fabric.routing.queue_pairs if cluster is not None and hashed else None
    return {**columns, "queue_pairs": float(pairs or 0)}


def _rate_term(
    name: str,
    what: str,
    *,
    size: str,
    span: str,
    local: str,
    rate: str = "nic_offered_bytes_per_s",
    crossing: Crossing = ring_crossing_fraction,
    at_once: int = 1,
) -> Term:
    """Return the term of the rate that one GPU's share of the NICs gives a kind of group.

    `size` and `local` are columns of the ranks of a group and of those in one NVLink domain, `span` is that
    of the GPUs from its first to its last rank.
    """
    inputs = (*dict.fromkeys((size, span, local)), "gpus", *TIER_COLUMNS, rate)

    def reached(*columns: Floats) -> Floats:
        """Return the reached rate over the worse slowdown of the two tiers."""
        at = dict(zip(inputs, columns, strict=True))
        slowest = np.ones(1)
        for tier in _TIERS:
            below, down, up, sets = (at[f"{tier}_{what}"] for what in _OF_TIER)
            share = crossing(at[size], at[span], at[local], below, at["gpus"])
            slower = slowdown(share, down, up, sets, at["queue_pairs"], at_once=at_once)
            slowest = np.maximum(slowest, slower)
        return at[rate] / slowest

    return Term(
        name=name,
        unit="bytes/s",
        formula=f"share of the NICs / slowdown of the links up that {what} cross",
        source=_SOURCE,
        inputs=inputs,
        function=reached,
    )


tensor_nic_bytes_per_s = _rate_term(
    "tensor_nic_bytes_per_s",
    "tensor rings",
    size="tensor",
    span="tensor",
    local="tensor_local",
)
context_nic_bytes_per_s = _rate_term(
    "context_nic_bytes_per_s",
    "context rings",
    size="context",
    span="context_span",
    local="context_local",
    rate="nic_reached_bytes_per_s",
)
context_exchange_nic_bytes_per_s = _rate_term(
    "context_exchange_nic_bytes_per_s",
    "all-to-alls of context groups",
    size="context",
    span="context_span",
    local="context_local",
    crossing=exchange_crossing_fraction,
    at_once=PEERS_AT_ONCE,
)
expert_nic_bytes_per_s = _rate_term(
    "expert_nic_bytes_per_s",
    "all-to-alls of expert groups",
    size="expert",
    span="expert_span",
    local="expert_local",
    crossing=exchange_crossing_fraction,
    at_once=PEERS_AT_ONCE,
)
gradient_nic_bytes_per_s = _rate_term(
    "gradient_nic_bytes_per_s",
    "gradient rings",
    size="gradient_ranks",
    span="gradient_span",
    local="gradient_local",
)
replica_nic_bytes_per_s = _rate_term(
    "replica_nic_bytes_per_s",
    "gradient rings of experts",
    size="expert_replicas",
    span="expert_replica_span",
    local="expert_replicas_local",
)
hop_nic_bytes_per_s = _rate_term(
    "hop_nic_bytes_per_s",
    "sends between stages",
    size="pipeline",
    span="pipeline_span",
    local="stages_per_domain",
    rate="nic_hop_bytes_per_s",
    crossing=hop_crossing_fraction,
)

TERMS = (
    tensor_nic_bytes_per_s,
    context_nic_bytes_per_s,
    context_exchange_nic_bytes_per_s,
    expert_nic_bytes_per_s,
    gradient_nic_bytes_per_s,
    replica_nic_bytes_per_s,
    hop_nic_bytes_per_s,
)
