"""Groups worked by hand."""

from dataclasses import replace

import numpy as np
import pytest

from linkwise.calibrate.measured import read_measurements
from linkwise.calibrate.predict import predict_runs
from linkwise.calibrate.regret import LayoutTimes, RegretGroup, regret_groups, regret_of, score_regret


def _layout(measured_s, predicted_s, *, fits=True):
    return LayoutTimes(
        name=f"{measured_s}/{predicted_s}", measured_s=measured_s, predicted_s=predicted_s, fits=fits
    )


def _group(regret):
    return RegretGroup(source="A", name=f"job {regret}", layouts=3, regret_fraction=regret, reason="")


@pytest.mark.parametrize(
    ("layouts", "regret"),
    [
        # the layout ranked first is the best one measured, however wrong its time
        ([_layout(1.0, 5.0), _layout(2.0, 6.0), _layout(3.0, 7.0)], 0.0),
        # ranked first: 1.5 s; best: 1.0 s
        ([_layout(1.0, 2.0), _layout(1.5, 1.9), _layout(3.0, 7.0)], 0.5),
        # within 3 % of the best counts as best
        ([_layout(1.0, 2.0), _layout(1.03, 1.9), _layout(3.0, 7.0)], 0.0),
        ([_layout(1.0, 2.0), _layout(1.04, 1.9), _layout(3.0, 7.0)], 0.04),
        # a tie is averaged: half 0, half 0.5
        ([_layout(1.0, 1.9), _layout(1.5, 1.9), _layout(3.0, 7.0)], 0.25),
        # what does not fit cannot be chosen, though it would be ranked first
        ([_layout(1.0, 1.0, fits=False), _layout(1.5, 1.9), _layout(1.2, 7.0)], 0.5),
        # nothing fits: the worst
        ([_layout(1.0, 1.0, fits=False), _layout(1.5, 1.9, fits=False), _layout(4.0, 7.0, fits=False)], 3.0),
    ],
)
def test_regret_of_a_group_worked_by_hand(layouts, regret):
    assert regret_of(layouts)[0] == pytest.approx(regret)


def test_regret_of_says_that_the_best_layout_was_thought_not_to_fit():
    assert "said not to fit" in regret_of([_layout(1.0, 1.0, fits=False), _layout(1.5, 1.9)])[1]


def test_score_regret_is_mean_percentile_and_worst():
    score = score_regret([_group(0.0), _group(0.1), _group(0.2)])
    assert score.groups == 3
    assert score.mean_fraction == pytest.approx(0.1)
    assert score.p95_fraction == pytest.approx(0.19)
    assert score.max_fraction == pytest.approx(0.2)
    assert score.worst.name == "job 0.2"


def test_score_regret_of_no_group_has_no_figures():
    assert score_regret([]).mean_fraction is None


@pytest.fixture
def predicted(write_runs, row):
    """Return a function from rows, and predicted times, to predicted runs that all fit."""

    def make(rows, times):
        known = predict_runs(read_measurements(write_runs(*rows)).runs).with_step_times(np.array(times))
        return replace(known, memory_available_bytes=np.full(len(rows), 1e15))

    return make


def test_regret_groups_needs_three_layouts(predicted, row):
    cuts = [{"tp": "1", "dp": "8"}, {"tp": "2", "dp": "4"}, {"tp": "4", "dp": "2"}]
    two = [row(**cuts[0]), row(**cuts[0]), row(**cuts[1])]
    assert regret_groups(predicted(two, [1.0, 1.0, 1.0])) == ()
    (group,) = regret_groups(predicted([row(**cut) for cut in cuts], [1.0, 2.0, 3.0]))
    assert group.layouts == 3
    assert group.source == "MINE"


def test_regret_groups_takes_repeats_by_their_median(predicted, row):
    first, second, third = {"tp": "1", "dp": "8"}, {"tp": "2", "dp": "4"}, {"tp": "4", "dp": "2"}
    rows = [
        row(**first, step_time_s="2"),
        row(**first, step_time_s="9"),
        row(**first, step_time_s="1.5"),  # median 2
        row(**second, step_time_s="1"),
        row(**third, step_time_s="3"),
    ]
    (group,) = regret_groups(predicted(rows, [1.0, 1.0, 1.0, 2.0, 3.0]))
    assert group.layouts == 3
    assert group.regret_fraction == pytest.approx(1.0)


@pytest.mark.parametrize(
    "other",
    [
        {"global_batch": "32"},
        {"seq": "512"},
        {"framework": "NeMo"},
        {"id": "OTHER-1"},
        {"hidden": "1024"},
        {"precision": "bf16"},
    ],
)
def test_regret_groups_keeps_apart_what_is_another_job(predicted, row, other):
    rows = [row(tp="1", dp="8"), row(tp="2", dp="4"), row(tp="4", dp="2", **other)]
    assert regret_groups(predicted(rows, [1.0, 2.0, 3.0])) == ()


def test_regret_groups_takes_blank_interleaving_of_one_stage_for_one(predicted, row):
    rows = [row(tp="1", dp="8"), row(tp="1", dp="8", vpp="1"), row(tp="2", dp="4")]
    assert regret_groups(predicted(rows, [1.0, 2.0, 3.0])) == ()
