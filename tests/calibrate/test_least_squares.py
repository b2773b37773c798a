"""Robust least squares with a prior, against solutions worked by hand."""

import numpy as np
import pytest

from linkwise.calibrate.least_squares import jacobian, posterior_covariance, solve


def test_one_unknown_is_the_mean_weighed_by_precision():
    # prior 0 +- 1, two measurements of 1 +- 1: posterior mean 2/3, variance 1/3; residuals under 1 sd count nearly whole
    found = solve(lambda x: np.repeat(x, 2), np.array([0.1, 0.1]), noise=np.ones(2), prior_sd=np.ones(1))
    assert found.logs[0] == pytest.approx(0.2 / 3, rel=0.01)
    assert found.sd[0] == pytest.approx(3**-0.5, rel=0.01)


def test_outlier_counts_less_than_its_distance():
    measured = np.array([0.0, 0.0, 0.0, 0.0, 3.0])
    found = solve(lambda x: np.repeat(x, 5), measured, noise=np.full(5, 0.05), prior_sd=np.ones(1))
    assert found.logs[0] < 0.05  # the mean is 0.6


def test_unknown_that_nothing_tells_keeps_its_prior():
    found = solve(lambda x: x[:1], np.array([0.2]), noise=np.array([0.01]), prior_sd=np.array([1.0, 0.3]))
    assert found.logs == pytest.approx([0.2, 0.0], abs=1e-3)
    assert found.sd[1] == pytest.approx(0.3)


def test_start_finds_a_resource_that_is_not_the_slowest_as_modelled():
    # time is the slower of two resources; the second is at an eighth of its rate
    def predict(x):
        return np.log(np.maximum(np.exp(-x[:1]), 0.5 * np.exp(-x[1:])))

    measured, noise, prior = np.log([4.0]), np.array([0.02]), np.array([0.1, 0.4])
    found = solve(predict, measured, noise=noise, prior_sd=prior, starts=[np.log([1.0, 0.12])])
    assert np.exp(found.logs[1]) == pytest.approx(1 / 8, rel=0.05)
    assert np.exp(found.logs[0]) == pytest.approx(1.0, rel=0.05)


def test_derivatives_and_covariance_of_a_linear_model():
    slope = np.array([[1.0, 2.0], [0.0, 3.0]])
    assert jacobian(lambda x: slope @ x, np.zeros(2)) == pytest.approx(slope)
    covariance = posterior_covariance(np.eye(2), np.array([0.5, 1.0]), np.array([1.0, 1.0]))
    assert covariance == pytest.approx(np.diag([1 / 5, 1 / 2]))
