"""A fat tree as explicit directed links, and the route of each flow over it.

Links have numbers by arithmetic, no graph is kept: 100,000 GPUs are a handful of arrays.
Read `FatTree` first, then `FatTree.routes`.

References
----------
C. E. Leiserson, Fat-Trees: Universal Networks for Hardware-Efficient Supercomputing, 1985.
M. Al-Fares, A. Loukissas, A. Vahdat, A Scalable, Commodity Data Center Network Architecture, 2008.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import InputError
from linkwise.network.flows import Routes

__all__ = ["FatTree"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_NIC_UP, _LEAF_UP, _SPINE_UP, _CORE_DOWN, _SPINE_DOWN, _LEAF_DOWN = range(6)
_MIXER = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


@dataclass(frozen=True, slots=True, kw_only=True)
class FatTree:
    """A fat tree of three tiers; within one pod it is a leaf-spine fabric.

    Each leaf has `down` ports to GPUs and one link to each of the `up` spines of its pod; a spine has `up`
    links to cores, and a core reaches the same spine of every pod. One NIC per GPU.

    Parameters
    ----------
    gpus
        Number of GPUs.
    gpus_per_node
        GPUs of a node.
    down, up
        Ports of a leaf towards GPUs and towards spines; `down` over `up` is the oversubscription.
    leaves_per_pod
        Leaves of a pod.
    rail_optimized
        Whether the GPUs of a node hang on as many leaves (GPU r of each node on leaf r of a group), or all
        on one.
    link_bytes_per_s
        Capacity of each link in each direction [bytes/s].

    Raises
    ------
    InputError
        When the figures make no fat tree.
    """

    gpus: int
    gpus_per_node: int
    down: int
    up: int
    leaves_per_pod: int
    rail_optimized: bool
    link_bytes_per_s: float

    def __post_init__(self) -> None:
        """Check that the fat tree can be wired."""
        if min(self.gpus, self.gpus_per_node, self.down, self.up, self.leaves_per_pod) < 1:
            raise InputError("fat tree: GPUs, ports and leaves are 1 or more")
        if self.gpus % self.gpus_per_node:
            raise InputError(
                f"fat tree: {self.gpus} GPUs are no multiple of the {self.gpus_per_node} of a node"
            )
        if self.rail_optimized and self.leaves_per_pod % self.gpus_per_node:
            raise InputError(
                f"fat tree: {self.leaves_per_pod} leaves of a pod are no multiple of the "
                f"{self.gpus_per_node} rails"
            )
        if not self.rail_optimized and self.down % self.gpus_per_node:
            raise InputError(
                f"fat tree: {self.down} ports of a leaf are no multiple of the {self.gpus_per_node} GPUs "
                "of a node"
            )

    @property
    def leaves(self) -> int:
        """Return the number of leaves."""
        if not self.rail_optimized:
            return -(-self.gpus // self.down)
        return -(-self.gpus // (self.down * self.gpus_per_node)) * self.gpus_per_node

    @property
    def pods(self) -> int:
        """Return the number of pods."""
        return -(-self.leaves // self.leaves_per_pod)

    @property
    def family_sizes(self) -> Integers:
        """Return the number of links of NIC up, leaf up, spine up, core down, spine down, leaf down."""
        leaf_spine = self.leaves * self.up
        spine_core = self.pods * self.up * self.up
        return np.array((self.gpus, leaf_spine, spine_core, spine_core, leaf_spine, self.gpus))

    @property
    def capacities(self) -> Floats:
        """Return the capacity of each link, shape (links,) [bytes/s]."""
        return np.full(int(self.family_sizes.sum()), self.link_bytes_per_s)

    def leaf_of(self, gpu: Integers) -> Integers:
        """Return the leaf of each GPU."""
        if not self.rail_optimized:
            return gpu // self.down
        node, rail = np.divmod(gpu, self.gpus_per_node)
        return node // self.down * self.gpus_per_node + rail

    def routes(self, source: Integers, target: Integers, key: Integers, *, seed: int) -> Routes:
        """Return the route of each flow, its up-links chosen by a hash as ECMP does.

        Parameters
        ----------
        source, target
            GPUs, different ones, shape (flows,).
        key
            What else the hash sees, such as the number of the queue pair, shape (flows,).
        seed
            Seed of the hash; another seed is another fabric of the same shape.

        Notes
        -----
        Each tier hashes with a seed of its own. A spine is chosen at the leaf and a core at the spine; the
        way down is then given.
        """
        from_leaf, to_leaf = self.leaf_of(source), self.leaf_of(target)
        from_pod, to_pod = from_leaf // self.leaves_per_pod, to_leaf // self.leaves_per_pod
        spine = _hashed(source, target, key, seed=2 * seed, choices=self.up)
        core = _hashed(source, target, key, seed=2 * seed + 1, choices=self.up)
        base = np.concatenate(([0], np.cumsum(self.family_sizes)))
        hops = np.stack(
            (
                base[_NIC_UP] + source,
                base[_LEAF_UP] + from_leaf * self.up + spine,
                base[_SPINE_UP] + (from_pod * self.up + spine) * self.up + core,
                base[_CORE_DOWN] + (to_pod * self.up + spine) * self.up + core,
                base[_SPINE_DOWN] + to_leaf * self.up + spine,
                base[_LEAF_DOWN] + target,
            ),
            axis=1,
        )
        leaves_leaf, leaves_pod = from_leaf != to_leaf, from_pod != to_pod
        always = np.ones(len(source), dtype=bool)
        crossed = np.stack((always, leaves_leaf, leaves_pod, leaves_pod, leaves_leaf, always), axis=1)
        return Routes(links=hops[crossed], starts=np.concatenate(([0], np.cumsum(crossed.sum(axis=1)))))


def _hashed(source: Integers, target: Integers, key: Integers, *, seed: int, choices: int) -> Integers:
    """Return a choice for each flow that depends on all it is asked for, and looks random (SplitMix64)."""
    with np.errstate(over="ignore"):
        state = np.full(len(source), seed, dtype=np.uint64)
        for part in (source, target, key):
            state = (state ^ part.astype(np.uint64)) + _MIXER[0]
            state = (state ^ (state >> np.uint64(30))) * _MIXER[1]
            state = (state ^ (state >> np.uint64(27))) * _MIXER[2]
            state ^= state >> np.uint64(31)
    return (state % np.uint64(choices)).astype(np.int64)
