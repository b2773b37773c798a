"""How much slower a group sends because others share its links up, on columns of groups.

All groups of a kind send at once, as the ranks of a training job do. `crossing_fraction` says which share of
the links of nodes below a set of switches (`linkwise.network.tiers`) sends out of it, `slowdown` what that
costs: spread evenly the oversubscription of what crosses, with a hash of each flow the fullest link.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from linkwise.network.collisions import exact_law

__all__ = [
    "PEERS_AT_ONCE",
    "exchange_crossing_fraction",
    "hop_crossing_fraction",
    "ring_crossing_fraction",
    "slowdown",
]

Floats = NDArray[np.float64]

PEERS_AT_ONCE = 8
"""Peers an all-to-all keeps in flight at once; an assumption, NCCL's depends on channels and NICs [1]."""
_EXACT_FLOWS = 2_000
"""Flows of a set up to which the exact law is taken: a few milliseconds at most [1]."""


def ring_crossing_fraction(size: Floats, span: Floats, local: Floats, below: Floats, gpus: Floats) -> Floats:
    """Return the share of the links below a set of switches that rings of a kind send out over [1].

    Parameters
    ----------
    size
        Ranks of a group [1].
    span
        GPUs from its first to its last rank, in which span / size groups lie between one another [1].
    local
        Ranks of a group that share an NVLink domain [1].
    below, gpus
        GPUs below the set, and of all [1].

    Notes
    -----
    A ring leaves a set once, over the links of the ranks of one domain. Spans follow one another: they lie
    inside sets where they divide them, one at a time is below a set where sets divide them, and elsewhere
    two meet below some set.
    """
    spans = np.where((np.mod(span, below) == 0) | (span >= gpus), 1.0, 2.0)
    spans = np.where(np.mod(below, span) == 0, 0.0, spans)
    return np.minimum(spans * local * span / (size * below), 1.0)


def hop_crossing_fraction(size: Floats, span: Floats, local: Floats, below: Floats, gpus: Floats) -> Floats:
    """Return the share of the links below a set that stages of pipelines send out over to the next [1].

    Parameters
    ----------
    size, span, local, below, gpus
        As for `ring_crossing_fraction`; what shares an NVLink domain has no part in it.

    Notes
    -----
    At the end of a set the GPUs of one stage of each pipeline that goes on send out.
    """
    del local, gpus
    return np.where(np.mod(below, span) == 0, 0.0, np.minimum(span / (size * below), 1.0))


def exchange_crossing_fraction(
    size: Floats, span: Floats, local: Floats, below: Floats, gpus: Floats
) -> Floats:
    """Return the share of what all-to-alls send out of NVLink domains that leaves a set of switches [1].

    Parameters
    ----------
    size, span, local, below, gpus
        As for `ring_crossing_fraction`.

    Notes
    -----
    Of n - l peers outside the domain n - L are outside the set, L = n x below / span. Where spans are smaller
    than a set and do not divide it, two of them meet its ends and send at most half of what they have.
    """
    del gpus
    outside = np.where(span > below, size - size * below / span, 0.5 * size * span / below)
    share = np.minimum(outside / np.maximum(size - local, 1.0), 1.0)
    return np.where(np.mod(below, span) == 0, 0.0, share)


def slowdown(
    crossing: Floats,
    down_links: Floats,
    up_links: Floats,
    sets: Floats,
    queue_pairs: Floats,
    *,
    at_once: int = 1,
) -> Floats:
    """Return how much slower a group sends through the links up than through its NICs, at least 1.

    Parameters
    ----------
    crossing
        Share of the links down that sends up [1].
    down_links, up_links, sets
        Those of `linkwise.network.tiers.Tier` [1].
    queue_pairs
        Flows of one connection whose hashes choose their links; 0 where flows spread evenly [1].
    at_once
        Connections that a NIC shares its rate between at the same time [1].

    Notes
    -----
    Evenly: x d / u. By hashes: the mean of the fullest of all links up, over which the slowest group goes,
    with x d q w flows of 1 / (q w) of a NIC each on u links of every set; a ring keeps its hashes for all
    its steps, so that a collision lasts. Exact (`linkwise.network.collisions`) for few flows, independent
    Poisson counts for many.
    """
    even = np.maximum(1.0, crossing * down_links / up_links)
    if not np.any(queue_pairs > 0):
        return even
    columns = np.broadcast_arrays(crossing, down_links, up_links, sets, queue_pairs)
    rows = np.stack([column.ravel() for column in columns], axis=1)
    distinct, place = np.unique(rows, axis=0, return_inverse=True)
    hashed = np.array([_hashed(*map(float, row), at_once) for row in distinct])
    worst: Floats = np.maximum(even, hashed[place].reshape(columns[0].shape))
    return worst


@lru_cache(maxsize=65_536)
def _hashed(
    crossing: float, down_links: float, up_links: float, sets: float, queue_pairs: float, at_once: int
) -> float:
    """Return the mean load of the fullest link over what a NIC gives; 0 where nothing is hashed."""
    parts = queue_pairs * at_once
    flows = round(crossing * down_links * parts)
    if not flows or not parts:
        return 0.0
    links = round(up_links)
    if links == 1:
        return flows / parts
    if flows <= _EXACT_FLOWS:
        return exact_law(flows=flows, links=links, repeats=round(sets)).mean / parts
    return _mean_of_fullest(flows / links, links * sets) / parts


def _mean_of_fullest(mean: float, links: float) -> float:
    """Return the mean of the largest of independent Poisson counts."""
    most = int(mean + 12.0 * np.sqrt(mean) + 40.0)
    counts = np.arange(1, most + 1)
    logs = np.concatenate(([0.0], np.cumsum(np.log(mean / counts)))) - mean
    at_most = np.minimum(np.cumsum(np.exp(logs)), 1.0)
    return float(np.sum(1.0 - at_most**links))
