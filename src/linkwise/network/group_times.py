"""Times of collectives for columns of groups, each as NCCL chooses them on the links of the group.

A column holds what differs from group to group; kinds of GPU and of network are codes, places in
`GENERATIONS` and `NETWORKS`. Groups that are alike are priced together (`collective_time.py`), so that a
column of a million candidate layouts costs a few hundred calls.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from linkwise.nccl.communicator import Communicator
from linkwise.network.collective_constants import collective_values
from linkwise.network.collective_time import collective_times
from linkwise.network.links import WITH_MULTICAST, planned_bytes_per_s
from linkwise.network.setting import Setting

__all__ = ["GENERATIONS", "NETWORKS", "group_times_s", "hop_latency_s", "ring_share"]

Floats = NDArray[np.float64]

GENERATIONS = ("pcie", "volta", "ampere", "hopper", "blackwell", "amd")
"""What joins the GPUs of a domain, by its code."""
NETWORKS = (
    "nvlink",
    "infiniband",
    "roce",
    "efa_v1",
    "efa_v2",
    "efa_v3",
    "efa_v4",
    "tcpx",
    "tcpxo",
    "slingshot",
    "sockets",
)
"""What joins domains, by its code; the first for groups of one domain."""

_KEPT = 50_000
"""Numbers of columns whose times are kept [1]."""


def group_times_s(
    operation: str,
    *,
    ranks: Floats,
    local: Floats,
    size_bytes: Floats,
    generation: Floats,
    network: Floats,
    link_bytes_per_s: Floats,
    nic_bytes_per_s: Floats,
) -> Floats:
    """Return the time of one call of each group [s]; 0 for a group of one rank.

    Parameters
    ----------
    operation
        One of `linkwise.network.setting.OPERATIONS`.
    ranks, local
        GPUs of a group, and those of them in one domain [1].
    size_bytes
        Bytes of the full buffer, as nccl-tests counts them [bytes].
    generation, network
        Codes of what joins GPUs and domains [1].
    link_bytes_per_s
        Line rate of a GPU inside its domain, one direction [bytes/s].
    nic_bytes_per_s
        What one GPU's share of the NICs offers the group, one direction, at line rate [bytes/s].

    Notes
    -----
    The groups of a domain share its NICs, so that a group has the shares of its own ranks.
    """
    columns = np.broadcast_arrays(
        ranks, local, generation, network, link_bytes_per_s, nic_bytes_per_s, size_bytes
    )
    rows = np.stack([column.ravel() for column in columns])
    times = _times(operation, rows.tobytes(), len(rows)) if rows.size <= _KEPT else _priced(operation, rows)
    return times.reshape(columns[0].shape)


@lru_cache(maxsize=256)
def _times(operation: str, rows: bytes, columns: int) -> Floats:
    """Return `_priced`, kept: a fit asks for the same groups again and again."""
    times = _priced(operation, np.frombuffer(rows).reshape(columns, -1))
    times.setflags(write=False)
    return times


def _priced(operation: str, rows: Floats) -> Floats:
    groups, sizes = rows[:-1].T, np.maximum(rows[-1], 1.0)
    distinct, place = np.unique(groups, axis=0, return_inverse=True)
    order = np.argsort(place.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(place.ravel(), minlength=len(distinct)))
    times = np.zeros(len(sizes))
    for group, found in zip(distinct.tolist(), np.split(order, ends[:-1]), strict=True):
        if group[0] >= 2.0:
            times[found] = collective_times(operation, _setting(*group), sizes[found]).time_s
    return times


def hop_latency_s(network: Floats) -> Floats:
    """Return the latency of one hop between domains that the times hold already [s].

    Parameters
    ----------
    network
        Codes of what joins domains [1].
    """
    known = collective_values()
    of_kind = [known["simple_network_hop"] * known[f"hops_simple_{name}"] for name in NETWORKS]
    return np.array(of_kind)[network.astype(np.intp)]


def ring_share(network: Floats) -> Floats:
    """Return the share of the line rate of NICs that rings reach in these times [1].

    Parameters
    ----------
    network
        Codes of what joins domains [1].
    """
    known = collective_values()
    of_kind = [known["network_share_ring"] * known[f"network_share_{name}"] for name in NETWORKS]
    return np.array(of_kind)[network.astype(np.intp)]


@lru_cache(maxsize=65_536)
def _setting(
    ranks: float, local: float, generation: float, network: float, link: float, nic: float
) -> Setting:
    """Return where the ranks of a group run; domains are taken to be filled evenly."""
    name = GENERATIONS[int(generation)]
    domains = int(-(-ranks // local))
    return Setting(
        group=Communicator(
            ranks=int(ranks),
            domains=domains,
            generation=name,
            local_bytes_per_s=planned_bytes_per_s(name, link),
            network_bytes_per_s=ranks / domains * nic if domains > 1 else 0.0,
            has_multicast=name in WITH_MULTICAST,
        ),
        network=NETWORKS[int(network)] if domains > 1 else NETWORKS[0],
        pair_bytes_per_s=link,
    )
