"""Terms of the schedule, one by one, against values worked by hand."""

import numpy as np
import pytest

from linkwise.estimate.columns import Evaluation, Table
from linkwise.estimate.terms import TERMS
from linkwise.layout import Schedule
from tests.estimate.played_1f1b import played


def value(name, **columns):
    fixed = {column: np.array([float(given)]) for column, given in columns.items()}
    return Evaluation(Table(rows=1, fixed=fixed), TERMS).fixed(name)


def test_micro_batches_count_the_last_one_whole():
    assert value("micro_batches", global_batch=1024, data=16, micro_batch=2) == 32
    assert value("micro_batches", global_batch=100, data=16, micro_batch=2) == 4


@pytest.mark.parametrize(
    ("layers", "pipeline", "fullest", "last"),
    [
        (80, 4, 20, 20),
        (126, 16, 8, 7),  # Llama 3 405B: embedding and loss take the place of a layer each
        (61, 16, 4, 3),  # 61 + 2 does not divide: whole layers, the last stage has fewer
        (10, 1, 10, 10),
    ],
)
def test_stages_hold_whole_layers(layers, pipeline, fullest, last):
    columns = {"layers": layers, "pipeline": pipeline, "virtual_pipeline": 1}
    assert value("stage_layers", **columns) == fullest
    assert value("last_stage_layers", **columns) == last


@pytest.mark.parametrize(
    ("schedule", "depth", "stages"),
    [
        (Schedule.ONE_F_1F1B, 1, 7),
        (Schedule.GPIPE, 1, 7),
        (Schedule.ONE_F_1F1B, 7, 1),
        (Schedule.ZERO_BUBBLE, 1, 7 / 3),
    ],
)
def test_bubble_in_stages(schedule, depth, stages):
    # 1F1B and GPipe: p - 1; interleaved: (p - 1)/v; H1 of zero bubble: a third, where F = B = W
    bubble = value(
        "bubble_s", pipeline=8, virtual_pipeline=depth, schedule=schedule, mean_stage_s=1, layer_compute_s=3,
        linear_forward_s=1, expert_forward_s=0, kernel_factor=1,
    )  # fmt: skip
    assert bubble == pytest.approx(stages)


def test_slowest_stage_is_the_one_with_the_loss_when_stages_are_even():
    columns = {"stage_layers": 4, "layer_compute_s": 0.9, "layer_exposed_s": 0.1, "logits_s": 0.5}
    assert value("slowest_stage_s", last_stage_layers=4, **columns) == pytest.approx(4.5)
    assert value("slowest_stage_s", last_stage_layers=3, **columns) == pytest.approx(4.0)


def test_overhead_grows_with_every_doubling_above_a_node():
    fractions = {"framework_overhead_fraction": 0.05, "straggler_fraction": 0.01, "step_fixed_s": 0.5}
    assert value("overhead_s", known_s=10, gpus=8, **fractions) == pytest.approx(0.5 + 0.5)
    assert value("overhead_s", known_s=10, gpus=64, **fractions) == pytest.approx(0.8 + 0.5)


@pytest.mark.parametrize(
    ("pipeline", "stages_per_domain", "hops"),
    [
        (2, 1, [1]),
        (4, 1, [1, 1, 1]),
        (8, 1, [1] * 7),
        (4, 2, [0, 1, 0]),
        (8, 2, [0, 1, 0, 1, 0, 1, 0]),
        (8, 4, [0, 0, 0, 1, 0, 0, 0]),
    ],
)
@pytest.mark.parametrize("rounds", [1, 2, 3, 5])
def test_exchanges_that_1f1b_waits_for_are_those_of_the_schedule_played_through(
    pipeline, stages_per_domain, hops, rounds
):
    micro_batches = rounds * pipeline
    waits = played(pipeline, micro_batches, hops) - played(pipeline, micro_batches, [0] * len(hops))
    columns = {
        "micro_batches": micro_batches,
        "pipeline": pipeline,
        "stages_per_domain": stages_per_domain,
        "hop_share_across": sum(hops) / len(hops),
    }
    told = value(
        "pipeline_s",
        hop_exposed_fraction=value("hop_turn_fraction", **columns),
        virtual_pipeline=1,
        schedule=0,
        hop_across_s=1.0,
        hop_inside_s=0.0,
        gpipe_hops_s=0.0,
        **columns,
    )
    assert told == pytest.approx(waits)


def test_without_hops_the_schedule_played_through_is_its_closed_form():
    assert played(4, 8, [0, 0, 0]) == pytest.approx((8 + 4 - 1) * 30.0)
