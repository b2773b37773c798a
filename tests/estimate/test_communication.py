"""Communication terms against values worked by hand."""

import numpy as np
import pytest

from linkwise.cluster import load_cluster
from linkwise.estimate.terms import TERMS
from linkwise.network.cluster_setting import setting_of
from linkwise.network.collective_time import collective_times
from linkwise.network.group_times import GENERATIONS, NETWORKS, ring_share

GB = 1e9


def value(name, **columns):
    term = TERMS[name]
    return float(term.function(*(np.array([float(columns[each])]) for each in term.inputs))[0])


LINKS = {
    "collective_generation": GENERATIONS.index("hopper"),
    "collective_network": NETWORKS.index("infiniband"),
    "nvlink_bytes_per_s": 450 * GB,
    "network_latency_s": 5e-6,
    "nvlink_latency_factor": 1.0,
    "network_latency_factor": 1.0,
}
"""Links of a DGX H100."""


def nccl_s(operation, size_bytes, *, cluster="dgx-h100:1"):
    """Return what `linkwise collective` says of all GPUs of a cluster."""
    return collective_times(
        operation, setting_of(load_cluster(cluster)), np.array([float(size_bytes)])
    ).time_s[0]


def test_tensor_collective_is_what_nccl_takes():
    columns = {
        "element_bytes": 2, "tokens": 8192, "hidden": 8192, "tensor": 8, "tensor_local": 8, **LINKS,
        "tensor_nic_bytes_per_s": 50 * GB,
    }  # fmt: skip
    buffer = 2 * 8192 * 8192
    plain = value("tensor_collective_s", sequence_parallel=0, **columns)
    assert plain == pytest.approx(nccl_s("all_reduce", buffer))
    halves = nccl_s("all_gather", buffer) + nccl_s("reduce_scatter", buffer)
    assert value("tensor_collective_s", sequence_parallel=1, **columns) == pytest.approx(halves)


def test_tensor_collective_over_two_nodes_pays_the_nics():
    columns = {
        "element_bytes": 2, "tokens": 8192, "hidden": 8192, "tensor": 16, "tensor_local": 8, "sequence_parallel": 0,
        **LINKS,
    }  # fmt: skip
    buffer = 2 * 8192 * 8192
    whole = value("tensor_collective_s", tensor_nic_bytes_per_s=50 * GB, **columns)
    assert whole == pytest.approx(nccl_s("all_reduce", buffer, cluster="dgx-h100:2"))
    assert value("tensor_collective_s", tensor_nic_bytes_per_s=10 * GB, **columns) > 2 * whole


def test_longer_hops_than_those_of_the_network_are_added():
    columns = {
        "gradient_ranks": 64, "gradient_local": 8, "gradient_bytes": GB, "gradient_nic_bytes_per_s": 50 * GB,
    }  # fmt: skip
    near = value("gradient_all_reduce_s", **columns, **LINKS)
    far = value("gradient_all_reduce_s", **columns, **{**LINKS, "network_latency_s": 10.01e-3})
    assert far - near == pytest.approx(2 * 7 * 10e-3)


def test_context_all_to_all_swaps_queries_keys_values_and_outputs():
    columns = {
        "element_bytes": 2, "tokens": 8192, "tensor": 2, "context": 8, "context_local": 8,
        "key_value_width": 2048, "query_output_width": 16384, "context_exchange_nic_bytes_per_s": 50 * GB, **LINKS,
    }  # fmt: skip
    send = 2 * 8192 * (2048 + 16384) / 2
    seconds = value("context_all_to_all_s", core_recomputed=0, **columns)
    assert seconds == pytest.approx(2 * 4 * nccl_s("all_to_all", send / 4))
    assert value("context_all_to_all_s", core_recomputed=1, **columns) == pytest.approx(1.5 * seconds)


def test_context_exchange_chooses_the_all_to_all():
    columns = {"context": 2, "context_ring_s": 1.0, "context_all_to_all_s": 2.0, "collective_latency_s": 0}
    assert value("layer_context_s", context_exchange=0, **columns) == 1.0
    assert value("layer_context_s", context_exchange=1, **columns) == 2.0


def test_exchange_of_experts_sends_one_copy_to_each_node_it_visits():
    columns = {
        "element_bytes": 2, "tokens": 4096, "tensor": 1, "hidden": 7168, "expert": 64, "expert_local": 8,
        "moe_fraction": 0.5, "experts_per_token": 8, "expert_nic_bytes_per_s": 50 * GB, **LINKS,
    }  # fmt: skip
    visited = 8 * (1 - (7 / 8) ** 8)
    call = nccl_s("all_to_all", 2 * 4096 * visited * 7168, cluster="dgx-h100:8")
    assert value("layer_exchange_s", recompute=0, **columns) == pytest.approx(0.5 * 4 * call)
    assert value("layer_exchange_s", recompute=2, **columns) == pytest.approx(0.5 * 6 * call)
    assert value("layer_expert_s", layer_exchange_s=2.0, expert_exposed_fraction=0.25) == 0.5


def test_plain_tcp_offers_what_its_streams_reach():
    """Rings over sockets reach 0.87 x 0.6 of what they are offered; what a step reaches was fitted apart."""
    columns = {"nic_bytes_per_s": 10 * GB, "network_contention": 1.0, "network_fraction": 0.5}
    sockets = value("nic_offered_bytes_per_s", collective_network=NETWORKS.index("sockets"), **columns)
    share = ring_share(np.array([float(NETWORKS.index("sockets"))]))[0]
    assert sockets * share == pytest.approx(5 * GB)
    verbs = value("nic_offered_bytes_per_s", collective_network=NETWORKS.index("infiniband"), **columns)
    assert verbs == 10 * GB


def test_traffic_that_stays_in_a_domain_leaves_the_nics_free():
    columns = {
        "tensor_collective_s": 1.0, "context_pass_s": 10.0, "context_all_to_all_s": 0.0, "core_recomputed": 0,
        "layer_exchange_s": 100.0, "recompute": 0, "context_exchange": 0,
        "tensor": 8, "context": 2, "expert": 8, "tensor_local": 8, "context_local": 2, "expert_local": 8,
    }  # fmt: skip
    assert value("layer_network_s", **columns) == 0.0
    assert value("layer_network_s", **{**columns, "tensor_local": 4}) == 4.0
    assert value("layer_network_s", **{**columns, "context_local": 1}) == 30.0
    assert value("layer_network_s", **{**columns, "expert_local": 4}) == 100.0


def test_gradients_hide_only_while_the_nics_are_free():
    stage = {
        "layers": 8, "pipeline": 4, "virtual_pipeline": 1, "layer_network_s": 0.1, "hop_share_across": 1,
        "hop_across_s": 0.05, "mean_stage_s": 1.0,
    }  # fmt: skip
    free = value("nic_free_fraction", **stage)
    assert free == pytest.approx(1 - (2 * 0.1 + 2 * 0.05))
    assert value("nic_free_fraction", **{**stage, "layer_network_s": 9.0}) == 0.0
    columns = {
        "zero_stage": 0, "gradient_all_reduce_s": 5.0, "gradient_scatter_gather_s": 0, "expert_gradient_s": 0,
        "gradient_exposed_fraction": 0.2, "gradient_ranks": 16,
    }  # fmt: skip
    pace = {"micro_batches": 4, "pipeline": 4, "mean_stage_s": 1.0, "nic_free_fraction": free}
    across, inside = (
        value("gradient_window_s", gradient_ranks=16, gradient_local=local, **pace) for local in (1, 16)
    )
    assert value("replicated_data_s", gradient_window_s=across, **columns) == pytest.approx(5 - 4 * free)
    assert value("replicated_data_s", gradient_window_s=inside, **columns) == pytest.approx(1.0)
    shared = {
        "sharded_traffic_s": 2.0, "steady_s": 4.0, "shard_overlap_exponent": 1.0, "gradient_ranks": 16,
        "shard_ranks": 16, "gradient_local": 1,
    }  # fmt: skip
    assert value("sharded_data_s", nic_free_fraction=1.0, **shared) == pytest.approx(2.0)
    hidden = {**shared, "shard_overlap_exponent": 2.0}
    assert value("sharded_data_s", nic_free_fraction=0.1, **hidden) > value(
        "sharded_data_s", nic_free_fraction=1.0, **hidden
    )


@pytest.mark.parametrize(
    ("sequence", "early", "times"), [(0, 0.0, 6.0), (0, 1.0, 5.0), (1, 0.0, 6.0), (1, 1.0, 5.5)]
)
def test_recomputation_that_stops_early_leaves_out_what_follows_the_last_product(sequence, early, times):
    # two all-reduces a pass, or their four halves: forward, again, backward
    one = value(
        "layer_tensor_s", tensor_collective_s=1.0, tensor_exposed_fraction=1, recompute=2, tensor=8, tensor_local=8,
        expert_tensor=8, moe_fraction=0, sequence_parallel=sequence, recompute_stops_early=early, forward_gpu_s=9.0,
        backward_gpu_s=18.0, host_layer_s=0.1,
    )  # fmt: skip
    assert one == pytest.approx(times)
