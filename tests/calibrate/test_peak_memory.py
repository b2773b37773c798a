from dataclasses import replace

import numpy as np
import pytest

from linkwise.calibrate.measured import read_measurements
from linkwise.calibrate.peak_memory import peak_errors, score_memory
from linkwise.calibrate.predict import predict_runs


@pytest.fixture
def predicted(write_runs, row):
    """Return a function from rows to predicted runs of 20 GB allocated, 24 GB reserved, 30 GB in all."""

    def make(*rows, available=80e9):
        known = predict_runs(read_measurements(write_runs(*rows)).runs)
        return replace(
            known,
            allocated_memory_bytes=np.full(len(rows), 20e9),
            reserved_memory_bytes=np.full(len(rows), 24e9),
            memory_bytes=np.full(len(rows), 30e9),
            memory_available_bytes=np.full(len(rows), available),
        )

    return make


def test_peak_errors_compare_like_with_like(predicted, row):
    found = predicted(
        row(peak_mem_gb="25", peak_mem_kind="allocated", peak_mem_unit="GB"),
        row(peak_mem_gb="20", peak_mem_kind="reserved", peak_mem_unit="GiB"),
        row(peak_mem_gb="20", peak_mem_kind="unknown", peak_mem_unit="as printed"),
        row(peak_mem_gb=""),
        row(peak_mem_gb="20", peak_mem_kind="reserved", recompute=""),
    )
    rows, errors = peak_errors(found)
    assert list(rows) == [0, 1, 2]
    assert errors == pytest.approx([20 / 25 - 1, 24 / (20 * 1.073741824) - 1, 24 / 20 - 1])


def test_score_memory_counts_runs_that_are_said_not_to_fit(predicted, row):
    assert score_memory(predicted(row(), row())).infeasible == 0
    score = score_memory(predicted(row(), row(id="MINE-002"), available=29e9))
    assert score.infeasible_ids == ("MINE-001", "MINE-002")
    assert score.infeasible_fraction == 1.0
    assert score.median_abs_error_fraction is None
