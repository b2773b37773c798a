"""Time of the arithmetic of one micro-batch on one GPU: products, attention, memory-bound work, logits.

Symbols in the formulas: T tokens per rank, t tensor degree, c context degree, s sequence length, P peak
FLOP/s of the precision, P16 of 16-bit, e efficiency, BW memory bandwidth. Backward of a matrix product is
twice its forward.
"""

from __future__ import annotations

import numpy as np

from linkwise.estimate.term import Floats, term

_DERIVED = (
    "derived: shapes of the transformer layer (Narayanan et al., Efficient Large-Scale Training, 2021, "
    "appendix)"
)
_FITTED = (
    "form: roofline with a saturation in each dimension; constant fitted on measured steps (docs/accuracy.md)"
)
_FLASH = "Dao, FlashAttention-2, 2023: backward is 2.5 forwards; causal masking halves the square"

BACKWARD_HOST = 1.3
"""Kernels the host launches in a layer's backward pass over those of its forward pass."""


@term("tokens", "micro_batch x sequence_length / context", _DERIVED)
def tokens(micro_batch: Floats, sequence_length: Floats, context: Floats) -> Floats:
    """Return the tokens of one micro-batch that one rank works on."""
    return micro_batch * sequence_length / context


@term("FLOP/s", "peak_linear_flop_per_s x gemm_efficiency x rate_factor", _FITTED)
def linear_flop_per_s(peak_linear_flop_per_s: Floats, gemm_efficiency: Floats, rate_factor: Floats) -> Floats:
    """Return what large matrix products of the layers reach."""
    return peak_linear_flop_per_s * gemm_efficiency * rate_factor


@term("FLOP/s", "peak_half_flop_per_s x half_gemm_efficiency x rate_factor", _FITTED)
def half_flop_per_s(
    peak_half_flop_per_s: Floats, half_gemm_efficiency: Floats, rate_factor: Floats
) -> Floats:
    """Return what large 16-bit matrix products reach (logits stay in 16 bits)."""
    return peak_half_flop_per_s * half_gemm_efficiency * rate_factor


@term(
    "s",
    "2 T (N_t / t + N_w) / (P e) + c_sat [b (T k + N/t) + 2 T n] / BW, N = sum of n k over the layer's "
    "products,"
    "N_w those no rank cuts (on its slice of the sequence where that is sharded)",
    _FITTED,
)
def linear_forward_s(
    tokens: Floats,
    tensor: Floats,
    sequence_parallel: Floats,
    linear_parameters: Floats,
    linear_whole_parameters: Floats,
    linear_in_cut: Floats,
    linear_in_whole: Floats,
    linear_out_cut: Floats,
    linear_out_whole: Floats,
    linear_flop_per_s: Floats,
    memory_bytes_per_s: Floats,
    gemm_saturation: Floats,
    operand_bytes: Floats,
) -> Floats:
    """Return the forward time of the dense matrix products of one average layer."""
    spread = 1.0 + sequence_parallel * (tensor - 1.0)
    cut = (linear_parameters - linear_whole_parameters) / tensor
    flop = 2.0 * tokens * (cut + linear_whole_parameters / spread)
    read = operand_bytes * (tokens * (linear_in_cut / tensor + linear_in_whole) + linear_parameters / tensor)
    written = 2.0 * tokens * (linear_out_cut / tensor + linear_out_whole)
    return flop / linear_flop_per_s + gemm_saturation * (read + written) / memory_bytes_per_s


@term(
    "1",
    "1 if the experts are spread over the tensor ranks too, else t",
    "Megatron-Core MoE: expert tensor parallelism",
)
def expert_tensor(expert: Floats, data: Floats, context: Floats, tensor: Floats) -> Floats:
    """Return over how many ranks one expert is cut."""
    return np.where(expert > data * context, 1.0, tensor)


@term("s", "grouped products: 2 T k N_e / (t P e) + c_sat [b (T k d + E/(p t) N_e) + 2 T k n] / BW", _FITTED)
def expert_forward_s(
    tokens: Floats,
    tensor: Floats,
    expert: Floats,
    expert_tensor: Floats,
    moe_fraction: Floats,
    experts: Floats,
    experts_per_token: Floats,
    expert_parameters: Floats,
    expert_in_width: Floats,
    expert_out_width: Floats,
    linear_flop_per_s: Floats,
    memory_bytes_per_s: Floats,
    gemm_saturation: Floats,
    operand_bytes: Floats,
) -> Floats:
    """Return the forward time of the routed experts of one average layer, load balanced."""
    routed = tokens * experts_per_token
    flop = 2.0 * routed * expert_parameters / tensor
    weights = experts / expert * expert_parameters / expert_tensor
    moved = (
        operand_bytes * (routed * expert_in_width / tensor + weights)
        + 2.0 * routed * expert_out_width / tensor
    )
    seconds = flop / linear_flop_per_s + gemm_saturation * moved / memory_bytes_per_s
    return moe_fraction * seconds


@term(
    "1",
    "share of full layers x keys(s or index) + share of sliding layers x keys(w), keys(w) = 2 w - w^2/s",
    _DERIVED + "; sparse index: DeepSeek-AI, DeepSeek-V3.2, 2025",
)
def attention_span(
    sequence_length: Floats,
    full_layers_fraction: Floats,
    sliding_layers_fraction: Floats,
    sliding_window: Floats,
    index_topk: Floats,
) -> Floats:
    """Return the keys a query is multiplied with, averaged over softmax layers, as if no key were masked.

    Notes
    -----
    A causal window of w keys meets w - w^2/(2 s) keys on average; twice that makes the causal half come out
    right. A sparse index leaves a query of a full layer `index_topk` keys.
    """
    picked = np.where(index_topk > 0, np.minimum(index_topk, sequence_length), sequence_length)
    window = np.minimum(sliding_window, sequence_length)
    seen = full_layers_fraction * _masked_keys(picked, sequence_length)
    seen = seen + sliding_layers_fraction * _masked_keys(window, sequence_length)
    return seen / np.maximum(full_layers_fraction + sliding_layers_fraction, 1e-9)


@term(
    "FLOP",
    "2 T [s_eff (heads x (d_qk + d_v)) + s x index width + 6 x state of linear layers] / t, full square",
    _DERIVED + "; gated delta net: Yang et al., Gated Delta Networks, 2024, recurrent form",
)
def attention_flop(
    tokens: Floats,
    tensor: Floats,
    sequence_length: Floats,
    attention_span: Floats,
    attention_heads_width: Floats,
    index_width: Floats,
    linear_state_width: Floats,
) -> Floats:
    """Return the forward FLOP of scores and values (or states) of one average layer over the full square."""
    mixing = attention_span * attention_heads_width + sequence_length * index_width
    return (2.0 * mixing + 12.0 * linear_state_width) * tokens / tensor


@term("s", "fused: 0.5 F / (P16 e_a) causal; unfused: F / (0.75 P16 e) + c_un 16 T s heads / (t BW)", _FLASH)
def attention_forward_s(
    attention_flop: Floats,
    tokens: Floats,
    tensor: Floats,
    sequence_length: Floats,
    heads: Floats,
    fused_attention: Floats,
    causal_fraction: Floats,
    peak_half_flop_per_s: Floats,
    attention_efficiency: Floats,
    rate_factor: Floats,
    half_flop_per_s: Floats,
    unfused_attention_traffic: Floats,
    unaligned_head_factor: Floats,
    memory_bytes_per_s: Floats,
) -> Floats:
    """Return the forward time of the attention core of one average layer."""
    fused = causal_fraction * attention_flop / (peak_half_flop_per_s * attention_efficiency * rate_factor)
    scores = 16.0 * tokens * sequence_length * heads / tensor
    unfused = unaligned_head_factor * attention_flop / (0.75 * half_flop_per_s) + (
        unfused_attention_traffic * scores / memory_bytes_per_s
    )
    return np.where(fused_attention > 0, fused, unfused)


@term("s", "2.5 forwards where fused (scores are computed again), else 2", _FLASH)
def attention_backward_s(attention_forward_s: Floats, fused_attention: Floats) -> Floats:
    """Return the backward time of the attention core of one average layer."""
    return attention_forward_s * np.where(fused_attention > 0, 2.5, 2.0)


@term(
    "s",
    "c_el T [22 h / (t if sequence parallel) + (10 h + activations of MLP and attention) / t] / BW",
    _FITTED,
)
def elementwise_forward_s(
    element_bytes: Floats,
    tokens: Floats,
    tensor: Floats,
    sequence_parallel: Floats,
    hidden: Floats,
    elementwise_cut_bytes: Floats,
    memory_bytes_per_s: Floats,
    elementwise_traffic: Floats,
) -> Floats:
    """Return the forward time of norms, residuals, activations, rotary and casts of one average layer."""
    spread = 1.0 + sequence_parallel * (tensor - 1.0)
    moved = tokens * (22.0 * hidden / spread + (10.0 * hidden + elementwise_cut_bytes) / tensor)
    return 0.5 * element_bytes * elementwise_traffic * moved / memory_bytes_per_s


@term("s", "matrix products + experts + attention + memory-bound work", "sum of its terms")
def forward_gpu_s(
    linear_forward_s: Floats,
    expert_forward_s: Floats,
    attention_forward_s: Floats,
    elementwise_forward_s: Floats,
    kernel_factor: Floats,
) -> Floats:
    """Return what the GPU computes in the forward pass of one average layer."""
    return kernel_factor * (linear_forward_s + expert_forward_s + attention_forward_s + elementwise_forward_s)


@term("s", "2 x (matrix products + experts + memory-bound work) + attention backward", "sum of its terms")
def backward_gpu_s(
    linear_forward_s: Floats,
    expert_forward_s: Floats,
    attention_backward_s: Floats,
    elementwise_forward_s: Floats,
    kernel_factor: Floats,
) -> Floats:
    """Return what the GPU computes in the backward pass of one average layer."""
    linear = linear_forward_s + expert_forward_s + elementwise_forward_s
    return kernel_factor * (2.0 * linear + attention_backward_s)


@term("s", "max(gpu, host) + mixture_layer_s x share of mixtures", _FITTED)
def layer_forward_s(
    forward_gpu_s: Floats, host_layer_s: Floats, mixture_layer_s: Floats, moe_fraction: Floats
) -> Floats:
    """Return the forward time of one average layer, not below what the host needs to launch it.

    Notes
    -----
    Kernels wait in a queue, so that the host runs ahead of the GPU from layer to layer: over a pass the
    slower of the two sets the time, with nothing in between.
    """
    return np.maximum(forward_gpu_s, host_layer_s) + mixture_layer_s * moe_fraction


@term("s", "max(gpu, 1.3 host) + mixture_layer_s x share of mixtures", _FITTED)
def layer_backward_s(
    backward_gpu_s: Floats, host_layer_s: Floats, mixture_layer_s: Floats, moe_fraction: Floats
) -> Floats:
    """Return the backward time of one average layer."""
    return np.maximum(backward_gpu_s, BACKWARD_HOST * host_layer_s) + mixture_layer_s * moe_fraction


@term(
    "s",
    "full: a forward, less its last product where it stops once all is there that the backward pass reads; "
    "selective: the attention core (Megatron) or a share of the linear layers (torchtitan)",
    "Korthikanti et al., Reducing Activation Recomputation, 2022; torchtitan selective activation "
    "checkpointing; PyTorch 2.1, torch.utils.checkpoint, early stop",
)
def layer_recompute_s(
    recompute: Floats,
    layer_forward_s: Floats,
    attention_forward_s: Floats,
    linear_forward_s: Floats,
    selective_linear_fraction: Floats,
    recompute_stops_early: Floats,
    last_product_fraction: Floats,
    kernel_factor: Floats,
) -> Floats:
    """Return the time one average layer spends computing activations again.

    Notes
    -----
    The backward pass reads the input of a layer's last product, not its output.
    """
    unread = recompute_stops_early * kernel_factor * last_product_fraction * linear_forward_s
    full = np.maximum(layer_forward_s - unread, 0.0)
    attention = np.where(selective_linear_fraction > 0, 0.0, attention_forward_s)
    selective = attention + selective_linear_fraction * linear_forward_s
    return np.where(recompute >= 2, full, np.where(recompute >= 1, selective, 0.0))


@term("s", "3 x [2 T h V / (t P16 e) + c_sat 2 (T h + h V/t + T V/t) / BW] + 16 c_el T V / (t BW)", _FITTED)
def logits_s(
    tokens: Floats,
    tensor: Floats,
    hidden: Floats,
    vocab: Floats,
    logits_share: Floats,
    half_flop_per_s: Floats,
    memory_bytes_per_s: Floats,
    gemm_saturation: Floats,
    elementwise_traffic: Floats,
    host_layer_s: Floats,
) -> Floats:
    """Return the time of output head and loss for one micro-batch, both ways, on the last stage."""
    local = vocab / tensor
    product = 2.0 * tokens * hidden * local / half_flop_per_s + (
        gemm_saturation * 2.0 * (tokens * hidden + hidden * local + tokens * local) / memory_bytes_per_s
    )
    loss = 16.0 * elementwise_traffic * tokens * local / memory_bytes_per_s
    return logits_share * np.maximum(3.0 * product + loss, (1.0 + BACKWARD_HOST) * host_layer_s)


def _masked_keys(keys: Floats, sequence_length: Floats) -> Floats:
    return 2.0 * keys - keys * keys / sequence_length


TERMS = (
    tokens,
    linear_flop_per_s,
    half_flop_per_s,
    linear_forward_s,
    expert_tensor,
    expert_forward_s,
    attention_span,
    attention_flop,
    attention_forward_s,
    attention_backward_s,
    elementwise_forward_s,
    forward_gpu_s,
    backward_gpu_s,
    layer_forward_s,
    layer_backward_s,
    layer_recompute_s,
    logits_s,
)
