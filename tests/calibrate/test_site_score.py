"""Scores of calibration on published runs, and the page that states them."""

from pathlib import Path

import numpy as np
import pytest

from linkwise.calibrate.collective_runs import read_collectives
from linkwise.calibrate.measured import read_measurements
from linkwise.calibrate.site_score import layout_gains, node_gains, size_gains

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"


@pytest.fixture(scope="module")
def collectives():
    return read_collectives(DATA / "collectives.csv", DATA / "collective_runs.csv").runs


def test_large_sizes_of_every_run_are_scored_from_small_ones(collectives):
    few = [run for run in collectives if run.setting.group.domains > 1][:8]
    gains = size_gains(few)
    able = [
        run
        for run in few
        if run.status == "healthy"
        and np.sum(run.size_bytes <= 2**24) >= 2
        and np.max(run.size_bytes) >= 2**26
    ]
    assert [each.identity for each in gains] == [run.identity for run in able]
    assert all(each.after_fraction < 0.5 for each in gains)


def test_more_nodes_are_scored_from_two_of_the_same_kind(collectives):
    names = ("abci-a100-2n16g-ar", "abci-a100-4n32g-ar")
    runs = [run for run in collectives if run.identity in names]
    assert [each.identity for each in node_gains(runs)] == ["abci-a100-4n32g-ar"]
    assert node_gains(runs[:1]) == ()


def test_page_states_what_the_groups_give():
    runs = read_measurements(DATA / "training.csv", use=("bench", "core")).runs
    (gain,) = layout_gains([run for run in runs if run.source == "MTNLG"])
    assert gain.layouts == len(gain.pair_fractions) == 3
    assert gain.reached
    assert gain.chosen_reached
    row = f"| {gain.name} | 3 | {100 * gain.before_fraction:.1f} | {100 * gain.after_fraction:.1f} | yes |"
    assert row in (ROOT / "docs" / "calibration.md").read_text(encoding="utf-8")


def test_group_that_is_predicted_well_is_no_group_to_calibrate():
    runs = read_measurements(DATA / "training.csv", use=("bench", "core")).runs
    assert layout_gains([run for run in runs if run.source == "MEGASC"]) == ()
