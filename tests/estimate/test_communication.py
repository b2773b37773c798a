"""Communication terms against values worked by hand."""

import numpy as np
import pytest

from linkwise.estimate import communication
from linkwise.estimate.terms import TERMS

GB = 1e9


def value(name, **columns):
    term = TERMS[name]
    return float(term.function(*(np.array([float(columns[each])]) for each in term.inputs))[0])


def test_tensor_collective_of_plain_ranks_is_reduced_in_the_switch():
    # 8192 tokens of 8192 elements in 16 bits: 134 MB; 9/8 of it at 309 GB/s, and 8 us for each doubling
    columns = {
        "element_bytes": 2, "tokens": 8192, "hidden": 8192, "tensor": 8, "tensor_local": 8, "sequence_parallel": 0,
        "nvlink_reached_bytes_per_s": 364.5 * GB, "nvls_reached_bytes_per_s": 309 * GB,
        "tensor_nic_bytes_per_s": 40 * GB, "collective_latency_s": 8e-6, "network_latency_s": 5e-6,
    }  # fmt: skip
    buffer = 2 * 8192 * 8192
    assert value("tensor_collective_s", **columns) == pytest.approx(24e-6 + 1.125 * buffer / (309 * GB))


def test_tensor_collective_with_sequence_parallelism_goes_in_rings():
    columns = {
        "element_bytes": 2, "tokens": 8192, "hidden": 8192, "tensor": 8, "tensor_local": 8, "sequence_parallel": 1,
        "nvlink_reached_bytes_per_s": 364.5 * GB, "nvls_reached_bytes_per_s": 309 * GB,
        "tensor_nic_bytes_per_s": 40 * GB, "collective_latency_s": 8e-6, "network_latency_s": 5e-6,
    }  # fmt: skip
    buffer = 2 * 8192 * 8192
    assert value("tensor_collective_s", **columns) == pytest.approx(24e-6 + 1.75 * buffer / (364.5 * GB))


def test_tensor_collective_over_two_nodes_pays_the_nics():
    # 16 ranks, 8 in a node: the tree sends the buffer once over 8 NIC shares of 40 GB/s; the ring 2 x 15/16
    columns = {
        "element_bytes": 2, "tokens": 8192, "hidden": 8192, "tensor": 16, "tensor_local": 8, "sequence_parallel": 0,
        "nvlink_reached_bytes_per_s": 364.5 * GB, "nvls_reached_bytes_per_s": 309 * GB,
        "tensor_nic_bytes_per_s": 40 * GB, "collective_latency_s": 0, "network_latency_s": 0,
    }  # fmt: skip
    buffer = 2 * 8192 * 8192
    inside = 2 * 7 / 8 * buffer / (364.5 * GB)
    assert value("tensor_collective_s", **columns) == pytest.approx(max(inside, buffer / (320 * GB)))


def test_three_ranks_are_too_few_for_the_switch():
    three, rate = np.array([3.0]), np.array([300 * GB])
    seconds = communication.fastest_all_reduce_s(three, three, np.array([GB]), rate, rate, rate)
    assert seconds[0] == pytest.approx(4 / 3 / 300)


def test_context_all_to_all_swaps_queries_keys_values_and_outputs():
    # 4 ranks in a domain: 3/4 of 2 x 1000 x (256 + 64) / 2 bytes each pass, two passes
    columns = {
        "element_bytes": 2, "tokens": 1000, "tensor": 2, "context": 4, "context_local": 4, "core_recomputed": 0, "key_value_width": 64,
        "query_output_width": 256, "nvlink_reached_bytes_per_s": GB, "context_exchange_nic_bytes_per_s": GB,
        "network_latency_s": 0,
    }  # fmt: skip
    assert value("context_all_to_all_s", **columns) == pytest.approx(2 * 0.75 * 320_000 / GB)


def test_context_exchange_chooses_the_all_to_all():
    columns = {"context": 2, "context_ring_s": 1.0, "context_all_to_all_s": 2.0, "collective_latency_s": 0}
    assert value("layer_context_s", context_exchange=0, **columns) == 1.0
    assert value("layer_context_s", context_exchange=1, **columns) == 2.0


def test_all_to_all_of_experts_over_nodes_pays_a_round_for_every_eight_peers():
    columns = {
        "element_bytes": 2, "tokens": 0, "tensor": 1, "hidden": 1, "expert": 64, "expert_local": 8, "moe_fraction": 1,
        "experts_per_token": 8, "recompute": 0, "nvlink_reached_bytes_per_s": GB,
        "expert_nic_bytes_per_s": GB, "collective_latency_s": 0, "network_latency_s": 5e-6,
    }  # fmt: skip
    assert value("layer_exchange_s", **columns) == pytest.approx(4 * 7 * 5e-6)
    assert value("layer_expert_s", layer_exchange_s=2.0, expert_exposed_fraction=0.25) == 0.5


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
        "gradient_exposed_fraction": 0.2, "gradient_ranks": 16, "micro_batches": 4, "pipeline": 4,
        "mean_stage_s": 1.0, "nic_free_fraction": free,
    }  # fmt: skip
    assert value("replicated_data_s", gradient_local=1, **columns) == pytest.approx(5 - 4 * free)
    assert value("replicated_data_s", gradient_local=16, **columns) == pytest.approx(1.0)
    shared = {
        "sharded_traffic_s": 2.0, "steady_s": 4.0, "shard_overlap_exponent": 1.0, "gradient_ranks": 16,
        "shard_ranks": 16, "gradient_local": 1,
    }  # fmt: skip
    assert value("sharded_data_s", nic_free_fraction=1.0, **shared) == pytest.approx(2.0)
    hidden = {**shared, "shard_overlap_exponent": 2.0}
    assert value("sharded_data_s", nic_free_fraction=0.1, **hidden) > value(
        "sharded_data_s", nic_free_fraction=1.0, **hidden
    )
