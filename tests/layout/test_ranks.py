"""Where ranks sit, against the groups that Megatron makes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.layout import Layout, RankOrder, rank_places

degrees = st.sampled_from([1, 2, 3, 4, 8])


@given(degrees, degrees, degrees, degrees, st.sampled_from(RankOrder))
def test_every_place_has_one_rank(tensor, context, pipeline, data, order):
    layout = Layout(tensor=tensor, context=context, pipeline=pipeline, data=data, rank_order=order)
    places = rank_places(layout, 8)
    names = ("tensor", "context", "data", "pipeline")
    seen = set(zip(*(places[name].tolist() for name in names), strict=True))
    assert len(seen) == len(places["rank"]) == tensor * context * pipeline * data
    for name, degree in zip(names, (tensor, context, data, pipeline), strict=True):
        assert set(places[name].tolist()) == set(range(degree))


@given(degrees, degrees, degrees, st.sampled_from([1, 2, 4, 8]), st.sampled_from(RankOrder))
def test_expert_groups_are_whole_and_inside_a_stage(tensor, pipeline, data, expert, order):
    if (data * tensor) % expert or (expert <= data and data % expert):
        return
    layout = Layout(tensor=tensor, pipeline=pipeline, data=data, expert=expert, rank_order=order)
    places = rank_places(layout, 8)
    for stage in range(pipeline):
        numbers = places["expert"][places["pipeline"] == stage]
        assert np.all(np.bincount(numbers, minlength=expert) == data * tensor // expert)


def test_default_order_is_tensor_data_pipeline():
    # Megatron, 16 ranks, tensor 2, pipeline 4: data groups [0, 2], [1, 3], ...; pipeline groups [0, 4, 8, 12], ...
    places = rank_places(Layout(tensor=2, pipeline=4, data=2), 8)
    assert places["tensor"].tolist() == [0, 1] * 8
    assert places["data"].tolist() == [0, 0, 1, 1] * 4
    assert places["pipeline"].tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4
    assert places["node"].tolist() == [0] * 8 + [1] * 8
    assert places["gpu"].tolist() == list(range(8)) * 2


def test_stages_may_sit_inside():
    order = RankOrder.TENSOR_CONTEXT_PIPELINE_DATA
    places = rank_places(Layout(tensor=2, pipeline=2, data=2, rank_order=order), 8)
    assert places["pipeline"].tolist() == [0, 0, 1, 1] * 2
    assert places["data"].tolist() == [0] * 4 + [1] * 4


@pytest.mark.parametrize(
    ("expert", "numbers"), [(2, [0, 0, 1, 1, 0, 0, 1, 1]), (8, [0, 1, 2, 3, 4, 5, 6, 7])]
)
def test_experts_go_over_data_ranks_and_then_over_tensor_ranks_too(expert, numbers):
    assert rank_places(Layout(tensor=2, data=4, expert=expert), 8)["expert"].tolist() == numbers
