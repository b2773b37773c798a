"""The value `Prices`: what a cluster costs, bought or rented, fed and looked after, and when that was so."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from linkwise.cluster.cluster import CableKind

__all__ = [
    "STALE_DAYS",
    "Checkpoints",
    "Hardware",
    "Part",
    "Prices",
    "Staff",
    "age_warning",
]

STALE_DAYS = 180
"""Prices older than this are warned about [days]."""


class Part(StrEnum):
    """What fails, as far as times between failures are stated for it."""

    GPU = "gpu"
    NODE = "node"
    NIC = "nic"
    SWITCH = "switch"
    CABLE = "cable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """Purchase prices by name in the catalogue, and how they become a cost per time.

    Parameters
    ----------
    lifetime_s
        Time over which what was bought is written off [s].
    residual_fraction
        What it is still worth then, of its price [1].
    support_fraction_per_s
        Support and maintenance, of the price [1/s]; ``None`` where not stated.
    spares_fraction
        Spare parts that are bought with it, of the price [1]; ``None`` where not stated.
    systems
        A system as it is sold [USD]: a server, or a rack of several nodes.
    node_usd
        A node whose system has no price of its own [USD].
    gpus
        A GPU, where its node has no price [USD].
    nics, switches, transceivers
        One of each [USD].
    cables
        One cable by kind, without transceivers [USD].
    """

    lifetime_s: float
    residual_fraction: float = 0.0
    support_fraction_per_s: float | None = None
    spares_fraction: float | None = None
    systems: Mapping[str, float] = field(default_factory=dict, hash=False)
    node_usd: float | None = None
    gpus: Mapping[str, float] = field(default_factory=dict, hash=False)
    nics: Mapping[str, float] = field(default_factory=dict, hash=False)
    switches: Mapping[str, float] = field(default_factory=dict, hash=False)
    transceivers: Mapping[str, float] = field(default_factory=dict, hash=False)
    cables: Mapping[CableKind, float] = field(default_factory=dict, hash=False)

    @property
    def has_nodes(self) -> bool:
        """Return whether nodes or GPUs are priced, and not the fabric alone."""
        return bool(self.systems or self.gpus) or self.node_usd is not None

    @property
    def has_fabric(self) -> bool:
        """Return whether parts of a fabric are priced."""
        return bool(self.nics or self.switches or self.transceivers or self.cables)


@dataclass(frozen=True, slots=True, kw_only=True)
class Staff:
    """People who run and tune a cluster.

    Parameters
    ----------
    usd_per_s
        What an hour of theirs costs [USD/s].
    share_per_1000_gpus
        Their working time for 1,000 GPUs by family of fabric, ``infiniband roce ethernet efa slingshot``, and
        ``none`` for a cluster without one [s/s].
    """

    usd_per_s: float
    share_per_1000_gpus: Mapping[str, float] = field(hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """How a run guards against interruptions.

    Parameters
    ----------
    write_s
        Time that training stands still for one checkpoint [s].
    interval_s
        Time of training from one to the next [s]; ``None`` for the best one.
    """

    write_s: float
    interval_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What the owner of a cluster pays.

    Parameters
    ----------
    date
        The day they were true.
    gpu_usd_per_s
        One GPU, rented or amortised, with all that is not stated apart [USD/s]; ``None`` where not stated.
    electricity_usd_per_j
        Electricity that is paid beside it, at the meter [USD/J]; ``None`` where not stated.
    pue
        Power usage effectiveness: energy at the meter over energy of the machines, at least 1 [1]; ``None``
        where not stated.
    cooling_usd_per_j
        Cooling that is paid apart, per energy of the machines [USD/J]; ``None`` where not stated.
    hardware
        What is bought rather than rented.
    staff
        Who looks after it.
    mtbf_s
        Mean time between failures of one part, those that interrupt training [s].
    restart_s
        From an interruption until training goes on where the last checkpoint was [s].
    checkpoints
        How often they are written.
    path
        The file they were read in, for messages.
    """

    date: dt.date
    gpu_usd_per_s: float | None = None
    electricity_usd_per_j: float | None = None
    pue: float | None = None
    cooling_usd_per_j: float | None = None
    hardware: Hardware | None = None
    staff: Staff | None = None
    mtbf_s: Mapping[Part, float] = field(default_factory=dict, hash=False)
    restart_s: float | None = None
    checkpoints: Checkpoints | None = None
    path: str | None = None


def age_warning(prices: Prices, *, today: dt.date) -> str | None:
    """Return what to say of prices that are old, or of a day that is not yet; ``None`` of all others.

    Parameters
    ----------
    prices
        The prices.
    today
        The day on which they are used.
    """
    where = "prices" if prices.path is None else f"{prices.path}: the prices"
    days = (today - prices.date).days
    if days > STALE_DAYS:
        return f"{where} are of {prices.date}, {days} days old; look them up again and change the date"
    # A day of leeway: it may be tomorrow already where they were written.
    if days < -1:
        return f"{where} are of {prices.date}, a day that is not yet; write the day they were looked up"
    return None
