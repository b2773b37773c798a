"""Transceivers of a fabric, and what its switches and transceivers draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from linkwise import catalog
from linkwise.cluster.cluster import CableKind, Fabric
from linkwise.cluster.prices import Prices
from linkwise.errors import NotKnown
from linkwise.units import format_quantity

__all__ = ["Cables", "Optics", "electricity_usd_per_year", "optics_of", "optics_of_fabric", "switch_power_w"]

_YEAR_S = 365.25 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Optics:
    """Cables of a fabric by kind, and the transceivers of those that are optical.

    Parameters
    ----------
    ends
        Ends of cables: two for each.
    modules
        Pieces that are plugged in; one with two ports serves two ends.
    power_w
        Power at the ends of all cables, or ``None`` where the catalogue has none for the link [W].
    words
        What they are, in a sentence for a reader.
    by_module
        Pieces by their name in the catalogue; empty where it has none for the link.
    cables
        Cables by kind as they are sold.
    node_cables, switch_cables
        What cables to nodes are sold as, and those between switches. At 200 Gbit/s optical ones are active:
        the catalogue has no transceiver of that rate.
    """

    ends: int
    modules: int
    power_w: float | None
    words: str
    by_module: Mapping[str, int] = field(default_factory=dict, hash=False)
    cables: Mapping[CableKind, int] = field(default_factory=dict, hash=False)
    node_cables: CableKind = CableKind.OPTICAL
    switch_cables: CableKind = CableKind.OPTICAL


@dataclass(frozen=True, slots=True, kw_only=True)
class _Module:
    """A transceiver: how many links it serves, its power [W], and whether it is bought without a cable."""

    name: str
    links: int
    power_w: float
    pluggable: bool = True


class Cables(Protocol):
    """What transceivers are counted from."""

    @property
    def node_cables(self) -> int:
        """Return the cables between nodes and switches."""

    @property
    def switch_cables(self) -> int:
        """Return the cables between switches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ends:
    """Ends of cables of one kind, at switches and at NICs."""

    at_switches: int
    at_nodes: int

    @property
    def all(self) -> int:
        return self.at_switches + self.at_nodes


def optics_of(
    wiring: Cables,
    *,
    switch: str,
    link: str,
    node_cables: CableKind = CableKind.OPTICAL,
    switch_cables: CableKind = CableKind.OPTICAL,
) -> Optics:
    """Return the cables by kind, and the transceivers at both ends of every optical one.

    Parameters
    ----------
    wiring
        How the switches are joined, or how many cables there are.
    switch, link
        Names in the catalogue.
    node_cables, switch_cables
        What cables between nodes and leaves are, and those between switches.

    Notes
    -----
    Switches take twin-port modules where they are InfiniBand of 400 Gbit/s and more or their ports are split
    in two, single-port ones elsewhere; NICs take single-port ones (NVIDIA, 400 and 800 Gbit/s cabling
    guides). The ends of an active optical cable are taken to draw what those transceivers do.
    """
    ends = {kind: _ends(wiring, kind, node_cables, switch_cables) for kind in CableKind}
    modules = _modules(switch, link)
    lit = _unknown_optics(ends, link) if modules is None else _lit_optics(ends, modules)
    copper_w, copper_words = _copper(ends[CableKind.DAC])
    to_nodes, between = _sold_as(node_cables, modules), _sold_as(switch_cables, modules)
    cables = dict.fromkeys((to_nodes, between), 0)
    cables[to_nodes] += wiring.node_cables
    cables[between] += wiring.switch_cables
    return replace(
        lit,
        ends=sum(each.all for each in ends.values()),
        power_w=None if lit.power_w is None else lit.power_w + copper_w,
        words="optics: " + "; ".join(word for word in (lit.words, copper_words) if word),
        cables={kind: count for kind, count in cables.items() if count},
        node_cables=to_nodes,
        switch_cables=between,
    )


def _unknown_optics(ends: Mapping[CableKind, _Ends], link: str) -> Optics:
    """Return one module for each optical end where the catalogue has none for the link."""
    optical, active = ends[CableKind.OPTICAL].all, ends[CableKind.AOC].all
    if not optical + active:
        return Optics(ends=0, modules=0, power_w=0.0, words="")
    words = f"the catalogue has no transceiver for {link}; one for each end, their power is not known"
    return Optics(ends=0, modules=optical, power_w=None, words=words)


def _lit_optics(ends: Mapping[CableKind, _Ends], modules: tuple[_Module, _Module]) -> Optics:
    """Return the modules of optical cables, and the power of all ends that are lit."""
    above, below = modules
    optical, active = ends[CableKind.OPTICAL], ends[CableKind.AOC]
    pieces = -(-optical.at_switches // above.links)
    by_module = {above.name: pieces} if pieces else {}
    if optical.at_nodes:
        by_module[below.name] = by_module.get(below.name, 0) + optical.at_nodes
    lit_w = (pieces + -(-active.at_switches // above.links)) * above.power_w
    lit_w += (optical.at_nodes + active.at_nodes) * below.power_w
    return Optics(
        ends=0,
        modules=pieces + optical.at_nodes,
        power_w=lit_w,
        words=_lit_words(ends, modules),
        by_module=by_module,
    )


def _sold_as(kind: CableKind, modules: tuple[_Module, _Module] | None) -> CableKind:
    """Return what a cable is sold as: active where the catalogue has no transceiver of its rate alone."""
    active = modules is not None and not modules[0].pluggable
    return CableKind.AOC if active and kind is CableKind.OPTICAL else kind


def optics_of_fabric(fabric: Fabric, wiring: Cables) -> Optics:
    """Return the cables and transceivers of a fabric whose link and switch are known.

    Parameters
    ----------
    fabric
        What its cables are.
    wiring
        How its switches are joined.

    Raises
    ------
    NotKnown
        If link or switch is not known.
    """
    if fabric.link is None or fabric.switch is None:
        raise NotKnown("cables are of a link and a switch; give the fabric both")
    return optics_of(
        wiring,
        switch=fabric.switch,
        link=fabric.link.name,
        node_cables=fabric.node_cables,
        switch_cables=fabric.switch_cables,
    )


def _ends(wiring: Cables, kind: CableKind, node_cables: CableKind, switch_cables: CableKind) -> _Ends:
    """Return the ends of the cables of one kind."""
    at_nodes = wiring.node_cables if kind is node_cables else 0
    between = 2 * wiring.switch_cables if kind is switch_cables else 0
    return _Ends(at_switches=at_nodes + between, at_nodes=at_nodes)


def _copper(ends: _Ends) -> tuple[float, str]:
    """Return the power of the ends of copper cables, and what it is in words [W]."""
    if not ends.all:
        return 0.0, ""
    each_w = catalog.cable("dac-400g-passive-3m").figure("power_per_end_w").value
    return ends.all * each_w, f"{format_quantity(each_w, 'w')} at each end of a copper cable"


def _lit_words(ends: Mapping[CableKind, _Ends], modules: tuple[_Module, _Module]) -> str:
    above, below = modules
    optical, active, copper = (ends[kind] for kind in (CableKind.OPTICAL, CableKind.AOC, CableKind.DAC))
    others = bool(active.all or copper.all)
    words = []
    if optical.all:
        what = "optical cables" if others else "every cable optical"
        at_nodes = f", {_said(below)} at NICs" if optical.at_nodes else ""
        fewer = "" if others else "; copper in a rack needs fewer"
        words.append(f"{what}; {_said(above)} at switches{at_nodes}{fewer}")
    if active.all:
        words.append(f"ends of active optical cables are taken to draw what {above.name} does for each link")
    return "; ".join(words)


def _modules(switch: str, link: str) -> tuple[_Module, _Module] | None:
    """Return the module at switches and that at NICs, or ``None`` where none is known."""
    box, rate = catalog.switch(switch), catalog.link(link).bytes_per_s
    gigabits = round(8 * rate / 1e9)
    twin = box.fabric == "infiniband" or box.port_bytes_per_s >= 2 * rate
    if gigabits == 200:
        cable = catalog.cable("aoc-200g-hdr-30m")
        end = _Module(
            name=cable.name, links=1, power_w=cable.figure("power_per_end_w").value, pluggable=False
        )
        return end, end
    if gigabits == 400:
        single = _module("osfp-400g-dr4-nic-side")
        return (_module("osfp-800g-2xdr4", links=2) if twin else single), single
    if gigabits == 800 and twin:
        pair = _module("osfp-1600g-2xdr4", links=2)
        # The catalogue has no single-port module of this rate: half of the twin-port one is assumed.
        return pair, _Module(name=f"half of {pair.name}", links=1, power_w=pair.power_w / 2)
    if gigabits == 800:
        single = _module("osfp-800g-2xdr4")
        return single, single
    return None


def _module(name: str, *, links: int = 1) -> _Module:
    return _Module(name=name, links=links, power_w=catalog.cable(name).figure("power_w").value)


def _said(module: _Module) -> str:
    ports = ", two links each" if module.links == 2 else ""
    return f"{module.name} ({format_quantity(module.power_w, 'w')}{ports})"


def switch_power_w(switch: str) -> tuple[float | None, str]:
    """Return the power of one switch without optics, and what it is, in words [W].

    Parameters
    ----------
    switch
        Name in the catalogue; its typical power, else its greatest, else ``None``.
    """
    box = catalog.switch(switch)
    if box.power_w is not None:
        return box.power_w, f"{format_quantity(box.power_w, 'w')} of a {box.name}: typical, without optics"
    if "power_max_w" in box.figures:
        most = box.figure("power_max_w").value
        return most, f"{format_quantity(most, 'w')} of a {box.name}: its greatest; typical power is not known"
    return None, f"that of a {box.name} is not in the catalogue"


def electricity_usd_per_year(power_w: float, prices: Prices) -> float | None:
    """Return what the power of a fabric costs in a year of 365.25 days; ``None`` where it has no price [USD].

    Parameters
    ----------
    power_w
        Of switches and transceivers, all the year [W].
    prices
        With the price of electricity at the meter; a PUE that is not stated counts as 1.
    """
    if prices.electricity_usd_per_j is None:
        return None
    return power_w * (prices.pue or 1.0) * prices.electricity_usd_per_j * _YEAR_S
