"""A site's calibration in an estimate: columns, layer, and the same times as collectives have."""

import datetime as dt
from dataclasses import replace

import numpy as np
import pytest

from linkwise.cluster import load_cluster
from linkwise.cluster.calibration import FACTORS, CalibratedFactor, Calibration, hardware_of
from linkwise.estimate import estimate_layout
from linkwise.estimate.calibrated import calibrated_columns, columns_of
from linkwise.estimate.job_inputs import fixed_columns
from linkwise.estimate.origins import input_origins
from linkwise.estimate.trace import trace
from linkwise.job import job_from_options
from linkwise.layout import Layout

LAYOUT = Layout(tensor=4, pipeline=2, zero_stage=1)


def job(precision="bf16"):
    options = {"model": "llama-3.1-8b", "sequence_length": 8192, "global_batch": 128, "framework": "megatron"}
    return job_from_options({**options, "precision": precision, "tokens": None, "layout": None})


def cluster(**factors):
    there = load_cluster("dgx-h100:4")
    made = Calibration(
        made=dt.date(2026, 11, 30),
        hardware=hardware_of(there),
        constants="0" * 16,
        factors=tuple(
            CalibratedFactor(name=name, value=value, low=value, high=value) for name, value in factors.items()
        ),
        files=(),
    )
    return replace(there, calibration=made)


def step_s(there, precision="bf16"):
    return estimate_layout(job(precision), there, LAYOUT).step_time_s


def test_factors_of_one_change_nothing():
    assert step_s(cluster(**dict.fromkeys(FACTORS, 1.0))) == pytest.approx(step_s(load_cluster("dgx-h100:4")))


@pytest.mark.parametrize(
    ("name", "slower"),
    [
        ("gpu_speed_16_bit", 0.8),
        ("host_time", 20.0),
        ("exposed_share", 2.0),
        ("nvlink_latency", 3.0),
        ("nvlink_bandwidth", 0.5),
        ("network_latency", 30.0),
        ("network_bandwidth", 0.2),
    ],
)
def test_each_factor_moves_a_step(name, slower):
    assert step_s(cluster(**{name: slower})) > 1.00001 * step_s(load_cluster("dgx-h100:4"))


def test_speed_of_a_gpu_is_that_of_the_precision():
    plain = load_cluster("dgx-h100:4")
    assert step_s(cluster(gpu_speed_8_bit=0.5)) == step_s(plain)
    assert step_s(cluster(gpu_speed_16_bit=0.5), "fp8") == step_s(plain, "fp8")
    assert step_s(cluster(gpu_speed_8_bit=0.5), "fp8") > 1.5 * step_s(plain, "fp8")


def test_layer_of_a_figure_is_the_calibration():
    there = cluster(network_bandwidth=0.9)
    origins = input_origins(job(), there)
    assert origins["network_contention"].layer == "site's calibration"
    assert "times network_bandwidth 0.9" in origins["network_contention"].source
    assert origins["gemm_efficiency"].layer == "shipped fit"
    traced = {each.name: each for term in trace(job(), there, LAYOUT) for each in term.inputs}
    assert traced["network_contention"].layer == "site's calibration"
    assert "calibration of 2026-11-30" in there.calibration.words


def test_shares_stay_shares_and_columns_exist():
    columns = fixed_columns(job(), load_cluster("dgx-h100:4"))
    assert all(column in columns for name in FACTORS for column in columns_of(name))
    moved = calibrated_columns(columns, {"exposed_share": 100.0})
    assert np.all(moved["tensor_exposed_fraction"] == 1.0)
