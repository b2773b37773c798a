"""Constants of the time of collectives fitted on published runs, and intervals from sources left out.

Runs weigh alike, short ones less; errors are logarithms, and outliers count less.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from linkwise.calibrate.collective_runs import LEAST_BYTES, CollectiveRun
from linkwise.calibrate.collective_score import PredictedRun, predict_collectives, rule_of
from linkwise.network.collective_constants import collective_values, in_si
from linkwise.network.collective_interval import SIZE_EDGES_BYTES, reach_of

if TYPE_CHECKING:
    from linkwise.calibrate.fit import FreeConstant

__all__ = [
    "fit_collectives",
    "fitted_factors",
    "free_collective_constants",
    "leave_one_source_out",
    "measured_gpus_of",
    "operation_factors",
    "training_runs",
]

Floats = NDArray[np.float64]

OUTLIER_SCALE = 0.1
"""Logarithmic error beyond which a row counts less [1]."""
LEAST_FITTED_BYTES = float(2**16)
"""Smaller sizes are the latencies of LL, which are not fitted [bytes]."""
BORROWED_ROWS = 4.0
"""A run of so many rows has half the weight of a long one [1]."""
LEAST_INTERVAL_ROWS = 100
"""Rows from which an operation has intervals of its own [1]."""
LEAST_SIZE_ROWS = 10
"""Rows of a reach and size from which it has; with fewer the ends would be single rows [1]."""
PULL_TO_START = 0.05
"""Weight of one unit of the logarithm of a constant away from where it was read [1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Problem:
    """Runs cut down to the rows that are fitted, with the weight of each."""

    runs: tuple[CollectiveRun, ...]
    weights: Floats


def free_collective_constants() -> tuple[FreeConstant, ...]:
    """Return the constants marked ``fit`` in `collective_constants.json`, SI."""
    from linkwise.calibrate.fit import FreeConstant

    text = files("linkwise.network").joinpath("collective_constants.json").read_text(encoding="utf-8")
    return tuple(
        FreeConstant(name=name, **{end: in_si(entry[end], entry["unit"]) for end in ("start", "low", "high")})
        for name, entry in json.loads(text).items()
        if entry.get("fit")
    )


def training_runs(runs: Sequence[CollectiveRun]) -> tuple[CollectiveRun, ...]:
    """Return the healthy runs with a size of 1 MiB or more that no rule sets apart.

    Parameters
    ----------
    runs
        Runs of every status.
    """
    healthy = [run for run in runs if run.status == "healthy" and np.max(run.size_bytes) >= LEAST_BYTES]
    return tuple(one.run for one in predict_collectives(healthy) if rule_of(one) is None)


def fit_collectives(runs: Sequence[CollectiveRun]) -> dict[str, float]:
    """Return constants that fit the rows of 64 KiB and more; those not free keep their value, SI.

    Parameters
    ----------
    runs
        Runs to fit, as `training_runs` gives them.
    """
    from scipy.optimize import least_squares

    free, problem = free_collective_constants(), _problem(runs)
    known = dict(collective_values())
    anchor, low, high = (np.log([getattr(one, end) for one in free]) for end in ("start", "low", "high"))

    def trial(logs: Floats) -> dict[str, float]:
        return known | {one.name: float(np.exp(x)) for one, x in zip(free, logs, strict=True)}

    def residuals(logs: Floats) -> Floats:
        predicted = predict_collectives(problem.runs, constants=trial(logs))
        error = np.concatenate([np.log(one.time_s / one.run.time_s) for one in predicted])
        return np.concatenate([_soft(error) * problem.weights, PULL_TO_START * (logs - anchor)])

    solution = least_squares(residuals, anchor, bounds=(low, high), x_scale=0.1, max_nfev=8)
    return trial(solution.x)


def leave_one_source_out(runs: Sequence[CollectiveRun]) -> tuple[PredictedRun, ...]:
    """Return the healthy runs, each predicted with constants that have not seen its source.

    Parameters
    ----------
    runs
        Runs of every status.
    """
    from concurrent.futures import ProcessPoolExecutor

    seen = training_runs(runs)
    healthy = [run for run in runs if run.status == "healthy"]
    sources = sorted({run.source for run in healthy})
    kept = [tuple(run for run in seen if run.source != source) for source in sources]
    with ProcessPoolExecutor() as pool:
        fitted = dict(zip(sources, pool.map(fit_collectives, kept), strict=True))
    return tuple(one for run in healthy for one in predict_collectives([run], constants=fitted[run.source]))


def fitted_factors(predicted: Sequence[PredictedRun]) -> dict[str, dict[str, list[float]]]:
    """Return the ends of the 90 % interval by reach and size, measured over predicted time [1].

    Parameters
    ----------
    predicted
        Runs with predictions that have not seen them.
    """
    return {
        reach: _ends([one for one in predicted if reach_of(one.run.setting) == reach])
        for reach in ("one_domain", "domains")
    }


def operation_factors(predicted: Sequence[PredictedRun]) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Return the same by operation, for operations with `LEAST_INTERVAL_ROWS` [1].

    Parameters
    ----------
    predicted
        Runs with predictions that have not seen them.

    Notes
    -----
    A size of fewer rows than `LEAST_SIZE_ROWS` has the ends of all operations.
    """
    every, factors = fitted_factors(predicted), {}
    for operation in sorted({one.run.operation for one in predicted}):
        alike = [one for one in predicted if one.run.operation == operation]
        if sum(len(one.time_s) for one in alike) < LEAST_INTERVAL_ROWS:
            continue
        there = {reach: [one for one in alike if reach_of(one.run.setting) == reach] for reach in every}
        factors[operation] = {
            reach: _ends(runs, instead=every[reach]) for reach, runs in there.items() if runs
        }
    return factors


def _ends(
    predicted: Sequence[PredictedRun], *, instead: Mapping[str, list[float]] | None = None
) -> dict[str, list[float]]:
    """Return the ends for each size; the prediction is always between them."""
    ratio = np.concatenate([one.run.time_s / one.time_s for one in predicted])
    size = np.concatenate([one.run.size_bytes for one in predicted])
    place = np.searchsorted(SIZE_EDGES_BYTES, size, side="right")
    ends: dict[str, list[float]] = {"low": [], "high": []}
    for each in range(len(SIZE_EDGES_BYTES) + 1):
        rows = ratio[place == each]
        if instead is not None and len(rows) < LEAST_SIZE_ROWS:
            low, high = instead["low"][each], instead["high"][each]
        else:
            low, high = np.percentile(rows, (5, 95)).tolist()
        ends["low"].append(round(min(low, 1.0), 3))
        ends["high"].append(round(max(high, 1.0), 3))
    return ends


def measured_gpus_of(runs: Sequence[CollectiveRun]) -> dict[str, dict[str, int]]:
    """Return the GPUs of the largest healthy run by operation and reach [1].

    Parameters
    ----------
    runs
        Runs of every status.
    """
    most: dict[str, dict[str, int]] = {}
    for run in sorted(runs, key=lambda one: (one.operation, reach_of(one.setting))):
        if run.status == "healthy":
            there = most.setdefault(run.operation, {})
            reach = reach_of(run.setting)
            there[reach] = max(there.get(reach, 0), run.setting.group.ranks)
    return most


def _problem(runs: Sequence[CollectiveRun]) -> _Problem:
    """Return the rows to fit; a run of n rows has the total weight n / (n + BORROWED_ROWS)."""
    large = tuple(_large_rows(run) for run in runs)
    rows = [len(run.size_bytes) for run in large]
    weights = [np.full(many, (many + BORROWED_ROWS) ** -0.5) for many in rows]
    return _Problem(runs=large, weights=np.concatenate(weights))


def _large_rows(run: CollectiveRun) -> CollectiveRun:
    large = run.size_bytes >= LEAST_FITTED_BYTES
    return replace(
        run, size_bytes=run.size_bytes[large], time_s=run.time_s[large], in_place=run.in_place[large]
    )


def _soft(error: Floats) -> Floats:
    """Return the signed root of the soft l1 loss of an error."""
    loss = 2.0 * OUTLIER_SCALE**2 * (np.sqrt(1.0 + (error / OUTLIER_SCALE) ** 2) - 1.0)
    root: Floats = np.sign(error) * np.sqrt(loss)
    return root
