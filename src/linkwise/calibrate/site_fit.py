"""Factors fitted on what a site measured, what they make better, and what to measure next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.calibrate.least_squares import Solution, jacobian, posterior_covariance, solve
from linkwise.calibrate.observation import Observation
from linkwise.cluster.calibration import FACTORS, CalibratedFactor
from linkwise.errors import InputError

__all__ = [
    "PRIORS",
    "HeldOut",
    "NextMeasurement",
    "Residual",
    "SiteFit",
    "fit_site",
    "held_out",
    "next_measurements",
    "prior_of",
    "told_factors",
]

Floats = NDArray[np.float64]

PRIORS: Mapping[str, float] = {
    "gpu_speed_16_bit": 0.06,
    "gpu_speed_8_bit": 0.06,
    "host_time": 0.1,
    "exposed_share": 0.4,
    "nvlink_latency": 0.19,
    "nvlink_bandwidth": 0.07,
    "network_latency": 0.54,
    "network_bandwidth": 0.11,
}
"""Standard deviation of the logarithm of each factor before a site is measured [1].

Compute: what predicts other layouts best over all published groups of training runs, each group by a spread
that its publisher's runs did not tell (docs/decisions/0018). Links: the 90 % interval of collectives on other
sites (`network/collective_intervals.json`), below 1 MiB for latency and from 256 MiB on for bandwidth.
"""
TRAINING_NETWORK_PRIOR = 0.27
"""The same for the bandwidth of a network that only training steps have seen, and which they share: range of
`network_contention_rdma`, 0.5 to 1.0 [1]."""
STEPS_KNOWN_BEFORE = 2.0
"""Steps that the usual noise of steps is worth before a site's own scatter is seen: two runs of a site that
disagree make all of them count less, two that agree more (docs/decisions/0018) [1]."""
NOISE_ROUNDS = 2
"""Fits in turn with the scatter that the one before left [1]."""
LEAST_SLOPE = 0.02
"""A factor is fitted where ten percent of it move a prediction by a fifth of a percent [1]."""
SLOW_SHARES = (0.4, 0.12, 0.03)
"""Bandwidths that a fit is begun from beside the modelled one: half of the links, one of eight, sockets
[1]."""
FAULT_SHARE = 0.7
"""A speed or a bandwidth below is taken for a fault rather than a trait of a site: the flag of `linkwise
collective --compare` is at a ratio of 1.4 [1]."""
FAULT_LATENCY = 2.5
"""A latency above is likewise: beyond the 90 % of other sites that the prior of the network holds [1]."""
_Z80 = 1.2816


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual:
    """How far one observation is from its prediction.

    Attributes
    ----------
    label, kind
        Of the observation.
    rows
        Times in it [1].
    before_fraction, after_fraction
        Median error of the shipped model and of the calibrated one, predicted over measured minus one [1].
    before_abs_fraction, after_abs_fraction
        Median size of the errors [1].
    """

    label: str
    kind: str
    rows: int
    before_fraction: float
    after_fraction: float
    before_abs_fraction: float
    after_abs_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SiteFit:
    """Factors and what they rest on.

    Attributes
    ----------
    factors
        Those that the observations can tell, with 80 % intervals.
    residuals
        Of each observation.
    solution
        Logarithms of the factors with their covariance, in the order of `factors`.
    """

    factors: tuple[CalibratedFactor, ...]
    residuals: tuple[Residual, ...]
    solution: Solution

    @property
    def suspects(self) -> tuple[str, ...]:
        """Return the factors so far on the slow side that something is likely broken."""
        return tuple(each.name for each in self.factors if _is_suspect(each))

    @property
    def values(self) -> dict[str, float]:
        """Return the factors by name [1]."""
        return {each.name: each.value for each in self.factors}


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """Errors of predictions that have not seen what they predict.

    Attributes
    ----------
    units
        What was left out in turn: files or layouts [1].
    before_abs_fraction, after_abs_fraction
        Median over them of the median size of the error, shipped and calibrated [1].
    """

    units: int
    before_abs_fraction: float
    after_abs_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NextMeasurement:
    """What one more measurement would do.

    Attributes
    ----------
    label
        What to measure.
    before_fraction, after_fraction
        Half the 80 % interval of what is predicted, now and then, by what is not known of the factors alone
        [1].
    """

    label: str
    before_fraction: float
    after_fraction: float


def _is_suspect(factor: CalibratedFactor) -> bool:
    if factor.name.endswith("_latency"):
        return factor.value > FAULT_LATENCY
    return (factor.name.endswith("_bandwidth") or "speed" in factor.name) and factor.value < FAULT_SHARE


def fit_site(observations: Sequence[Observation]) -> SiteFit:
    """Return the factors that fit what a site measured.

    Parameters
    ----------
    observations
        At least one.

    Raises
    ------
    InputError
        If nothing was measured.
    """
    measured = [each for each in observations if len(each.measured_s)]
    if not measured:
        raise InputError("nothing to fit: no file holds a time that was measured")
    names = told_factors(measured)
    solution = _solution(measured, names)
    factors = tuple(
        CalibratedFactor(
            name=name,
            value=float(np.exp(log)),
            low=float(np.exp(log - _Z80 * sd)),
            high=float(np.exp(log + _Z80 * sd)),
        )
        for name, log, sd in zip(names, solution.logs, solution.sd, strict=True)
    )
    values = {each.name: each.value for each in factors}
    return SiteFit(
        factors=factors,
        residuals=tuple(_residual(each, values) for each in measured),
        solution=solution,
    )


def _solution(measured: Sequence[Observation], names: Sequence[str]) -> Solution:
    """Return the fit, with the noise of steps that the site itself shows.

    Notes
    -----
    The variance of a site's steps is (v s^2 + sum of r^2) / (v + n), r what the fit leaves of n runs and s
    the usual noise, which counts as v runs: up to a constant the mean of an inverse gamma's posterior. One
    run shows no scatter: what the prior holds back of it is not noise.
    """
    logs = np.log(np.concatenate([each.measured_s for each in measured]))
    usual = np.concatenate([each.noise for each in measured])
    is_step = np.concatenate([np.full(len(each.measured_s), each.kind == "step") for each in measured])
    predict, prior_sd = _predictor(measured, names), prior_of(names, measured)
    starts = [
        np.where(np.array(names) == name, np.log(share), 0.0)
        for name in names
        if name.endswith("_bandwidth") and any(each.kind == "collective" for each in measured)
        for share in SLOW_SHARES
    ]
    solution = solve(predict, logs, noise=usual, prior_sd=prior_sd, starts=starts)
    for _ in range(NOISE_ROUNDS if np.any(is_step) else 0):
        left = (logs - predict(solution.logs)) / usual
        noise = np.where(is_step, _scatter(measured, left) * usual, usual)
        solution = solve(predict, logs, noise=noise, prior_sd=prior_sd, starts=starts, first=solution.logs)
    return solution


def _scatter(measured: Sequence[Observation], left: Floats) -> float:
    """Return how far the runs of a site scatter, over what is usual [1]; parts of a run are averaged."""
    runs: dict[tuple[str, int], list[float]] = {}
    places = [(each, row) for each in measured for row in range(len(each.measured_s))]
    for (each, row), residual in zip(places, left.tolist(), strict=True):
        if each.kind == "step":
            runs.setdefault((each.unit, row), []).append(residual)
    if len(runs) < 2:
        return 1.0
    squares = sum(float(np.mean(parts)) ** 2 for parts in runs.values())
    return float(np.sqrt((STEPS_KNOWN_BEFORE + squares) / (STEPS_KNOWN_BEFORE + len(runs))))


def told_factors(observations: Sequence[Observation]) -> tuple[str, ...]:
    """Return the factors that at least one observation would notice, in the order of `FACTORS`.

    Parameters
    ----------
    observations
        Measured or not.
    """
    told = []
    for name in FACTORS:
        for each in observations:
            if name not in each.factors:
                continue
            far = SLOW_SHARES[0] if name.endswith("_bandwidth") else 1.0 / 1.1
            moved = np.log(each.predict({name: far}) / each.predict({name: 1.1})) / np.log(1.1 / far)
            if np.max(np.abs(moved)) >= LEAST_SLOPE:
                told.append(name)
                break
    return tuple(told)


def prior_of(names: Sequence[str], observations: Sequence[Observation]) -> Floats:
    """Return the spread of each factor before anything is measured (names,) [1].

    Parameters
    ----------
    names
        Keys of `FACTORS`.
    observations
        What is measured: a network that no collective has seen alone is known less.
    """
    alone = any(each.kind == "collective" and "network_bandwidth" in each.factors for each in observations)
    wider = {} if alone else {"network_bandwidth": TRAINING_NETWORK_PRIOR}
    return np.array([{**PRIORS, **wider}[name] for name in names])


def held_out(observations: Sequence[Observation]) -> HeldOut | None:
    """Return how well each unit is predicted by a fit on the others; ``None`` where none has another alike.

    Parameters
    ----------
    observations
        What was measured.

    Notes
    -----
    A unit counts where there is another of its kind: no run of a collective tells how fast GPUs compute.
    """
    kinds = {each.unit: each.kind for each in observations if len(each.measured_s)}
    alike = Counter(kinds.values())
    units = [unit for unit, kind in kinds.items() if alike[kind] > 1]
    if not units:
        return None
    before, after = [], []
    for unit in units:
        seen = [each for each in observations if each.unit != unit]
        unseen = [each for each in observations if each.unit == unit and len(each.measured_s)]
        residuals = [_residual(each, fit_site(seen).values) for each in unseen]
        before.append(float(np.median([each.before_abs_fraction for each in residuals])))
        after.append(float(np.median([each.after_abs_fraction for each in residuals])))
    return HeldOut(
        units=len(units),
        before_abs_fraction=float(np.median(before)),
        after_abs_fraction=float(np.median(after)),
    )


def next_measurements(
    observations: Sequence[Observation], *, candidates: Sequence[Observation], targets: Sequence[Observation]
) -> tuple[NextMeasurement, ...]:
    """Return what each candidate would do to the uncertainty of the targets, best first.

    Parameters
    ----------
    observations
        What was measured.
    candidates
        What could be.
    targets
        What is to be predicted.

    Notes
    -----
    Linear around the fit (D. Lindley, On a Measure of the Information Provided by an Experiment, 1956, for a
    linear model with normal errors): the covariance of the factors after a measurement does not depend on
    its result. A target's spread is sqrt(g' C g), g its derivatives; the mean over targets is compared.
    """
    measured = [each for each in observations if len(each.measured_s)]
    names = told_factors([*measured, *candidates, *targets])
    prior_sd = prior_of(names, [*measured, *candidates])
    fitted = fit_site(measured).values
    at = np.log([fitted.get(name, 1.0) for name in names])

    def slopes(many: Sequence[Observation]) -> Floats:
        return jacobian(_predictor(many, names), at)

    known = slopes(measured), np.concatenate([each.noise for each in measured])
    wanted = slopes(targets)
    now = _spread(wanted, posterior_covariance(*known, prior_sd))
    found = []
    for candidate in candidates:
        slope = np.concatenate([known[0], slopes([candidate])])
        then = _spread(
            wanted, posterior_covariance(slope, np.concatenate([known[1], candidate.noise]), prior_sd)
        )
        found.append(NextMeasurement(label=candidate.label, before_fraction=now, after_fraction=then))
    return tuple(sorted(found, key=lambda each: each.after_fraction))


def _spread(slope: Floats, covariance: Floats) -> float:
    variance = np.einsum("ij,jk,ik->i", slope, covariance, slope)
    return float(np.mean(np.expm1(_Z80 * np.sqrt(np.maximum(variance, 0.0)))))


def _predictor(observations: Sequence[Observation], names: Sequence[str]) -> Callable[[Floats], Floats]:
    def predict_logs(logs: Floats) -> Floats:
        factors = dict(zip(names, np.exp(logs).tolist(), strict=True))
        logs_of: Floats = np.log(np.concatenate([each.predict(factors) for each in observations]))
        return logs_of

    return predict_logs


def _residual(one: Observation, values: Mapping[str, float]) -> Residual:
    before = one.predict({}) / one.measured_s - 1.0
    after = one.predict(values) / one.measured_s - 1.0
    return Residual(
        label=one.label,
        kind=one.kind,
        rows=len(one.measured_s),
        before_fraction=float(np.median(before)),
        after_fraction=float(np.median(after)),
        before_abs_fraction=float(np.median(np.abs(before))),
        after_abs_fraction=float(np.median(np.abs(after))),
    )
