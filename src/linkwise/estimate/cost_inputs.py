"""From a cluster and its prices to the columns that money is computed from, and where each comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkwise import catalog
from linkwise.cluster.prices import Hardware, Part
from linkwise.estimate.energy import PowerDraw, power_draw
from linkwise.network.built_fabric import (
    BuiltFabric,
    PricedPart,
    UnbuiltFabric,
    built_fabric,
    priced_nics,
    priced_parts,
)

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.cluster.prices import Prices

__all__ = ["CostInputs", "cost_inputs", "fabric_family", "fabric_inputs", "unstated_staff"]

_FAMILIES: Mapping[str, tuple[str, ...]] = {
    "infiniband": ("infiniband",),
    "roce": ("roce", "ethernet"),
    "tcp": ("ethernet",),
    "tcpx": ("ethernet",),
    "tcpxo": ("ethernet",),
    "efa": ("efa",),
    "slingshot": ("slingshot",),
}
"""Families whose working time stands for a protocol of links, the first that has some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostInputs:
    """What the money of a cluster in use is computed from.

    Parameters
    ----------
    columns
        Inputs of the terms, by name.
    draw
        What draws power; ``None`` where it is not known.
    nodes
        What is bought of nodes; ``None`` where they are rented or nothing is bought.
    parts
        What is bought of the fabric, all nodes wired.
    fabric_share
        Share of the fabric that nodes in use pay for [1].
    family
        Whose working time counts; ``None`` where no staff is stated for this fabric.
    not_priced
        What costs something that is not known, in a few words each.
    """

    columns: Mapping[str, float]
    draw: PowerDraw | None
    nodes: PricedPart | None
    parts: tuple[PricedPart, ...]
    fabric_share: float
    family: str | None
    not_priced: tuple[str, ...]


def cost_inputs(cluster: Cluster, prices: Prices) -> CostInputs:
    """Return what the money of the part of a cluster that is in use is computed from.

    Parameters
    ----------
    cluster, prices
        What there is and what it costs.

    Notes
    -----
    Nodes with a GPU in use are paid whole, and of the fabric the share of those nodes in all.
    """
    built, draw = built_fabric(cluster), power_draw(cluster)
    hardware = prices.hardware
    share = cluster.nodes_in_use / cluster.nodes
    nodes = _nodes(cluster, hardware) if hardware is not None and prices.gpu_usd_per_s is None else None
    parts = () if hardware is None else _fabric_parts(cluster, built)
    family = fabric_family(cluster, prices)
    columns = {
        **_price_columns(prices, family),
        **_failure_columns(cluster, prices, built, share),
        "consumers": 0.0 if draw is None else draw.consumers,
        "consumer_power_w": 0.0 if draw is None else draw.figure.value,
        "fabric_power_w": 0.0 if draw is None else draw.fabric.power_w or 0.0,
        "nodes_usd": 0.0 if nodes is None else nodes.total_usd or 0.0,
        "fabric_usd": share * sum(each.total_usd or 0.0 for each in parts),
    }
    return CostInputs(
        columns=columns,
        draw=draw,
        nodes=nodes,
        parts=parts,
        fabric_share=share,
        family=family,
        not_priced=(*_unpriced_hardware(nodes, parts), *_missing(cluster, prices, built, draw)),
    )


def fabric_inputs(cluster: Cluster, prices: Prices, built: BuiltFabric, *, gpus: int) -> dict[str, float]:
    """Return the columns that the money of a whole fabric is computed from, nodes left out.

    Parameters
    ----------
    cluster, prices, built
        What there is, what it costs, and its fabric.
    gpus
        GPUs of all nodes on the fabric.
    """
    parts = priced_parts(cluster, built) if prices.hardware is not None else ()
    return {
        **_price_columns(prices, fabric_family(cluster, prices)),
        "gpu_usd_per_s": 0.0,
        "gpus": gpus,
        "consumers": 0.0,
        "consumer_power_w": 0.0,
        "fabric_power_w": built.power_w or 0.0,
        "nodes_usd": 0.0,
        "fabric_usd": sum(each.total_usd or 0.0 for each in parts),
    }


def fabric_family(cluster: Cluster, prices: Prices) -> str | None:
    """Return the family of fabrics whose working time counts; ``None`` where none is stated for it.

    Parameters
    ----------
    cluster, prices
        What there is and what it costs.
    """
    if prices.staff is None:
        return None
    link = cluster.fabric.link
    families = ("none",) if link is None else _FAMILIES.get(link.protocol, ())
    return next((each for each in families if each in prices.staff.share_per_1000_gpus), None)


def _price_columns(prices: Prices, family: str | None) -> dict[str, float]:
    bought, staff = prices.hardware or Hardware(lifetime_s=1.0), prices.staff
    hours = 0.0 if staff is None or family is None else staff.share_per_1000_gpus[family]
    return {
        "gpu_usd_per_s": prices.gpu_usd_per_s or 0.0,
        "electricity_usd_per_j": prices.electricity_usd_per_j or 0.0,
        "pue": prices.pue or 1.0,
        "cooling_usd_per_j": prices.cooling_usd_per_j or 0.0,
        "lifetime_s": bought.lifetime_s,
        "residual_fraction": bought.residual_fraction,
        "spares_fraction": bought.spares_fraction or 0.0,
        "support_fraction_per_s": bought.support_fraction_per_s or 0.0,
        "staff_hour_usd_per_s": 0.0 if staff is None else staff.usd_per_s,
        "staff_per_1000_gpus": hours,
    }


def _failure_columns(
    cluster: Cluster, prices: Prices, built: BuiltFabric | UnbuiltFabric, share: float
) -> dict[str, float]:
    saved = prices.checkpoints
    wiring = built.wiring if isinstance(built, BuiltFabric) else None
    cables = 0 if wiring is None else wiring.node_cables + wiring.switch_cables
    # Without checkpoints it is not known what a failure costs, and any interval gives a goodput of 1.
    counted = {} if saved is None else prices.mtbf_s
    rates = {f"{part}_failures_per_s": 1.0 / prices.mtbf_s[part] if part in counted else 0.0 for part in Part}
    return {
        **rates,
        "gpus": cluster.gpus,
        "nodes": cluster.nodes_in_use,
        "nics": cluster.nodes_in_use * cluster.nics_per_node,
        "switches": 0.0 if wiring is None else share * wiring.switches,
        "cables": share * cables,
        "restart_s": prices.restart_s or 0.0,
        "checkpoint_write_s": 0.0 if saved is None else saved.write_s,
        "stated_interval_s": 1.0 if saved is None else saved.interval_s or 0.0,
    }


def _fabric_parts(cluster: Cluster, built: BuiltFabric | UnbuiltFabric) -> tuple[PricedPart, ...]:
    """Return what is bought of the fabric; of one that is not built the NICs, where they have a price."""
    if isinstance(built, BuiltFabric):
        return priced_parts(cluster, built)
    nics = priced_nics(cluster)
    return (nics,) if nics.unit_usd is not None and nics.count else ()


def _nodes(cluster: Cluster, hardware: Hardware) -> PricedPart:
    """Return what is bought of nodes: a share of a system as it is sold, a node, or its GPUs alone."""
    count = cluster.nodes_in_use
    if cluster.system is not None:
        sold = catalog.system(cluster.system)
        nodes = max(1, sold.gpus // sold.gpus_per_node)
        if sold.name in hardware.systems:
            item = sold.name if nodes == 1 else f"{sold.name} (1/{nodes})"
            return PricedPart(
                part="node", item=item, count=count, unit_usd=hardware.systems[sold.name] / nodes
            )
    item = cluster.system or f"node of {cluster.gpu.name}"
    if hardware.node_usd is not None:
        return PricedPart(part="node", item=item, count=count, unit_usd=hardware.node_usd)
    if cluster.gpu.name in hardware.gpus:
        unit = hardware.gpus[cluster.gpu.name]
        return PricedPart(part="GPU", item=cluster.gpu.name, count=cluster.gpus, unit_usd=unit)
    return PricedPart(part="node", item=item, count=count)


def _unpriced_hardware(nodes: PricedPart | None, parts: tuple[PricedPart, ...]) -> Iterator[str]:
    """Yield what is bought at a price that is not known."""
    if nodes is not None and nodes.is_missing:
        yield f"nodes ({nodes.item})"
    elif nodes is not None and nodes.part == "GPU":
        yield "nodes beside their GPUs"
    yield from (f"{each.plural} ({each.item})" for each in parts if each.is_missing)


def _missing(
    cluster: Cluster, prices: Prices, built: BuiltFabric | UnbuiltFabric, draw: PowerDraw | None
) -> Iterator[str]:
    """Yield what else costs something that is not known."""
    reason = built.reason if isinstance(built, UnbuiltFabric) else None
    if prices.hardware is not None and reason is not None:
        yield f"the fabric ({reason})"
    paid = prices.electricity_usd_per_j is not None or prices.cooling_usd_per_j is not None
    if paid and draw is not None:
        yield from (f"electricity of {what}" for what in draw.left_out)
    yield from unstated_staff(cluster, prices)
    if reason is not None and {Part.SWITCH, Part.CABLE} & set(prices.mtbf_s):
        yield f"failures of switches and cables ({reason})"


def unstated_staff(cluster: Cluster, prices: Prices) -> Iterator[str]:
    """Yield what to say of staff whose hours are not stated for the fabric of a cluster.

    Parameters
    ----------
    cluster, prices
        What there is and what it costs.
    """
    if prices.staff is not None and fabric_family(cluster, prices) is None:
        link = cluster.fabric.link
        what = "none, a cluster without fabric" if link is None else link.protocol
        yield f"staff (per_1000_gpus has no hours for {what})"
