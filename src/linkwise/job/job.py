"""The value `Job`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkwise.layout import Layout
    from linkwise.model import Model

__all__ = ["Job", "Precision"]


class Precision(StrEnum):
    """In what the matrix products of a job are computed."""

    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"
    NVFP4 = "nvfp4"
    TF32 = "tf32"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A training job.

    Parameters
    ----------
    model
        What is trained.
    sequence_length
        Tokens of one sequence [tokens].
    global_batch
        Sequences per optimizer step.
    precision
        Number format of the matrix products.
    framework
        A key of `linkwise.job.framework.FRAMEWORKS`.
    tokens
        Length of the whole training, or ``None`` where it is not stated [tokens].
    layout
        The layout to estimate, or ``None`` to search for one.
    kind
        ``"training"``.
    """

    model: Model
    sequence_length: int
    global_batch: int
    precision: Precision = Precision.BF16
    framework: str = "megatron"
    tokens: float | None = None
    layout: Layout | None = None
    kind: str = "training"

    @property
    def tokens_per_step(self) -> int:
        """Return the tokens of one optimizer step [tokens]."""
        return self.global_batch * self.sequence_length

    @property
    def steps(self) -> float | None:
        """Return the optimizer steps of the whole training, or ``None`` where its length is not stated."""
        return None if self.tokens is None else self.tokens / self.tokens_per_step
