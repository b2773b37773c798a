"""Columns of groups against the time of one group, and against what `linkwise collective` says."""

import numpy as np
import pytest

from linkwise.cluster import load_cluster
from linkwise.estimate.inputs import gpu_inputs
from linkwise.job.framework import FRAMEWORKS
from linkwise.network.cluster_setting import network_of, setting_of
from linkwise.network.collective_time import collective_times
from linkwise.network.group_times import GENERATIONS, NETWORKS, group_times_s, hop_latency_s
from linkwise.network.setting import OPERATIONS

SIZES = 2.0 ** np.arange(10, 34)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    "name",
    ["dgx-1-v100:4", "dgx-a100:1", "dgx-a100:16", "dgx-h100:2", "dgx-b200:8", "gb200-nvl72:36", "aws-p5:4"],
)
def test_all_gpus_of_a_cluster_take_what_collective_says(name, operation):
    cluster = load_cluster(name)
    code = gpu_inputs(cluster.gpu, precision="fp16", framework=FRAMEWORKS["megatron"])[
        "collective_generation"
    ]
    times = group_times_s(
        operation,
        ranks=np.array([float(cluster.gpus)]),
        local=np.array([float(cluster.nvlink_domain_gpus)]),
        size_bytes=SIZES,
        generation=np.array([code]),
        network=np.array([float(NETWORKS.index(network_of(cluster)))]),
        link_bytes_per_s=np.array([cluster.gpu.nvlink_bytes_per_s]),
        nic_bytes_per_s=np.array([cluster.gpu_network_bytes_per_s]),
    )
    assert times == pytest.approx(collective_times(operation, setting_of(cluster), SIZES).time_s)


def _columns(count, seed=0):
    random = np.random.default_rng(seed)
    local = 2.0 ** random.integers(0, 4, count)
    return {
        "ranks": local * random.integers(1, 5, count),
        "local": local,
        "size_bytes": 10.0 ** random.uniform(3, 9, count),
        "generation": random.integers(1, len(GENERATIONS), count).astype(float),
        "network": random.integers(1, len(NETWORKS), count).astype(float),
        "link_bytes_per_s": random.choice([150e9, 300e9, 450e9], count),
        "nic_bytes_per_s": random.choice([12.5e9, 50e9], count),
    }


@pytest.mark.parametrize("operation", ["all_reduce", "all_to_all"])
def test_groups_in_a_column_take_what_each_takes_alone(operation):
    columns = _columns(60)
    together = group_times_s(operation, **columns)
    for row in range(60):
        alone = {name: values[row : row + 1] for name, values in columns.items()}
        assert together[row] == group_times_s(operation, **alone)[0]


def test_columns_broadcast_and_one_rank_takes_no_time():
    columns = _columns(1)
    ranks = np.array([[1.0], [8.0], [64.0]])
    grid = group_times_s(
        "all_gather", **{**columns, "ranks": ranks, "local": np.array([1.0]), "size_bytes": SIZES}
    )
    assert grid.shape == (3, len(SIZES))
    assert (grid[0] == 0.0).all()
    assert (np.diff(grid[:, -1]) > 0).all()


def test_columns_too_long_to_keep_are_priced_alike():
    columns = _columns(40)
    many = {name: np.tile(values, 400) for name, values in columns.items()}
    assert group_times_s("all_gather", **many) == pytest.approx(
        np.tile(group_times_s("all_gather", **columns), 400)
    )


def test_hops_of_slower_networks_take_longer():
    verbs, sockets = hop_latency_s(
        np.array([float(NETWORKS.index(name)) for name in ("infiniband", "sockets")])
    )
    assert 0 < verbs < sockets
