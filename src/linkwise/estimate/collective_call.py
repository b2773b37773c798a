"""A collective of each group as a term prices it: the network's time on the columns of the links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.estimate.term import Floats
from linkwise.network.group_times import group_times_s, hop_latency_s

__all__ = ["GroupLinks", "call_s"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLinks:
    """Columns of the links that groups of a kind use.

    Attributes
    ----------
    ranks, local
        Ranks of a group, and those of them in one NVLink domain [1].
    generation, network
        Codes of what joins GPUs and domains (`linkwise.network.group_times`) [1].
    link_bytes_per_s
        Line rate of a GPU inside its domain, one direction [bytes/s].
    nic_bytes_per_s
        What one GPU's share of the NICs offers the group [bytes/s].
    latency_s
        Latency of one hop between domains [s].
    local_latency, network_latency
        What a site's calibration says of latencies inside domains and between them, 1 as modelled [1].
    """

    ranks: Floats
    local: Floats
    generation: Floats
    network: Floats
    link_bytes_per_s: Floats
    nic_bytes_per_s: Floats
    latency_s: Floats
    local_latency: Floats
    network_latency: Floats


def call_s(operation: str, size_bytes: Floats, links: GroupLinks) -> Floats:
    """Return the time of one call of each group [s]; 0 for a group of one rank.

    Parameters
    ----------
    operation
        One of `linkwise.network.setting.OPERATIONS`.
    size_bytes
        Bytes of the full buffer, as nccl-tests counts them [bytes].
    links
        The groups and their links.

    Notes
    -----
    The time holds hops of the usual latency of its kind of network; what a link takes longer (another site,
    an emulated delay) is added for each hop between domains.
    """
    domains = np.ceil(links.ranks / links.local)
    hops = (2.0 if operation == "all_reduce" else 1.0) * (domains - 1.0)
    if operation == "all_to_all":
        hops = np.minimum(hops, 1.0)
    call = group_times_s(
        operation,
        ranks=links.ranks,
        local=links.local,
        size_bytes=size_bytes,
        generation=links.generation,
        network=links.network,
        link_bytes_per_s=links.link_bytes_per_s,
        nic_bytes_per_s=links.nic_bytes_per_s,
        local_latency=links.local_latency,
        network_latency=links.network_latency,
    )
    return call + hops * np.maximum(links.latency_s - hop_latency_s(links.network), 0.0)
