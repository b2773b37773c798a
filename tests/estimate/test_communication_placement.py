"""Where groups sit and what that costs, term by term, against values worked by hand."""

import numpy as np
import pytest

from linkwise.cluster import load_cluster
from linkwise.estimate.columns import Evaluation, Table
from linkwise.estimate.terms import TERMS
from linkwise.layout import RankOrder
from linkwise.network.cluster_setting import setting_of
from linkwise.network.collective_time import collective_times
from linkwise.network.group_times import GENERATIONS

DATA_FIRST = RankOrder.TENSOR_CONTEXT_DATA_PIPELINE
STAGES_FIRST = RankOrder.TENSOR_CONTEXT_PIPELINE_DATA


def value(name, **columns):
    fixed = {column: np.array([float(given)]) for column, given in columns.items()}
    return Evaluation(Table(rows=1, fixed=fixed), TERMS).fixed(name)


@pytest.mark.parametrize(
    ("order", "gradient", "stages", "across"),
    # Tensor 2 and pipeline 4 over 64 GPUs in nodes of 8: the data ranks fill a node, or the stages do.
    [(DATA_FIRST, 4, 1, 1.0), (STAGES_FIRST, 1, 4, 0.0)],
)
def test_rank_order_says_which_groups_share_a_node(order, gradient, stages, across):
    columns = {
        "tensor": 2, "context": 1, "pipeline": 4, "data": 8, "rank_order": order, "domain_gpus": 8,
    }  # fmt: skip
    assert value("gradient_local", **columns) == gradient
    assert value("stages_per_domain", **columns) == stages
    assert value("hop_share_across", **columns) == across


def test_hops_leave_the_domain_once_in_every_domain_of_stages():
    columns = {
        "tensor": 2,
        "context": 1,
        "pipeline": 16,
        "data": 2,
        "rank_order": STAGES_FIRST,
        "domain_gpus": 8,
    }
    # four stages a node: 3 of 15 hops go between nodes
    assert value("hop_share_across", **columns) == pytest.approx(3 / 15)


def test_hop_carries_the_share_of_a_tensor_rank():
    columns = {
        "element_bytes": 2,
        "tokens": 2048,
        "hidden": 12288,
        "tensor": 8,
        "hop_nic_bytes_per_s": 25e9,
        "network_latency_s": 5e-6,
    }
    # 2 x 2048 x 12288 bytes are 50.3 MB; an eighth of it takes 252 us at 25 GB/s
    cut = value("hop_across_s", hop_cut=1, hop_latencies=1, **columns)
    assert cut == pytest.approx(5e-6 + 50331648 / 8 / 25e9)
    assert value("hop_across_s", hop_cut=0, hop_latencies=2, **columns) == pytest.approx(
        1e-5 + 50331648 / 25e9
    )


def test_sharded_optimizer_pays_one_pass_for_gradients_and_one_for_parameters():
    setting, sizes = setting_of(load_cluster("dgx-h100:1")), np.array([4e9, 2e9])
    seconds = value(
        "gradient_scatter_gather_s",
        gradient_ranks=8,
        gradient_local=8,
        gradient_bytes=sizes[0],
        stage_parameter_bytes=sizes[1],
        collective_generation=GENERATIONS.index("hopper"),
        collective_network=0,
        nvlink_bytes_per_s=450e9,
        gradient_nic_bytes_per_s=50e9,
        network_latency_s=0,
        nvlink_latency_factor=1,
        network_latency_factor=1,
    )
    scattered = collective_times("reduce_scatter", setting, sizes[:1]).time_s[0]
    gathered = collective_times("all_gather", setting, sizes[1:]).time_s[0]
    assert seconds == pytest.approx(scattered + gathered)
