"""How much slower a fabric gets when a hash of each flow chooses its path: exact law, and drawn hashes.

Every NIC sends at once to a NIC on another leaf, over as many queue pairs as one connection has; each queue
pair is a flow of its own. The most loaded link ends last and the step waits for it (the load bound: exact
for flows of equal size that start together), so the slowdown is its load over what it carries.

References
----------
R. von Mises, Über Aufteilungs- und Besetzungswahrscheinlichkeiten, 1939 (occupancy of urns).
V. F. Kolchin, B. A. Sevast'yanov, V. P. Chistyakov, Random Allocations, 1978 (conditioned Poisson urns).
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.network.wiring import Wiring

__all__ = [
    "Collisions",
    "Law",
    "TierLoads",
    "collisions_of",
    "exact_law",
    "leaf_law",
    "leaving_permutation",
    "most_loaded",
]

Ints = NDArray[np.int64]

MOST_FLOWS = 10_000_000
"""Flows drawn in all seeds together: about a second."""

SEEDS = 20
_FEWEST_SEEDS = 4
_LAW_FLOWS = 20_000
"""Flows of a leaf up to which its law takes less than a second."""

_IMPOSSIBLE = 1e-9
"""Chance left out at the beginning of a law."""

_NEGLIGIBLE = 1e-7
"""Chance left out at the end of a law; the rounding of its FFT is below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """Distribution of the number of flows on the fullest of some links.

    Parameters
    ----------
    first
        The smallest number that has a chance worth counting.
    cumulative
        Chance of at most `first`, `first` + 1, ... flows; the last is 1 (k,).
    """

    first: int
    cumulative: NDArray[np.float64]

    @property
    def mean(self) -> float:
        """Return the mean number of flows."""
        return float(self.first + np.sum(1.0 - self.cumulative))

    @property
    def deviation(self) -> float:
        """Return the standard deviation of the number of flows."""
        chances = np.diff(self.cumulative, prepend=0.0)
        values = self.first + np.arange(len(chances))
        return math.sqrt(max(0.0, float(np.sum(chances * (values - self.mean) ** 2))))

    def quantile(self, fraction: float) -> int:
        """Return the smallest number of flows that is not exceeded with this chance."""
        return self.first + int(np.searchsorted(self.cumulative, fraction - 1e-12))


@dataclass(frozen=True, slots=True, kw_only=True)
class TierLoads:
    """Flows on the most loaded link of each kind.

    Parameters
    ----------
    up
        Of the links from leaves to spines.
    every
        Of all links between switches, up and down.
    """

    up: int
    every: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Collisions:
    """Slowdown of a step in which all NICs send to other leaves, against even spreading.

    Parameters
    ----------
    queue_pairs
        Flows of one connection.
    flows
        Flows of one network.
    exact_mean, exact_p95
        By the exact law of the links from leaves to spines; ``None`` where there are too many flows.
    up_mean
        Mean over seeds, of the same links.
    mean, p95
        Mean and 95th percentile over seeds, of all links between switches; ``None`` where none were drawn.
    seeds
        How often the hashes were drawn.
    """

    queue_pairs: int
    flows: int
    exact_mean: float | None
    exact_p95: float | None
    up_mean: float | None
    mean: float | None
    p95: float | None
    seeds: int


def exact_law(*, flows: int, links: int, repeats: int = 1) -> Law:
    """Return the law of the fullest link when flows choose among links alike and independently.

    Parameters
    ----------
    flows
        Flows that choose, at least 1.
    links
        Links to choose from, at least 1.
    repeats
        Independent sets of links; the fullest of all counts.

    Notes
    -----
    P(max <= k) = n! [x^n] (sum_{j<=k} x^j / j!)^u / u^n for n flows on u links. Both sides are those of
    independent Poisson counts of mean n/u given that they sum to n, so the power is that of a truncated
    Poisson law, by FFT, over P(Poisson(n) = n). `repeats` sets: to that power.
    """

    def chance(most: int) -> float:
        return _at_most(most, flows, links) ** repeats if most < flows else 1.0

    possible = range(-(-flows // links), flows + 1)
    first = possible[bisect.bisect_left(possible, _IMPOSSIBLE, key=chance)]
    cumulative = [chance(first)]
    while cumulative[-1] < 1.0 - _NEGLIGIBLE:
        cumulative.append(chance(first + len(cumulative)))
    cumulative[-1] = 1.0
    return Law(first=first, cumulative=np.maximum.accumulate(np.array(cumulative)))


def _at_most(most: int, flows: int, links: int) -> float:
    """Return the chance that no link has more than `most` flows."""
    mean = flows / links
    counts = np.arange(most + 1)
    logs = counts * math.log(mean) - mean - np.array([math.lgamma(each + 1) for each in counts])
    size = 1 << (most * links).bit_length()
    total = np.fft.irfft(np.fft.rfft(np.exp(logs), size) ** links, size)[flows]
    exactly = math.exp(flows * math.log(flows) - flows - math.lgamma(flows + 1))
    return min(1.0, max(0.0, float(total) / exactly))


def leaf_law(wiring: Wiring, *, queue_pairs: int = 1) -> Law:
    """Return the law of the fullest link from a leaf to a spine, over all leaves of all networks.

    Parameters
    ----------
    wiring
        A fabric with spines.
    queue_pairs
        Flows of one connection.
    """
    occupied, leaves = np.unique(_leaf_sizes(wiring), return_counts=True)
    laws = [
        exact_law(flows=int(size) * queue_pairs, links=wiring.up_links, repeats=wiring.networks * int(count))
        for size, count in zip(occupied, leaves, strict=True)
    ]
    return _fullest(laws)


def _fullest(laws: list[Law]) -> Law:
    """Return the law of the largest of independent numbers."""
    first = max(law.first for law in laws)
    length = max(law.first + len(law.cumulative) for law in laws) - first
    product = np.ones(length)
    for law in laws:
        rest = law.cumulative[first - law.first :]
        product[: len(rest)] *= rest
    return Law(first=first, cumulative=product)


def _leaf_of_links(wiring: Wiring) -> Ints:
    """Return the leaf of each link of nodes, node by node (nodes x node_links,)."""
    node, link = np.divmod(np.arange(wiring.nodes * wiring.node_links), wiring.node_links)
    leaf: Ints = node // wiring.group_nodes * wiring.group_leaves + link // wiring.leaf_node_links
    return leaf


def _leaf_sizes(wiring: Wiring) -> Ints:
    sizes: Ints = np.bincount(_leaf_of_links(wiring), minlength=wiring.leaves)
    return sizes


def leaving_permutation(leaf: Ints, rng: np.random.Generator) -> Ints:
    """Return a random permutation that takes places to another leaf, all of them where leaves are alike.

    Parameters
    ----------
    leaf
        Leaf of each place (n,).
    rng
        Where the draws come from.
    """
    target = rng.permutation(len(leaf))
    for _ in range(64):
        staying = np.flatnonzero(leaf == leaf[target])
        if not len(staying):
            break
        for place, other in zip(staying, rng.integers(len(leaf), size=len(staying)), strict=True):
            if leaf[place] != leaf[target[other]] and leaf[other] != leaf[target[place]]:
                target[place], target[other] = target[other], target[place]
    return target


def most_loaded(wiring: Wiring, source: Ints, target: Ints, rng: np.random.Generator) -> TierLoads:
    """Return the most flows on one link, with a hash for each flow and tier.

    Parameters
    ----------
    wiring
        A fabric with spines.
    source, target
        Leaf of each flow's ends (flows,); flows that stay on their leaf load no link here.
    rng
        Where the hashes come from.

    Notes
    -----
    The hash of a leaf chooses one of its up-links, that of a spine one towards the cores; on the way down
    spine and core are fixed and the hash chooses within a trunk. Of dragonfly-plus the leaf chooses among the
    spines with a link to the other group, and the spine among its links there: shortest paths alone.
    """
    crossing = source != target
    source, target = source[crossing], target[crossing]
    if not len(source):
        return TierLoads(up=0, every=0)
    if wiring.pair_links:
        return _grouped_loads(wiring, source, target, rng)
    trunk, up_links = wiring.spine_trunk, wiring.up_links
    choice = rng.integers(up_links, size=len(source))
    up = int(np.bincount(source * up_links + choice).max())
    spine = choice // trunk
    down = target * up_links + spine * trunk + rng.integers(trunk, size=len(source))
    every = max(up, int(np.bincount(down).max()))
    if wiring.cores:
        every = max(
            every, _core_load(wiring, source // wiring.pod_leaves, target // wiring.pod_leaves, spine, rng)
        )
    return TierLoads(up=up, every=every)


def _grouped_loads(wiring: Wiring, source: Ints, target: Ints, rng: np.random.Generator) -> TierLoads:
    """Return the most flows on one link of a dragonfly-plus fabric."""
    here, there = source // wiring.pod_leaves, target // wiring.pod_leaves
    spines, pair, trunk = wiring.pod_spines, wiring.pair_links, wiring.spine_trunk
    leaves = here != there
    first = rng.integers(np.where(leaves, min(pair, spines), spines))
    link = first + spines * rng.integers(
        np.where(leaves, (pair - 1 - np.minimum(first, pair - 1)) // spines + 1, 1)
    )
    ahead, behind = there - (there > here), here - (here > there)
    up_spine = np.where(leaves, (ahead * pair + link) % spines, first)
    down_spine = np.where(leaves, (behind * pair + link) % spines, first)
    loads = [
        np.bincount((leaf * spines + spine) * trunk + rng.integers(trunk, size=len(leaf))).max()
        for leaf, spine in ((source, up_spine), (target, down_spine))
    ]
    crossing = ((here * wiring.pods + there) * pair + link)[leaves]
    most = int(np.bincount(np.unique(crossing, return_inverse=True)[1]).max()) if len(crossing) else 0
    return TierLoads(up=int(loads[0]), every=max(most, *map(int, loads)))


def _core_load(
    wiring: Wiring, source_pod: Ints, target_pod: Ints, spine: Ints, rng: np.random.Generator
) -> int:
    """Return the most flows on one link between spines and cores."""
    crossing = source_pod != target_pod
    if not crossing.any():
        return 0
    source_pod, target_pod, spine = source_pod[crossing], target_pod[crossing], spine[crossing]
    trunk, core_links = wiring.core_trunk, wiring.core_links
    choice = rng.integers(core_links, size=len(spine))
    up = (source_pod * wiring.pod_spines + spine) * core_links + choice
    within = choice // trunk * trunk + rng.integers(trunk, size=len(spine))
    down = (target_pod * wiring.pod_spines + spine) * core_links + within
    return int(max(np.bincount(up).max(), np.bincount(down).max()))


def collisions_of(wiring: Wiring, *, queue_pairs: int, seeds: int = SEEDS) -> Collisions:
    """Return the slowdown by hash collisions when every NIC sends to another leaf.

    Parameters
    ----------
    wiring
        How the switches are joined; without spines there is one path, and no slowdown.
    queue_pairs
        Flows of one connection.
    seeds
        How often hashes are drawn; less often where all draws would be more than `MOST_FLOWS` flows.

    Notes
    -----
    A link carries what a NIC gives, and a flow is 1/q of that: m flows on a link take m/q times as long as
    the NIC does. Spread evenly, a leaf with o links down for each link up takes max(1, o) times as long, and
    so do the links between groups of dragonfly-plus. The slowdown is the ratio.
    """
    flows = wiring.nodes * wiring.node_links * queue_pairs
    if not wiring.spines:
        return Collisions(
            queue_pairs=queue_pairs,
            flows=flows,
            exact_mean=1.0,
            exact_p95=1.0,
            up_mean=1.0,
            mean=1.0,
            p95=1.0,
            seeds=0,
        )
    even = max(1.0, wiring.oversubscription, wiring.global_oversubscription) * queue_pairs
    drawn = min(seeds, MOST_FLOWS // (flows * wiring.networks))
    loads = (
        [_drawn_loads(wiring, queue_pairs, seed) for seed in range(drawn)] if drawn >= _FEWEST_SEEDS else []
    )
    every = np.maximum(1.0, np.array([each.every for each in loads]) / even)
    up = np.maximum(1.0, np.array([each.up for each in loads]) / even)
    few = wiring.down_links * queue_pairs <= _LAW_FLOWS and _is_even(wiring)
    law = leaf_law(wiring, queue_pairs=queue_pairs) if few else None
    return Collisions(
        queue_pairs=queue_pairs,
        flows=flows,
        exact_mean=None if law is None else max(1.0, law.mean / even),
        exact_p95=None if law is None else max(1.0, law.quantile(0.95) / even),
        up_mean=float(up.mean()) if loads else None,
        mean=float(every.mean()) if loads else None,
        p95=float(np.quantile(every, 0.95, method="higher")) if loads else None,
        seeds=len(loads),
    )


def _is_even(wiring: Wiring) -> bool:
    """Return whether all up-links of a leaf are as likely for every flow: each spine leads everywhere."""
    return not wiring.pair_links or wiring.pair_links >= wiring.pod_spines


def _drawn_loads(wiring: Wiring, queue_pairs: int, seed: int) -> TierLoads:
    """Return the most loaded links of all networks with the hashes of one seed."""
    rng = np.random.default_rng(seed)
    leaf = _leaf_of_links(wiring)
    found = []
    for _ in range(wiring.networks):
        target = leaf[leaving_permutation(leaf, rng)]
        found.append(most_loaded(wiring, np.repeat(leaf, queue_pairs), np.repeat(target, queue_pairs), rng))
    return TierLoads(up=max(each.up for each in found), every=max(each.every for each in found))
