"""Time of what one step sends, priced where the ranks sit: tensor, context, expert, pipeline, data.

Symbols: T tokens per rank, h hidden size, n ranks of the group, l of them in one NVLink domain, B bytes/s of
the slowest hop.
"""

from __future__ import annotations

import numpy as np

from linkwise.estimate import crossing, placement
from linkwise.estimate.compute import BACKWARD_HOST, smooth_maximum
from linkwise.estimate.term import Floats, term
from linkwise.network.collectives import (
    all_to_all_s,
    nvls_all_reduce_s,
    ring_all_gather_s,
    ring_all_reduce_s,
    tree_all_reduce_s,
)
from linkwise.network.contention import PEERS_AT_ONCE
from linkwise.network.placement import bus_bytes_per_s

_RING = (
    "ring closed forms (Thakur et al., 2005); bandwidth of the slowest hop, NICs shared by the groups of "
    "a domain"
)
_FITTED = "form derived; share left exposed fitted on measured steps (docs/accuracy.md)"
_CORE = "Korthikanti et al., Reducing Activation Recomputation, 2022"

NVLS_RANKS = 4.0
"""Fewest ranks for which NCCL lets the NVLink switch reduce."""


@term("bytes/s", "nvlink_bytes_per_s x nvlink_fraction", "nccl-tests bus bandwidth over line rate, measured")
def nvlink_reached_bytes_per_s(nvlink_bytes_per_s: Floats, nvlink_fraction: Floats) -> Floats:
    """Return what collectives reach inside an NVLink domain, per GPU and direction."""
    return nvlink_bytes_per_s * nvlink_fraction


@term("bytes/s", "nvlink_bytes_per_s x nvls_fraction", "nccl-tests, all-reduce reduced in the switch")
def nvls_reached_bytes_per_s(nvlink_bytes_per_s: Floats, nvls_fraction: Floats) -> Floats:
    """Return the rate of an all-reduce that the NVLink switch reduces; 0 where it cannot."""
    return nvlink_bytes_per_s * nvls_fraction


@term(
    "bytes/s",
    "nic_bytes_per_s x network_fraction x network_contention",
    "what the link reaches alone (nccl-tests) times what is left while a training step uses it, fitted",
)
def nic_reached_bytes_per_s(
    nic_bytes_per_s: Floats, network_fraction: Floats, network_contention: Floats
) -> Floats:
    """Return what one GPU's share of the NICs reaches while its neighbours send too."""
    return nic_bytes_per_s * network_fraction * network_contention


@term(
    "bytes/s",
    "nic_bytes_per_s x hop_network_fraction x network_contention",
    "point to point: every GPU has a connection of its own",
)
def nic_hop_bytes_per_s(
    nic_bytes_per_s: Floats, hop_network_fraction: Floats, network_contention: Floats
) -> Floats:
    """Return what one GPU's share of the NICs reaches in sends to one other GPU."""
    return nic_bytes_per_s * hop_network_fraction * network_contention


# ------------------------------------------------------------------------------------------------ tensor


@term(
    "s",
    "all-reduce of 2 T h bytes over t ranks: min(ring, tree across domains, NVLS inside one from 4 ranks), "
    "plus a log2(t); with sequence parallelism its two halves, in rings",
    _RING + "; NVLS as NCCL picks it",
)
def tensor_collective_s(
    element_bytes: Floats,
    tokens: Floats,
    hidden: Floats,
    tensor: Floats,
    tensor_local: Floats,
    sequence_parallel: Floats,
    nvlink_reached_bytes_per_s: Floats,
    nvls_reached_bytes_per_s: Floats,
    tensor_nic_bytes_per_s: Floats,
    collective_latency_s: Floats,
    network_latency_s: Floats,
) -> Floats:
    """Return the time of one tensor-parallel all-reduce of the activations, or of its two halves."""
    buffer = element_bytes * tokens * hidden
    domains = np.ceil(tensor / tensor_local)
    latency = collective_latency_s * np.log2(tensor) + 2.0 * (domains - 1.0) * network_latency_s
    fastest = fastest_all_reduce_s(
        tensor,
        tensor_local,
        buffer,
        nvlink_reached_bytes_per_s,
        tensor_nic_bytes_per_s,
        np.where(sequence_parallel > 0, 0.0, nvls_reached_bytes_per_s),
    )
    return np.where(tensor > 1.0, latency + fastest, 0.0)


@term(
    "s",
    "per pass: [gpu + k e x collective] joined with host, less [gpu] joined with host; k = 2, one fewer in "
    "mixture layers whose experts span the tensor ranks; e = 1 for a group that leaves its NVLink domain",
    _FITTED,
)
def layer_tensor_s(
    tensor_collective_s: Floats,
    tensor_exposed_fraction: Floats,
    recompute: Floats,
    tensor: Floats,
    tensor_local: Floats,
    expert_tensor: Floats,
    moe_fraction: Floats,
    forward_gpu_s: Floats,
    backward_gpu_s: Floats,
    host_layer_s: Floats,
) -> Floats:
    """Return the tensor-parallel time one layer leaves exposed: two collectives a pass.

    Notes
    -----
    The host launches kernels and collectives ahead of the GPU, so where it is the slower of the two a
    collective hides in its time: the exposed part is what the pass is longer for having it. Stacks overlap
    tensor collectives with matrix products through memory that the ranks share over NVLink (Transformer
    Engine user buffers), so a group over several domains hides nothing.
    """
    collectives = 2.0 - moe_fraction * ((expert_tensor < tensor) & (moe_fraction > 0))
    exposed = np.where(tensor > tensor_local, 1.0, tensor_exposed_fraction)
    shown = collectives * exposed * tensor_collective_s
    host_backward = BACKWARD_HOST * host_layer_s
    forward = smooth_maximum(forward_gpu_s + shown, host_layer_s) - smooth_maximum(
        forward_gpu_s, host_layer_s
    )
    backward = smooth_maximum(backward_gpu_s + shown, host_backward) - smooth_maximum(
        backward_gpu_s, host_backward
    )
    return np.where(recompute >= 2, 2.0, 1.0) * forward + backward


# ------------------------------------------------------------------------------------------------ context


@term(
    "1", "1 where the attention core runs again: full recomputation, or selective as Megatron means it", _CORE
)
def core_recomputed(recompute: Floats, selective_linear_fraction: Floats) -> Floats:
    """Return whether the backward pass runs the attention core, and its exchanges, once more."""
    again = (recompute >= 2) | ((recompute >= 1) & (selective_linear_fraction <= 0))
    return np.where(again, 1.0, 0.0)


@term("s", "keys and values once around c ranks", "Liu et al., Ring Attention, 2023")
def context_pass_s(
    element_bytes: Floats,
    tokens: Floats,
    tensor: Floats,
    context: Floats,
    context_local: Floats,
    key_value_width: Floats,
    key_value_head_width: Floats,
    nvlink_reached_bytes_per_s: Floats,
    context_nic_bytes_per_s: Floats,
    network_latency_s: Floats,
) -> Floats:
    """Return the time of passing the keys and values of one layer once around the context group."""
    rate = bus_bytes_per_s(context_local, context, nvlink_reached_bytes_per_s, context_nic_bytes_per_s)
    block = (
        element_bytes
        * tokens
        * np.maximum(key_value_width / tensor, np.minimum(key_value_head_width, key_value_width))
    )
    crossing = np.where(context > context_local, network_latency_s, 0.0)
    return (context - 1.0) * (block / rate + crossing)


@term(
    "s",
    "3 passes (4 where the core runs again), hidden behind the attention (and the host's slack) as far as "
    "that lasts",
    "Liu et al., Ring Attention, 2023; gradients of keys and values go round in backward",
)
def context_ring_s(
    context_pass_s: Floats,
    core_recomputed: Floats,
    attention_forward_s: Floats,
    forward_gpu_s: Floats,
    host_layer_s: Floats,
    context_exposed_fraction: Floats,
) -> Floats:
    """Return what one layer leaves exposed of passing keys and values around the context group."""
    slack = smooth_maximum(forward_gpu_s, host_layer_s) - forward_gpu_s
    hidden = context_pass_s - attention_forward_s - slack
    shown = np.maximum(hidden, context_exposed_fraction * context_pass_s)
    return (3.0 + core_recomputed) * shown


@term(
    "s",
    "2 passes (3 where the core runs again) of queries, keys, values and outputs through all-to-alls, "
    "2 T (w_q + w_kv + w_o) / t bytes each, nothing hidden",
    "Jacobs et al., DeepSpeed Ulysses, 2023, section 3",
)
def context_all_to_all_s(
    element_bytes: Floats,
    tokens: Floats,
    tensor: Floats,
    context: Floats,
    context_local: Floats,
    core_recomputed: Floats,
    key_value_width: Floats,
    query_output_width: Floats,
    nvlink_reached_bytes_per_s: Floats,
    context_exchange_nic_bytes_per_s: Floats,
    network_latency_s: Floats,
) -> Floats:
    """Return what one layer leaves exposed of swapping slices of the sequence for heads and back."""
    send = element_bytes * tokens * (query_output_width + key_value_width) / tensor
    latency = np.where(context > context_local, network_latency_s, 0.0)
    return (2.0 + core_recomputed) * all_to_all_s(
        context,
        context_local,
        send,
        nvlink_reached_bytes_per_s,
        context_exchange_nic_bytes_per_s,
        4.0 * latency,
    )


@term("s", "ring or all-to-all, plus 3 launches", "the exchange the layout names")
def layer_context_s(
    context: Floats,
    context_exchange: Floats,
    context_ring_s: Floats,
    context_all_to_all_s: Floats,
    collective_latency_s: Floats,
) -> Floats:
    """Return the context-parallel time one layer leaves exposed."""
    shown = np.where(context_exchange >= 1.0, context_all_to_all_s, context_ring_s)
    return np.where(context > 1.0, shown + 3.0 * collective_latency_s, 0.0)


# ------------------------------------------------------------------------------------------------ experts


@term(
    "s",
    "all-to-alls of 2 T k h / t bytes (dispatch and combine, each way: 4, and 2 where all runs again); "
    "latency by rounds of 8 peers",
    _FITTED,
)
def layer_exchange_s(
    element_bytes: Floats,
    tokens: Floats,
    tensor: Floats,
    hidden: Floats,
    expert: Floats,
    expert_local: Floats,
    moe_fraction: Floats,
    experts_per_token: Floats,
    recompute: Floats,
    nvlink_reached_bytes_per_s: Floats,
    expert_nic_bytes_per_s: Floats,
    collective_latency_s: Floats,
    network_latency_s: Floats,
) -> Floats:
    """Return the time of all exchanges of tokens with experts that one average layer asks for."""
    domains = expert / expert_local
    visited = domains * (1.0 - np.power(1.0 - 1.0 / domains, experts_per_token))
    copies = np.where(expert > expert_local, visited, experts_per_token)
    send = element_bytes * tokens * copies * hidden / tensor
    rounds = np.ceil((expert - expert_local) / PEERS_AT_ONCE)
    latency = collective_latency_s * np.log2(expert) + rounds * network_latency_s
    call = all_to_all_s(
        expert, expert_local, send, nvlink_reached_bytes_per_s, expert_nic_bytes_per_s, latency
    )
    calls = 4.0 + 2.0 * (recompute >= 2)
    return moe_fraction * calls * np.where(expert > 1.0, call, 0.0)


@term("s", "exchanges x exposed share", _FITTED)
def layer_expert_s(layer_exchange_s: Floats, expert_exposed_fraction: Floats) -> Floats:
    """Return the expert-parallel time one average layer leaves exposed."""
    return expert_exposed_fraction * layer_exchange_s


# ------------------------------------------------------------------------------------------------ the NICs


@term(
    "s",
    "tensor collectives (4 a layer, 6 where all runs again), context passes and exchanges of groups that "
    "leave their NVLink domain",
    "derived: what the same NICs carry adds up",
)
def layer_network_s(
    tensor: Floats,
    tensor_local: Floats,
    tensor_collective_s: Floats,
    recompute: Floats,
    context: Floats,
    context_local: Floats,
    context_exchange: Floats,
    context_pass_s: Floats,
    context_all_to_all_s: Floats,
    core_recomputed: Floats,
    expert: Floats,
    expert_local: Floats,
    layer_exchange_s: Floats,
) -> Floats:
    """Return how long one layer keeps the NICs busy for one micro-batch, hidden or not."""
    calls = np.where(recompute >= 2, 6.0, 4.0)
    ring = (3.0 + core_recomputed) * context_pass_s
    around = np.where(context_exchange >= 1.0, context_all_to_all_s, ring)
    return (
        np.where(tensor > tensor_local, calls * tensor_collective_s, 0.0)
        + np.where(context > context_local, around, 0.0)
        + np.where(expert > expert_local, layer_exchange_s, 0.0)
    )


# ------------------------------------------------------------------------------------------------ pipeline


@term(
    "s",
    "2 T h / (t) bytes to the next stage, over NVLink or the GPU's share of the NICs, plus latency",
    _RING,
)
def hop_across_s(
    element_bytes: Floats,
    tokens: Floats,
    hidden: Floats,
    hop_cut: Floats,
    tensor: Floats,
    hop_nic_bytes_per_s: Floats,
    network_latency_s: Floats,
    hop_latencies: Floats,
) -> Floats:
    """Return the time of one activation hop over the network."""
    bytes_sent = element_bytes * tokens * hidden / np.where(hop_cut > 0, tensor, 1.0)
    return hop_latencies * network_latency_s + bytes_sent / hop_nic_bytes_per_s


@term("s", "2 T h / t bytes to the next stage over NVLink, plus latency", _RING)
def hop_inside_s(
    element_bytes: Floats,
    tokens: Floats,
    hidden: Floats,
    hop_cut: Floats,
    tensor: Floats,
    nvlink_reached_bytes_per_s: Floats,
    collective_latency_s: Floats,
) -> Floats:
    """Return the time of one activation hop inside an NVLink domain."""
    bytes_sent = element_bytes * tokens * hidden / np.where(hop_cut > 0, tensor, 1.0)
    return collective_latency_s + bytes_sent / nvlink_reached_bytes_per_s


# ------------------------------------------------------------------------------------------------ data


@term("bytes/s", "min(NVLink, l x NIC share) of a gradient group", _RING)
def gradient_bus_bytes_per_s(
    gradient_ranks: Floats,
    gradient_local: Floats,
    nvlink_reached_bytes_per_s: Floats,
    gradient_nic_bytes_per_s: Floats,
) -> Floats:
    """Return the bus rate of a gradient group."""
    return bus_bytes_per_s(
        gradient_local, gradient_ranks, nvlink_reached_bytes_per_s, gradient_nic_bytes_per_s
    )


@term("s", "steps between domains x latency", _RING)
def gradient_latency_s(
    gradient_ranks: Floats, gradient_local: Floats, network_latency_s: Floats, collective_latency_s: Floats
) -> Floats:
    """Return the latency of one ring pass of a gradient group."""
    domains = np.ceil(gradient_ranks / gradient_local)
    return np.where(
        gradient_ranks > 1.0,
        (domains - 1.0) * network_latency_s + collective_latency_s * np.log2(np.maximum(gradient_ranks, 1.0)),
        0.0,
    )


@term("s", "all-reduce of the stage's gradients: min(ring, double tree, NVLS inside a domain)", _RING)
def gradient_all_reduce_s(
    gradient_ranks: Floats,
    gradient_local: Floats,
    gradient_bytes: Floats,
    gradient_latency_s: Floats,
    nvlink_reached_bytes_per_s: Floats,
    nvls_reached_bytes_per_s: Floats,
    gradient_nic_bytes_per_s: Floats,
) -> Floats:
    """Return the time of the gradients' all-reduce once per step."""
    return 2.0 * gradient_latency_s + fastest_all_reduce_s(
        gradient_ranks,
        gradient_local,
        gradient_bytes,
        nvlink_reached_bytes_per_s,
        gradient_nic_bytes_per_s,
        nvls_reached_bytes_per_s,
    )


@term(
    "s",
    "reduce-scatter of gradients and all-gather of parameters (ZeRO 1 and 2)",
    "Rajbhandari et al., ZeRO, 2020",
)
def gradient_scatter_gather_s(
    gradient_ranks: Floats,
    gradient_bytes: Floats,
    stage_parameter_bytes: Floats,
    gradient_bus_bytes_per_s: Floats,
    gradient_latency_s: Floats,
) -> Floats:
    """Return the time of the sharded optimizer's two collectives once per step."""
    return 2.0 * gradient_latency_s + ring_all_gather_s(
        gradient_ranks,
        gradient_bytes + stage_parameter_bytes,
        gradient_bus_bytes_per_s,
        np.zeros_like(gradient_ranks),
    )


@term(
    "s",
    "gradients of the experts over the ranks that hold the same ones: all-reduce, or from ZeRO 1 on scatter "
    "of gradients and gather of parameters",
    _RING,
)
def expert_gradient_s(
    expert_replicas: Floats,
    expert_replicas_local: Floats,
    zero_stage: Floats,
    expert_gradient_bytes: Floats,
    stage_expert_parameters: Floats,
    network_latency_s: Floats,
    collective_latency_s: Floats,
    nvlink_reached_bytes_per_s: Floats,
    replica_nic_bytes_per_s: Floats,
) -> Floats:
    """Return the time of the experts' gradients, reduced over the ranks that hold the same ones."""
    rate = bus_bytes_per_s(
        expert_replicas_local, expert_replicas, nvlink_reached_bytes_per_s, replica_nic_bytes_per_s
    )
    again = np.where(zero_stage >= 1.0, 2.0 * stage_expert_parameters, expert_gradient_bytes)
    step = collective_latency_s * np.log2(expert_replicas) + network_latency_s * (
        np.ceil(expert_replicas / expert_replicas_local) - 1.0
    )
    none = np.zeros_like(expert_replicas)
    passes = ring_all_gather_s(expert_replicas, expert_gradient_bytes + again, rate, none)
    return np.where(stage_expert_parameters > 0, passes + 2.0 * step, 0.0)


def fastest_all_reduce_s(
    size: Floats,
    local: Floats,
    buffer_bytes: Floats,
    nvlink_bytes_per_s: Floats,
    nic_bytes_per_s: Floats,
    nvls_bytes_per_s: Floats,
) -> Floats:
    """Return the time of an all-reduce by the fastest algorithm where the ranks sit, latency apart [s].

    Parameters
    ----------
    size, local
        Ranks of the group, and those of them in one NVLink domain [1].
    buffer_bytes
        What is reduced [bytes].
    nvlink_bytes_per_s, nic_bytes_per_s, nvls_bytes_per_s
        Reached rates per GPU: inside the domain, its share of the NICs, and through the reducing switch (0
        where there is none) [bytes/s].
    """
    none = np.zeros_like(size)
    rate = bus_bytes_per_s(local, size, nvlink_bytes_per_s, nic_bytes_per_s)
    ring = ring_all_reduce_s(size, buffer_bytes, rate, none)
    across = np.minimum(local * nic_bytes_per_s, nvlink_bytes_per_s)
    tree = tree_all_reduce_s(size, local, buffer_bytes, nvlink_bytes_per_s, across, none)
    spread = np.minimum(ring, tree)
    can_reduce = (nvls_bytes_per_s > 0.0) & (size >= NVLS_RANKS)
    switch = nvls_all_reduce_s(size, buffer_bytes, np.maximum(nvls_bytes_per_s, 1.0))
    inside = np.where(can_reduce, np.minimum(ring, switch), ring)
    return np.where(size > local, spread, inside)


TERMS = (
    *placement.TERMS,
    *crossing.TERMS,
    nvlink_reached_bytes_per_s,
    nvls_reached_bytes_per_s,
    nic_reached_bytes_per_s,
    nic_hop_bytes_per_s,
    tensor_collective_s,
    layer_tensor_s,
    core_recomputed,
    context_pass_s,
    context_ring_s,
    context_all_to_all_s,
    layer_context_s,
    layer_exchange_s,
    layer_expert_s,
    layer_network_s,
    hop_across_s,
    hop_inside_s,
    gradient_bus_bytes_per_s,
    gradient_latency_s,
    gradient_all_reduce_s,
    gradient_scatter_gather_s,
    expert_gradient_s,
)
