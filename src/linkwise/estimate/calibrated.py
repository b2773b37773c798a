"""What a site's calibration moves in an estimate: which columns each factor scales."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from linkwise.cluster.calibration import FACTORS

if TYPE_CHECKING:
    from linkwise.cluster.calibration import Calibration
    from linkwise.estimate.term import Floats

__all__ = [
    "NO_LATENCY_FACTORS",
    "SHARES",
    "calibrated_columns",
    "calibrated_factors",
    "columns_of",
    "speed_of",
]

NO_LATENCY_FACTORS: Mapping[str, float] = {"nvlink_latency_factor": 1.0, "network_latency_factor": 1.0}
"""Columns of the latencies of collectives as modelled."""

_GPU = ("rate_factor", "memory_bytes_per_s")
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "gpu_speed_16_bit": _GPU,
    "gpu_speed_8_bit": _GPU,
    "host_time": ("host_layer_s", "mixture_layer_s"),
    "exposed_share": ("tensor_exposed_fraction", "gradient_exposed_fraction", "expert_exposed_fraction"),
    "nvlink_latency": ("nvlink_latency_factor", "collective_latency_s"),
    "nvlink_bandwidth": ("nvlink_bytes_per_s",),
    "network_latency": ("network_latency_factor",),
    "network_bandwidth": ("network_contention",),
}
SHARES = _COLUMNS["exposed_share"]
"""Columns that are shares of a whole and stay so."""


def speed_of(precision: str) -> str:
    """Return the factor on the speed of a GPU at a precision.

    Parameters
    ----------
    precision
        Number format of the matrix products.
    """
    return "gpu_speed_8_bit" if precision in ("fp8", "nvfp4") else "gpu_speed_16_bit"


def columns_of(name: str) -> tuple[str, ...]:
    """Return the columns that a factor scales.

    Parameters
    ----------
    name
        A key of `linkwise.cluster.calibration.FACTORS`.
    """
    return _COLUMNS[name]


def calibrated_factors(calibration: Calibration | None, *, precision: str) -> dict[str, float]:
    """Return the factors that a job of a precision sees.

    Parameters
    ----------
    calibration
        Of the cluster; ``None`` for none.
    precision
        Number format of the matrix products.
    """
    if calibration is None:
        return {}
    others = {"gpu_speed_16_bit", "gpu_speed_8_bit"} - {speed_of(precision)}
    fitted = {each.name for each in calibration.factors}
    return {name: calibration.factor(name) for name in FACTORS if name in fitted and name not in others}


def calibrated_columns(
    columns: Mapping[str, Floats], factors: Mapping[str, float | Floats]
) -> dict[str, Floats]:
    """Return columns with factors on them; shares stay at most 1.

    Parameters
    ----------
    columns
        Every column that a factor scales, and others.
    factors
        By name, one number or one for each row [1].
    """
    moved = dict(columns)
    for name, factor in factors.items():
        for column in _COLUMNS[name]:
            value = moved[column] * factor
            moved[column] = np.minimum(value, np.maximum(columns[column], 1.0)) if column in SHARES else value
    return moved
