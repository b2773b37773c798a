"""Rates of groups through shared links up: which rank order pays, and what routing and oversubscription cost."""

import pytest

from linkwise.cluster.reading import parse_cluster
from linkwise.estimate import estimate_layout
from linkwise.estimate.crossing import TIER_COLUMNS, tier_columns
from linkwise.job.reading import parse_job
from linkwise.layout import Layout, RankOrder

JOB = parse_job(
    "linkwise: job/1\nkind: training\nmodel: llama-3.1-405b\nsequence_length: 8192\nglobal_batch: 512\n"
    "precision: bf16\n"
)


def _cluster(fabric):
    return parse_cluster(f"linkwise: cluster/1\nnodes: 256\nnode: dgx-h100\nfabric: {fabric}\n")


def _parts(fabric, order=RankOrder.TENSOR_CONTEXT_DATA_PIPELINE):
    layout = Layout(tensor=8, pipeline=16, data=16, micro_batch=1, zero_stage=1, rank_order=order)
    return estimate_layout(JOB, _cluster(fabric), layout)


def test_columns_without_a_fabric_are_neutral():
    columns = tier_columns(None, gpus=64, domain_gpus=8)
    assert set(columns) == set(TIER_COLUMNS)
    assert (columns["leaf_gpus"], columns["leaf_up_links"], columns["queue_pairs"]) == (64.0, 1.0, 0.0)


def test_a_fabric_that_blocks_nothing_costs_nothing_whatever_the_order():
    times = {_parts("{routing: spray}", order).step_time_s for order in RankOrder}
    assert len({round(time, 9) for time in times}) == 1


def test_hashes_slow_the_groups_that_leave_their_leaves():
    """Data ranks side by side keep rings on their leaf and send stages across, the other order the reverse."""
    even, hashed = (
        _parts(fabric, RankOrder.TENSOR_CONTEXT_PIPELINE_DATA)
        for fabric in ("{routing: adaptive}", "{routing: ecmp}")
    )
    assert hashed.step_time_s > even.step_time_s
    assert hashed.parts["data"] > even.parts["data"]
    near = _parts("{routing: ecmp}")
    assert near.parts["data"] < hashed.parts["data"]
    assert near.parts["pipeline"] > _parts("{routing: adaptive}").parts["pipeline"]


@pytest.mark.parametrize("order", list(RankOrder))
def test_more_queue_pairs_and_less_oversubscription_never_cost_more(order):
    pairs = [_parts(f"{{routing: {{ecmp: {{queue_pairs: {q}}}}}}}", order).step_time_s for q in (1, 2, 4, 16)]
    assert pairs == sorted(pairs, reverse=True)
    ratios = [_parts(f"{{oversubscription: {ratio}}}", order).step_time_s for ratio in (1, 2, 4, 8)]
    assert ratios == sorted(ratios)
    assert ratios[-1] > ratios[0]
