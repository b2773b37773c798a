"""What schedulers say of the fabric: how many nodes, in how many tiers or blocks."""

from __future__ import annotations

from collections.abc import Iterator

from linkwise.cluster.claims import Claim
from linkwise.readers.slurm_topology import SlurmTopology

__all__ = ["slurm_claims"]


def slurm_claims(topology: SlurmTopology, path: str) -> Iterator[Claim]:
    """Yield what Slurm's topology says of a cluster.

    Parameters
    ----------
    topology
        The topology.
    path
        The file it was read in.
    """
    nodes = len(topology.nodes)
    groups = [group for group in (*topology.switches, *topology.blocks) if group.nodes]
    what = "blocks" if topology.blocks else "switches"
    yield Claim(key="nodes", value=nodes, path=path, why=f"{nodes} nodes on {len(groups)} {what}")
    sizes = sorted({len(group.nodes) for group in groups})
    if topology.blocks:
        words = f"blocks of {_range(sizes)} nodes"
        planned = f", planned as {topology.block_sizes[0]}" if topology.block_sizes else ""
        why = f"{words}{planned}; a block is an NVLink domain or what its owner made it"
    else:
        tiers = f"{topology.tiers} tier{'s' if topology.tiers > 1 else ''} of switches"
        why = f"{tiers}, {_range(sizes)} nodes on a leaf; a tree does not say rails or links"
    yield Claim(key="note", value=None, path=path, why=why)


def _range(sizes: list[int]) -> str:
    return str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
