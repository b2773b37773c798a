"""The `Layout` value and the choices it is made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

from linkwise.errors import InputError


class _Choice(IntEnum):
    """A choice: an integer code in columns, a spelled word to people."""

    @property
    def word(self) -> str:
        """Return the spelling used in documents, tables and JSON."""
        return self.name.lower().replace("_", "-").removeprefix("one-f-")

    @classmethod
    def from_word(cls, word: str) -> _Choice:
        """Return the choice spelled so.

        Raises
        ------
        InputError
            When no choice has that spelling; the message lists them.
        """
        for choice in cls:
            if choice.word == word.strip().lower():
                return choice
        words = ", ".join(choice.word for choice in cls)
        raise InputError(f"{cls.__name__.lower()} {word!r} is not known; choose one of: {words}")


class Recompute(_Choice):
    """What the backward pass computes again instead of keeping.

    ``selective`` is the attention core in Megatron (Korthikanti et al., Reducing Activation Recomputation,
    2022) and every second matrix product in torchtitan; ``full`` keeps only each layer's input.
    """

    NONE = 0
    SELECTIVE = 1
    FULL = 2


class Schedule(_Choice):
    """Order of forward and backward passes of micro-batches on the pipeline stages.

    ``1f1b``: one forward, one backward (interleaved where the virtual pipeline is deeper than 1; Narayanan
    et al., 2021). ``gpipe``: all forwards, then all backwards (Huang et al., 2019). ``zero-bubble``: weight
    gradients are put off to fill the bubble (Qi et al., Zero Bubble Pipeline Parallelism, 2023, the H1
    variant with the memory of 1F1B).
    """

    ONE_F_1F1B = 0
    GPIPE = 1
    ZERO_BUBBLE = 2


class ContextExchange(_Choice):
    """How the ranks of a context group get at each other's keys and values.

    ``ring`` passes blocks of keys and values around and hides them behind attention (Liu et al., Ring
    Attention, 2023). ``all-to-all`` swaps slices of the sequence for slices of the heads and back (Jacobs
    et al., DeepSpeed Ulysses, 2023); the heads must divide by tensor x context.
    """

    RING = 0
    ALL_TO_ALL = 1


class RankOrder(_Choice):
    """Which group's ranks sit next to each other, fastest first.

    ``tensor-context-data-pipeline`` is Megatron's default; ``tensor-context-pipeline-data`` puts the stages
    of one pipeline side by side, so that hops are short and the gradient groups span the cluster.
    """

    TENSOR_CONTEXT_DATA_PIPELINE = 0
    TENSOR_CONTEXT_PIPELINE_DATA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How one job is cut over the GPUs.

    Attributes
    ----------
    tensor, context, pipeline, data
        Degrees; their product is the world size. `data` counts replicas of the batch (without context
        parallelism). None where it is still to be derived from the number of GPUs.
    virtual_pipeline
        Chunks of layers per pipeline stage (interleaving); 1 is none.
    expert
        Ranks over which the experts of a layer are spread, taken out of data x context (and tensor).
    micro_batch
        Sequences per pass of one replica.
    zero_stage
        0 nothing sharded, 1 optimizer state, 2 and gradients, 3 and parameters (FSDP); Rajbhandari et al.,
        2020.
    hybrid_shard
        Shard inside one NVLink domain and replicate across (HSDP); only with `zero_stage` 3.
    recompute, schedule, rank_order, context_exchange, sequence_parallel
        See the enums; `sequence_parallel` shards the activations outside the tensor-parallel region as well.
    """

    tensor: int = 1
    context: int = 1
    pipeline: int = 1
    virtual_pipeline: int = 1
    expert: int = 1
    data: int | None = None
    micro_batch: int = 1
    zero_stage: int = 0
    recompute: Recompute = Recompute.NONE
    sequence_parallel: bool | None = None
    hybrid_shard: bool = False
    schedule: Schedule = Schedule.ONE_F_1F1B
    rank_order: RankOrder = RankOrder.TENSOR_CONTEXT_DATA_PIPELINE
    context_exchange: ContextExchange = ContextExchange.RING

    @property
    def model_parallel(self) -> int:
        """Return the GPUs one replica of the model takes."""
        return self.tensor * self.context * self.pipeline

    def on(self, gpus: int) -> Layout:
        """Return the layout with the data degree derived from the number of GPUs.

        Raises
        ------
        InputError
            When the degrees do not divide the GPUs, or the data degree given disagrees with them.
        """
        if gpus % self.model_parallel:
            whole = gpus // self.model_parallel * self.model_parallel
            raise InputError(
                f"tensor {self.tensor} x context {self.context} x pipeline {self.pipeline} = "
                f"{self.model_parallel} does not divide {gpus} GPUs; change a degree or use {whole} GPUs"
            )
        data = gpus // self.model_parallel
        if self.data not in (None, data):
            raise InputError(
                f"data {self.data} x {self.model_parallel} (tensor x context x pipeline) is "
                f"{(self.data or 0) * self.model_parallel} GPUs but the cluster has {gpus}; "
                f"leave data out, or use data: {data}"
            )
        return replace(self, data=data)
