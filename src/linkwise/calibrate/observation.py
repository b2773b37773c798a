"""What was measured on a site, beside a prediction that a calibration's factors move."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from linkwise.estimate.calibrated import calibrated_columns, columns_of, speed_of
from linkwise.estimate.columns import Evaluation, Floats, Table
from linkwise.estimate.terms import TERMS
from linkwise.network.collective_interval import SIZE_EDGES_BYTES, interval_factors, reach_of
from linkwise.network.collective_time import collective_times
from linkwise.network.link_factors import LinkFactors

if TYPE_CHECKING:
    from linkwise.network.setting import Setting

__all__ = ["Observation", "collective_observation", "step_factors", "step_observation"]

Predict = Callable[[Mapping[str, float]], Floats]

STEP_NOISE = 0.06
"""Spread of the logarithm of a step time that no factor explains, before a site shows its own: releases and
options of a framework that no description holds (docs/decisions/0018) [1]."""
LARGE_NOISE = 0.02
"""The same of a collective of 256 MiB and more: repeats of published runs differ by up to 4 % [1]."""
_WIDTH_OF_90 = 2.0 * 1.645
_LOCAL = ("nvlink_latency", "nvlink_bandwidth")
_ACROSS = ("network_latency", "network_bandwidth")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """What was measured, and what is predicted for it.

    Attributes
    ----------
    label
        What it is, for a reader.
    unit
        What is left out together when predictions are checked: a file, a layout.
    kind
        ``collective`` or ``step``.
    measured_s
        Times measured (rows,) [s]; empty for what has not been measured yet.
    noise
        Standard deviation of the logarithm of each that no factor explains (rows,) [1].
    predict
        From factors by name to the times predicted (rows,) [s].
    factors
        Names of the factors that can move it.
    """

    label: str
    unit: str
    kind: str
    measured_s: Floats
    noise: Floats
    predict: Predict
    factors: tuple[str, ...]


def collective_observation(
    label: str,
    operation: str,
    setting: Setting,
    size_bytes: Floats,
    *,
    measured_s: Floats | None = None,
    unit: str | None = None,
) -> Observation:
    """Return a run of a collective over sizes.

    Parameters
    ----------
    label, unit
        As `Observation` has them; the unit is the label by default.
    operation
        One of `linkwise.network.setting.OPERATIONS`.
    setting
        Where it ran.
    size_bytes
        Bytes of the full buffer (rows,) [bytes].
    measured_s
        What was measured (rows,) [s]; ``None`` for a run still to be made.

    Notes
    -----
    Sizes of one class (under 1 MiB, to 16 MiB, to 256 MiB, above) err together, so that all of a class count
    as one; how much is read off the shipped intervals, which come from other sites. What 256 MiB and more
    take is the rate of the links, which a site tells better than that.
    """

    def predict(factors: Mapping[str, float]) -> Floats:
        links = LinkFactors(
            local_latency=factors.get("nvlink_latency", 1.0),
            local_bandwidth=factors.get("nvlink_bandwidth", 1.0),
            network_latency=factors.get("network_latency", 1.0),
            network_bandwidth=factors.get("network_bandwidth", 1.0),
        )
        return collective_times(operation, replace(setting, factors=links), size_bytes).time_s

    return Observation(
        label=label,
        unit=unit or label,
        kind="collective",
        measured_s=np.empty(0) if measured_s is None else measured_s,
        noise=_class_noise(setting, size_bytes),
        predict=predict,
        factors=(*_LOCAL, *(_ACROSS if setting.group.domains > 1 else ())),
    )


def _class_noise(setting: Setting, size_bytes: Floats) -> Floats:
    low, high = interval_factors(reach_of(setting), size_bytes)
    place = np.searchsorted(SIZE_EDGES_BYTES, size_bytes, side="right")
    alike = np.bincount(place, minlength=len(SIZE_EDGES_BYTES) + 1)[place]
    spread = np.where(place == len(SIZE_EDGES_BYTES), LARGE_NOISE, np.log(high / low) / _WIDTH_OF_90)
    noise: Floats = spread * np.sqrt(alike)
    return noise


def step_factors(precision: str) -> tuple[str, ...]:
    """Return the factors that can move a training step.

    Parameters
    ----------
    precision
        Number format of the matrix products.
    """
    return (speed_of(precision), "host_time", "exposed_share", *_LOCAL, *_ACROSS)


def step_observation(
    label: str,
    columns: Mapping[str, Floats],
    *,
    precision: str,
    measured_s: float | None = None,
    terms: tuple[str, ...] = ("step_time_s",),
    noise: float = STEP_NOISE,
    unit: str | None = None,
) -> Observation:
    """Return a training step, or a part of one.

    Parameters
    ----------
    label, unit
        As `Observation` has them; the unit is the label by default.
    columns
        Everything the estimate of one layout reads, length one each.
    precision
        Number format of the matrix products.
    measured_s
        What was measured [s]; ``None`` for a layout still to be run.
    terms
        The terms whose sum was measured.
    noise
        As `Observation` has it [1].
    """
    names = step_factors(precision)

    def predict(factors: Mapping[str, float]) -> Floats:
        moved = calibrated_columns(columns, {name: factors[name] for name in names if name in factors})
        evaluation = Evaluation(Table(rows=1, fixed={}, varying=moved), TERMS)
        total = sum((evaluation[term] for term in terms), start=np.zeros(1))
        return np.maximum(total, 1e-12)

    return Observation(
        label=label,
        unit=unit or label,
        kind="step",
        measured_s=np.empty(0) if measured_s is None else np.array([measured_s]),
        noise=np.array([noise]),
        predict=predict,
        factors=tuple(name for name in names if all(column in columns for column in columns_of(name))),
    )
