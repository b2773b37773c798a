"""Data parallelism: parameters of a stage, their gradients, and what a step leaves exposed of both.

Symbols: m micro-batches per step, X traffic, C computing beside it.
"""

from __future__ import annotations

import numpy as np

from linkwise.estimate.collective_call import GroupLinks, call_s
from linkwise.estimate.term import Floats, term

_NCCL = "algorithm and protocol as NCCL chooses them, at the cost that nccl-tests show (docs/collectives.md)"
_FITTED = "form derived; constant fitted on measured steps (docs/accuracy.md)"
_FSDP = (
    "Zhao et al., PyTorch FSDP, 2023: gather in forward and backward, scatter of gradients, prefetch of "
    "one unit"
)

_LEAST_FREE = 1e-6
"""Taken for a share of 0, by which traffic is divided [1]."""


@term("1", "parameters of the fullest stage on one rank, without routed experts", "derived from the shapes")
def stage_dense_parameters(
    stage_layers: Floats,
    layer_parameters: Floats,
    tensor: Floats,
    pipeline: Floats,
    embedding_parameters: Floats,
    head_parameters: Floats,
    logits_share: Floats,
) -> Floats:
    """Return the dense parameters one rank of the first stage holds."""
    ends = logits_share * embedding_parameters + np.where(pipeline > 1.0, 0.0, head_parameters)
    return (stage_layers * layer_parameters + ends) / tensor


@term(
    "1", "routed experts of the stage on one rank, all its layers mixtures where there are so many", "derived"
)
def stage_expert_parameters(
    stage_layers: Floats,
    layers: Floats,
    moe_fraction: Floats,
    layer_expert_parameters: Floats,
    expert: Floats,
    expert_tensor: Floats,
) -> Floats:
    """Return the parameters of the routed experts one rank of the fullest stage holds."""
    mixtures = np.minimum(stage_layers, moe_fraction * layers)
    one = layer_expert_parameters / np.maximum(moe_fraction, 1e-9)
    return mixtures * one / (expert * expert_tensor)


@term("bytes", "dense parameters x bytes per gradient", "derived")
def gradient_bytes(stage_dense_parameters: Floats, gradient_element_bytes: Floats) -> Floats:
    """Return the gradients one rank reduces, without routed experts."""
    return stage_dense_parameters * gradient_element_bytes


@term("bytes", "expert parameters x bytes per gradient", "derived")
def expert_gradient_bytes(stage_expert_parameters: Floats, gradient_element_bytes: Floats) -> Floats:
    """Return the gradients of the routed experts one rank reduces."""
    return stage_expert_parameters * gradient_element_bytes


@term("bytes", "2 bytes per dense parameter", "derived")
def stage_parameter_bytes(stage_dense_parameters: Floats) -> Floats:
    """Return the 16-bit dense parameters one rank of a stage uses."""
    return 2.0 * stage_dense_parameters


@term("s", "all-reduce of the stage's gradients", _NCCL)
def gradient_all_reduce_s(
    gradient_ranks: Floats,
    gradient_local: Floats,
    gradient_bytes: Floats,
    collective_generation: Floats,
    collective_network: Floats,
    nvlink_bytes_per_s: Floats,
    gradient_nic_bytes_per_s: Floats,
    network_latency_s: Floats,
    nvlink_latency_factor: Floats,
    network_latency_factor: Floats,
) -> Floats:
    """Return the time of the gradients' all-reduce once per step."""
    links = GroupLinks(
        ranks=gradient_ranks,
        local=gradient_local,
        generation=collective_generation,
        network=collective_network,
        link_bytes_per_s=nvlink_bytes_per_s,
        nic_bytes_per_s=gradient_nic_bytes_per_s,
        latency_s=network_latency_s,
        local_latency=nvlink_latency_factor,
        network_latency=network_latency_factor,
    )
    return call_s("all_reduce", gradient_bytes, links)


@term(
    "s",
    "reduce-scatter of gradients and all-gather of parameters (ZeRO 1 and 2)",
    "Rajbhandari et al., ZeRO, 2020; " + _NCCL,
)
def gradient_scatter_gather_s(
    gradient_ranks: Floats,
    gradient_local: Floats,
    gradient_bytes: Floats,
    stage_parameter_bytes: Floats,
    collective_generation: Floats,
    collective_network: Floats,
    nvlink_bytes_per_s: Floats,
    gradient_nic_bytes_per_s: Floats,
    network_latency_s: Floats,
    nvlink_latency_factor: Floats,
    network_latency_factor: Floats,
) -> Floats:
    """Return the time of the sharded optimizer's two collectives once per step."""
    links = GroupLinks(
        ranks=gradient_ranks,
        local=gradient_local,
        generation=collective_generation,
        network=collective_network,
        link_bytes_per_s=nvlink_bytes_per_s,
        nic_bytes_per_s=gradient_nic_bytes_per_s,
        latency_s=network_latency_s,
        local_latency=nvlink_latency_factor,
        network_latency=network_latency_factor,
    )
    return call_s("reduce_scatter", gradient_bytes, links) + call_s(
        "all_gather", stage_parameter_bytes, links
    )


@term(
    "s",
    "gradients of the experts over the ranks that hold the same ones: all-reduce, or from ZeRO 1 on scatter "
    "of gradients and gather of parameters",
    _NCCL,
)
def expert_gradient_s(
    expert_replicas: Floats,
    expert_replicas_local: Floats,
    zero_stage: Floats,
    expert_gradient_bytes: Floats,
    stage_expert_parameters: Floats,
    collective_generation: Floats,
    collective_network: Floats,
    nvlink_bytes_per_s: Floats,
    replica_nic_bytes_per_s: Floats,
    network_latency_s: Floats,
    nvlink_latency_factor: Floats,
    network_latency_factor: Floats,
) -> Floats:
    """Return the time of the experts' gradients, reduced over the ranks that hold the same ones."""
    links = GroupLinks(
        ranks=expert_replicas,
        local=expert_replicas_local,
        generation=collective_generation,
        network=collective_network,
        link_bytes_per_s=nvlink_bytes_per_s,
        nic_bytes_per_s=replica_nic_bytes_per_s,
        latency_s=network_latency_s,
        local_latency=nvlink_latency_factor,
        network_latency=network_latency_factor,
    )
    gathered = np.where(zero_stage >= 1.0, 2.0 * stage_expert_parameters, expert_gradient_bytes)
    passes = call_s("reduce_scatter", expert_gradient_bytes, links) + call_s("all_gather", gathered, links)
    return np.where(stage_expert_parameters > 0, passes, 0.0)


@term("s", "one pass of every stage, less what its NICs carry already", _FITTED)
def gradient_window_s(
    gradient_ranks: Floats,
    gradient_local: Floats,
    micro_batches: Floats,
    pipeline: Floats,
    mean_stage_s: Floats,
    nic_free_fraction: Floats,
) -> Floats:
    """Return the time behind which gradients that are ready may be sent."""
    free = np.where(gradient_ranks > gradient_local, nic_free_fraction, 1.0)
    return np.minimum(micro_batches, pipeline) * mean_stage_s * free


@term(
    "s",
    "exposed share of the gradients' collectives; what does not fit into their window shows whole",
    _FITTED,
)
def replicated_data_s(
    zero_stage: Floats,
    gradient_all_reduce_s: Floats,
    gradient_scatter_gather_s: Floats,
    expert_gradient_s: Floats,
    gradient_exposed_fraction: Floats,
    gradient_ranks: Floats,
    gradient_window_s: Floats,
) -> Floats:
    """Return the exposed data-parallel time where parameters are not sharded (ZeRO 0 to 2)."""
    dense = np.where(zero_stage >= 1.0, gradient_scatter_gather_s, gradient_all_reduce_s)
    whole = np.where(gradient_ranks > 1.0, dense, 0.0) + expert_gradient_s
    shown = np.maximum(gradient_exposed_fraction * whole, whole - gradient_window_s)
    return np.where(gradient_exposed_fraction >= 1.0, whole, shown)


@term(
    "1", "ranks that share one copy of the parameters: data x context, or those in one domain (hybrid)", _FSDP
)
def shard_ranks(gradient_ranks: Floats, gradient_local: Floats, hybrid_shard: Floats) -> Floats:
    """Return over how many ranks fully sharded parameters are spread."""
    return np.where(hybrid_shard > 0, gradient_local, gradient_ranks)


@term("1", "m; 1 beside a pipeline, where the gathered stage is kept until its last micro-batch", _FSDP)
def sharded_passes(micro_batches: Floats, pipeline: Floats) -> Floats:
    """Return how often per step fully sharded parameters are gathered and their gradients scattered."""
    return np.where(pipeline > 1.0, 1.0, micro_batches)


@term(
    "s",
    "passes x (gathers + scatter) of dense parameters and of experts over their own ranks, and the replicas' "
    "all-reduce where hybrid; one gather beside a pipeline or below ZeRO 3",
    _FSDP + "; one call for all layers: prefetch hides the latency of single ones",
)
def sharded_traffic_s(
    sharded_passes: Floats,
    zero_stage: Floats,
    pipeline: Floats,
    shard_ranks: Floats,
    gradient_ranks: Floats,
    gradient_local: Floats,
    expert_replicas: Floats,
    expert_replicas_local: Floats,
    hybrid_shard: Floats,
    stage_dense_parameters: Floats,
    stage_expert_parameters: Floats,
    gradient_element_bytes: Floats,
    gather_element_bytes: Floats,
    collective_generation: Floats,
    collective_network: Floats,
    nvlink_bytes_per_s: Floats,
    gradient_nic_bytes_per_s: Floats,
    replica_nic_bytes_per_s: Floats,
    network_latency_s: Floats,
    nvlink_latency_factor: Floats,
    network_latency_factor: Floats,
    sharded_traffic_factor: Floats,
) -> Floats:
    """Return the traffic of fully sharded data parallelism in one step, before overlap."""
    gathers = np.where((zero_stage >= 3.0) & (pipeline <= 1.0), 2.0, 1.0)

    def of_groups(ranks: Floats, local: Floats, nic_bytes_per_s: Floats) -> GroupLinks:
        return GroupLinks(
            ranks=ranks,
            local=np.minimum(ranks, local),
            generation=collective_generation,
            network=collective_network,
            link_bytes_per_s=nvlink_bytes_per_s,
            nic_bytes_per_s=nic_bytes_per_s,
            latency_s=network_latency_s,
            local_latency=nvlink_latency_factor,
            network_latency=network_latency_factor,
        )

    def passed(parameters: Floats, links: GroupLinks) -> Floats:
        gathered = gathers * call_s("all_gather", parameters * gather_element_bytes, links)
        return gathered + call_s("reduce_scatter", parameters * gradient_element_bytes, links)

    held = np.where(hybrid_shard > 0, np.minimum(expert_replicas, expert_replicas_local), expert_replicas)
    dense = passed(stage_dense_parameters, of_groups(shard_ranks, gradient_local, gradient_nic_bytes_per_s))
    experts = passed(stage_expert_parameters, of_groups(held, expert_replicas_local, replica_nic_bytes_per_s))
    parameters = stage_dense_parameters + stage_expert_parameters
    replicas = call_s(
        "all_reduce",
        parameters * gradient_element_bytes / shard_ranks,
        of_groups(gradient_ranks / shard_ranks, np.ones_like(shard_ranks), gradient_nic_bytes_per_s),
    )
    moved = dense + np.where(stage_expert_parameters > 0, experts, 0.0)
    return sharded_traffic_factor * sharded_passes * (moved + np.where(hybrid_shard > 0, replicas, 0.0))


@term(
    "s",
    "(C^q + X^q)^(1/q) - C: traffic X beside computing C less what the NICs carry already; prefetch limited "
    "to one unit",
    _FSDP + "; q fitted",
)
def sharded_data_s(
    sharded_traffic_s: Floats,
    steady_s: Floats,
    shard_overlap_exponent: Floats,
    gradient_ranks: Floats,
    gradient_local: Floats,
    shard_ranks: Floats,
    nic_free_fraction: Floats,
) -> Floats:
    """Return the exposed time of fully sharded data parallelism."""
    leaves = (shard_ranks > gradient_local) | (gradient_ranks > shard_ranks)
    beside = steady_s * np.where(leaves, np.maximum(nic_free_fraction, _LEAST_FREE), 1.0)
    ratio = sharded_traffic_s / beside
    q = shard_overlap_exponent
    shown = beside * (np.power(1.0 + np.power(ratio, q), 1.0 / q) - 1.0)
    return np.where(gradient_ranks > 1.0, shown, 0.0)


@term(
    "s",
    "sharded where ZeRO 3 (or the framework shards per micro-batch), else the gradients' collectives",
    _FSDP,
)
def data_s(
    zero_stage: Floats, shards_every_pass: Floats, sharded_data_s: Floats, replicated_data_s: Floats
) -> Floats:
    """Return the exposed data-parallel communication of one step."""
    sharded = (zero_stage >= 3.0) | ((zero_stage >= 2.0) & (shards_every_pass > 0))
    return np.where(sharded, sharded_data_s, replicated_data_s)


TERMS = (
    stage_dense_parameters,
    stage_expert_parameters,
    gradient_bytes,
    expert_gradient_bytes,
    stage_parameter_bytes,
    gradient_all_reduce_s,
    gradient_scatter_gather_s,
    expert_gradient_s,
    gradient_window_s,
    replicated_data_s,
    shard_ranks,
    sharded_passes,
    sharded_traffic_s,
    sharded_data_s,
    data_s,
)
