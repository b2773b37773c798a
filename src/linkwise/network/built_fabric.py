"""The fabric of a cluster as it is built: wiring, cables, power, and what of it has a price."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from linkwise import catalog
from linkwise.cluster import Cluster, FabricKind
from linkwise.cluster.prices import Hardware
from linkwise.errors import InputError, NotKnown
from linkwise.network.clos import parts_of, wiring_of
from linkwise.network.link_graph import graph_of, link_counts
from linkwise.network.optics import Cables, Optics, optics_of_fabric, switch_power_w
from linkwise.units import format_quantity

__all__ = [
    "BuiltFabric",
    "PricedPart",
    "UnbuiltFabric",
    "build",
    "built_fabric",
    "priced_nics",
    "priced_parts",
]

_HALF = "half of "


_MIXED = "optics: one for each end; links of several rates take different ones, whose power is not counted"


class Counted(Cables, Protocol):
    """The pieces of a fabric, wired by rule or from a table of links."""

    @property
    def switches(self) -> int:
        """Return the switches."""

    @property
    def is_one_rate(self) -> bool:
        """Return whether all its links carry the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltFabric:
    """The fabric of a cluster, all its nodes wired.

    Parameters
    ----------
    wiring
        How many switches and cables it has.
    optics
        Its cables and transceivers.
    power_w
        Switches and transceivers; ``None`` where one is not known [W].
    power_words
        What draws it, or why it is not known, in a sentence for a reader.
    """

    wiring: Counted
    optics: Optics
    power_w: float | None
    power_words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnbuiltFabric:
    """A fabric that cannot be counted.

    Parameters
    ----------
    reason
        Why, in a few words; ``None`` where there is no fabric between nodes.
    """

    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedPart:
    """One line of a bill of materials.

    Parameters
    ----------
    part
        ``node``, ``switch``, ``NIC``, ``transceiver`` or ``cable``.
    item
        Its name.
    count
        Pieces.
    unit_usd
        Price of one [USD]; ``None`` where none is stated.
    included
        Where it is paid with another part: with which.
    """

    part: str
    item: str
    count: int
    unit_usd: float | None = None
    included: str | None = None

    @property
    def total_usd(self) -> float | None:
        """Return the price of all of them [USD]; ``None`` where none is stated."""
        return None if self.unit_usd is None else self.count * self.unit_usd

    @property
    def plural(self) -> str:
        """Return what many of them are called."""
        return "switches" if self.part == "switch" else f"{self.part}s"

    @property
    def is_missing(self) -> bool:
        """Return whether it costs something that is not known."""
        return self.unit_usd is None and self.included is None


def built_fabric(cluster: Cluster) -> BuiltFabric | UnbuiltFabric:
    """Return the fabric of a cluster as it is built, or why that is not known.

    Parameters
    ----------
    cluster
        What there is. One node alone has no fabric.
    """
    fabric = cluster.fabric
    if fabric.kind is FabricKind.NONE or cluster.nodes == 1 or not cluster.nics_per_node:
        return UnbuiltFabric(reason=None)
    try:
        wiring: Counted = _counted(cluster)
    except NotKnown:
        return UnbuiltFabric(reason="its switch is not known")
    except InputError as error:
        return UnbuiltFabric(reason=str(error))
    return build(cluster, wiring)


def _counted(cluster: Cluster) -> Counted:
    if cluster.fabric.table is None:
        return wiring_of(cluster)
    parts_of(cluster)
    return link_counts(graph_of(cluster))


def build(cluster: Cluster, wiring: Counted) -> BuiltFabric:
    """Return the fabric of a cluster with the cables and the power of a wiring.

    Parameters
    ----------
    cluster
        What there is, with a fabric whose link and switch are known.
    wiring
        How many switches and cables it has.
    """
    optics = optics_of_fabric(cluster.fabric, wiring)
    if not wiring.is_one_rate:
        optics = replace(optics, power_w=None, words=_MIXED)
    power_w, words = _power(cluster.fabric.switch or "", wiring, optics)
    return BuiltFabric(wiring=wiring, optics=optics, power_w=power_w, power_words=words)


def _power(switch: str, wiring: Counted, optics: Optics) -> tuple[float | None, str]:
    """Return the power of switches and cable ends, and what it is of [W]."""
    each_w, _ = switch_power_w(switch)
    if each_w is None or optics.power_w is None:
        what = switch if each_w is None else "its transceivers"
        return None, f"the power of {what} is not in the catalogue"
    ends = f"cable ends of {format_quantity(optics.power_w, 'w')}"
    words = f"{wiring.switches:,} {switch} of {format_quantity(each_w, 'w')} and {ends}"
    return wiring.switches * each_w + optics.power_w, words


def priced_parts(cluster: Cluster, built: BuiltFabric) -> tuple[PricedPart, ...]:
    """Return the bill of materials of a fabric, NICs included, with the prices that are stated.

    Parameters
    ----------
    cluster
        What there is, with its prices or without.
    built
        Its fabric.
    """
    bought = _bought(cluster)
    switch = cluster.fabric.switch or ""
    return (
        PricedPart(
            part="switch", item=switch, count=built.wiring.switches, unit_usd=bought.switches.get(switch)
        ),
        priced_nics(cluster),
        *_transceivers(built.optics, bought.transceivers),
        *(
            PricedPart(part="cable", item=str(kind), count=count, unit_usd=bought.cables.get(kind))
            for kind, count in built.optics.cables.items()
        ),
    )


def _bought(cluster: Cluster) -> Hardware:
    hardware = None if cluster.prices is None else cluster.prices.hardware
    return hardware or Hardware(lifetime_s=1.0)


def priced_nics(cluster: Cluster) -> PricedPart:
    """Return the NICs: apart where they have a price of their own, else part of a node that has one.

    Parameters
    ----------
    cluster
        What there is, with its prices or without.
    """
    bought = _bought(cluster)
    name = cluster.nic or "NIC"
    unit = bought.nics.get(name)
    rented = cluster.prices is not None and cluster.prices.gpu_usd_per_s is not None
    in_node = rented or bought.node_usd is not None or cluster.system in bought.systems
    return PricedPart(
        part="NIC",
        item=name,
        count=sum(each.nodes * each.nics for each in cluster.parts) or cluster.nodes * cluster.nics_per_node,
        unit_usd=unit,
        included="node" if unit is None and in_node else None,
    )


def _transceivers(optics: Optics, prices: Mapping[str, float]) -> Iterator[PricedPart]:
    """Yield the transceivers by name; half of a twin-port one costs half of it, as it draws half."""
    if not optics.by_module and optics.modules:
        yield PricedPart(part="transceiver", item="not in the catalogue", count=optics.modules)
    for item, count in optics.by_module.items():
        halved = item.startswith(_HALF)
        name = item.removeprefix(_HALF)
        if "power_w" not in catalog.cable(name).figures:
            continue  # the end of an active cable, paid with it
        price = prices.get(name)
        unit = price / 2 if halved and price is not None else price
        yield PricedPart(part="transceiver", item=item, count=count, unit_usd=unit)
