"""Terms of the memory, one by one, against values worked by hand; activations also in tests/crosscheck."""

import numpy as np
import pytest

from linkwise.estimate.columns import Evaluation, Table
from linkwise.estimate.terms import TERMS
from linkwise.layout import Schedule


def value(name, **columns):
    fixed = {column: np.array([float(given)]) for column, given in columns.items()}
    return Evaluation(Table(rows=1, fixed=fixed), TERMS).fixed(name)


@pytest.mark.parametrize(
    ("zero_stage", "weights", "gradients", "optimizer"),
    # Rajbhandari et al., 2020, figure 1: 7.5 billion parameters on 64 GPUs take 120, 31.4, 16.6 and 1.88 GB
    [
        (0, 15.0, 15.0, 90.0),
        (1, 15.0, 15.0, 1.40625),
        (2, 15.0, 0.234375, 1.40625),
        (3, 0.234375, 0.234375, 1.40625),
    ],
)
def test_sharding_is_that_of_the_first_figure_of_zero(zero_stage, weights, gradients, optimizer):
    columns = {
        "stage_dense_parameters": 7.5e9, "stage_expert_parameters": 0, "expert_replicas": 64, "zero_stage": zero_stage,
        "shard_ranks": 64, "weight_element_bytes": 2, "gradient_store_bytes": 2, "optimizer_state_bytes": 12,
    }  # fmt: skip
    assert value("weight_memory_bytes", **columns) == pytest.approx(weights * 1e9)
    assert value("gradient_memory_bytes", **columns) == pytest.approx(gradients * 1e9)
    assert value("optimizer_memory_bytes", **columns) == pytest.approx(optimizer * 1e9)


def test_experts_are_sharded_over_those_that_hold_the_same():
    columns = {
        "stage_dense_parameters": 0, "stage_expert_parameters": 1e9, "expert_replicas": 4, "zero_stage": 1,
        "shard_ranks": 64, "optimizer_state_bytes": 12,
    }  # fmt: skip
    assert value("optimizer_memory_bytes", **columns) == pytest.approx(3e9)


@pytest.mark.parametrize(
    ("schedule", "depth", "micro_batches", "held"),
    [
        (Schedule.ONE_F_1F1B, 1, 64, 8),
        (Schedule.ONE_F_1F1B, 1, 3, 3),
        (
            Schedule.ONE_F_1F1B,
            3,
            64,
            8 + 7 / 3,
        ),  # Korthikanti et al., 2022, section 4.2.3: L (1 + (p-1)/(p v))
        (Schedule.GPIPE, 1, 64, 64),
        (Schedule.ZERO_BUBBLE, 1, 64, 8),
    ],
)
def test_micro_batches_in_flight_on_the_first_stage(schedule, depth, micro_batches, held):
    layers = value(
        "layers_in_flight",
        stage_layers=12,
        pipeline=8,
        virtual_pipeline=depth,
        schedule=schedule,
        micro_batches=micro_batches,
    )
    assert layers == pytest.approx(12 * held)


def test_nothing_is_gathered_without_full_sharding():
    columns = dict.fromkeys(
        (
            "shard_ranks", "pipeline", "layer_parameters", "layer_expert_parameters", "expert", "expert_tensor", "tensor",
            "embedding_parameters", "stage_dense_parameters", "stage_expert_parameters", "gather_element_bytes",
            "gradient_element_bytes",
        ),
        2,
    )  # fmt: skip
    assert value("gathered_memory_bytes", zero_stage=2, **columns) == 0
    # two layers of (2/2 + 2/4) and a table of 2/2 at 2 bytes, and the gradient of the layer; no pipeline
    assert value("gathered_memory_bytes", zero_stage=3, **{**columns, "pipeline": 1}) == pytest.approx(11.0)
