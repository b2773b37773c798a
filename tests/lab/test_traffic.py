"""The calls of a step against hand-worked counts, and against the gradients of the estimate."""

import pytest

from linkwise.lab.traffic import calls_of, mesh_of, parameters_of, step_loads
from linkwise.layout import Layout, RankOrder
from linkwise.model import make_model, parameter_counts
from tests.lab.test_design import cluster, design_of

MODEL = make_model(
    name="small", layers=4, hidden=128, heads=8, kv_heads=4, head_dim=16, v_head_dim=16, vocab=256, ffn=352
)
DESIGN = design_of(cluster(nodes=2, gpus=2))
TOKENS = 128


def nic_bytes(layout, micro_batches=2):
    mesh = mesh_of(layout, DESIGN)
    calls = calls_of(MODEL, layout, mesh, tokens=TOKENS, micro_batches=micro_batches)
    loads = step_loads(calls, DESIGN)
    return max((load for link, load in loads.items() if link.device == "eth0"), default=0.0)


def test_parameters_are_those_of_the_model():
    shapes = parameters_of(MODEL, tensor=1)
    size = {name: sum(rows * columns for rows, columns in each) for name, each in shapes.items()}
    assert 4 * size["layer"] + size["first"] + size["last"] == parameter_counts(MODEL).total == 803_968


@pytest.mark.parametrize(
    ("layout", "counted_mb"),
    [
        # counted on the NIC of a node, two nodes of two ranks, torch 2.13.0, 2 micro-batches of 2 x 64 tokens
        (Layout(data=4), 4.834),
        (Layout(data=4, zero_stage=3), 18.935),
        (Layout(tensor=4, data=1), 3.202),
        (Layout(tensor=2, data=2), 3.489),
        (Layout(tensor=2, data=2, zero_stage=3), 13.428),
    ],
)
def test_bytes_of_a_step_are_those_counted(layout, counted_mb):
    assert nic_bytes(layout) == pytest.approx(1e6 * counted_mb, rel=0.03)


def test_a_pipeline_sends_activations_and_their_gradients():
    # 4 micro-batches of 128 tokens x 128 x 4 bytes between the second stage and the third, each way
    # and 48 bytes three times a message: two with it, one with that of the other way
    assert nic_bytes(Layout(pipeline=4, data=1), micro_batches=4) == 4 * (128 * 128 * 4 + 3 * 48)


def test_rank_order_places_stages_or_replicas_side_by_side():
    stages_apart = Layout(pipeline=2, data=2)
    side_by_side = Layout(pipeline=2, data=2, rank_order=RankOrder.TENSOR_CONTEXT_PIPELINE_DATA)
    assert mesh_of(stages_apart, DESIGN) == [[[0], [1]], [[2], [3]]]
    assert mesh_of(side_by_side, DESIGN) == [[[0], [2]], [[1], [3]]]
    # replicas in other nodes: the gradients of two layers cross instead of the activations
    assert nic_bytes(side_by_side) > 5 * nic_bytes(stages_apart)
