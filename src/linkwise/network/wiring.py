"""The value `Wiring`: how many switches of each tier a fabric has, and how they are joined.

A fabric is one or more networks that are alike and not joined (planes of a NIC, rails of rail-only). Each is
a folded Clos network: leaves carry the links of nodes, spines join leaves, cores join pods of spines. Links
between two tiers are spread evenly: every leaf has the same number of links to every spine of its pod, every
spine the same number to every core of its group. Dragonfly+ has no cores: its pods are groups, each two of
them joined by as many links.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwise.cluster import FabricKind

__all__ = ["Wiring"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """The switches of a fabric and the links between them; counts are those of one network.

    Parameters
    ----------
    kind
        How the switches are wired.
    nodes
        Operating systems on the fabric.
    nics
        NICs of one node.
    planes
        Links of one NIC, each to a network of its own.
    node_links
        Links of one node into one network.
    networks
        Networks that are alike and not joined: planes, times rails where rails are not joined either.
    ports
        Links that one switch takes, its ports split where the link is slower than the port.
    group_nodes
        Nodes that share their leaves; the last group may have fewer.
    group_leaves
        Leaves of a group; the links of a node are dealt to them in blocks.
    leaves
        Leaves.
    up_links
        Links of a leaf towards spines; 0 where there are none.
    pods
        Sets of leaves that share spines; 1 with two tiers.
    pod_leaves
        Leaves of a pod; the last may have fewer.
    pod_spines
        Spines of a pod.
    core_links
        Links of a spine towards cores; 0 with two tiers.
    group_cores
        Cores that spine i of every pod leads to; other spines lead to others. 0 with two tiers.
    pair_links
        Links between the spines of each two pods, the groups of dragonfly-plus; 0 elsewhere.
    arithmetic
        How the counts came about, one line each.
    """

    kind: FabricKind
    nodes: int
    nics: int
    planes: int
    node_links: int
    networks: int
    ports: int
    group_nodes: int
    group_leaves: int
    leaves: int
    up_links: int = 0
    pods: int = 1
    pod_leaves: int
    pod_spines: int = 0
    core_links: int = 0
    group_cores: int = 0
    pair_links: int = 0
    arithmetic: tuple[str, ...] = ()

    @property
    def spines(self) -> int:
        """Return the spines of one network."""
        return self.pods * self.pod_spines

    @property
    def cores(self) -> int:
        """Return the cores of one network."""
        return self.pod_spines * self.group_cores

    @property
    def tiers(self) -> int:
        """Return the tiers of switches: 1, 2 or 3."""
        return 1 + bool(self.spines) + bool(self.cores)

    @property
    def leaf_node_links(self) -> int:
        """Return how many links of one node end on the same leaf, where they are most."""
        return -(-self.node_links // self.group_leaves)

    @property
    def down_links(self) -> int:
        """Return the links towards nodes of the fullest leaf."""
        return self.group_nodes * self.leaf_node_links

    @property
    def oversubscription(self) -> float:
        """Return links towards nodes over links towards spines at the fullest leaf; 1 without spines."""
        return self.down_links / self.up_links if self.up_links else 1.0

    @property
    def spine_trunk(self) -> int:
        """Return the parallel links between a leaf and each spine of its pod."""
        return self.up_links // self.pod_spines if self.pod_spines else 0

    @property
    def core_trunk(self) -> int:
        """Return the parallel links between a spine and each core of its group."""
        return self.core_links // self.group_cores if self.group_cores else 0

    @property
    def switches(self) -> int:
        """Return the switches of all networks and tiers."""
        return self.networks * (self.leaves + self.spines + self.cores)

    @property
    def node_cables(self) -> int:
        """Return the cables between nodes and leaves, all networks."""
        return self.networks * self.nodes * self.node_links

    @property
    def spine_cables(self) -> int:
        """Return the cables between leaves and spines, all networks."""
        return self.networks * self.leaves * self.up_links

    @property
    def core_cables(self) -> int:
        """Return the cables between spines and cores, all networks."""
        return self.networks * self.spines * self.core_links

    @property
    def global_cables(self) -> int:
        """Return the cables between groups of dragonfly-plus, all networks."""
        return self.networks * (self.pods * (self.pods - 1) // 2) * self.pair_links

    @property
    def switch_cables(self) -> int:
        """Return the cables between switches, all networks."""
        return self.spine_cables + self.core_cables + self.global_cables

    @property
    def is_one_rate(self) -> bool:
        """Return that all links carry the same."""
        return True

    @property
    def global_oversubscription(self) -> float:
        """Return links of the nodes of a full group over its links to all groups, were it one of them; or 1.

        Traffic that is spread evenly over all nodes takes so much longer than the NICs on the links between
        two groups.
        """
        if not self.pair_links:
            return 1.0
        return self.pod_leaves * self.down_links / (self.pods * self.pair_links)

    def leaf_of(self, node: int, link: int) -> int:
        """Return the leaf that one link of a node ends on; all counted from 0."""
        return node // self.group_nodes * self.group_leaves + link // self.leaf_node_links
