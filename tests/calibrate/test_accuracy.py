"""The figures the model is held to, and the page that keeps them."""

import json
from pathlib import Path

import numpy as np
import pytest

from linkwise.calibrate.accuracy import BARS, Bar, accuracy_figures, judged_bars, score_accuracy
from linkwise.calibrate.measured import read_measurements
from linkwise.calibrate.predict import predict_runs
from linkwise.report.accuracy import accuracy_markdown
from linkwise.report.doctor_accuracy import doctor_section_of

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def published():
    """Return the score on the published measurements, with the left-out predictions of docs/accuracy.json."""
    record = json.loads((ROOT / "docs" / "accuracy.json").read_text(encoding="utf-8"))
    measurements = read_measurements(ROOT / "tests" / "data" / "training.csv", use=("bench", "core"))
    shipped = predict_runs(measurements.runs)
    return record, score_accuracy(measurements, shipped, record["left_out_step_time_s"])


def test_figures_of_the_page_are_those_of_the_model(published):
    record, accuracy = published
    now = accuracy_figures(accuracy)
    assert now == pytest.approx(record["figures"], abs=5e-4), "the model has changed: run make accuracy"


def test_page_is_that_of_the_model(published):
    record, accuracy = published
    whole = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    page = whole.removesuffix(doctor_section_of(whole))
    assert [line.split("|")[1] for line in page.splitlines() if line.startswith("|")] == [
        line.split("|")[1]
        for line in accuracy_markdown(accuracy, record["figures"]).splitlines()
        if line.startswith("|")
    ], "run make accuracy"


def test_every_bar_has_a_figure(published):
    _, accuracy = published
    assert {bar.figure for bar in BARS} == set(accuracy_figures(accuracy))


@pytest.mark.parametrize(
    ("value", "met"), [(0.74, False), (0.75, True), (0.88, True), (0.89, False), (-0.8, False)]
)
def test_bar_holds_between_its_ends(value, met):
    assert Bar(figure="coverage", words="", low=0.75, high=0.88).met(value) is met


def test_bar_compares_a_bias_by_its_size():
    assert not Bar(figure="bias", words="", high=0.05).met(-0.06)


def test_judged_bars_does_not_keep_a_bar_without_figure():
    assert not any(met for _, _, met in judged_bars({}))


def test_accuracy_figures_worked_by_hand(write_runs, row):
    rows = [
        row(id="A-1", step_time_s="1"),
        row(id="A-2", step_time_s="1"),
        row(id="B-1", step_time_s="1"),
        row(id="VTRAIN-S0001", step_time_s="1"),
        row(id="A-3", gpu="Abacus"),
    ]
    measurements = read_measurements(write_runs(*rows))
    shipped = predict_runs(measurements.runs).with_step_times(np.array([1.1, 0.7, 1.6, 2.0]))
    left_out = {"A-1": 2.0, "A-2": 1.0, "B-1": 1.0, "VTRAIN-S0001": 1.0}
    figures = accuracy_figures(score_accuracy(measurements, shipped, left_out))
    assert figures["scored"] == pytest.approx(0.8)
    assert figures["median"] == pytest.approx(0.3)
    assert figures["mape"] == pytest.approx(1.0 / 3)
    assert figures["sources"] == pytest.approx((0.2 + 0.6 + 1.0) / 3)
    assert figures["sources_left_out"] == pytest.approx(0.5 / 3)
    assert figures["vtrain_s"] == pytest.approx(1.0)
    assert figures["largest_class_bias"] == pytest.approx((0.1 - 0.3 + 0.6 + 1.0) / 4)
    assert "vtrain_m" not in figures


def test_score_accuracy_has_no_left_out_figures_when_a_run_is_new(write_runs, row):
    measurements = read_measurements(write_runs(row()))
    accuracy = score_accuracy(measurements, predict_runs(measurements.runs), {"other": 1.0})
    assert accuracy.left_out is None
    assert "not known" in accuracy_markdown(accuracy, accuracy_figures(accuracy))
