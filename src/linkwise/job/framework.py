"""Habits of training frameworks: what a stack overlaps, fuses and leaves blank, by framework and era.

A habit is a number or the name of a fitted constant (see `estimate/constants.json`). A framework nobody
listed gets the habits of its family. To add one: an entry in `FRAMEWORKS`, a test in
`tests/job/test_framework.py`.

References
----------
D. Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, 2021.
V. Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, 2022.
Y. Zhao et al., PyTorch FSDP, 2023. W. Liang et al., TorchTitan, 2024 (asynchronous tensor parallelism is an
option). PyTorch documentation, torch.utils.checkpoint. S. Rajbhandari et al., ZeRO, 2020. Y. Huang et al.,
GPipe, 2019.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

Habit = float | str

_COMMON: Mapping[str, Habit] = MappingProxyType(
    {
        "gemm_saturation": "gemm_saturation",
        "elementwise_traffic": "elementwise_traffic_tuned",
        "unfused_attention_traffic": "unfused_attention_traffic",
        "mixture_layer_s": "mixture_layer_s",
        "collective_latency_s": "collective_latency_s",
        "straggler_fraction": "straggler_fraction",
        "optimizer_traffic_bytes": "optimizer_traffic_bytes",
        "context_exposed_fraction": "context_exposed_fraction",
        "step_fixed_s": "step_fixed_s",
        "framework_overhead_fraction": 0.0,
        "selective_linear_fraction": 0.0,
        "selective_kept_fraction": 1.0,
        "recompute_stops_early": 0.0,
        "shards_every_pass": 0.0,
        "shard_overlap_exponent": "shard_overlap_exponent",
        "sharded_traffic_factor": 1.0,
        "gradient_element_bytes": 2.0,
        "gather_element_bytes": 2.0,
        "hop_cut": 1.0,
        "hop_latencies": 1.0,
        "hop_exposed_fraction": "hop_exposed_tuned",
        "tensor_exposed_fraction": "tensor_exposed_tuned",
        "gradient_exposed_fraction": "gradient_exposed_tuned",
        "expert_exposed_fraction": "expert_exposed",
        "host_layer_s": "host_layer_tuned_s",
        "causal_fraction": 0.5,
        "logits_share": 1.0,
        "kernel_factor": 1.0,
        "unaligned_head_factor": 1.0,
        "dropout_masks": 0.0,
        "weight_element_bytes": 2.0,
        "gradient_store_bytes": 4.0,
        "optimizer_state_bytes": 12.0,
        "logit_element_bytes": 6.0,
        "activation_overhead_fraction": "activation_overhead",
        "reserve_bytes": "reserve_bytes",
        "checkpoint_cut": 0.0,
        "eager_activations": 0.0,
        "fragmentation_fraction": "fragmentation",
        "offloaded_activation_fraction": 0.0,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """One framework (and era) with its habits.

    Attributes
    ----------
    name
        Spelling in documents and tables.
    family
        megatron, fsdp, ddp, deepspeed, gpipe, jax or other.
    fuses_attention
        Whether the attention core is one fused kernel (never on V100).
    attention
        Which constant says how fast the fused core is: `attention_efficiency_<attention>`.
    sequence_parallel
        Whether activations are sharded by sequence beside tensor parallelism unless the run says otherwise.
    interleaves
        Largest virtual pipeline its recipes take where the run does not say; 1 is none.
    schedule
        Pipeline schedule, a word of `linkwise.layout.Schedule`.
    zero_stage
        Sharding where a run does not say.
    eight_bit_inputs
        Whether 8-bit precisions keep the inputs of matrix products in 8 bits for the backward pass.
    early_hopper
        Whether its kernels for Hopper are those of that generation's first years.
    bf16_habits
        Habits that take the place of others in bf16.
    assumes
        What a reader must set to get these habits, in sentences.
    habits
        Columns of the estimate this framework sets.
    """

    name: str
    family: str
    fuses_attention: bool = True
    attention: str = "tuned"
    sequence_parallel: bool = True
    interleaves: int = 1
    schedule: str = "1f1b"
    zero_stage: int = 1
    eight_bit_inputs: bool = False
    early_hopper: bool = False
    bf16_habits: Mapping[str, Habit] = field(default_factory=dict)
    assumes: tuple[str, ...] = ()
    habits: Mapping[str, Habit] = field(default_factory=dict)

    def columns(self, precision: str) -> Mapping[str, Habit]:
        """Return every habit at a precision, the common ones where this framework has none of its own.

        Parameters
        ----------
        precision
            That of the products.
        """
        return {**_COMMON, **self.habits, **(self.bf16_habits if precision == "bf16" else {})}


_CLASSIC = Framework(
    name="megatron-classic",
    family="megatron",
    fuses_attention=False,
    sequence_parallel=False,
    zero_stage=0,
    bf16_habits={"gradient_element_bytes": 4.0},
    habits={
        "tensor_exposed_fraction": 1.0,
        "gradient_exposed_fraction": 1.0,
        "host_layer_s": "host_layer_classic_s",
        "elementwise_traffic": "elementwise_traffic",
        "hop_exposed_fraction": 1.0,
        "hop_latencies": 2.0,
        "dropout_masks": 1.0,
        "logit_element_bytes": 10.0,
    },
)
_MEGATRON_DEEPSPEED = replace(
    _CLASSIC,
    name="megatron-deepspeed",
    bf16_habits={"gradient_element_bytes": 4.0, "gradient_store_bytes": 6.0},
    habits={
        **_CLASSIC.habits,
        "gradient_store_bytes": 2.0,
        "framework_overhead_fraction": "megatron_deepspeed_overhead",
    },
)
_GRADIENTS_IN_16_BITS = (
    "gradients are kept and reduced in 16 bits and overlapped (as NeMo and Megatron-Bridge recipes do; "
    "plain Megatron-LM needs 2 more bytes a parameter: framework megatron-plain)"
)
_TUNED = Framework(
    name="megatron",
    family="megatron",
    interleaves=8,
    eight_bit_inputs=True,
    assumes=(_GRADIENTS_IN_16_BITS,),
    habits={"gradient_store_bytes": 2.0},
)
_TUNED_2025 = replace(
    _TUNED, name="megatron-2025", habits={**_TUNED.habits, "mixture_layer_s": "mixture_layer_2025_s"}
)
_PLAIN_HABITS: Mapping[str, Habit] = {
    "tensor_exposed_fraction": 1.0,
    "gradient_exposed_fraction": 1.0,
    "gradient_element_bytes": 4.0,
}
_PLAIN = Framework(name="megatron-plain", family="megatron", habits=_PLAIN_HABITS)
_NANOTRON = Framework(
    name="nanotron",
    family="megatron",
    habits={
        **_PLAIN_HABITS,
        "gradient_store_bytes": 6.0,
        "eager_activations": 1.0,
        "logit_element_bytes": 10.0,
    },
)
_FSDP_HABITS: Mapping[str, Habit] = {
    "weight_element_bytes": 4.0,
    "gradient_store_bytes": 4.0,
    "optimizer_state_bytes": 8.0,
    "logit_element_bytes": 8.0,
    "eager_activations": 1.0,
    "elementwise_traffic": "elementwise_traffic",
    "shards_every_pass": 1.0,
    "hop_exposed_fraction": 1.0,
    "recompute_stops_early": 1.0,
}
_FSDP = Framework(
    name="fsdp",
    family="fsdp",
    attention="pytorch",
    sequence_parallel=False,
    zero_stage=3,
    habits=_FSDP_HABITS,
)
_TORCHTITAN = Framework(
    name="torchtitan",
    family="fsdp",
    attention="pytorch",
    sequence_parallel=True,
    zero_stage=3,
    habits={
        **_FSDP_HABITS,
        "tensor_exposed_fraction": 1.0,  # asynchronous tensor parallelism is an option, off by default
        "selective_linear_fraction": 0.45,
        "selective_kept_fraction": 0.5,
        "logit_element_bytes": 12.0,  # 16-bit logits and gradient, 32-bit copy, softmax
    },
)
_DEEPSPEED = Framework(
    name="deepspeed",
    family="deepspeed",
    attention="pytorch",
    sequence_parallel=False,
    zero_stage=3,
    habits={"shards_every_pass": 1.0},
)
_DEEPSPEED_2021 = Framework(
    name="deepspeed-2021",
    family="deepspeed",
    fuses_attention=False,
    sequence_parallel=False,
    zero_stage=3,
    habits={
        "shards_every_pass": 1.0,
        "sharded_traffic_factor": "zero3_2021_traffic",
        "host_layer_s": "host_layer_classic_s",
        "elementwise_traffic": "elementwise_traffic",
        "dropout_masks": 1.0,
    },
)
_GPIPE = Framework(
    name="gpipe",
    family="gpipe",
    fuses_attention=False,
    sequence_parallel=False,
    schedule="gpipe",
    zero_stage=0,
    habits={
        "kernel_factor": "gpipe_compute",
        "logits_share": 0.0,
        "gradient_exposed_fraction": 1.0,
        "gradient_element_bytes": 4.0,
        "host_layer_s": "host_layer_classic_s",
        "elementwise_traffic": "elementwise_traffic",
        "hop_latencies": 1.0,
        "dropout_masks": 1.0,
    },
)
_JAX = Framework(
    name="jax",
    family="jax",
    sequence_parallel=False,
    zero_stage=3,
    habits={"shards_every_pass": 1.0, "recompute_stops_early": 1.0},  # XLA drops what nobody reads
)
_DDP = Framework(
    name="ddp",
    family="ddp",
    attention="pytorch",
    sequence_parallel=False,
    zero_stage=0,
    habits={
        "weight_element_bytes": 4.0,
        "optimizer_state_bytes": 8.0,
        "gradient_element_bytes": 4.0,
        "logit_element_bytes": 10.0,
    },
)

FRAMEWORKS: Mapping[str, Framework] = MappingProxyType(
    {
        one.name: one
        for one in (
            _CLASSIC,
            _MEGATRON_DEEPSPEED,
            _TUNED,
            _TUNED_2025,
            _PLAIN,
            _NANOTRON,
            _FSDP,
            _TORCHTITAN,
            _DEEPSPEED,
            _DEEPSPEED_2021,
            _GPIPE,
            _JAX,
            _DDP,
        )
    }
)
_OF_FAMILY = {
    "megatron": "megatron-plain",
    "fsdp": "fsdp",
    "ddp": "ddp",
    "deepspeed": "deepspeed",
    "gpipe": "gpipe",
    "jax": "jax",
    "other": "megatron",
}
_TUNED_WORDS = ("nemo", "megatron-bridge", "megatron-core")
CLASSIC_UNTIL = 2022
"""Megatron up to this year fuses no attention, shards no sequence by default and hides no communication."""

MIXTURE_SYNCS_UNTIL = 2025
"""Releases of the tuned Megatron stacks up to this year wait on the host in every mixture layer."""


EARLY_HOPPER_UNTIL = 2024
"""Measurements up to this year ran the first kernels for Hopper, which shipped in 2022."""
RECOMPUTES_ALL_UNTIL = 2023
"""PyTorch up to this year computes a checkpointed block to its end again; 2.1 (October 2023) stops once the
backward pass has all it reads (`torch.utils.checkpoint.set_checkpoint_early_stop`)."""


def framework_of(*, framework: str, family: str, year: int) -> Framework:
    """Return the habits of a framework as a measurement names it.

    Parameters
    ----------
    framework
        Name as printed, such as "Megatron-LM" or "NeMo (Megatron)".
    family
        Family, used where the name is not known.
    year
        Year of the measurement [1].
    """
    found = _framework_of(framework.lower(), family or "other", year)
    if found.family == "fsdp" and year <= RECOMPUTES_ALL_UNTIL:
        found = replace(found, habits={**found.habits, "recompute_stops_early": 0.0})
    return replace(found, early_hopper=year <= EARLY_HOPPER_UNTIL)


def _framework_of(word: str, family: str, year: int) -> Framework:
    if "megatron-deepspeed" in word:
        return _MEGATRON_DEEPSPEED
    if family in {"megatron", "other"} and year <= CLASSIC_UNTIL:
        return _CLASSIC
    if "nanotron" in word:
        return _NANOTRON
    if family == "megatron" and any(name in word for name in _TUNED_WORDS):
        return _TUNED if year > MIXTURE_SYNCS_UNTIL else _TUNED_2025
    if "torchtitan" in word:
        return _TORCHTITAN
    if family == "deepspeed" and year <= CLASSIC_UNTIL:
        return _DEEPSPEED_2021
    return FRAMEWORKS[_OF_FAMILY.get(family, "megatron-plain")]
