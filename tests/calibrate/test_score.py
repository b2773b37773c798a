from dataclasses import replace

import numpy as np
import pytest

from linkwise.calibrate.measured import read_measurements
from linkwise.calibrate.predict import filled_cells, predict_runs
from linkwise.calibrate.score import score_errors, score_groups
from linkwise.estimate.terms import STEP_PARTS


@pytest.fixture
def five(write_runs, row):
    """Return five runs of 1 s measured, predicted at 0.9, 1.0, 1.1, 1.2 and 1.5 s."""
    rows = [row(id=f"{name}-1", step_time_s="1") for name in "AAABB"]
    runs = read_measurements(write_runs(*rows)).runs
    predicted = predict_runs(runs, intervals=lambda _key: (0.85, 1.15))
    return predicted.with_step_times(np.array([0.9, 1.0, 1.1, 1.2, 1.5]))


def test_score_errors_of_five_rows_worked_by_hand(five):
    score = score_errors(five)
    assert score.scored == 5
    assert score.median_abs_error_fraction == pytest.approx(0.1)
    assert score.mape_fraction == pytest.approx(0.18)
    assert score.bias_fraction == pytest.approx(0.14)
    assert score.p90_abs_error_fraction == pytest.approx(0.38)  # 0, 0.1, 0.1, 0.2, 0.5: 0.2 + 0.6 x 0.3
    # 0.765 to 1.035, 0.85 to 1.15, 0.935 to 1.265 hold 1 s; 1.02 to 1.38 and 1.275 to 1.725 do not
    assert score.interval_coverage_fraction == pytest.approx(0.6)
    assert score.interval_median_width_fraction == pytest.approx(0.3)


def test_score_errors_of_nothing_is_none(five):
    assert score_errors(five.take(np.array([], dtype=np.intp))) is None


def test_score_groups_has_every_property_and_each_row_once_in_it(five):
    groups = score_groups(five)
    for key in ("source", "gpu", "framework", "family", "kind", "interconnect", "complete"):
        assert sum(group.score.scored for group in groups if group.key == key) == 5
    by_source = {group.name: group.score for group in groups if group.key == "source"}
    assert by_source["A"].mape_fraction == pytest.approx(0.2 / 3)
    assert by_source["B"].bias_fraction == pytest.approx(0.35)


def test_predict_runs_has_parts_that_sum_to_the_step(write_runs, row):
    predicted = predict_runs(read_measurements(write_runs(row(), row(pp="2", dp="2"))).runs)
    assert tuple(predicted.parts) == STEP_PARTS
    assert sum(predicted.parts.values()) == pytest.approx(predicted.step_time_s)
    assert np.all(predicted.low_s < predicted.step_time_s)
    assert np.all(predicted.step_time_s < predicted.high_s)


def test_predict_runs_of_nothing_is_empty():
    assert predict_runs(()).step_time_s.shape == (0,)


def test_predict_runs_is_the_same_in_pieces(write_runs, row, monkeypatch):
    runs = read_measurements(
        write_runs(*(row(micro_batch="", recompute="", tp=t, dp=d) for t, d in ("18", "24", "42")))
    ).runs
    whole = predict_runs(runs)
    monkeypatch.setattr("linkwise.calibrate.predict._RUNS_AT_ONCE", 2)
    pieces = predict_runs(runs)
    assert np.array_equal(whole.step_time_s, pieces.step_time_s)
    assert whole.layouts == pieces.layouts


@pytest.mark.parametrize(
    ("cells", "filled"),
    [
        ({}, ()),
        ({"recompute": "", "micro_batch": ""}, ("recompute", "micro_batch")),
        ({"zero_stage": ""}, ("zero_stage",)),
        ({"zero_stage": "", "tp": "8", "dp": "1"}, ()),
        ({"seq_parallel": ""}, ("seq_parallel",)),
        ({"seq_parallel": "", "tp": "1", "dp": "8"}, ()),
        ({"pp": "2", "dp": "2", "framework": "NeMo", "framework_family": "megatron"}, ("vpp",)),
        ({"n_gpus": "16", "dp": "8"}, ("inter_gbps_per_node",)),
    ],
)
def test_filled_cells_are_the_blanks_that_had_a_choice(write_runs, row, cells, filled):
    (run,) = read_measurements(write_runs(row(**cells))).runs
    assert filled_cells(run) == filled


def test_predict_runs_fills_blanks(write_runs, row):
    predicted = predict_runs(read_measurements(write_runs(row(recompute="", micro_batch=""))).runs)
    (layout,) = predicted.layouts
    assert layout.recompute == 0  # it fits without
    assert layout.micro_batch in (1, 2, 4)


def test_with_step_times_scales_parts_and_interval(five):
    doubled = five.with_step_times(2 * five.step_time_s)
    assert doubled.high_s == pytest.approx(2 * five.high_s)
    assert sum(doubled.parts.values()) == pytest.approx(doubled.step_time_s)
    assert replace(doubled, step_time_s=five.step_time_s).error_fraction == pytest.approx(five.error_fraction)
