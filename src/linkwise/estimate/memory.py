"""Memory of the fullest GPU, by kind. The parts sum to the total.

Symbols: T tokens per rank, t tensor degree, p stages, v chunks per stage, n data ranks, h hidden size.

References
----------
V. Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, 2022.
S. Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, 2020.
"""

from __future__ import annotations

import numpy as np

from linkwise.estimate.term import Floats, term

_KORTHIKANTI = "Korthikanti et al., Reducing Activation Recomputation, 2022, sections 4 and 5"
_ZERO = "Rajbhandari et al., ZeRO, 2020, section 5"
_MEASURED = "form derived; constant read off measured peaks (docs/accuracy.md)"


@term("bytes", "weight bytes x local parameters, divided by n for ZeRO 3", _ZERO)
def weight_memory_bytes(
    stage_dense_parameters: Floats,
    stage_expert_parameters: Floats,
    expert_replicas: Floats,
    zero_stage: Floats,
    shard_ranks: Floats,
    weight_element_bytes: Floats,
) -> Floats:
    """Return the memory of the weights."""
    shard = np.where(zero_stage >= 3.0, shard_ranks, 1.0)
    experts = np.where(zero_stage >= 3.0, np.minimum(shard_ranks, expert_replicas), 1.0)
    return weight_element_bytes * (stage_dense_parameters / shard + stage_expert_parameters / experts)


@term("bytes", "gradient bytes x local parameters, divided by n from ZeRO 2 on", _ZERO)
def gradient_memory_bytes(
    stage_dense_parameters: Floats,
    stage_expert_parameters: Floats,
    expert_replicas: Floats,
    zero_stage: Floats,
    shard_ranks: Floats,
    gradient_store_bytes: Floats,
) -> Floats:
    """Return the memory of the gradients between micro-batches."""
    shard = np.where(zero_stage >= 2.0, shard_ranks, 1.0)
    experts = np.where(zero_stage >= 2.0, np.minimum(shard_ranks, expert_replicas), 1.0)
    return gradient_store_bytes * (stage_dense_parameters / shard + stage_expert_parameters / experts)


@term("bytes", "optimizer bytes x local parameters, divided by n from ZeRO 1 on", _ZERO)
def optimizer_memory_bytes(
    stage_dense_parameters: Floats,
    stage_expert_parameters: Floats,
    expert_replicas: Floats,
    zero_stage: Floats,
    shard_ranks: Floats,
    optimizer_state_bytes: Floats,
) -> Floats:
    """Return the memory of master weights and moments."""
    shard = np.where(zero_stage >= 1.0, shard_ranks, 1.0)
    experts = np.where(zero_stage >= 1.0, np.minimum(shard_ranks, expert_replicas), 1.0)
    return optimizer_state_bytes * (stage_dense_parameters / shard + stage_expert_parameters / experts)


@term(
    "bytes",
    "ZeRO 3: two gathered layers and the gradient of one; beside a pipeline the whole stage and its "
    "gradients",
    "Zhao et al., PyTorch FSDP, 2023; torchtitan keeps parameters gathered between micro-batches of a "
    "pipeline",
)
def gathered_memory_bytes(
    zero_stage: Floats,
    shard_ranks: Floats,
    pipeline: Floats,
    layer_parameters: Floats,
    layer_expert_parameters: Floats,
    expert: Floats,
    expert_tensor: Floats,
    tensor: Floats,
    embedding_parameters: Floats,
    stage_dense_parameters: Floats,
    stage_expert_parameters: Floats,
    gather_element_bytes: Floats,
    gradient_element_bytes: Floats,
) -> Floats:
    """Return the memory of parameters gathered for the layers at work."""
    layer = layer_parameters / tensor + layer_expert_parameters / (expert * expert_tensor)
    table = embedding_parameters / tensor
    prefetched = gather_element_bytes * (2.0 * layer + table) + gradient_element_bytes * np.maximum(
        layer, table
    )
    stage = (gather_element_bytes + gradient_element_bytes) * (
        stage_dense_parameters + stage_expert_parameters
    )
    gathered = np.where(pipeline > 1.0, stage, prefetched)
    return np.where((zero_stage >= 3.0) & (shard_ranks > 1.0), gathered, 0.0)


@term(
    "bytes",
    "T {[2 norms + b_in inputs + 2 latents + 2 d h] / (t if sequence parallel) + [2 attention + b_in "
    "inputs + 2 inner] / t}",
    _KORTHIKANTI + ", equations 1 to 4, in elements of the model's own widths; d dropout masks; "
    "b_in bytes of a saved input",
)
def layer_activation_bytes(
    element_bytes: Floats,
    tokens: Floats,
    tensor: Floats,
    sequence_parallel: Floats,
    hidden: Floats,
    heads: Floats,
    sequence_length: Floats,
    fused_attention: Floats,
    dropout_masks: Floats,
    eager_activations: Floats,
    saved_input_bytes: Floats,
    norm_elements: Floats,
    linear_input_whole_elements: Floats,
    latent_elements: Floats,
    attention_cut_elements: Floats,
    linear_input_cut_elements: Floats,
    mlp_cut_elements: Floats,
    gate_elements: Floats,
    moe_fraction: Floats,
    experts_per_token: Floats,
    expert_input_elements: Floats,
    expert_inner_elements: Floats,
) -> Floats:
    """Return what one average layer keeps for its backward pass, nothing recomputed."""
    spread = 1.0 + sequence_parallel * (tensor - 1.0)
    whole = element_bytes * (norm_elements + latent_elements + dropout_masks * hidden) + (
        saved_input_bytes * linear_input_whole_elements
    )
    inner = attention_cut_elements + mlp_cut_elements + eager_activations * gate_elements
    experts = saved_input_bytes * expert_input_elements + element_bytes * expert_inner_elements
    cut = (
        element_bytes * inner
        + saved_input_bytes * linear_input_cut_elements
        + moe_fraction * experts_per_token * experts
    )
    scores = np.where(fused_attention > 0, 0.0, 5.0 * tokens * sequence_length * heads / tensor)
    return tokens * (whole / spread + cut / tensor) + scores


@term(
    "bytes",
    "as above without the attention core (scores; nothing where fused), or a share (torchtitan)",
    _KORTHIKANTI,
)
def layer_selective_bytes(
    layer_activation_bytes: Floats,
    tokens: Floats,
    heads: Floats,
    sequence_length: Floats,
    tensor: Floats,
    fused_attention: Floats,
    selective_kept_fraction: Floats,
) -> Floats:
    """Return what one average layer keeps under selective recomputation."""
    scores = np.where(fused_attention > 0, 0.0, 5.0 * tokens * sequence_length * heads / tensor)
    return (layer_activation_bytes - scores) * selective_kept_fraction


@term("bytes", "2 T h / (t if sequence parallel), or what the recompute mode keeps", _KORTHIKANTI)
def layer_kept_bytes(
    recompute: Floats,
    layer_activation_bytes: Floats,
    layer_selective_bytes: Floats,
    element_bytes: Floats,
    tokens: Floats,
    hidden: Floats,
    tensor: Floats,
    sequence_parallel: Floats,
    checkpoint_cut: Floats,
) -> Floats:
    """Return what one average layer keeps per micro-batch in flight."""
    spread = 1.0 + np.maximum(sequence_parallel, checkpoint_cut) * (tensor - 1.0)
    whole = element_bytes * tokens * hidden / spread
    return np.where(
        recompute >= 2.0, whole, np.where(recompute >= 1.0, layer_selective_bytes, layer_activation_bytes)
    )


@term(
    "1",
    "layers x micro-batches in flight on the first stage: L_stage min(m, p), interleaved L_stage (p + "
    "(p-1)/v)",
    _KORTHIKANTI,
)
def layers_in_flight(
    stage_layers: Floats,
    pipeline: Floats,
    virtual_pipeline: Floats,
    schedule: Floats,
    micro_batches: Floats,
) -> Floats:
    """Return the layers' worth of kept activations on the first stage at the peak."""
    deep = np.where(virtual_pipeline > 1.0, pipeline + (pipeline - 1.0) / virtual_pipeline, pipeline)
    held = np.where(schedule == 1.0, micro_batches, np.minimum(deep, micro_batches))
    return stage_layers * held


@term(
    "bytes",
    "layers in flight x kept, plus one layer's whole activations while it is recomputed",
    _KORTHIKANTI,
)
def activation_memory_bytes(
    layers_in_flight: Floats,
    layer_kept_bytes: Floats,
    recompute: Floats,
    layer_activation_bytes: Floats,
    activation_overhead_fraction: Floats,
    offloaded_activation_fraction: Floats,
) -> Floats:
    """Return the memory of activations on the first stage."""
    working = np.where(recompute >= 1.0, layer_activation_bytes, 0.0)
    kept = (1.0 - offloaded_activation_fraction) * layers_in_flight * layer_kept_bytes
    return (1.0 + activation_overhead_fraction) * (kept + working)


@term("bytes", "logit bytes x T V / t, on the stage with the loss", _MEASURED)
def logits_memory_bytes(
    tokens: Floats, vocab: Floats, tensor: Floats, logit_element_bytes: Floats, logits_share: Floats
) -> Floats:
    """Return the memory of logits and their gradient."""
    return logits_share * logit_element_bytes * tokens * vocab / tensor


@term(
    "bytes",
    "loss on the same GPU as the first stage, or what the last stage holds more than the first: its own "
    "micro-batches in flight (1; all for GPipe; ((v-1) p + 1)/v interleaved) and the logits",
    "derived from the schedules; Narayanan et al., 2021, figure 4",
)
def loss_memory_bytes(
    pipeline: Floats,
    virtual_pipeline: Floats,
    schedule: Floats,
    micro_batches: Floats,
    logits_memory_bytes: Floats,
    last_stage_layers: Floats,
    layer_kept_bytes: Floats,
    layers_in_flight: Floats,
    activation_overhead_fraction: Floats,
    offloaded_activation_fraction: Floats,
) -> Floats:
    """Return the memory the loss adds to the fullest stage."""
    interleaved = ((virtual_pipeline - 1.0) * pipeline + 1.0) / virtual_pipeline
    flying = np.minimum(np.where(schedule == 1.0, micro_batches, interleaved), micro_batches)
    kept = (1.0 + activation_overhead_fraction) * (1.0 - offloaded_activation_fraction) * layer_kept_bytes
    more = kept * (last_stage_layers * flying - layers_in_flight) + logits_memory_bytes
    return np.where(pipeline > 1.0, np.maximum(more, 0.0), logits_memory_bytes)


@term("bytes", "CUDA context, NCCL buffers, workspaces", _MEASURED)
def reserve_memory_bytes(reserve_bytes: Floats) -> Floats:
    """Return what the framework and the driver keep for themselves."""
    return 1.0 * reserve_bytes


@term("bytes", "weights + gradients + optimizer + gathered + activations + loss", "sum of its parts")
def allocated_memory_bytes(
    weight_memory_bytes: Floats,
    gradient_memory_bytes: Floats,
    optimizer_memory_bytes: Floats,
    gathered_memory_bytes: Floats,
    activation_memory_bytes: Floats,
    loss_memory_bytes: Floats,
) -> Floats:
    """Return what the framework's allocator hands out at the peak."""
    return (
        weight_memory_bytes
        + gradient_memory_bytes
        + optimizer_memory_bytes
        + gathered_memory_bytes
        + activation_memory_bytes
        + loss_memory_bytes
    )


@term("bytes", "allocated x fragmentation", _MEASURED)
def fragment_memory_bytes(allocated_memory_bytes: Floats, fragmentation_fraction: Floats) -> Floats:
    """Return what a caching allocator holds beyond what it has handed out: blocks split and kept."""
    return allocated_memory_bytes * fragmentation_fraction


@term("bytes", "allocated + fragments", "sum of its parts")
def reserved_memory_bytes(allocated_memory_bytes: Floats, fragment_memory_bytes: Floats) -> Floats:
    """Return what a caching allocator holds at the peak."""
    return allocated_memory_bytes + fragment_memory_bytes


@term("bytes", "allocated x (1 + fragmentation) + reserve", "sum of its parts")
def memory_bytes(reserved_memory_bytes: Floats, reserve_memory_bytes: Floats) -> Floats:
    """Return the memory of the fullest GPU."""
    return reserved_memory_bytes + reserve_memory_bytes


TERMS = (
    weight_memory_bytes,
    gradient_memory_bytes,
    optimizer_memory_bytes,
    gathered_memory_bytes,
    layer_activation_bytes,
    layer_selective_bytes,
    layer_kept_bytes,
    layers_in_flight,
    activation_memory_bytes,
    logits_memory_bytes,
    loss_memory_bytes,
    reserve_memory_bytes,
    allocated_memory_bytes,
    fragment_memory_bytes,
    reserved_memory_bytes,
    memory_bytes,
)
