"""The value `Prices`: what an hour of a GPU and its electricity cost, and when that was so."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

__all__ = ["STALE_DAYS", "Prices", "age_warning"]

STALE_DAYS = 180
"""Prices older than this are warned about [days]."""


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
    path
        The file they were read in, for messages.
    """

    date: dt.date
    gpu_usd_per_s: float | None = None
    electricity_usd_per_j: float | None = None
    pue: float | None = None
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
