"""Constants fitted on measured steps: sources weigh alike, errors are logarithms, outliers count less.

References
----------
P. J. Huber, Robust Estimation of a Location Parameter, 1964 (soft l1 is its smooth form).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from linkwise.calibrate.interval_class import interval_class, model_kind
from linkwise.calibrate.measured import MeasuredRun, group_by_source
from linkwise.calibrate.run_table import Candidates, candidates_of, choose
from linkwise.estimate.constants import constant_values, values_without

if TYPE_CHECKING:
    from linkwise.estimate.term import Floats

OUTLIER_SCALE = 0.1
"""Logarithmic error beyond which a row counts less."""
PULL_TO_START = 0.10
"""Weight of one unit of the logarithm of a constant away from its start."""
SINGLE_NODE_ROWS_PER_SHAPE = 1_080 / 162
"""VTRAIN-S composes 1,080 rows of 162 step times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeConstant:
    """A constant that is fitted, with the range a reader would believe."""

    name: str
    start: float
    low: float
    high: float


def free_constants() -> tuple[FreeConstant, ...]:
    """Return the constants marked ``fit`` in `constants.json`."""
    text = files("linkwise.estimate").joinpath("constants.json").read_text(encoding="utf-8")
    return tuple(
        FreeConstant(
            name=name, start=entry.get("start", entry["value"]), low=entry["low"], high=entry["high"]
        )
        for name, entry in json.loads(text).items()
        if entry.get("fit")
    )


def source_weights(runs: Sequence[MeasuredRun]) -> Floats:
    """Return the weight of each run: every source counts alike, small ones a little less.

    Notes
    -----
    A source of n rows gets the total weight n / (n + 4), shared evenly: one row alone weighs a fifth of a
    large source.
    """
    weights = np.zeros(len(runs))
    for positions in group_by_source(runs).values():
        count = len(positions)
        weights[positions] = count / (count + 4.0) / count
    return weights


def fit(
    runs: Sequence[MeasuredRun],
    *,
    start: Mapping[str, float] | None = None,
    rounds: int = 3,
    free: Sequence[FreeConstant] | None = None,
) -> dict[str, float]:
    """Return constants that fit the runs; those not free keep their shipped value.

    Parameters
    ----------
    runs
        Measured runs.
    start
        Constants to begin from, the shipped ones by default.
    rounds
        How often blanks are filled again with the constants found [1].
    """
    from scipy.optimize import least_squares

    free = free_constants() if free is None else free
    constants = dict(constant_values() if start is None else start)
    every = candidates_of(runs)
    measured = np.array([run.step_time_s for run in runs])
    weights = np.sqrt(source_weights(runs))
    low, high = (np.log([getattr(one, side) for one in free]) for side in ("low", "high"))
    anchor = np.log([one.start for one in free])
    for _ in range(rounds):
        chosen = every.take(choose(every, constants, len(runs)))

        def residuals(logs: Floats, chosen: Candidates = chosen) -> Floats:
            trial = {**constants, **{one.name: float(np.exp(x)) for one, x in zip(free, logs, strict=True)}}
            error = np.log(chosen.evaluate(trial)["step_time_s"] / measured)
            return np.concatenate([_soft(error) * weights, PULL_TO_START * (logs - anchor)])

        first = np.clip(np.log([constants[one.name] for one in free]), low + 1e-6, high - 1e-6)
        solution = least_squares(residuals, first, bounds=(low, high), x_scale=0.1, max_nfev=25)
        constants.update({one.name: float(np.exp(x)) for one, x in zip(free, solution.x, strict=True)})
    return constants


def _soft(error: Floats) -> Floats:
    """Return the signed root of the soft l1 loss of an error."""
    scaled = error / OUTLIER_SCALE
    return np.sign(error) * OUTLIER_SCALE * np.sqrt(2.0 * (np.sqrt(1.0 + scaled * scaled) - 1.0))


def predict(runs: Sequence[MeasuredRun], constants: Mapping[str, float]) -> Floats:
    """Return the predicted step time of every run [s]."""
    every = candidates_of(runs)
    return every.take(choose(every, constants, len(runs))).evaluate(constants)["step_time_s"]


def is_held_out(run: MeasuredRun) -> bool:
    """Return whether a run belongs to the third of the groups that the shipped constants have not seen.

    Notes
    -----
    A group is a publisher's runs of one model on one GPU; its name's checksum (CRC-32) decides, so the part
    is stated, cannot be chosen by how a row fits, and stays the same as rows are added.
    """
    name = f"{publisher(run.source)}/{run.model_name}/{run.gpu_name}"
    return crc32(name.encode()) % 3 == 0


def publisher(source: str) -> str:
    """Return the publisher of a source: both vTrain parts are one."""
    return source.partition("-")[0]


def leave_one_source_out(runs: Sequence[MeasuredRun], start: Mapping[str, float] | None = None) -> Floats:
    """Return the step time of every run as predicted by a fit that has not seen its publisher [s].

    Parameters
    ----------
    runs
        Measured runs.
    start
        Constants to begin from; the shipped ones, without what was read off the publisher's runs, by default.
    """
    predicted = np.full(len(runs), np.nan)
    names = np.array([publisher(run.source) for run in runs])
    for name in dict.fromkeys(names):
        inside = [int(place) for place in np.flatnonzero(names == name)]
        rest = [run for run, other in zip(runs, names, strict=True) if other != name]
        constants = fit(rest, start=values_without(name) if start is None else start, rounds=1)
        predicted[inside] = predict([runs[i] for i in inside], constants)
    return predicted


INTERVAL_SHARE = 0.80
"""Share of measurements the stated interval is meant to hold."""
BORROWED_ROWS = 10.0
"""Rows a class borrows from all the others, so that a small class does not claim more than it can know."""
LEAST_ROWS = 20
"""A class with fewer rows takes the interval of its family, or of all."""


def fitted_intervals(runs: Sequence[MeasuredRun], left_out_s: Floats) -> dict[str, dict[str, object]]:
    """Return (low, high) factors on the predicted time, by class, family and over all.

    Parameters
    ----------
    runs
        Measured runs.
    left_out_s : (runs,)
        Predictions of fits that have not seen the run's publisher [s].

    Notes
    -----
    The half-width is the weighted quantile of |log(measured / predicted)|, alike on both sides: a bias of
    left-out fits is not one of the fit that is shipped. Inside a class its rows count one each, beside
    `BORROWED_ROWS` rows' worth of all sources.
    """
    size = np.abs(np.log(np.array([run.step_time_s for run in runs]) / left_out_s))
    weights = source_weights(runs)
    every = BORROWED_ROWS * weights / np.sum(weights)
    names: dict[str, list[int]] = {"all": list(range(len(runs)))}
    for position, run in enumerate(runs):
        for name in (run.framework.family, f"{run.framework.family}/{model_kind(run)}", interval_class(run)):
            names.setdefault(name, []).append(position)
    table: dict[str, dict[str, object]] = {}
    for name, rows in names.items():
        if len(rows) < LEAST_ROWS and name != "all":
            continue
        own = every.copy()
        own[rows] += 1.0
        half = _quantile(size, own, INTERVAL_SHARE)
        table[name] = {
            "low": float(f"{np.exp(-half):.4g}"),
            "high": float(f"{np.exp(half):.4g}"),
            "rows": len(rows),
            "basis": "fitted",
            "source": "measured over predicted time of runs left out of the fit, tools/fit.py",
        }
    return table


def _quantile(values: Floats, weights: Floats, quantile: float) -> float:
    order = np.argsort(values)
    share = (np.cumsum(weights[order]) - 0.5 * weights[order]) / np.sum(weights)
    return float(np.interp(quantile, share, values[order]))
