"""From the time of one layer to that of a step: stages, schedule, bubble, gradients, optimizer, overhead.

Symbols: L layers, p stages, v chunks per stage, m micro-batches per step.
"""

from __future__ import annotations

import numpy as np

from linkwise.estimate.term import Floats, term

_1F1B = "Narayanan et al., Efficient Large-Scale Language Model Training, 2021, sections 2.2 and 2.3"
_FITTED = "form derived; constant fitted on measured steps (docs/accuracy.md)"


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
    "1",
    "2 (1 - s/m) where s stages share a domain and hops lie across; else 1 - 1/m for two stages, 2 (1 - 2/m) "
    "for more; at least 0",
    "derived: a stage exchanges with its neighbours in turn, each exchange goes one way and then the other; "
    "equal to the schedule played through (tests/estimate/test_schedule.py)",
)
def hop_turn_fraction(
    micro_batches: Floats, pipeline: Floats, hop_share_across: Floats, stages_per_domain: Floats
) -> Floats:
    """Return the exchanges that 1F1B waits for once it is filled, where data wait for the receiver's word.

    Notes
    -----
    The receiver says that it is ready over the connection on which it sends, behind what it sends itself: of
    two stages that exchange, the one that comes later gets its own data through first. In units of
    `slowest_exchange_s`, which counts two neighbours and both ways at once. Libraries that send both ways at
    once, as NCCL does, wait for less.
    """
    mixed = (hop_share_across > 0) & (stages_per_domain > 1.0)
    alike = np.where(pipeline > 2.0, 2.0 - 4.0 / micro_batches, 1.0 - 1.0 / micro_batches)
    return np.maximum(np.where(mixed, 2.0 - 2.0 * stages_per_domain / micro_batches, alike), 0.0)


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
    hop_turn_fraction,
    pipeline_s,
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
