"""Constants of the time of collectives, each with unit, basis and source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from linkwise.figures import Basis, Figure

__all__ = ["collective_constants", "collective_values", "in_si"]

_SI: Mapping[str, tuple[str, float]] = {
    "1": ("1", 1.0),
    "us": ("s", 1e-6),
    "us^0.5": ("s^0.5", 1e-3),
    "GB/s": ("B/s", 1e9),
    "KiB": ("B", 1024.0),
    "MB": ("B", 1e6),
}
"""Units of the data file with what they are in SI."""


@cache
def collective_constants() -> Mapping[str, Figure]:
    """Return every constant by name in SI units, from `collective_constants.json`."""
    text = files("linkwise.network").joinpath("collective_constants.json").read_text(encoding="utf-8")
    return {
        name: Figure(
            value=in_si(entry["value"], entry["unit"]),
            unit=_SI[entry["unit"]][0],
            basis=Basis(entry["basis"]),
            source=entry["source"],
            layer="shipped fit",
        )
        for name, entry in json.loads(text).items()
    }


@cache
def collective_values() -> Mapping[str, float]:
    """Return the value of every constant, SI."""
    return {name: figure.value for name, figure in collective_constants().items()}


def in_si(value: float, unit: str) -> float:
    """Return a value of the data file in SI units.

    Parameters
    ----------
    value
        The number as written.
    unit
        Its unit as written.
    """
    return value * _SI[unit][1]
