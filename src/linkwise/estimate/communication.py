"""Time of what one step sends, priced where the ranks sit: tensor, context, expert, pipeline, data.

Symbols: T tokens per rank, h hidden size, n ranks of the group, l of them in one NVLink domain, B bytes/s of
the slowest hop.
"""

from __future__ import annotations

import numpy as np

from linkwise.estimate import crossing, placement
from linkwise.estimate.collective_call import GroupLinks, call_s
from linkwise.estimate.compute import BACKWARD_HOST
from linkwise.estimate.term import Floats, term
from linkwise.network.group_times import NETWORKS, ring_share
from linkwise.network.placement import bus_bytes_per_s

_RING = (
    "ring closed forms (Thakur et al., 2005); bandwidth of the slowest hop, NICs shared by the groups of "
    "a domain"
)
_NCCL = "algorithm and protocol as NCCL chooses them, at the cost that nccl-tests show (docs/collectives.md)"
_FITTED = "form derived; share left exposed fitted on measured steps (docs/accuracy.md)"
_CORE = "Korthikanti et al., Reducing Activation Recomputation, 2022"


@term("bytes/s", "nvlink_bytes_per_s x nvlink_fraction", "nccl-tests bus bandwidth over line rate, measured")
def nvlink_reached_bytes_per_s(nvlink_bytes_per_s: Floats, nvlink_fraction: Floats) -> Floats:
    """Return what collectives reach inside an NVLink domain, per GPU and direction."""
    return nvlink_bytes_per_s * nvlink_fraction


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


@term(
    "bytes/s",
    "nic_bytes_per_s x network_contention; over plain TCP what is reached over the share that rings reach",
    "what a training step leaves of the line rate, fitted; collectives then reach their own share of it",
)
def nic_offered_bytes_per_s(
    nic_bytes_per_s: Floats,
    network_fraction: Floats,
    network_contention: Floats,
    collective_network: Floats,
) -> Floats:
    """Return what one GPU's share of the NICs offers to collectives, at line rate.

    Notes
    -----
    What sockets reach depends on the number of streams, and is fitted apart from what collectives of
    nccl-tests show.
    """
    over_tcp = network_fraction / ring_share(collective_network)
    is_tcp = collective_network == NETWORKS.index("sockets")
    return nic_bytes_per_s * network_contention * np.where(is_tcp, over_tcp, 1.0)


# ------------------------------------------------------------------------------------------------ tensor


@term(
    "s",
    "all-reduce of 2 T h bytes over t ranks; with sequence parallelism its two halves",
    _NCCL,
)
def tensor_collective_s(
    element_bytes: Floats,
    tokens: Floats,
    hidden: Floats,
    tensor: Floats,
    tensor_local: Floats,
    sequence_parallel: Floats,
    collective_generation: Floats,
    collective_network: Floats,
    nvlink_bytes_per_s: Floats,
    tensor_nic_bytes_per_s: Floats,
    network_latency_s: Floats,
    nvlink_latency_factor: Floats,
    network_latency_factor: Floats,
) -> Floats:
    """Return the time of one tensor-parallel all-reduce of the activations, or of its two halves."""
    buffer = element_bytes * tokens * hidden
    links = GroupLinks(
        ranks=tensor,
        local=tensor_local,
        generation=collective_generation,
        network=collective_network,
        link_bytes_per_s=nvlink_bytes_per_s,
        nic_bytes_per_s=tensor_nic_bytes_per_s,
        latency_s=network_latency_s,
        local_latency=nvlink_latency_factor,
        network_latency=network_latency_factor,
    )
    halves = call_s("all_gather", buffer, links) + call_s("reduce_scatter", buffer, links)
    return np.where(sequence_parallel > 0, halves, call_s("all_reduce", buffer, links))


@term(
    "s",
    "per pass: max(gpu + k e x collective, host) - max(gpu, host); k = 2, one fewer in mixture layers whose "
    "experts span the tensor ranks; e = 1 for a group that leaves its NVLink domain",
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
    sequence_parallel: Floats,
    recompute_stops_early: Floats,
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
    Engine user buffers), so a group over several domains hides nothing. A recomputation that stops early
    leaves out what follows the last product: an all-reduce of two, or one of four halves.
    """
    collectives = 2.0 - moe_fraction * ((expert_tensor < tensor) & (moe_fraction > 0))
    exposed = np.where(tensor > tensor_local, 1.0, tensor_exposed_fraction)
    shown = collectives * exposed * tensor_collective_s
    host_backward = BACKWARD_HOST * host_layer_s
    forward = np.maximum(forward_gpu_s + shown, host_layer_s) - np.maximum(forward_gpu_s, host_layer_s)
    backward = np.maximum(backward_gpu_s + shown, host_backward) - np.maximum(backward_gpu_s, host_backward)
    unread = recompute_stops_early * np.where(sequence_parallel > 0, 0.25, 0.5)
    shown_s: Floats = np.where(recompute >= 2, 2.0 - unread, 1.0) * forward + backward
    return shown_s


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
    slack = np.maximum(forward_gpu_s, host_layer_s) - forward_gpu_s
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
    collective_generation: Floats,
    collective_network: Floats,
    nvlink_bytes_per_s: Floats,
    context_exchange_nic_bytes_per_s: Floats,
    network_latency_s: Floats,
    nvlink_latency_factor: Floats,
    network_latency_factor: Floats,
) -> Floats:
    """Return what one layer leaves exposed of swapping slices of the sequence for heads and back.

    Notes
    -----
    Queries, keys, values and outputs go each by a call of their own: 4 a pass.
    """
    send = element_bytes * tokens * (query_output_width + key_value_width) / tensor
    links = GroupLinks(
        ranks=context,
        local=context_local,
        generation=collective_generation,
        network=collective_network,
        link_bytes_per_s=nvlink_bytes_per_s,
        nic_bytes_per_s=context_exchange_nic_bytes_per_s,
        latency_s=network_latency_s,
        local_latency=nvlink_latency_factor,
        network_latency=network_latency_factor,
    )
    return (2.0 + core_recomputed) * 4.0 * call_s("all_to_all", send / 4.0, links)


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
    "all-to-alls of 2 T k h / t bytes (dispatch and combine, each way: 4, and 2 where all runs again)",
    _NCCL,
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
    collective_generation: Floats,
    collective_network: Floats,
    nvlink_bytes_per_s: Floats,
    expert_nic_bytes_per_s: Floats,
    network_latency_s: Floats,
    nvlink_latency_factor: Floats,
    network_latency_factor: Floats,
) -> Floats:
    """Return the time of all exchanges of tokens with experts that one average layer asks for."""
    domains = expert / expert_local
    visited = domains * (1.0 - np.power(1.0 - 1.0 / domains, experts_per_token))
    copies = np.where(expert > expert_local, visited, experts_per_token)
    send = element_bytes * tokens * copies * hidden / tensor
    links = GroupLinks(
        ranks=expert,
        local=expert_local,
        generation=collective_generation,
        network=collective_network,
        link_bytes_per_s=nvlink_bytes_per_s,
        nic_bytes_per_s=expert_nic_bytes_per_s,
        latency_s=network_latency_s,
        local_latency=nvlink_latency_factor,
        network_latency=network_latency_factor,
    )
    calls = 4.0 + 2.0 * (recompute >= 2)
    return moe_fraction * calls * call_s("all_to_all", send, links)


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


TERMS = (
    *placement.TERMS,
    *crossing.TERMS,
    nvlink_reached_bytes_per_s,
    nic_offered_bytes_per_s,
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
)
