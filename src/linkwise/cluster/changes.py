"""Parts of a cluster that are missing or slow, and what is left of it for training.

Not here: the document they are written in (`changes_document`), what they do to switches and cables
(`network.changed_fabric`). Nodes, NICs and GPUs are counted from 0, networks and switches from 1, as in a
list of cables.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkwise.cluster.cluster import Cluster

__all__ = [
    "MOST_CHANGED",
    "NETWORK_RULE",
    "Change",
    "Part",
    "Span",
    "change_words",
    "changes_of_fabric",
    "gpu_speed_fraction",
    "gpus_left",
    "missing_nodes",
    "network_fraction",
    "nic_fractions",
    "step_words",
    "takes_part",
]

MOST_CHANGED = 1_000_000
"""Parts that all changes of one cluster may name."""

Span = tuple[int, int | None]
"""First and last of some numbers; without a last one, all there are from the first on."""

NETWORK_RULE = (
    "for all alike: rings pass every node, use as many NICs as the node with fewest has, and run at the "
    "rate of the slowest (assumed: none is left out because it is slow)"
)
"""How NICs that differ are priced, for a reader."""

_LISTED = 8


class Part(StrEnum):
    """What a change is about; the values are keys of a document."""

    NICS = "nics"
    LINKS = "links"
    NODES = "nodes"
    GPUS = "gpus"
    SWITCHES = "switches"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Parts that are not as they were built.

    Parameters
    ----------
    part
        What kind of part.
    selector
        Which ones: a word (``node``, ``nic``, ``leaf``...) with its numbers, for each word.
    text
        The same as it was written.
    left_fraction
        What is left of the rate or the speed of each; 0 where it is missing [1].
    place
        Where it was written: ``changes.0``.
    """

    part: Part
    selector: tuple[tuple[str, tuple[Span, ...]], ...]
    text: str
    left_fraction: float
    place: str

    def spans(self, word: str) -> tuple[Span, ...] | None:
        """Return the numbers that stand behind a word; ``None`` where it was not written.

        Parameters
        ----------
        word
            A word of selectors.
        """
        return next((spans for name, spans in self.selector if name == word), None)

    def numbers(self, word: str, end: int) -> Iterator[int]:
        """Yield the numbers that stand behind a word, each once.

        Parameters
        ----------
        word
            A word of the selector.
        end
            One more than the last number there is.
        """
        covered = (range(low, end if high is None else high + 1) for low, high in self.spans(word) or ())
        yield from dict.fromkeys(number for numbers in covered for number in numbers)

    @property
    def words(self) -> str:
        """Return the change for a reader: ``node 3 nic 2 at 0.25 of its rate``."""
        if not self.left_fraction:
            return f"{self.text} missing"
        what = "speed" if self.part in (Part.GPUS, Part.NODES) else "rate"
        return f"{self.text} at {self.left_fraction:.3g} of its {what}"


@lru_cache(maxsize=64)
def missing_nodes(changes: tuple[Change, ...], nodes: int) -> tuple[int, ...]:
    """Return the nodes that cannot train, in order: missing ones, and those that lack a GPU.

    Parameters
    ----------
    changes
        Changes of a cluster.
    nodes
        Nodes that were built.
    """
    return tuple(sorted(_nodes_at_zero(changes, nodes)))


def gpus_left(*, nodes: int, node_gpus: int, domain_nodes: int, missing: Iterable[int]) -> tuple[int, int]:
    """Return how many GPUs can train, and how many of each NVLink domain that spans nodes.

    Parameters
    ----------
    nodes
        Nodes that were built.
    node_gpus
        GPUs of one.
    domain_nodes
        Nodes of an NVLink domain.
    missing
        Nodes that cannot train.

    Notes
    -----
    Of domains with different numbers of nodes left, the same number of each is used: that which leaves most
    GPUs, counting only domains that have so many.
    """
    lost = Counter(node // domain_nodes for node in missing)
    whole, rest = divmod(nodes, domain_nodes)
    left = Counter({domain_nodes: whole, rest: 1} if rest else {domain_nodes: whole})
    for domain, count in lost.items():
        size = domain_nodes if domain < whole else rest
        left[size] -= 1
        left[size - count] += 1
    used = max(left, key=lambda size: (size * sum(n for of, n in left.items() if of >= size), size))
    domains = sum(count for size, count in left.items() if size >= used)
    return used * domains * node_gpus, used * node_gpus


@lru_cache(maxsize=64)
def nic_fractions(changes: tuple[Change, ...], nodes: int, nics: int) -> Mapping[int, Mapping[int, float]]:
    """Return what is left of each changed NIC, by node and NIC; several changes of one NIC multiply.

    Parameters
    ----------
    changes
        Changes of a cluster.
    nodes, nics
        Nodes that were built, and NICs of each.
    """
    left: dict[int, dict[int, float]] = defaultdict(dict)
    for change in changes:
        if change.part is Part.NICS:
            for node in change.numbers("node", nodes):
                of_node = left[node]
                for nic in change.numbers("nic", nics):
                    of_node[nic] = of_node.get(nic, 1.0) * change.left_fraction
    return MappingProxyType(left)


def takes_part(cluster: Cluster, node: int, gpus: int | None = None) -> bool:
    """Return whether a node is among those that train: the first ones that are not missing.

    Parameters
    ----------
    cluster
        What there is.
    node
        The node.
    gpus
        GPUs that take part, node after node; those in use by default [1].
    """
    in_use = -(-(cluster.gpus if gpus is None else gpus) // cluster.gpus_per_node)
    return _is_in_use(node, missing_nodes(cluster.changes, cluster.nodes), in_use)


def _is_in_use(node: int, missing: Sequence[int], in_use: int) -> bool:
    before = bisect_left(missing, node)
    is_missing = before < len(missing) and missing[before] == node
    return not is_missing and node - before < in_use


def network_fraction(cluster: Cluster, gpus: int | None = None) -> float:
    """Return what is left of the rate of all NICs of a node, 1 without changes of NICs.

    Parameters
    ----------
    cluster
        What there is.
    gpus
        GPUs that take part, node after node; those in use by default [1].

    Notes
    -----
    NCCL cuts a collective into equal parts for its channels, and a channel passes every node. The node with
    the fewest NICs decides how many there are, the slowest NIC at what rate each runs.
    """
    if not cluster.changes or not cluster.nics_per_node:
        return 1.0
    in_use = -(-(cluster.gpus if gpus is None else gpus) // cluster.gpus_per_node)
    return _network_fraction(cluster.changes, cluster.nodes, cluster.nics_per_node, in_use)


@lru_cache(maxsize=256)
def _network_fraction(changes: tuple[Change, ...], nodes: int, nics: int, in_use: int) -> float:
    missing = missing_nodes(changes, nodes)
    fewest, slowest = nics, 1.0
    for node, left in nic_fractions(changes, nodes, nics).items():
        if _is_in_use(node, missing, in_use):
            fewest = min(fewest, nics - sum(not each for each in left.values()))
            slowest = min(slowest, *(each or 1.0 for each in left.values()))
    return fewest / nics * slowest


def gpu_speed_fraction(cluster: Cluster, gpus: int | None = None) -> float:
    """Return the speed of the slowest GPU that trains over that of the others, 1 without changes of GPUs.

    Parameters
    ----------
    cluster
        What there is.
    gpus
        GPUs that take part, node after node; those in use by default [1].
    """
    slowest = 1.0
    for change in cluster.changes:
        slow = change.part in (Part.GPUS, Part.NODES) and 0 < change.left_fraction < slowest
        if slow and any(takes_part(cluster, node, gpus) for node in change.numbers("node", cluster.nodes)):
            slowest = change.left_fraction
    return slowest


def changes_of_fabric(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Return the changes of links between switches and of switches.

    Parameters
    ----------
    changes
        Changes of a cluster.
    """
    return tuple(change for change in changes if change.part in (Part.LINKS, Part.SWITCHES))


def change_words(cluster: Cluster) -> Iterator[str]:
    """Yield what the changes are and what they do to the nodes and GPUs of a training job.

    Parameters
    ----------
    cluster
        What there is.
    """
    changes = cluster.changes
    if not changes:
        return
    listed = "; ".join(change.words for change in changes[:_LISTED])
    more = f"; and {len(changes) - _LISTED} more" if len(changes) > _LISTED else ""
    yield f"changes: {listed}{more}"
    missing = missing_nodes(changes, cluster.nodes)
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        yield f"changes: {len(missing):,} of {cluster.nodes:,} nodes {verb} left out, with all GPUs of a node"


def step_words(cluster: Cluster) -> Iterator[str]:
    """Yield how a step of training pays for changes.

    Parameters
    ----------
    cluster
        What there is.
    """
    share, speed = network_fraction(cluster), gpu_speed_fraction(cluster)
    if share < 1:
        yield f"changes: {share:.3g} of the rate of the NICs is left, {NETWORK_RULE}"
    if speed < 1:
        yield (
            f"changes: all GPUs wait for the slowest, at {speed:.3g} of its speed in products and attention; "
            "memory and host keep theirs"
        )


def _nodes_at_zero(changes: Iterable[Change], nodes: int) -> set[int]:
    found: set[int] = set()
    for change in changes:
        if change.part in (Part.NODES, Part.GPUS) and not change.left_fraction:
            found.update(change.numbers("node", nodes))
    return found
