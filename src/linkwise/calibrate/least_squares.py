"""Few unknowns from few observations: robust least squares with a prior, by Gauss and Newton.

The unknowns are logarithms of factors, expected at 0. An observation far from its prediction counts less.

References
----------
J. Nocedal and S. Wright, Numerical Optimization, 2006, chapter 10. P. J. Huber, Robust Estimation of a
Location Parameter, 1964 (soft l1 is its smooth form). The intervals are those of a linear model with normal
errors around the solution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Solution", "jacobian", "posterior_covariance", "solve"]

Floats = NDArray[np.float64]
Predict = Callable[[Floats], Floats]

MOST_ROUNDS = 30
"""Steps of Gauss and Newton [1]; few unknowns near a prior need about five."""
SHORTEST_STEP = 1e-3
"""Change of every unknown below which the solution is found [1]."""
DIFFERENCE = 0.02
"""Half the distance over which derivatives are taken [1]."""
GOOD_LOSS = 1.0
"""Loss of an observation, on average, below which a solution is taken: that of one standard deviation [1]."""
FURTHEST = float(np.log(30.0))
"""No unknown leaves this distance from its prior: one of eight NICs, or sockets, are within it [1]."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution:
    """Where the unknowns are, and how well that is known.

    Attributes
    ----------
    logs
        Logarithms of the factors (unknowns,) [1].
    covariance
        Of the logarithms (unknowns, unknowns) [1].
    """

    logs: Floats
    covariance: Floats

    @property
    def sd(self) -> Floats:
        """Return the standard deviation of each logarithm (unknowns,) [1]."""
        return np.sqrt(np.diag(self.covariance))


def solve(
    predict_logs: Predict,
    measured_logs: Floats,
    *,
    noise: Floats,
    prior_sd: Floats,
    starts: Sequence[Floats] = (),
    first: Floats | None = None,
) -> Solution:
    """Return the unknowns that fit the observations and the prior best.

    Parameters
    ----------
    predict_logs
        From the unknowns to the logarithms of what is predicted (observations,).
    measured_logs
        Logarithms of what was measured (observations,) [1].
    noise
        Standard deviation of each observation's logarithm (observations,) [1].
    prior_sd
        Standard deviation of each unknown around 0 before anything is measured (unknowns,) [1].
    starts
        Where to begin beside 0, (unknowns,) each, if from there the observations are not met; the best end
        counts. A resource that is not the slowest has no slope at 0, and only a start where it is finds it.

    first
        Where to begin, 0 by default (unknowns,) [1].

    Notes
    -----
    Each round solves the linearised problem with observations weighed by 1 / sqrt(1 + (r / 2)^2), r their
    residual over its noise, and halves the step until the loss falls. The prior is weighed alike, so that
    measurements that speak clearly are not drawn back to it.
    """
    begin = np.zeros(len(prior_sd)) if first is None else first
    logs, loss = _descent(begin, predict_logs, measured_logs, noise, prior_sd)
    if loss > GOOD_LOSS * len(measured_logs):
        ends = [_descent(start, predict_logs, measured_logs, noise, prior_sd) for start in starts]
        logs, _ = min([(logs, loss), *ends], key=lambda end: end[1])
    weight = _weight((measured_logs - predict_logs(logs)) / noise)
    wide = prior_sd / np.sqrt(_weight(logs / prior_sd))
    covariance = posterior_covariance(jacobian(predict_logs, logs), noise / np.sqrt(weight), wide)
    return Solution(logs=logs, covariance=covariance)


def _descent(
    logs: Floats, predict_logs: Predict, measured_logs: Floats, noise: Floats, prior_sd: Floats
) -> tuple[Floats, float]:
    """Return where the steps from a start end, and the loss there."""
    loss = _loss(logs, predict_logs, measured_logs, noise, prior_sd)
    for _ in range(MOST_ROUNDS):
        residual = (measured_logs - predict_logs(logs)) / noise
        weight = _weight(residual)
        slope = jacobian(predict_logs, logs) / noise[:, None]
        pull = _weight(logs / prior_sd) / prior_sd**2
        left = slope.T @ (slope * weight[:, None]) + np.diag(pull)
        step = np.linalg.solve(left, slope.T @ (residual * weight) - pull * logs)
        for _ in range(8):
            trial = np.clip(logs + step, -FURTHEST, FURTHEST)
            lower = _loss(trial, predict_logs, measured_logs, noise, prior_sd)
            if lower <= loss:
                break
            step = step / 2.0
        else:
            break
        moved = np.max(np.abs(trial - logs))
        logs, loss = trial, lower
        if moved < SHORTEST_STEP:
            break
    return logs, loss


def jacobian(predict_logs: Predict, logs: Floats) -> Floats:
    """Return the derivatives of the predictions by central differences (observations, unknowns) [1].

    Parameters
    ----------
    predict_logs
        From the unknowns to the logarithms of what is predicted.
    logs
        Where (unknowns,) [1].
    """
    columns = []
    for place in range(len(logs)):
        shift = np.zeros(len(logs))
        shift[place] = DIFFERENCE
        columns.append((predict_logs(logs + shift) - predict_logs(logs - shift)) / (2.0 * DIFFERENCE))
    return np.stack(columns, axis=1)


def posterior_covariance(slope: Floats, noise: Floats, prior_sd: Floats) -> Floats:
    """Return how well the unknowns are known after observations, (J' N^-2 J + P^-2)^-1.

    Parameters
    ----------
    slope
        Derivatives of the predictions (observations, unknowns) [1].
    noise
        Standard deviation of each observation (observations,) [1].
    prior_sd
        Standard deviation of each unknown before (unknowns,) [1].
    """
    scaled = slope / noise[:, None]
    return np.asarray(np.linalg.inv(scaled.T @ scaled + np.diag(prior_sd**-2.0)), dtype=np.float64)


def _weight(residual: Floats) -> Floats:
    return np.asarray(1.0 / np.sqrt(1.0 + (residual / 2.0) ** 2), dtype=np.float64)


def _loss(
    logs: Floats, predict_logs: Predict, measured_logs: Floats, noise: Floats, prior_sd: Floats
) -> float:
    residual = (measured_logs - predict_logs(logs)) / noise
    return _soft(residual) + _soft(logs / prior_sd)


def _soft(residual: Floats) -> float:
    return float(np.sum(8.0 * (np.sqrt(1.0 + (residual / 2.0) ** 2) - 1.0)))
