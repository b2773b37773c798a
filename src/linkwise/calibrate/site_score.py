"""How much a calibration helps, on published runs: fitted on a few of a site, scored on the others.

A run of a collective is fitted on its small sizes or on its smallest number of nodes, a group of training
runs (a publisher's runs of one model on one GPU) on two of its layouts. Every run that has such sizes, and
every group that errs by more than the bar, is scored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from linkwise.calibrate.collective_runs import CollectiveRun
from linkwise.calibrate.fit import publisher
from linkwise.calibrate.least_squares import posterior_covariance
from linkwise.calibrate.measured import MeasuredRun
from linkwise.calibrate.observation import (
    STEP_NOISE,
    Observation,
    collective_observation,
    step_factors,
)
from linkwise.calibrate.run_table import candidates_of, choose
from linkwise.calibrate.site_fit import PRIORS, TRAINING_NETWORK_PRIOR, fit_site
from linkwise.estimate.calibrated import calibrated_columns, speed_of
from linkwise.estimate.columns import Evaluation, Table
from linkwise.estimate.constants import constant_values
from linkwise.estimate.terms import TERMS

__all__ = ["CollectiveGain", "LayoutGain", "layout_gains", "node_gains", "size_gains"]

Floats = NDArray[np.float64]

SMALL_BYTES = float(16 * 2**20)
"""Largest size that is fitted [bytes]."""
LARGE_BYTES = float(64 * 2**20)
"""Smallest size that is scored [bytes]."""
LEAST_ERROR = 0.08
"""Median error of a group from which it is scored [1]."""
GOOD_ERROR = 0.05
"""Error that is good enough, half of what it was or not [1]."""
MOST_PAIRS = 12
"""Pairs of layouts of a group that are tried, evenly spread over all of them [1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveGain:
    """One run of a collective, predicted from other sizes of it or from fewer nodes.

    Attributes
    ----------
    identity
        Name of the run.
    crosses
        Whether it crosses a network.
    before_fraction, after_fraction
        Median error of the shipped model and of the calibrated one [1].
    """

    identity: str
    crosses: bool
    before_fraction: float
    after_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutGain:
    """One group of training runs, predicted from two of its layouts.

    Attributes
    ----------
    name
        Publisher, model and GPU.
    layouts
        Layouts in it [1].
    before_fraction
        Median error of the shipped model over the group [1].
    pair_fractions
        For each pair tried, the median error of the others without calibration and with it [1].
    chosen_fractions
        The same of the pair that leaves least uncertain by the model alone, as `linkwise calibrate` advises.
    """

    name: str
    layouts: int
    before_fraction: float
    pair_fractions: tuple[tuple[float, float], ...]
    chosen_fractions: tuple[float, float]

    @property
    def after_fraction(self) -> float:
        """Return the median over pairs of the calibrated error of the others [1]."""
        return float(np.median([after for _, after in self.pair_fractions]))

    @property
    def reached(self) -> bool:
        """Return whether that is half of the shipped error or less, or good enough."""
        return _reaches(self.before_fraction, self.after_fraction)

    @property
    def chosen_reached(self) -> bool:
        """Return the same of the pair that is advised."""
        return _reaches(*self.chosen_fractions)


def size_gains(runs: Sequence[CollectiveRun]) -> tuple[CollectiveGain, ...]:
    """Return healthy runs of sizes on both sides, fitted on 16 MiB and less, scored from 64 MiB on.

    Parameters
    ----------
    runs
        Runs of every status.
    """
    gains = []
    for run in runs:
        small, large = run.size_bytes <= SMALL_BYTES, run.size_bytes >= LARGE_BYTES
        if run.status == "healthy" and np.sum(small) >= 2 and np.any(large):
            gains.append(_gain(run, fit_site([_observation(run, small)]).values, large))
    return tuple(gains)


def node_gains(runs: Sequence[CollectiveRun]) -> tuple[CollectiveGain, ...]:
    """Return healthy runs on more than two domains, fitted on those of the same kind on two.

    Parameters
    ----------
    runs
        Runs of every status.
    """
    kinds: dict[tuple[object, ...], list[CollectiveRun]] = {}
    for run in runs:
        if run.status == "healthy" and run.setting.group.domains > 1:
            kinds.setdefault(_kind(run), []).append(run)
    gains = []
    for alike in kinds.values():
        two = [run for run in alike if run.setting.group.domains == 2]
        more = [run for run in alike if run.setting.group.domains > 2]
        if two and more:
            fitted = fit_site([_observation(run, run.size_bytes > 0) for run in two]).values
            gains += [_gain(run, fitted, run.size_bytes > 0) for run in more]
    return tuple(gains)


def layout_gains(runs: Sequence[MeasuredRun]) -> tuple[LayoutGain, ...]:
    """Return the groups of three layouts and more whose median error passes the bar.

    Parameters
    ----------
    runs
        Measured steps.
    """
    rows = _Rows.of(runs)
    groups: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        groups.setdefault(f"{publisher(run.source)}, {run.model_name}, {run.gpu_name}", []).append(place)
    return tuple(gain for name, places in groups.items() if (gain := _layout_gain(name, places, rows)))


def _kind(run: CollectiveRun) -> tuple[object, ...]:
    group = run.setting.group
    return (
        *(run.source, run.operation, group.generation, run.setting.network),
        *(group.ranks_per_domain, group.network_bytes_per_s, run.setting.launch),
    )


def _observation(run: CollectiveRun, rows: NDArray[np.bool_]) -> Observation:
    return collective_observation(
        run.identity, run.operation, run.setting, run.size_bytes[rows], measured_s=run.time_s[rows]
    )


def _gain(run: CollectiveRun, factors: Mapping[str, float], rows: NDArray[np.bool_]) -> CollectiveGain:
    one = _observation(run, rows)
    before, after = (np.abs(one.predict(each) / one.measured_s - 1.0) for each in ({}, factors))
    return CollectiveGain(
        identity=run.identity,
        crosses=run.setting.group.domains > 1,
        before_fraction=float(np.median(before)),
        after_fraction=float(np.median(after)),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rows:
    """Measured steps as columns."""

    runs: tuple[MeasuredRun, ...]
    columns: Mapping[str, Floats]
    measured_s: Floats

    @classmethod
    def of(cls, runs: Sequence[MeasuredRun]) -> _Rows:
        every, constants = candidates_of(runs), constant_values()
        chosen = every.take(choose(every, constants, len(runs)))
        return cls(
            runs=tuple(runs),
            columns={**chosen.models, **chosen.columns.resolve(constants)},
            measured_s=np.array([run.step_time_s for run in runs]),
        )

    def predict(self, places: Sequence[int], factors: Mapping[str, float]) -> Floats:
        """Return the step times of some rows; the speed of a GPU is that of each row's precision."""
        at = np.array(places)
        speed = np.array([factors.get(speed_of(self.runs[place].precision), 1.0) for place in places])
        others = {name: value for name, value in factors.items() if not name.startswith("gpu_speed")}
        columns = {name: values[at] for name, values in self.columns.items()}
        moved = calibrated_columns(columns, {"gpu_speed_16_bit": speed, **others})
        return Evaluation(Table(rows=len(places), fixed={}, varying=moved), TERMS)["step_time_s"]

    def observation(self, places: Sequence[int]) -> Observation:
        """Return some rows as one observation, which one evaluation predicts."""
        precisions = [self.runs[place].precision for place in places]
        return Observation(
            label="measured",
            unit="measured",
            kind="step",
            measured_s=self.measured_s[list(places)],
            noise=np.full(len(places), STEP_NOISE),
            predict=lambda factors: self.predict(places, factors),
            factors=tuple(dict.fromkeys(name for each in precisions for name in step_factors(each))),
        )


def _layout_gain(name: str, places: Sequence[int], rows: _Rows) -> LayoutGain | None:
    error = np.abs(rows.predict(places, {}) / rows.measured_s[list(places)] - 1.0)
    layouts: dict[object, list[int]] = {}
    for place in places:
        layouts.setdefault(_layout(rows.runs[place]), []).append(place)
    if len(layouts) < 3 or np.median(error) <= LEAST_ERROR:
        return None
    pairs = list(combinations(layouts.values(), 2))
    tried = pairs[:: -(-len(pairs) // MOST_PAIRS)]
    return LayoutGain(
        name=name,
        layouts=len(layouts),
        before_fraction=float(np.median(error)),
        pair_fractions=tuple(_others(pair, places, rows) for pair in tried),
        chosen_fractions=_others(_advised(pairs, places, rows), places, rows),
    )


def _layout(run: MeasuredRun) -> tuple[object, ...]:
    return run.layout, run.gpus, run.global_batch, run.sequence_length, run.precision


def _others(pair: tuple[list[int], list[int]], places: Sequence[int], rows: _Rows) -> tuple[float, float]:
    """Return the median error of the layouts beside a pair, without calibration and fitted on the pair."""
    seen = [place for each in pair for place in each]
    rest = [place for place in places if place not in set(seen)]
    factors = fit_site([rows.observation(seen)]).values
    measured = rows.measured_s[rest]
    before, after = (
        float(np.median(np.abs(rows.predict(rest, each) / measured - 1))) for each in ({}, factors)
    )
    return before, after


def _advised(
    pairs: Sequence[tuple[list[int], list[int]]], places: Sequence[int], rows: _Rows
) -> tuple[list[int], list[int]]:
    """Return the pair after which the others are least uncertain, by the model alone."""
    names = sorted({name for place in places for name in step_factors(rows.runs[place].precision)})
    prior_sd = np.array([{**PRIORS, "network_bandwidth": TRAINING_NETWORK_PRIOR}[name] for name in names])
    slopes = np.stack(list(_slopes(places, rows, names)), axis=1)
    position = {place: index for index, place in enumerate(places)}

    def uncertain(pair: tuple[list[int], list[int]]) -> float:
        at = slopes[[position[each[0]] for each in pair]]
        covariance = posterior_covariance(at, np.full(2, STEP_NOISE), prior_sd)
        return float(np.mean(np.sqrt(np.einsum("ij,jk,ik->i", slopes, covariance, slopes))))

    return min(pairs, key=uncertain)


def _slopes(places: Sequence[int], rows: _Rows, names: Sequence[str]) -> Iterator[Floats]:
    for name in names:
        high, low = (rows.predict(places, {name: factor}) for factor in (1.1, 1 / 1.1))
        yield np.log(high / low) / (2 * np.log(1.1))


def _reaches(before: float, after: float) -> bool:
    return after <= max(before / 2.0, GOOD_ERROR)
