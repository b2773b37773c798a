"""A small transformer under each way to cut it: what ranks are told to train, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from linkwise.bench.sampling import positive_seconds
from linkwise.errors import InputError
from linkwise.evidence.median import LEAST_SAMPLES, MedianInterval, median_interval

__all__ = ["CUTS", "LOSS_TOLERANCE_FRACTION", "MeasuredCut", "Shape", "TrainingPlan", "measured_cuts"]

CUTS = ("ddp", "fsdp", "tensor", "pipeline")
"""Ways to cut the model, in the words of torch: DistributedDataParallel, fully_shard, tensor, 1F1B."""
LOSS_TOLERANCE_FRACTION = 0.01
"""Losses of two cuts that differ more are not those of the same training [1]."""

_WARMUP_STEPS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The model and its sequences.

    Parameters
    ----------
    layers, hidden, heads
        Of the transformer [1].
    sequence_length
        Tokens of a sequence [1].
    vocabulary
        Different tokens [1].
    """

    layers: int = 4
    hidden: int = 256
    heads: int = 8
    sequence_length: int = 128
    vocabulary: int = 1024

    @property
    def parameters(self) -> int:
        """Return the weights of the model, embeddings and biases counted [1]."""
        hidden = self.hidden
        block = 4 * (hidden * hidden + hidden) + (8 * hidden * hidden + 5 * hidden) + 4 * hidden
        ends = 2 * self.vocabulary * hidden + self.sequence_length * hidden + 2 * hidden
        return self.layers * block + ends


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """What is trained, and how.

    Parameters
    ----------
    cuts
        Of `CUTS`, in order.
    steps
        Steps that are timed; five at least [1].
    batch
        Sequences of a step for each rank [1].
    shape
        The model.
    """

    cuts: tuple[str, ...] = CUTS
    steps: int = 10
    batch: int = 4
    shape: Shape = field(default_factory=Shape)

    def told(self, ranks: int) -> dict[str, object]:
        """Return it as ranks read it.

        Parameters
        ----------
        ranks
            How many take part [1].

        Raises
        ------
        InputError
            When the model cannot be cut for so many, or steps are too few.
        """
        shape = self.shape
        if self.steps < LEAST_SAMPLES:
            raise InputError(
                f"--steps {self.steps}: at least {LEAST_SAMPLES} are needed; fewer have no interval"
            )
        if shape.hidden % shape.heads:
            raise InputError(
                f"--hidden {shape.hidden} cannot be cut into {shape.heads} heads; give a multiple of it"
            )
        if "tensor" in self.cuts and shape.heads % ranks:
            raise InputError(
                f"tensor: {shape.heads} heads cannot be shared by {ranks} ranks; give a multiple as --heads"
            )
        if "pipeline" in self.cuts and shape.layers < ranks:
            raise InputError(
                f"pipeline: {shape.layers} layers are too few for {ranks} stages; give more as --layers"
            )
        return {
            "cuts": list(self.cuts),
            "steps": self.steps,
            "warmup": _WARMUP_STEPS,
            "batch": self.batch,
            "micro_batches": self.batch * ranks,
            "shape": {
                "layers": shape.layers,
                "hidden": shape.hidden,
                "heads": shape.heads,
                "sequence_length": shape.sequence_length,
                "vocabulary": shape.vocabulary,
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCut:
    """One way to cut the model, and its steps.

    Parameters
    ----------
    cut
        One of `CUTS`.
    samples_s
        Time of each step, that of the slowest rank [s].
    phases_s
        The same of each phase, by its name [s].
    losses
        Loss of each step, the mean over the global batch.
    """

    cut: str
    samples_s: tuple[float, ...]
    phases_s: Mapping[str, tuple[float, ...]]
    losses: tuple[float, ...]

    @property
    def step_time_s(self) -> MedianInterval | None:
        """Return the median step time and its interval [s]; ``None`` with fewer than five steps."""
        return median_interval(self.samples_s) if len(self.samples_s) >= LEAST_SAMPLES else None

    def differs_from(self, other: MeasuredCut) -> bool:
        """Return whether its losses are not those of another cut of the same model and tokens.

        Parameters
        ----------
        other
            Another cut.
        """
        both = zip(self.losses, other.losses, strict=False)
        return any(abs(one - two) > LOSS_TOLERANCE_FRACTION * abs(two) for one, two in both)


def measured_cuts(events: Iterable[Mapping[str, Any]]) -> tuple[MeasuredCut, ...]:
    """Return what ranks measured, in order.

    Parameters
    ----------
    events
        What they said.

    Raises
    ------
    InputError
        When what they said is no step.
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    for event in events:
        if event.get("event") == "step":
            if event.get("cut") not in CUTS:
                raise InputError(
                    f"a rank said it trained {str(event.get('cut'))[:40]!r}, which is no cut of this model"
                )
            found.setdefault(str(event["cut"]), []).append(event)
    return tuple(_measured(cut, steps) for cut, steps in found.items())


def _measured(cut: str, steps: list[Mapping[str, Any]]) -> MeasuredCut:
    phases: dict[str, list[float]] = {}
    for step in steps:
        told = step.get("phases")
        told = told if isinstance(told, dict) else {}
        for name in told:
            phases.setdefault(str(name)[:40].removesuffix("_s"), []).append(positive_seconds(told, name))
    return MeasuredCut(
        cut=cut,
        samples_s=tuple(positive_seconds(step, "step_time_s") for step in steps),
        phases_s={name: tuple(values) for name, values in phases.items()},
        losses=tuple(_loss(step) for step in steps),
    )


def _loss(step: Mapping[str, Any]) -> float:
    value = step.get("loss")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"a rank said loss {str(value)[:40]!r}, which is no number")
    return float(value)
