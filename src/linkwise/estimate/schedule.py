"""From the time of one layer to that of a step: stages, schedule, bubble, gradients, optimizer, overhead.

Symbols: L layers, p stages, v chunks per stage, m micro-batches per step.
"""

from __future__ import annotations

import numpy as np

from linkwise.estimate.collective_call import GroupLinks, call_s
from linkwise.estimate.term import Floats, term

_1F1B = "Narayanan et al., Efficient Large-Scale Language Model Training, 2021, sections 2.2 and 2.3"
_FITTED = "form derived; constant fitted on measured steps (docs/accuracy.md)"
_FSDP = (
    "Zhao et al., PyTorch FSDP, 2023: gather in forward and backward, scatter of gradients, prefetch of "
    "one unit"
)

_LEAST_FREE = 1e-6
"""Taken for a share of 0, by which traffic is divided [1]."""


@term("1", "ceil(global_batch / (data x micro_batch))", _1F1B)
def micro_batches(global_batch: Floats, data: Floats, micro_batch: Floats) -> Floats:
    """Return the micro-batches each pipeline works through per step."""
    return np.ceil(global_batch / (data * micro_batch) - 1e-9)


@term("1", "L/p, or (L+2)/p where embedding and loss count as a layer each, else ceil(L/p)", _1F1B)
def stage_layers(layers: Floats, pipeline: Floats, virtual_pipeline: Floats) -> Floats:
    """Return the layers of the fullest stage."""
    chunks = pipeline * virtual_pipeline
    counted = (np.mod(layers, pipeline) > 0) & (np.mod(layers + 2.0, chunks) == 0)
    return np.where(counted, (layers + 2.0) / pipeline, np.ceil(layers / pipeline))


@term("1", "layers of the stage that also computes the loss", _1F1B)
def last_stage_layers(layers: Floats, pipeline: Floats, stage_layers: Floats) -> Floats:
    """Return the layers of the last stage, which gets the short end of an uneven cut."""
    counted = stage_layers * pipeline - layers
    return np.where(
        np.mod(layers, pipeline) == 0,
        stage_layers,
        np.where(counted == 2.0, stage_layers - 1.0, np.floor(layers / pipeline)),
    )


@term("s", "forward + backward + recompute of one layer", "sum of its terms")
def layer_compute_s(layer_forward_s: Floats, layer_backward_s: Floats, layer_recompute_s: Floats) -> Floats:
    """Return the computing time of one average layer for one micro-batch."""
    return layer_forward_s + layer_backward_s + layer_recompute_s


@term("s", "tensor + context + expert communication left exposed by one layer", "sum of its terms")
def layer_exposed_s(layer_tensor_s: Floats, layer_context_s: Floats, layer_expert_s: Floats) -> Floats:
    """Return the communication one average layer leaves exposed for one micro-batch."""
    return layer_tensor_s + layer_context_s + layer_expert_s


@term("s", "max(L_stage t_layer, L_last t_layer + logits)", _1F1B)
def slowest_stage_s(
    stage_layers: Floats,
    last_stage_layers: Floats,
    layer_compute_s: Floats,
    layer_exposed_s: Floats,
    logits_s: Floats,
) -> Floats:
    """Return the time the slowest stage takes for one micro-batch."""
    layer = layer_compute_s + layer_exposed_s
    return np.maximum(stage_layers * layer, last_stage_layers * layer + logits_s)


@term("s", "(L t_layer + logits) / p", _1F1B)
def mean_stage_s(
    layers: Floats, pipeline: Floats, layer_compute_s: Floats, layer_exposed_s: Floats, logits_s: Floats
) -> Floats:
    """Return the time of a stage for one micro-batch, averaged over the stages."""
    return (layers * (layer_compute_s + layer_exposed_s) + logits_s) / pipeline


@term(
    "1",
    "1 - (layers of a stage x their traffic + 2 v hops across) / stage; at least 0",
    "derived: what the same NICs carry adds up",
)
def nic_free_fraction(
    layers: Floats,
    pipeline: Floats,
    virtual_pipeline: Floats,
    layer_network_s: Floats,
    hop_share_across: Floats,
    hop_across_s: Floats,
    mean_stage_s: Floats,
) -> Floats:
    """Return the share of a stage's time in which its NICs carry nothing for layers and stages."""
    hops = np.where(pipeline > 1.0, 2.0 * virtual_pipeline * hop_share_across * hop_across_s, 0.0)
    busy = (layers / pipeline * layer_network_s + hops) / mean_stage_s
    return np.maximum(1.0 - busy, 0.0)


@term("s", "m x slowest stage", _1F1B)
def steady_s(micro_batches: Floats, slowest_stage_s: Floats) -> Floats:
    """Return the time in which all stages are busy."""
    return micro_batches * slowest_stage_s


@term(
    "s",
    "(p - 1) / v x mean stage; zero-bubble H1 takes twice the weight gradients' share out of it",
    _1F1B + "; Qi et al., Zero Bubble Pipeline Parallelism, 2023, table 1: (p - 1)(F + B - W)",
)
def bubble_s(
    pipeline: Floats,
    virtual_pipeline: Floats,
    schedule: Floats,
    mean_stage_s: Floats,
    layer_compute_s: Floats,
    linear_forward_s: Floats,
    expert_forward_s: Floats,
    kernel_factor: Floats,
) -> Floats:
    """Return the time the pipeline takes to fill and drain."""
    weight_gradients = kernel_factor * (linear_forward_s + expert_forward_s)
    filled = np.where(schedule == 2.0, np.minimum(2.0 * weight_gradients / layer_compute_s, 1.0), 0.0)
    return (1.0 - filled) * (pipeline - 1.0) / virtual_pipeline * mean_stage_s


@term(
    "s",
    "both neighbours across: 2 hops across; one of them inside: one of each; all inside: 2 inside",
    _1F1B + "; exchanges with a neighbour go both ways at once",
)
def slowest_exchange_s(
    hop_share_across: Floats, stages_per_domain: Floats, hop_across_s: Floats, hop_inside_s: Floats
) -> Floats:
    """Return the time the worst placed stage exchanges activations and gradients with its two neighbours."""
    mixed = hop_across_s + hop_inside_s
    crossing = np.where(stages_per_domain > 1.0, mixed, 2.0 * hop_across_s)
    return np.where(hop_share_across > 0, crossing, 2.0 * hop_inside_s)


@term(
    "s",
    "max(0, hop - forward) + max(0, hop - backward) of the stage, hops by bandwidth alone",
    "Huang et al., GPipe, 2019: sends run beside the next micro-batch",
)
def gpipe_hops_s(
    micro_batches: Floats,
    stage_layers: Floats,
    layer_forward_s: Floats,
    slowest_stage_s: Floats,
    slowest_exchange_s: Floats,
    hop_share_across: Floats,
    network_latency_s: Floats,
    hop_latencies: Floats,
) -> Floats:
    """Return the hops GPipe cannot hide in its steady part: latency is hidden, bandwidth is not."""
    hop = 0.5 * slowest_exchange_s - np.where(hop_share_across > 0, hop_latencies * network_latency_s, 0.0)
    forward = stage_layers * layer_forward_s
    backward = slowest_stage_s - forward
    shown: Floats = np.maximum(hop - forward, 0.0) + np.maximum(hop - backward, 0.0)
    return micro_batches * shown


@term(
    "s",
    "2 v hops per micro-batch left exposed, and 2 (p - 1) hops to fill and drain; GPipe overlaps the "
    "steady part",
    _1F1B,
)
def pipeline_s(
    micro_batches: Floats,
    pipeline: Floats,
    virtual_pipeline: Floats,
    schedule: Floats,
    slowest_exchange_s: Floats,
    gpipe_hops_s: Floats,
    hop_share_across: Floats,
    hop_across_s: Floats,
    hop_inside_s: Floats,
    hop_exposed_fraction: Floats,
) -> Floats:
    """Return the pipeline communication left exposed in one step."""
    steady = hop_exposed_fraction * micro_batches * virtual_pipeline * slowest_exchange_s
    shown = np.where(schedule == 1.0, gpipe_hops_s, steady)
    mean_hop = hop_share_across * hop_across_s + (1.0 - hop_share_across) * hop_inside_s
    return np.where(pipeline > 1.0, shown + 2.0 * (pipeline - 1.0) * mean_hop, 0.0)


# ---------------------------------------- data parallelism


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


@term(
    "s",
    "exposed share of the gradients' collectives; what does not fit behind one pass of every stage, less "
    "what its NICs carry already, shows whole",
    _FITTED,
)
def replicated_data_s(
    zero_stage: Floats,
    gradient_all_reduce_s: Floats,
    gradient_scatter_gather_s: Floats,
    expert_gradient_s: Floats,
    gradient_exposed_fraction: Floats,
    gradient_ranks: Floats,
    gradient_local: Floats,
    micro_batches: Floats,
    pipeline: Floats,
    mean_stage_s: Floats,
    nic_free_fraction: Floats,
) -> Floats:
    """Return the exposed data-parallel time where parameters are not sharded (ZeRO 0 to 2)."""
    dense = np.where(zero_stage >= 1.0, gradient_scatter_gather_s, gradient_all_reduce_s)
    whole = np.where(gradient_ranks > 1.0, dense, 0.0) + expert_gradient_s
    free = np.where(gradient_ranks > gradient_local, nic_free_fraction, 1.0)
    behind = np.minimum(micro_batches, pipeline) * mean_stage_s * free
    shown = np.maximum(gradient_exposed_fraction * whole, whole - behind)
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


# ---------------------------------------- the rest of the step


@term(
    "s",
    "optimizer_bytes x local parameters / BW, divided over the ranks that shard them from ZeRO 1 on",
    _FITTED,
)
def optimizer_s(
    stage_dense_parameters: Floats,
    stage_expert_parameters: Floats,
    shard_ranks: Floats,
    expert_replicas: Floats,
    zero_stage: Floats,
    memory_bytes_per_s: Floats,
    optimizer_traffic_bytes: Floats,
) -> Floats:
    """Return the time of the optimizer step."""
    sharded = zero_stage >= 1.0
    dense = stage_dense_parameters / np.where(sharded, shard_ranks, 1.0)
    experts = stage_expert_parameters / np.where(sharded, np.minimum(shard_ranks, expert_replicas), 1.0)
    return optimizer_traffic_bytes * (dense + experts) / memory_bytes_per_s


@term("s", "steady + bubble + pipeline + data + optimizer", "sum of its parts")
def known_s(
    steady_s: Floats, bubble_s: Floats, pipeline_s: Floats, data_s: Floats, optimizer_s: Floats
) -> Floats:
    """Return the part of the step that formulas know."""
    return steady_s + bubble_s + pipeline_s + data_s + optimizer_s


@term("s", "known x (framework overhead + straggler x log2(gpus / 8)) + fixed", _FITTED)
def overhead_s(
    known_s: Floats,
    gpus: Floats,
    framework_overhead_fraction: Floats,
    straggler_fraction: Floats,
    step_fixed_s: Floats,
) -> Floats:
    """Return what formulas do not know: stragglers, host, clipping, data loading."""
    doublings = np.log2(np.maximum(gpus / 8.0, 1.0))
    return known_s * (framework_overhead_fraction + straggler_fraction * doublings) + step_fixed_s


@term("s", "known + overhead", "sum of its parts")
def step_time_s(known_s: Floats, overhead_s: Floats) -> Floats:
    """Return the time of one optimizer step."""
    return known_s + overhead_s


@term("s", "m x the slowest stage's own layers", "share of the steady part")
def compute_s(
    micro_batches: Floats,
    slowest_stage_s: Floats,
    stage_layers: Floats,
    layer_exposed_s: Floats,
    last_stage_layers: Floats,
    layer_compute_s: Floats,
    logits_s: Floats,
) -> Floats:
    """Return the computing time of the slowest stage in one step."""
    return micro_batches * (
        slowest_stage_s
        - _slowest_layers(stage_layers, last_stage_layers, layer_compute_s, layer_exposed_s, logits_s)
        * layer_exposed_s
    )


def _slowest_layers(
    stage_layers: Floats,
    last_stage_layers: Floats,
    layer_compute_s: Floats,
    layer_exposed_s: Floats,
    logits_s: Floats,
) -> Floats:
    layer = layer_compute_s + layer_exposed_s
    last_is_slowest = last_stage_layers * layer + logits_s >= stage_layers * layer
    return np.where(last_is_slowest, last_stage_layers, stage_layers)


@term("1", "layers of the slowest stage", "the stage the steady part waits for")
def slowest_stage_layers(
    stage_layers: Floats,
    last_stage_layers: Floats,
    layer_compute_s: Floats,
    layer_exposed_s: Floats,
    logits_s: Floats,
) -> Floats:
    """Return the layers of the slowest stage."""
    return _slowest_layers(stage_layers, last_stage_layers, layer_compute_s, layer_exposed_s, logits_s)


@term("s", "m x layers of the slowest stage x exposed tensor communication", "share of the steady part")
def tensor_s(micro_batches: Floats, slowest_stage_layers: Floats, layer_tensor_s: Floats) -> Floats:
    """Return the exposed tensor-parallel communication of one step."""
    return micro_batches * slowest_stage_layers * layer_tensor_s


@term("s", "m x layers of the slowest stage x exposed context communication", "share of the steady part")
def context_s(micro_batches: Floats, slowest_stage_layers: Floats, layer_context_s: Floats) -> Floats:
    """Return the exposed context-parallel communication of one step."""
    return micro_batches * slowest_stage_layers * layer_context_s


@term("s", "m x layers of the slowest stage x exposed expert communication", "share of the steady part")
def expert_s(micro_batches: Floats, slowest_stage_layers: Floats, layer_expert_s: Floats) -> Floats:
    """Return the exposed expert-parallel communication of one step."""
    return micro_batches * slowest_stage_layers * layer_expert_s


TERMS = (
    micro_batches,
    stage_layers,
    last_stage_layers,
    layer_compute_s,
    layer_exposed_s,
    slowest_stage_s,
    mean_stage_s,
    nic_free_fraction,
    steady_s,
    bubble_s,
    slowest_exchange_s,
    gpipe_hops_s,
    pipeline_s,
    stage_dense_parameters,
    stage_expert_parameters,
    gradient_bytes,
    expert_gradient_bytes,
    stage_parameter_bytes,
    replicated_data_s,
    shard_ranks,
    sharded_passes,
    sharded_traffic_s,
    sharded_data_s,
    data_s,
    optimizer_s,
    known_s,
    overhead_s,
    step_time_s,
    compute_s,
    slowest_stage_layers,
    tensor_s,
    context_s,
    expert_s,
)
