"""Transceivers of a fabric, and what its switches and transceivers draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from linkwise import catalog
from linkwise.cluster.prices import Prices
from linkwise.units import format_quantity

__all__ = ["Cables", "Optics", "electricity_usd_per_year", "optics_of", "switch_power_w"]

_YEAR_S = 365.25 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Optics:
    """Transceivers of a fabric whose cables are all optical.

    Parameters
    ----------
    ends
        Ends of cables: two for each.
    modules
        Pieces that are plugged in; one with two ports serves two ends.
    power_w
        Power of all of them, or ``None`` where the catalogue has none for the link [W].
    words
        What they are, in a sentence for a reader.
    by_module
        Pieces by their name in the catalogue; empty where it has none for the link.
    """

    ends: int
    modules: int
    power_w: float | None
    words: str
    by_module: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Module:
    """A transceiver: how many links it serves, and its power [W]."""

    name: str
    links: int
    power_w: float


class Cables(Protocol):
    """What transceivers are counted from."""

    @property
    def node_cables(self) -> int:
        """Return the cables between nodes and switches."""

    @property
    def switch_cables(self) -> int:
        """Return the cables between switches."""


def optics_of(wiring: Cables, *, switch: str, link: str) -> Optics:
    """Return the transceivers at both ends of every cable.

    Parameters
    ----------
    wiring
        How the switches are joined, or how many cables there are.
    switch, link
        Names in the catalogue.

    Notes
    -----
    Switches take twin-port modules where they are InfiniBand of 400 Gbit/s and more or their ports are split
    in two, single-port ones elsewhere; NICs take single-port ones (NVIDIA, 400 and 800 Gbit/s cabling
    guides).
    """
    at_nodes = wiring.node_cables
    at_switches = at_nodes + 2 * wiring.switch_cables
    modules = _modules(switch, link)
    if modules is None:
        words = (
            f"optics: the catalogue has no transceiver for {link}; one for each end, their power is not known"
        )
        ends = at_nodes + at_switches
        return Optics(ends=ends, modules=ends, power_w=None, words=words)
    above, below = modules
    pieces = -(-at_switches // above.links)
    words = (
        f"optics: every cable optical; {_said(above)} at switches, {_said(below)} at NICs; copper in a rack "
        "needs fewer"
    )
    by_module = {above.name: pieces}
    by_module[below.name] = by_module.get(below.name, 0) + at_nodes
    return Optics(
        ends=at_nodes + at_switches,
        by_module=by_module,
        modules=pieces + at_nodes,
        power_w=pieces * above.power_w + at_nodes * below.power_w,
        words=words,
    )


def _modules(switch: str, link: str) -> tuple[_Module, _Module] | None:
    """Return the module at switches and that at NICs, or ``None`` where none is known."""
    box, rate = catalog.switch(switch), catalog.link(link).bytes_per_s
    gigabits = round(8 * rate / 1e9)
    twin = box.fabric == "infiniband" or box.port_bytes_per_s >= 2 * rate
    if gigabits == 200:
        cable = catalog.cable("aoc-200g-hdr-30m")
        end = _Module(name=cable.name, links=1, power_w=cable.figure("power_per_end_w").value)
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
