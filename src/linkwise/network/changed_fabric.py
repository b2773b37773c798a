"""A fabric whose links, NICs, leaves or spines are partly missing or slow: what is left of it.

Not here: how it is wired (`wiring`), what changes do to nodes and GPUs (`cluster.changes`). Spines that lost
links are taken to pass on what reaches them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from linkwise.cluster import Cluster, FabricKind
from linkwise.cluster.changes import (
    Change,
    Part,
    changes_of_fabric,
    missing_nodes,
    nic_fractions,
    takes_part,
)
from linkwise.errors import InputError
from linkwise.network.bisection import bisection_bytes_per_s
from linkwise.network.clos import wiring_of
from linkwise.network.failures import Failure
from linkwise.network.wiring import Wiring

__all__ = ["ChangedFabric", "changed_fabric", "fabric_words", "leaf_fraction", "uplink_fraction"]

Floats = NDArray[np.float64]

_MOST_LINKS = 20_000_000
"""Links of nodes, or between leaves and spines, of a fabric that changes are laid on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFabric:
    """What links carry over what they carried as built; a missing one carries nothing.

    Attributes
    ----------
    wiring
        The fabric as built.
    node_links
        Links of nodes (networks, nodes, links of a node) [1].
    trunks
        Links between a leaf and each spine of its pod, all of a trunk together (networks, leaves, spines of a
        pod) [links].
    missing
        Nodes that do not train.
    """

    wiring: Wiring
    node_links: Floats
    trunks: Floats
    missing: tuple[int, ...]

    @property
    def down(self) -> Floats:
        """Return what the links of each leaf towards nodes carry (networks, leaves) [links]."""
        wiring = self.wiring
        found = np.zeros((wiring.networks, wiring.leaves))
        nodes = np.arange(wiring.nodes)
        for link in range(wiring.node_links):
            leaves = wiring.leaf_of(0, link) + nodes // wiring.group_nodes * wiring.group_leaves
            for network in range(wiring.networks):
                np.add.at(found[network], leaves, self.node_links[network, :, link])
        return found

    @property
    def up(self) -> Floats:
        """Return what the links of each leaf towards spines carry (networks, leaves) [links]."""
        return np.asarray(self.trunks.sum(axis=2), dtype=np.float64)

    @property
    def oversubscription(self) -> float:
        """Return links down over links up at the worst leaf; 1 without spines."""
        down, up = self.down, self.up
        used = down > 0
        return float(np.max(down[used] / up[used], initial=0.0)) if self.wiring.spines else 1.0

    def bisection_bytes_per_s(self, *, link_bytes_per_s: float) -> float:
        """Return what one half of the nodes can send to the other at most, one direction [bytes/s].

        Parameters
        ----------
        link_bytes_per_s
            What one link carries as built, one direction [bytes/s].

        Notes
        -----
        Halves of the nodes that train. A cut that is narrow, and that of the fabric as built: the half whose
        groups let least out. Another cut may be narrower, so the value is a bound from above.
        """
        built = bisection_bytes_per_s(self.wiring, link_bytes_per_s=link_bytes_per_s)
        return min(built, self._narrow_cut() * link_bytes_per_s)

    @property
    def nodes_left(self) -> int:
        """Return the nodes that train."""
        return self.wiring.nodes - len(self.missing)

    def _narrow_cut(self) -> float:
        wiring = self.wiring
        of_leaf = np.minimum(self.down, self.up) if wiring.spines else self.down
        groups = of_leaf.reshape(wiring.networks, -1, wiring.group_leaves).sum(axis=(0, 2))
        present = np.delete(np.arange(wiring.nodes), self.missing) // wiring.group_nodes
        sizes = np.bincount(present, minlength=len(groups))
        wanted, cut = self.nodes_left // 2, 0.0
        for group in np.argsort(groups / np.maximum(sizes, 1), kind="stable").tolist():
            if wanted <= 0:
                break
            taken = min(int(sizes[group]), wanted)
            cut += self._cut_of(group, taken) if taken < sizes[group] else float(groups[group])
            wanted -= taken
        return cut

    def _cut_of(self, group: int, inside: int) -> float:
        """Return what leaves some nodes of a group, those whose links carry least."""
        wiring = self.wiring
        first = group * wiring.group_nodes
        there = range(first, min(first + wiring.group_nodes, wiring.nodes))
        links = self.node_links[:, sorted(set(there) - set(self.missing)), :]
        order = np.argsort(links.sum(axis=(0, 2)), kind="stable")
        of_leaf = [wiring.leaf_of(0, link) for link in range(wiring.node_links)]
        total = 0.0
        for network in range(wiring.networks):
            for leaf in dict.fromkeys(of_leaf):
                here = [link for link, end in enumerate(of_leaf) if end == leaf]
                rates = links[network][order][:, here].sum(axis=1)
                up = self.up[network, group * wiring.group_leaves + leaf]
                total += min(rates[:inside].sum(), rates[inside:].sum() + up)
        return float(total)

    def failures(self, built: tuple[Failure, ...]) -> tuple[Failure, ...]:
        """Return the worst failures with what is left after changes and failure, over what was built.

        Parameters
        ----------
        built
            The worst failures of the fabric as built. Those of nodes and above the spines stay.
        """
        left = {**self._node_failures(), **self._leaf_failures()}
        return tuple(
            replace(each, remaining_fraction=min(each.remaining_fraction, left[each.part]))
            if each.part in left
            else each
            for each in built
        )

    def _node_failures(self) -> dict[str, float]:
        wiring = self.wiring
        links = np.delete(self.node_links, self.missing, axis=1)
        if not links.size:
            return {}
        total = wiring.nics * wiring.planes
        whole = links.sum(axis=(0, 2))
        # The links of a NIC are one in each plane, those of a leaf the links of one block.
        planes = links.reshape(wiring.planes, -1, links.shape[1], wiring.node_links)
        nics = planes.sum(axis=0)
        blocks = np.add.reduceat(links, np.arange(0, wiring.node_links, wiring.leaf_node_links), axis=2)
        largest = {"nic": nics.max(axis=(0, 2)), "node-leaf link": links.max(axis=(0, 2))}
        largest["leaf"] = blocks.max(axis=(0, 2))
        return {part: max(0.0, float(np.min(whole - lost)) / total) for part, lost in largest.items()}

    def _leaf_failures(self) -> dict[str, float]:
        wiring = self.wiring
        if not wiring.spines:
            return {}
        down, up = self.down, self.up
        built = _as_built(wiring)
        built.node_links[:, list(self.missing), :] = 0.0
        need = np.minimum(built.down, built.up)
        if not np.any(need):
            return {}
        down, up, need = (each[:, need[0] > 0] for each in (down, up, need))
        trunks = self.trunks[:, built.down[0] > 0]
        largest = trunks.max(axis=2)
        lost = {"leaf-spine link": np.minimum(1.0, largest), "spine": largest}
        now = np.minimum(down, up) / need
        return {
            part: float(np.min(now.sum(axis=0) - now + np.minimum(down, up - each) / need)) / wiring.networks
            for part, each in lost.items()
        }


def changed_fabric(cluster: Cluster, wiring: Wiring) -> ChangedFabric:
    """Return what is left of a fabric.

    Parameters
    ----------
    cluster
        What there is, with its changes.
    wiring
        How its switches are joined.

    Raises
    ------
    InputError
        When a change names a switch or link that the fabric does not have, has no effect, or cuts nodes off
        that are not said to be missing.
    """
    if (
        wiring.networks * max(wiring.nodes * wiring.node_links, wiring.leaves * wiring.pod_spines)
        > _MOST_LINKS
    ):
        most = f"{_MOST_LINKS:,} links"
        raise InputError(
            f"{cluster.name}: changes cannot be laid on a fabric of more than {most}; use fewer nodes"
        )
    if wiring.kind is FabricKind.DRAGONFLY_PLUS:
        raise InputError(f"{cluster.name}: changes of a dragonfly-plus fabric are not priced; leave them out")
    found = _as_built(wiring)
    missing = missing_nodes(cluster.changes, cluster.nodes)
    for node, left in nic_fractions(cluster.changes, cluster.nodes, cluster.nics_per_node).items():
        for nic, fraction in left.items():
            networks = (
                range(nic, wiring.networks, wiring.nics) if wiring.node_links < wiring.nics else slice(None)
            )
            link = 0 if wiring.node_links < wiring.nics else nic
            found.node_links[networks, node, link] *= fraction
    for change in changes_of_fabric(cluster.changes):
        _apply(found, change)
    found.node_links[:, list(missing), :] = 0.0
    changed = replace(found, missing=missing)
    _check_joined(changed, cluster)
    return changed


def leaf_fraction(cluster: Cluster, gpus: int | None = None) -> float:
    """Return what missing leaves leave of the NICs of a node that takes part, 1 without.

    Parameters
    ----------
    cluster
        What there is.
    gpus
        GPUs that take part, node after node; those in use by default [1].
    """
    if not any(change.part is Part.SWITCHES for change in cluster.changes):
        return 1.0
    fabric = _of_cluster(cluster)
    gone = (fabric.node_links == 0).sum(axis=(0, 2))
    for node, left in nic_fractions(cluster.changes, cluster.nodes, cluster.nics_per_node).items():
        gone[node] -= cluster.fabric.planes * sum(not fraction for fraction in left.values())
    total = fabric.wiring.nics * fabric.wiring.planes
    worst = (lost for node, lost in enumerate(gone.tolist()) if lost and takes_part(cluster, node, gpus))
    return 1.0 - max(worst, default=0) / total


def uplink_fraction(cluster: Cluster) -> float:
    """Return what the links up of the worst leaf carry over what they carried as built, 1 without changes.

    Parameters
    ----------
    cluster
        What there is.
    """
    if not changes_of_fabric(cluster.changes):
        return 1.0
    fabric = _of_cluster(cluster)
    if not fabric.wiring.spines:
        return 1.0
    left = fabric.up[fabric.down > 0] / fabric.wiring.up_links
    return float(np.min(left, initial=1.0))


def fabric_words(cluster: Cluster) -> Iterator[str]:
    """Yield how a step of training pays for changes of switches and of the links between them.

    Parameters
    ----------
    cluster
        What there is.
    """
    if not changes_of_fabric(cluster.changes):
        return
    leaves, up = leaf_fraction(cluster), uplink_fraction(cluster)
    if leaves < 1:
        yield f"changes: missing leaves leave {leaves:.3g} of the NICs of a node, for all alike"
    if up < 1:
        yield f"changes: {up:.3g} of the links up of the worst leaf are left, and every leaf is priced as it"


@lru_cache(maxsize=8)
def _of_cluster(cluster: Cluster) -> ChangedFabric:
    try:
        wiring = wiring_of(cluster)
    except InputError as error:
        named = changes_of_fabric(cluster.changes)[0]
        raise _misfit(named, f"its place is known only in a fabric that can be wired: {error}") from None
    return changed_fabric(cluster, wiring)


def _as_built(wiring: Wiring) -> ChangedFabric:
    trunk = float(wiring.spine_trunk)
    return ChangedFabric(
        wiring=wiring,
        node_links=np.ones((wiring.networks, wiring.nodes, wiring.node_links)),
        trunks=np.full((wiring.networks, wiring.leaves, wiring.pod_spines), trunk),
        missing=(),
    )


def _apply(found: ChangedFabric, change: Change) -> None:
    """Lay one change of links or switches on a fabric."""
    wiring = found.wiring
    networks = _networks(change, wiring)
    leaves = None if change.spans("leaf") is None else _placed(change, "leaf", wiring.leaves)
    spines = None if change.spans("spine") is None else _placed(change, "spine", wiring.spines)
    if change.part is Part.SWITCHES and leaves is not None:
        nodes = np.arange(wiring.nodes) // wiring.group_nodes * wiring.group_leaves
        for link in range(wiring.node_links):
            hit = np.flatnonzero(np.isin(nodes + wiring.leaf_of(0, link), leaves))
            for network in networks:
                found.node_links[network, hit, link] = 0.0
        found.trunks[np.ix_(networks, leaves)] = 0.0
        return
    for spine in spines or ():
        pod, place = divmod(spine, wiring.pod_spines)
        first = pod * wiring.pod_leaves
        below = range(first, min(first + wiring.pod_leaves, wiring.leaves))
        joined = [leaf for leaf in below if leaves is None or leaf in set(leaves)]
        if leaves is not None and len(joined) < len(leaves):
            far = next(leaf for leaf in leaves if leaf not in below) + 1
            raise _misfit(
                change, f"leaf {far} and spine {spine + 1} are in different pods; nothing joins them"
            )
        lost = _lost_links(change, wiring) * (1.0 - change.left_fraction)
        trunks = found.trunks[np.ix_(networks, joined, [place])]
        if np.any(trunks < lost - 1e-9):
            raise _misfit(change, "names links that other changes name; keep one")
        found.trunks[np.ix_(networks, joined, [place])] = trunks - lost


def _networks(change: Change, wiring: Wiring) -> list[int]:
    if change.spans("network") is not None:
        return _placed(change, "network", wiring.networks)
    if wiring.networks > 1:
        many = f"the fabric is {wiring.networks} networks that are not joined"
        raise _misfit(change, f"{many}; say which: 'network 1 {change.text}', or network *")
    return [0]


def _placed(change: Change, word: str, count: int) -> list[int]:
    """Return the numbers behind a word, from 0."""
    named = change.spans(word) or ()
    most = max(low if high is None else high for low, high in named)
    if most > count or not count:
        many = "leaves" if word == "leaf" else f"{word}s"
        there = f"{many} 1 to {count}" if count > 1 else f"{word} 1 alone" if count else f"no {word}"
        raise _misfit(change, f"{word} {most} is not there: the fabric as wired has {there}")
    return [number - 1 for number in change.numbers(word, count + 1)]


def _lost_links(change: Change, wiring: Wiring) -> int:
    """Return how many links of a trunk a change is about."""
    if change.spans("link") is None:
        return wiring.spine_trunk
    return len(_placed(change, "link", wiring.spine_trunk))


def _check_joined(found: ChangedFabric, cluster: Cluster) -> None:
    """Refuse nodes that no link joins to the fabric any more, and leaves without a spine."""
    alone = np.flatnonzero(found.node_links.sum(axis=(0, 2)) == 0)
    cut = sorted(set(alone.tolist()) - set(found.missing))
    if cut:
        nodes = f"node {cut[0]}" if len(cut) == 1 else f"{len(cut)} nodes, the first of them node {cut[0]},"
        raise InputError(
            f"{cluster.name}: changes cut {nodes} off the fabric; say that they are missing, as in "
            f"{{nodes: node {cut[0]}, missing: true}}"
        )
    if found.wiring.spines and np.any((found.up <= 1e-9) & (found.down > 0)):
        network, leaf = (int(each[0]) for each in np.nonzero((found.up <= 1e-9) & (found.down > 0)))
        where = f"leaf {leaf + 1}" + (f" of network {network + 1}" if found.wiring.networks > 1 else "")
        raise InputError(
            f"{cluster.name}: changes leave {where} no link to a spine; if it is to be out of use, say "
            f"{{switches: leaf {leaf + 1}, missing: true}}"
        )


def _misfit(change: Change, message: str) -> InputError:
    return InputError(f"{change.place} ({change.text}): {message}")
