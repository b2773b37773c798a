"""Which nodes share leaves, pods and NVLink domains: what schedulers want to know of a fabric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from linkwise.cluster import Cluster
from linkwise.network.clos import wiring_of

__all__ = ["Places", "node_names", "places_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Nested sets of nodes that follow one another; the last of each may have fewer.

    Parameters
    ----------
    nodes
        Operating systems.
    domain_nodes
        Nodes of an NVLink domain; 1 where it does not span nodes.
    unit_nodes
        Nodes that share their leaves.
    pod_nodes
        Nodes whose leaves share their spines.
    """

    nodes: int
    domain_nodes: int
    unit_nodes: int
    pod_nodes: int

    @property
    def units(self) -> int:
        """Return the sets of nodes that share their leaves."""
        return -(-self.nodes // self.unit_nodes)

    @property
    def pods(self) -> int:
        """Return the sets of nodes whose leaves share their spines."""
        return -(-self.nodes // self.pod_nodes)

    def spans(self, size: int) -> Iterator[tuple[int, int]]:
        """Yield first and last node of each set of `size` nodes.

        Parameters
        ----------
        size
            Nodes of a set, from 1.
        """
        for first in range(0, self.nodes, size):
            yield first, min(first + size, self.nodes) - 1


def places_of(cluster: Cluster) -> Places:
    """Return which nodes of a cluster share leaves, pods and NVLink domains.

    Parameters
    ----------
    cluster
        What there is; all its nodes count, in use or not.

    Raises
    ------
    InputError
        When its fabric cannot be wired, or its switch is not known.
    """
    wiring = wiring_of(cluster)
    return Places(
        nodes=cluster.nodes,
        domain_nodes=domain_nodes(cluster),
        unit_nodes=wiring.group_nodes,
        pod_nodes=wiring.group_nodes * max(1, wiring.pod_leaves // wiring.group_leaves),
    )


def domain_nodes(cluster: Cluster) -> int:
    """Return the nodes of an NVLink domain, 1 where it does not span nodes.

    Parameters
    ----------
    cluster
        What there is.
    """
    return max(1, cluster.nvlink_domain_gpus // cluster.gpus_per_node)


def node_names(first: int, last: int) -> str:
    """Return the names of nodes as a host list of Slurm: ``node-[0-31]``.

    Parameters
    ----------
    first, last
        Nodes, counted from 0.
    """
    return f"node-{first}" if first == last else f"node-[{first}-{last}]"
