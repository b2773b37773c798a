"""Errors of predicted step times, of all rows and by group.

An error is predicted over measured, minus one: a model that is too slow has a positive one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from linkwise.calibrate.interval_class import model_kind
from linkwise.calibrate.measured import MeasuredRun
from linkwise.calibrate.predict import PredictedRuns, filled_cells

__all__ = ["GROUPINGS", "ErrorScore", "GroupScore", "score_errors", "score_groups"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorScore:
    """How far predicted times are from measured ones.

    Attributes
    ----------
    scored
        Number of rows.
    median_abs_error_fraction, mape_fraction, p90_abs_error_fraction
        Median, mean and 90th percentile of the absolute error [1].
    bias_fraction
        Mean of the signed error [1].
    interval_coverage_fraction
        Share of rows whose measured time lies in the interval [1].
    interval_median_width_fraction
        Median width of the interval over the predicted time [1].
    """

    scored: int
    median_abs_error_fraction: float
    mape_fraction: float
    p90_abs_error_fraction: float
    bias_fraction: float
    interval_coverage_fraction: float
    interval_median_width_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScore:
    """The score of the rows that share one property.

    Attributes
    ----------
    key
        The property, a name of `GROUPINGS`.
    name
        Its value.
    score
        The errors.
    """

    key: str
    name: str
    score: ErrorScore


GROUPINGS: Mapping[str, Callable[[MeasuredRun], str]] = {
    "source": lambda run: run.source,
    "gpu": lambda run: run.gpu_name,
    "framework": lambda run: run.framework_name,
    "family": lambda run: run.framework.family,
    "kind": model_kind,
    "interconnect": lambda run: run.interconnect_class,
    "complete": lambda run: "blanks filled" if filled_cells(run) else "complete",
}
"""What errors are reported by; to add one, add a line."""


def score_errors(predicted: PredictedRuns) -> ErrorScore | None:
    """Return the errors over all runs; ``None`` where there is no run."""
    if not predicted.runs:
        return None
    error = predicted.error_fraction
    size = np.abs(error)
    return ErrorScore(
        scored=len(predicted.runs),
        median_abs_error_fraction=float(np.median(size)),
        mape_fraction=float(np.mean(size)),
        p90_abs_error_fraction=float(np.percentile(size, 90)),
        bias_fraction=float(np.mean(error)),
        interval_coverage_fraction=float(np.mean(predicted.covered)),
        interval_median_width_fraction=float(np.median(predicted.width_fraction)),
    )


def score_groups(predicted: PredictedRuns) -> tuple[GroupScore, ...]:
    """Return the errors by every property of `GROUPINGS`, names in alphabetical order."""
    scores = []
    for key, name_of in GROUPINGS.items():
        names = np.array([name_of(run) for run in predicted.runs], dtype=object)
        for name in sorted(set(names)):
            score = score_errors(predicted.take(np.flatnonzero(names == name)))
            if score is not None:
                scores.append(GroupScore(key=key, name=name, score=score))
    return tuple(scores)
