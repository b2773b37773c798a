"""The model of collectives scored on measured runs.

An error is predicted over measured, minus one: a model that is too slow has a positive one. Rows of 1 MiB and
more are the headline; smaller ones are reported beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from linkwise.calibrate.collective_runs import LEAST_BYTES, CollectiveRun, read_collectives
from linkwise.nccl.choice import candidates
from linkwise.network.collective_interval import interval_factors, reach_of
from linkwise.network.collective_time import collective_times

__all__ = [
    "CollectiveErrors",
    "CollectiveGroup",
    "CollectiveScore",
    "FlagScore",
    "PredictedRun",
    "predict_collectives",
    "score_collectives",
    "slowdown",
    "validate_collectives",
]

Floats = NDArray[np.float64]

FLAG_RATIO = 1.4
"""Measured over expected time from which a run is flagged [1]. Healthy published runs that force a ring or
switch NVLS off reach 1.3, the mildest misconfigured one 1.5."""
FLOOR_RATIO = 5.0
"""Smallest measured over predicted time from which something unknown adds a floor [1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedRun:
    """A run with its prediction.

    Attributes
    ----------
    run
        The run.
    time_s
        Predicted time of each of its rows (rows,) [s].
    """

    run: CollectiveRun
    time_s: Floats

    @property
    def error_fraction(self) -> Floats:
        """Return predicted over measured, minus one (rows,) [1]."""
        return self.time_s / self.run.time_s - 1.0

    @property
    def is_covered(self) -> NDArray[np.bool_]:
        """Return whether the measured time lies in the stated interval (rows,)."""
        low, high = interval_factors(
            reach_of(self.run.setting), self.run.size_bytes, operation=self.run.operation
        )
        return (self.run.time_s >= low * self.time_s) & (self.run.time_s <= high * self.time_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveErrors:
    """How far predicted times are from measured ones.

    Attributes
    ----------
    scored
        Number of rows.
    median_abs_error_fraction, mape_fraction
        Median and mean of the absolute error [1].
    bias_fraction
        Mean of the signed error [1].
    within_25_fraction
        Share of rows within 25 % [1].
    interval_coverage_fraction
        Share of rows inside the stated interval [1].
    """

    scored: int
    median_abs_error_fraction: float
    mape_fraction: float
    bias_fraction: float
    within_25_fraction: float
    interval_coverage_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveGroup:
    """Errors of the rows that share one property: `key` names it, `name` is its value."""

    key: str
    name: str
    errors: CollectiveErrors


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagScore:
    """Whether runs below what their cluster should give are told from healthy ones.

    Attributes
    ----------
    misconfigured, healthy
        Number of runs of each kind.
    misconfigured_fraction, healthy_fraction
        Share of each that is flagged; ``None`` without any [1].
    flagged_healthy, missed
        Names of healthy runs that are flagged, and of misconfigured ones that are not.
    """

    misconfigured: int
    healthy: int
    misconfigured_fraction: float | None
    healthy_fraction: float | None
    flagged_healthy: tuple[str, ...]
    missed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveScore:
    """What the model of collectives gets right and wrong.

    Attributes
    ----------
    rows
        Healthy rows of 1 MiB and more, of NCCL and RCCL.
    skipped
        Those of them that cannot be scored, by reason.
    not_counted
        Healthy rows that are none of them, by reason.
    errors
        Over `rows`; ``None`` without any.
    after_rules
        The same without the runs that a rule sets apart.
    set_apart
        Rows of 1 MiB and more that each rule sets apart.
    run_median_fraction, multi_node_run_median_fraction
        Median over runs of a run's median absolute error, 1 MiB and more [1].
    by
        By size, reach and size, run, collective and network; the last three from 1 MiB on.
    flagged
        Verdicts on whole runs.
    assumed
        What was taken for empty cells, in sentences with the run.
    """

    rows: int
    skipped: Mapping[str, int]
    not_counted: Mapping[str, int]
    errors: CollectiveErrors | None
    after_rules: CollectiveErrors | None
    set_apart: Mapping[str, int]
    run_median_fraction: float | None
    multi_node_run_median_fraction: float | None
    by: tuple[CollectiveGroup, ...]
    flagged: FlagScore
    assumed: tuple[str, ...] = ()


def validate_collectives(rows_path: Path, runs_path: Path) -> CollectiveScore:
    """Return the score over the runs of two CSV files.

    Parameters
    ----------
    rows_path, runs_path
        The files, in the columns of `linkwise.calibrate.collective_runs`.

    Raises
    ------
    InputError
        When a file cannot be read, or holds what it must not (`DocumentError`, all faults).
    """
    measured = read_collectives(rows_path, runs_path)
    score = score_collectives(
        predict_collectives(measured.runs),
        skipped=measured.skipped,
        other_library_rows=measured.other_library_rows,
    )
    return replace(score, assumed=measured.assumed)


def predict_collectives(
    runs: Sequence[CollectiveRun], *, constants: Mapping[str, float] | None = None
) -> tuple[PredictedRun, ...]:
    """Return the runs with predictions.

    Parameters
    ----------
    runs
        Measured runs.
    constants
        Constants by name, SI; the shipped ones by default.
    """
    return tuple(
        PredictedRun(
            run=run,
            time_s=collective_times(run.operation, run.setting, run.size_bytes, constants=constants).time_s,
        )
        for run in runs
    )


def score_collectives(
    predicted: Sequence[PredictedRun], *, skipped: Mapping[str, int], other_library_rows: int = 0
) -> CollectiveScore:
    """Return the score of predictions.

    Parameters
    ----------
    predicted
        Runs of every status with predictions.
    skipped
        Healthy rows of 1 MiB and more that have none, by reason.
    other_library_rows
        Healthy rows of a library that is not modelled.
    """
    healthy = [one for one in predicted if one.run.status == "healthy"]
    apart: dict[str, int] = {}
    kept = []
    for one in healthy:
        reason = rule_of(one)
        if reason is None:
            kept.append(one)
        else:
            apart[reason] = apart.get(reason, 0) + int(np.sum(_is_large(one)))
    return CollectiveScore(
        rows=sum(int(np.sum(_is_large(one))) for one in healthy) + sum(skipped.values()),
        skipped=skipped,
        not_counted={
            "under 1 MiB": sum(int(np.sum(_is_small(one))) for one in healthy),
            "another library than NCCL or RCCL": other_library_rows,
        },
        errors=_errors(healthy, _is_large),
        after_rules=_errors(kept, _is_large),
        set_apart=apart,
        run_median_fraction=_run_median(healthy),
        multi_node_run_median_fraction=_run_median([one for one in healthy if _is_multi_node(one)]),
        by=tuple(_groups(healthy)),
        flagged=_flags([one.run for one in predicted]),
    )


def rule_of(predicted: PredictedRun) -> str | None:
    """Return the rule that sets a run apart, a name of a reason; ``None`` for most.

    Parameters
    ----------
    predicted
        The run with its prediction.

    Notes
    -----
    A broadcast faster than one hop after another was timed with many calls in flight. A run whose smallest
    time exceeds five times the prediction has a floor that its description does not explain.
    """
    run = predicted.run
    least = int(np.argmin(run.time_s))
    if run.operation in ("broadcast", "reduce"):
        chain = next(one for one in candidates("all_gather", run.setting.group) if one.protocol == "ll")
        if run.time_s[least] < chain.latency_s:
            return "back-to-back broadcasts"
    if run.time_s[least] > FLOOR_RATIO * predicted.time_s[least]:
        return "unexplained latency floor"
    return None


def slowdown(run: CollectiveRun) -> float | None:
    """Return measured over expected time at the largest size of a run; ``None`` below 1 MiB [1].

    Parameters
    ----------
    run
        The run; the faster of in place and out of place counts.

    Notes
    -----
    Expected is what its links should give with default variables and the best transport they have.
    """
    largest = float(np.max(run.size_bytes))
    if largest < LEAST_BYTES:
        return None
    expected = collective_times(run.operation, run.best, np.array([largest])).time_s[0]
    return float(np.min(run.time_s[run.size_bytes == largest]) / expected)


def _is_large(one: PredictedRun) -> NDArray[np.bool_]:
    return one.run.size_bytes >= LEAST_BYTES


def _is_small(one: PredictedRun) -> NDArray[np.bool_]:
    return one.run.size_bytes < LEAST_BYTES


def _is_multi_node(one: PredictedRun) -> bool:
    return one.run.inter_kind not in ("", "none")


def _errors(
    predicted: Sequence[PredictedRun], wanted: Callable[[PredictedRun], NDArray[np.bool_]]
) -> CollectiveErrors | None:
    chosen = [(one, wanted(one)) for one in predicted]
    error = np.concatenate([one.error_fraction[rows] for one, rows in chosen]) if chosen else np.empty(0)
    if not len(error):
        return None
    size = np.abs(error)
    return CollectiveErrors(
        scored=len(error),
        median_abs_error_fraction=float(np.median(size)),
        mape_fraction=float(np.mean(size)),
        bias_fraction=float(np.mean(error)),
        within_25_fraction=float(np.mean(size <= 0.25)),
        interval_coverage_fraction=float(
            np.mean(np.concatenate([one.is_covered[rows] for one, rows in chosen]))
        ),
    )


def _run_median(predicted: Sequence[PredictedRun]) -> float | None:
    errors = [_errors([one], _is_large) for one in predicted]
    medians = [each.median_abs_error_fraction for each in errors if each is not None]
    return float(np.median(medians)) if medians else None


_SIZES = {"under_1_mib": _is_small, "from_1_mib": _is_large}
_PROPERTIES: Mapping[str, Callable[[CollectiveRun], str]] = {
    "run": lambda run: run.identity,
    "collective": lambda run: run.operation,
    "inter_kind": lambda run: run.inter_kind or "none",
}


def _groups(healthy: Sequence[PredictedRun]) -> list[CollectiveGroup]:
    groups = [("size_class", name, _errors(healthy, wanted)) for name, wanted in _SIZES.items()]
    for reach, is_there in (("multi_node", True), ("one_node", False)):
        there = [one for one in healthy if _is_multi_node(one) is is_there]
        groups += [("reach", f"{reach}_{name}", _errors(there, wanted)) for name, wanted in _SIZES.items()]
    for key, name_of in _PROPERTIES.items():
        for name in sorted({name_of(one.run) for one in healthy}):
            alike = [one for one in healthy if name_of(one.run) == name]
            groups.append((key, name, _errors(alike, _is_large)))
    return [
        CollectiveGroup(key=key, name=name, errors=errors)
        for key, name, errors in groups
        if errors is not None
    ]


def _flags(runs: Sequence[CollectiveRun]) -> FlagScore:
    bad = [run for run in runs if run.status == "misconfigured"]
    good = [run for run in runs if run.status == "healthy"]
    missed = tuple(run.identity for run in bad if not _is_flagged(run))
    flagged = tuple(run.identity for run in good if _is_flagged(run))
    return FlagScore(
        misconfigured=len(bad),
        healthy=len(good),
        misconfigured_fraction=1.0 - len(missed) / len(bad) if bad else None,
        healthy_fraction=len(flagged) / len(good) if good else None,
        flagged_healthy=flagged,
        missed=missed,
    )


def _is_flagged(run: CollectiveRun) -> bool:
    ratio = slowdown(run)
    return ratio is not None and ratio > FLAG_RATIO
