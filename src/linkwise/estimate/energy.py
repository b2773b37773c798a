"""Energy of a step, as terms on columns, and what draws the power.

An upper bound for what it counts: nodes, switches and the ends of cables draw their full power all the time.
Storage and cooling are not in it, nor a fabric whose switches are not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkwise import catalog
from linkwise.estimate.columns import Evaluation, Table
from linkwise.estimate.term import Floats, term, term_table
from linkwise.figures import Basis, Figure
from linkwise.network.built_fabric import BuiltFabric, UnbuiltFabric, built_fabric
from linkwise.units import format_quantity

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.job import Job

__all__ = [
    "TERMS",
    "FabricDraw",
    "PowerDraw",
    "energy_assumption",
    "energy_of_token_j",
    "fabric_draw",
    "power_draw",
]

_FULL_POWER = "derived: everything in use draws its full power all the time, an upper bound"
_DEFINED = "by definition"


@term("W", "consumers x power of one", _FULL_POWER)
def node_power_w(consumers: Floats, consumer_power_w: Floats) -> Floats:
    """Return the power that all nodes, or all GPUs, draw."""
    return consumers * consumer_power_w


@term("W", "nodes + fabric", _FULL_POWER)
def cluster_power_w(node_power_w: Floats, fabric_power_w: Floats) -> Floats:
    """Return the power that nodes and the fabric between them draw."""
    return node_power_w + fabric_power_w


@term("J", "power x step time", _DEFINED)
def energy_j_per_step(cluster_power_w: Floats, step_time_s: Floats) -> Floats:
    """Return the energy of one optimizer step, without cooling."""
    return cluster_power_w * step_time_s


@term("J/token", "energy of a step / its tokens", _DEFINED)
def energy_j_per_token(energy_j_per_step: Floats, tokens_per_step: Floats) -> Floats:
    """Return the energy of one token, without cooling."""
    return energy_j_per_step / tokens_per_step


TERMS = (node_power_w, cluster_power_w, energy_j_per_step, energy_j_per_token)


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerDraw:
    """What draws the power of a cluster.

    Parameters
    ----------
    consumers
        Nodes with a GPU in use, or GPUs in use where the power of a node is not known.
    consumer
        What they are: ``"node"`` or ``"GPU"``.
    figure
        Full power of one [W].
    fabric
        What the fabric between nodes draws.
    """

    consumers: int
    consumer: str
    figure: Figure
    fabric: FabricDraw

    @property
    def left_out(self) -> tuple[str, ...]:
        """Return what draws power that is not known, in a few words each."""
        rest = ("nodes beside their GPUs",) if self.consumer == "GPU" else ()
        return (*rest, *(("the fabric",) if self.fabric.power_w is None else ()))

    @property
    def assumption(self) -> str:
        """Return what is taken for granted, in a sentence for a reader."""
        each = f"{format_quantity(self.figure.value, 'w')} ({self.figure.basis})"
        counted = (
            f"every node in use draws its full power, {each}"
            if self.consumer == "node"
            else f"every GPU in use draws its full board power, {each}; the rest of its node (not in the "
            "catalogue) is not counted"
        )
        return f"energy: {counted}; {self.fabric.words}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricDraw:
    """What the fabric of a cluster draws.

    Parameters
    ----------
    power_w
        The share of the nodes in use in its full power [W]; ``None`` where it is not known.
    words
        What that is of, in words for a reader.
    """

    power_w: float | None
    words: str


def power_draw(cluster: Cluster) -> PowerDraw | None:
    """Return what draws the power of a cluster; ``None`` where the catalogue has no power of it.

    Parameters
    ----------
    cluster
        Its nodes count with all they hold (processors, NICs, NVSwitches, fans) where the power of the system
        is known; else its GPUs count at their board power.

    Notes
    -----
    The power of a rack is shared by its nodes: ``power of the system x GPUs of a node / GPUs of the system``.
    """
    figure = _node_power(cluster)
    if figure is not None:
        fabric = fabric_draw(cluster, built_fabric(cluster))
        return PowerDraw(consumers=cluster.nodes_in_use, consumer="node", figure=figure, fabric=fabric)
    figure = cluster.gpu.figures.get("tdp_w")
    if figure is not None:
        fabric = fabric_draw(cluster, built_fabric(cluster))
        return PowerDraw(consumers=cluster.gpus, consumer="GPU", figure=figure, fabric=fabric)
    return None


def fabric_draw(cluster: Cluster, built: BuiltFabric | UnbuiltFabric) -> FabricDraw:
    """Return what the fabric of a cluster draws, as far as its nodes are in use.

    Parameters
    ----------
    cluster
        What there is.
    built
        Its fabric.
    """
    if isinstance(built, UnbuiltFabric):
        if built.reason is None:
            return FabricDraw(power_w=0.0, words="there is no fabric between nodes")
        return FabricDraw(power_w=None, words=f"the fabric is not counted: {built.reason}")
    if built.power_w is None:
        return FabricDraw(power_w=None, words=f"the fabric is not counted: {built.power_words}")
    share = cluster.nodes_in_use / cluster.nodes
    of = "" if share == 1 else f", for {cluster.nodes_in_use:,} of its {cluster.nodes:,} nodes"
    words = f"so does the fabric, {format_quantity(share * built.power_w, 'w')}: {built.power_words}{of}"
    return FabricDraw(power_w=share * built.power_w, words=words)


def energy_of_token_j(job: Job, cluster: Cluster, step_time_s: float) -> float | None:
    """Return the energy of one token, without cooling [J]; ``None`` where the power is not known.

    Parameters
    ----------
    job, cluster
        What is run on what.
    step_time_s
        Time of one optimizer step [s].
    """
    draw = power_draw(cluster)
    if draw is None:
        return None
    fixed = {
        "consumers": float(draw.consumers),
        "consumer_power_w": draw.figure.value,
        "fabric_power_w": draw.fabric.power_w or 0.0,
        "step_time_s": step_time_s,
        "tokens_per_step": float(job.tokens_per_step),
    }
    table = Table(rows=1, fixed={name: np.array([value]) for name, value in fixed.items()})
    return Evaluation(table, term_table(TERMS)).fixed("energy_j_per_token")


def energy_assumption(cluster: Cluster) -> str:
    """Return what energies take for granted, in a sentence for a reader.

    Parameters
    ----------
    cluster
        The cluster.
    """
    draw = power_draw(cluster)
    return "energy: no power in the catalogue, none is given" if draw is None else draw.assumption


def _node_power(cluster: Cluster) -> Figure | None:
    if cluster.power_w is None:
        return None
    if cluster.system is None:
        note = "stated in the cluster document"
        return Figure(value=cluster.power_w, unit="W", basis=Basis.ASSUMED, source=note, layer="cluster")
    system = catalog.system(cluster.system)
    figure = system.figure("power_w")
    nodes = system.gpus // system.gpus_per_node
    return figure if nodes <= 1 else figure.scaled(1 / nodes)
