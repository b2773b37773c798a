"""The figures that accuracy is judged by, each with the bar it must keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from linkwise.calibrate.measured import Measurements
from linkwise.calibrate.peak_memory import score_memory
from linkwise.calibrate.predict import PredictedRuns
from linkwise.calibrate.regret import RegretGroup, RegretScore, regret_groups, score_regret
from linkwise.calibrate.score import ErrorScore, score_errors

__all__ = [
    "COMPOSED_SOURCE",
    "Accuracy",
    "Bar",
    "accuracy_figures",
    "judged_bars",
    "score_accuracy",
    "scored_where",
]

COMPOSED_SOURCE = "VTRAIN-S"
"""1,080 rows composed by their authors from 162 step times: kept apart, or they would drown the rest."""
_SLOW = "under 100 Gbit/s per node"
_SOURCES_OF_A_CLASS = 3
_ROWS_OF_A_CLASS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """What accuracy is judged on.

    Attributes
    ----------
    scored_fraction
        Share of the rows that could be scored [1].
    shipped
        The runs as the shipped constants predict them.
    left_out
        The same, each predicted by constants fitted without its publisher; ``None`` where that was not done.
    regrets
        Groups of layouts under the shipped constants.
    """

    scored_fraction: float
    shipped: PredictedRuns
    left_out: PredictedRuns | None
    regrets: tuple[RegretGroup, ...]

    def regret(self, *, composed: bool) -> RegretScore:
        """Return the regret over groups of the composed source, or over all others."""
        return score_regret(self.regret_groups(composed=composed))

    def regret_groups(self, *, composed: bool) -> tuple[RegretGroup, ...]:
        """Return the groups of the composed source, or of all others, the largest regret first."""
        groups = [one for one in self.regrets if (one.source == COMPOSED_SOURCE) == composed]
        return tuple(sorted(groups, key=lambda group: -group.regret_fraction))


def score_accuracy(
    measurements: Measurements, shipped: PredictedRuns, left_out_s: Mapping[str, float] | None = None
) -> Accuracy:
    """Return what accuracy is judged on.

    Parameters
    ----------
    measurements
        The measured runs, bench and core.
    shipped
        Their predictions under the shipped constants.
    left_out_s
        Step time of each run by its id, predicted by constants that have not seen its publisher [s].
    """
    left_out = None
    if left_out_s is not None and all(run.id in left_out_s for run in shipped.runs):
        left_out = shipped.with_step_times(np.array([left_out_s[run.id] for run in shipped.runs]))
    return Accuracy(
        scored_fraction=len(measurements.runs) / max(measurements.rows, 1),
        shipped=shipped,
        left_out=left_out,
        regrets=regret_groups(shipped),
    )


def scored_where(predicted: PredictedRuns, condition: Callable[[str, str], bool]) -> ErrorScore | None:
    """Return the errors of runs whose source and interconnect class satisfy a condition."""
    chosen = [condition(run.source, run.interconnect_class) for run in predicted.runs]
    return score_errors(predicted.take(np.flatnonzero(chosen)))


def accuracy_figures(accuracy: Accuracy) -> dict[str, float]:
    """Return every figure of the bars by name [1]; one that cannot be computed is absent."""
    shipped = accuracy.shipped
    most = scored_where(shipped, lambda source, _: source != COMPOSED_SOURCE)
    every = score_errors(shipped)
    memory = score_memory(shipped)
    figures: dict[str, float | None] = {
        "scored": accuracy.scored_fraction,
        "median": None if most is None else most.median_abs_error_fraction,
        "mape": None if most is None else most.mape_fraction,
        "sources": _mean_over_sources(shipped),
        "sources_left_out": None if accuracy.left_out is None else _mean_over_sources(accuracy.left_out),
        "vtrain_m": _mape(shipped, lambda source, _: source == "VTRAIN-M"),
        "vtrain_s": _mape(shipped, lambda source, _: source == COMPOSED_SOURCE),
        "slow_networks": _mape(shipped, lambda _, network: network == _SLOW),
        "largest_class_bias": _largest_class_bias(shipped),
        "coverage": None if every is None else every.interval_coverage_fraction,
        "width": None if every is None else every.interval_median_width_fraction,
        "memory": memory.median_abs_error_fraction,
        "infeasible": memory.infeasible_fraction,
        **_class_coverage(shipped),
    }
    for name, composed in (("regret_vtrain_s", True), ("regret_others", False)):
        regret = accuracy.regret(composed=composed)
        figures.update({name: regret.mean_fraction, f"{name}_p95": regret.p95_fraction})
    return {name: float(value) for name, value in figures.items() if value is not None}


def _mape(predicted: PredictedRuns, condition: Callable[[str, str], bool]) -> float | None:
    score = scored_where(predicted, condition)
    return None if score is None else score.mape_fraction


def _mean_over_sources(predicted: PredictedRuns) -> float | None:
    sources = np.array([run.source for run in predicted.runs])
    size = np.abs(predicted.error_fraction)
    means = [float(np.mean(size[sources == name])) for name in dict.fromkeys(sources)]
    return float(np.mean(means)) if means else None


def _classes(predicted: PredictedRuns) -> dict[str, np.ndarray]:
    names = np.array([run.interconnect_class for run in predicted.runs])
    return {name: np.flatnonzero(names == name) for name in dict.fromkeys(names)}


def _largest_class_bias(predicted: PredictedRuns) -> float | None:
    error = predicted.error_fraction
    biases = [
        float(np.mean(error[rows]))
        for rows in _classes(predicted).values()
        if len({predicted.runs[row].source for row in rows}) >= _SOURCES_OF_A_CLASS
    ]
    return max(biases, key=abs, default=None)


def _class_coverage(predicted: PredictedRuns) -> dict[str, float | None]:
    covered = predicted.covered
    shares = [
        float(np.mean(covered[rows]))
        for rows in _classes(predicted).values()
        if len(rows) >= _ROWS_OF_A_CLASS
    ]
    return {
        "least_class_coverage": min(shares, default=None),
        "most_class_coverage": max(shares, default=None),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One figure and between what it must lie.

    Attributes
    ----------
    figure
        Name in `accuracy_figures`.
    words
        What it is.
    low, high
        The bar [1]; a figure is compared with `high` by its size.
    """

    figure: str
    words: str
    low: float | None = None
    high: float | None = None

    def met(self, value: float) -> bool:
        """Return whether a value keeps the bar."""
        return (self.low is None or value >= self.low) and (self.high is None or abs(value) <= self.high)


BARS = (
    Bar(figure="scored", words="rows scored, of bench and core", low=0.97),
    Bar(figure="median", words="median error without VTRAIN-S", high=0.07),
    Bar(figure="mape", words="mean error (MAPE) without VTRAIN-S", high=0.10),
    Bar(figure="sources", words="mean over sources of their MAPE", high=0.10),
    Bar(figure="sources_left_out", words="the same, each publisher left out of the fit", high=0.13),
    Bar(figure="vtrain_m", words="VTRAIN-M, MAPE", high=0.095),
    Bar(figure="vtrain_s", words="VTRAIN-S, MAPE", high=0.10),
    Bar(figure="slow_networks", words="networks under 100 Gbit/s per node, MAPE", high=0.18),
    Bar(
        figure="largest_class_bias",
        words="largest bias of an interconnect class with three sources",
        high=0.05,
    ),
    Bar(figure="coverage", words="rows inside the stated 80 % interval", low=0.75, high=0.88),
    Bar(figure="least_class_coverage", words="least of a class of 30 rows", low=0.65, high=0.93),
    Bar(figure="most_class_coverage", words="most of a class of 30 rows", low=0.65, high=0.93),
    Bar(figure="width", words="median width of the interval over the prediction", high=0.45),
    Bar(figure="regret_vtrain_s", words="decision regret, VTRAIN-S, mean", high=0.035),
    Bar(figure="regret_vtrain_s_p95", words="decision regret, VTRAIN-S, 95th percentile", high=0.15),
    Bar(figure="regret_others", words="decision regret, all others, mean", high=0.04),
    Bar(figure="regret_others_p95", words="decision regret, all others, 95th percentile", high=0.15),
    Bar(figure="memory", words="peak memory, median error", high=0.10),
    Bar(figure="infeasible", words="runs that happened and are said not to fit", high=0.03),
)
"""What the shipped model is held to; docs/accuracy.md prints it."""


def judged_bars(figures: Mapping[str, float]) -> tuple[tuple[Bar, float | None, bool], ...]:
    """Return every bar, the figure and whether it is kept; without a figure it is not."""
    return tuple(
        (bar, figures.get(bar.figure), bar.figure in figures and bar.met(figures[bar.figure])) for bar in BARS
    )
