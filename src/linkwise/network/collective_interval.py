"""The stated 90 % interval of the time of a collective: factors on the prediction, by reach and size."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.network.setting import Setting

__all__ = ["SIZE_EDGES_BYTES", "interval_factors", "measured_gpus", "reach_of"]

Floats = NDArray[np.float64]

SIZE_EDGES_BYTES = (float(2**20), float(2**24), float(2**28))
"""Sizes at which one class ends and the next begins [bytes]."""


def reach_of(setting: Setting) -> str:
    """Return ``one_domain`` or ``domains``: whether the collective crosses the network."""
    return "one_domain" if setting.group.domains == 1 else "domains"


def interval_factors(
    reach: str, size_bytes: Floats, *, operation: str | None = None
) -> tuple[Floats, Floats]:
    """Return by what the ends of the interval differ from the predicted times, (low, high), (rows,) each [1].

    Parameters
    ----------
    reach
        As `reach_of` gives it.
    size_bytes
        Bytes of the full buffer (rows,) [bytes].
    operation
        The collective; those with few measured rows, and ``None``, have what all together have.

    Notes
    -----
    The 5th and the 95th percentile of measured over predicted time of published runs whose source the fitted
    constants had not seen (tools/fit_collectives.py). Reality is late more often than early.
    """
    table = _table()
    low, high = table.get((operation, reach), table[None, reach])
    place = np.searchsorted(SIZE_EDGES_BYTES, size_bytes, side="right")
    return low[place], high[place]


def measured_gpus(operation: str, reach: str) -> int:
    """Return the GPUs of the largest healthy run that was measured; 0 where there is none [1].

    Parameters
    ----------
    operation
        One of `linkwise.network.setting.OPERATIONS`.
    reach
        As `reach_of` gives it.
    """
    measured: Mapping[str, Mapping[str, int]] = _stated()["measured_gpus"]
    return measured.get(operation, {}).get(reach, 0)


@cache
def _stated() -> Mapping[str, Any]:
    text = files("linkwise.network").joinpath("collective_intervals.json").read_text(encoding="utf-8")
    stated: Mapping[str, Any] = json.loads(text)
    return stated


@cache
def _table() -> Mapping[tuple[str | None, str], tuple[Floats, Floats]]:
    stated = _stated()
    return {
        (operation, reach): (np.array(ends["low"]), np.array(ends["high"]))
        for operation, by_reach in ((None, stated["factors"]), *stated["operations"].items())
        for reach, ends in by_reach.items()
    }
