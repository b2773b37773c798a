"""Times of collectives for columns of groups, each as NCCL chooses them on the links of the group.

A column holds what differs from group to group; kinds of GPU and of network are codes, places in
`GENERATIONS` and `NETWORKS`. Groups that are alike are priced together (`collective_time.py`), so that a
column of a million candidate layouts costs a few hundred calls.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.nccl.communicator import Communicator
from linkwise.network.collective_constants import collective_values
from linkwise.network.collective_time import collective_times
from linkwise.network.link_factors import LinkFactors
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

_AS_MODELLED: Floats = np.ones(1)
_KEPT = 10_000
"""Rows of columns whose times are kept [1]."""


class _Group(NamedTuple):
    """The columns of one group that its time depends on, but for the size."""

    ranks: float
    local: float
    generation: float
    network: float
    link_bytes_per_s: float
    nic_bytes_per_s: float
    local_latency: float
    network_latency: float


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
    local_latency: Floats = _AS_MODELLED,
    network_latency: Floats = _AS_MODELLED,
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
    local_latency, network_latency
        Factors on latencies inside domains and between them (`linkwise.network.link_factors`) [1].

    Notes
    -----
    The groups of a domain share its NICs, so that a group has the shares of its own ranks.
    """
    links = (
        *(ranks, local, generation, network),
        *(link_bytes_per_s, nic_bytes_per_s, local_latency, network_latency),
    )
    shape = np.broadcast_shapes(*(column.shape for column in (*links, size_bytes)))
    group, distinct = _distinct(links, shape)
    sizes = np.broadcast_to(np.maximum(size_bytes, 1.0), shape).ravel()
    if group is None:
        times = _one(operation, distinct[0], sizes)
    elif len(sizes) <= _KEPT:
        times = _kept(operation, group.tobytes(), tuple(distinct), sizes.tobytes())
    else:
        times = _priced(operation, group, distinct, sizes)
    return times.reshape(shape)


def _distinct(
    links: tuple[Floats, ...], shape: tuple[int, ...]
) -> tuple[NDArray[np.intp] | None, list[_Group]]:
    """Return the number of each row's group and the groups; ``None`` where all rows are of one."""
    values = [np.unique(column, return_inverse=True) for column in links]
    if all(len(each) == 1 for each, _ in values):
        return None, [_Group(*(float(each[0]) for each, _ in values))]
    code = np.zeros(1, dtype=np.int64)
    for (each, place), column in zip(values, links, strict=True):
        code = code * len(each) + place.reshape(column.shape)
    found, group = np.unique(np.broadcast_to(code, shape).ravel(), return_inverse=True)
    places = np.unravel_index(found, tuple(len(each) for each, _ in values))
    rows = zip(*(each[place].tolist() for (each, _), place in zip(values, places, strict=True)), strict=True)
    return group.ravel(), [_Group(*row) for row in rows]


@lru_cache(maxsize=256)
def _kept(operation: str, group: bytes, distinct: tuple[_Group, ...], sizes: bytes) -> Floats:
    """Return `_priced`, kept: a fit asks for the same groups again and again."""
    times = _priced(operation, np.frombuffer(group, dtype=np.intp), list(distinct), np.frombuffer(sizes))
    times.setflags(write=False)
    return times


def _priced(operation: str, group: NDArray[np.intp], distinct: list[_Group], sizes: Floats) -> Floats:
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(np.bincount(group, minlength=len(distinct)))
    times = np.zeros(len(sizes))
    for one, rows in zip(distinct, np.split(order, ends[:-1]), strict=True):
        times[rows] = _one(operation, one, sizes[rows])
    return times


def _one(operation: str, group: _Group, sizes: Floats) -> Floats:
    if group.ranks < 2.0:
        return np.zeros(len(sizes))
    return collective_times(operation, _setting(group), sizes).time_s


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
def _setting(group: _Group) -> Setting:
    """Return where the ranks of a group run; domains are taken to be filled evenly."""
    name = GENERATIONS[int(group.generation)]
    domains = int(-(-group.ranks // group.local))
    across = group.ranks / domains * group.nic_bytes_per_s
    return Setting(
        group=Communicator(
            ranks=int(group.ranks),
            domains=domains,
            generation=name,
            local_bytes_per_s=planned_bytes_per_s(name, group.link_bytes_per_s),
            network_bytes_per_s=across if domains > 1 else 0.0,
            has_multicast=name in WITH_MULTICAST,
        ),
        network=NETWORKS[int(group.network)] if domains > 1 else NETWORKS[0],
        pair_bytes_per_s=group.link_bytes_per_s,
        factors=LinkFactors(local_latency=group.local_latency, network_latency=group.network_latency),
    )
