"""The `job/1` document: its keys, and which of their values fit together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from linkwise.documents import Count, Document, Misfits
from linkwise.errors import InputError, UnknownName
from linkwise.job.framework import FRAMEWORKS
from linkwise.job.job import Precision
from linkwise.layout import ContextExchange, RankOrder, Recompute, Schedule
from linkwise.model import Model, load_model

__all__ = ["HEADER", "JobDocument", "LayoutDocument"]

HEADER = "job/1"

_LONGEST_SEQUENCE = 100_000_000


def _word_of(
    choices: type[Recompute | Schedule | RankOrder],
) -> tuple[AfterValidator, WithJsonSchema]:
    """Return how a word of an enumeration is checked and shown in the schema."""
    words = [choice.word for choice in choices]
    return (
        AfterValidator(lambda given: choices.from_word(given).word),
        WithJsonSchema({"enum": words, "type": "string"}),
    )


def _known_framework(given: str) -> str:
    if given not in FRAMEWORKS:
        raise UnknownName.among(FRAMEWORKS, kind="framework", given=given)
    return given


def folder_of(path: str | None) -> Path:
    """Return the folder that a relative path in a document starts from.

    Parameters
    ----------
    path
        The file of the document; ``None`` or ``<stdin>`` where it has none.
    """
    return Path() if path in (None, "<stdin>") else Path(path or "").parent


def _path_of(info: ValidationInfo) -> str | None:
    return info.context.get("path") if isinstance(info.context, dict) else None


def _readable_model(given: str, info: ValidationInfo) -> str:
    load_model(given, folder=folder_of(_path_of(info)))
    return given


def _training(given: str) -> str:
    if given == "serving":
        raise InputError("serving jobs are not in this release; it plans 'training'")
    return given


class LayoutDocument(Document):
    """A fixed layout; `data` follows from the number of GPUs if it is left out."""

    tensor: Count = Field(default=1, description="Tensor parallel degree.")
    context: Count = Field(default=1, description="Context parallel degree.")
    pipeline: Count = Field(default=1, description="Pipeline stages.")
    virtual_pipeline: Count = Field(
        default=1, description="Chunks of layers per stage (interleaving); 1 is none."
    )
    expert: Count = Field(default=1, description="Expert parallel degree.")
    data: Count | None = Field(default=None, description="Data parallel degree.")
    micro_batch: Count = Field(default=1, description="Sequences per pass of one replica.")
    zero_stage: Annotated[int, Field(strict=True, ge=0, le=3)] = Field(
        default=0, description="0 none; sharded from 1 optimizer state, 2 gradients, 3 parameters (FSDP)."
    )
    hybrid_shard: Annotated[bool, Field(strict=True)] = Field(
        default=False, description="Shard within an NVLink domain and replicate across; with zero_stage 3."
    )
    recompute: Annotated[str, *_word_of(Recompute)] = Field(
        default="none", description="What backward computes again."
    )
    sequence_parallel: Annotated[bool, Field(strict=True)] | None = Field(
        default=None, description="Shard activations outside the tensor-parallel region too."
    )
    schedule: Annotated[str, *_word_of(Schedule)] = Field(
        default="1f1b", description="Order of the micro-batches."
    )
    context_exchange: Annotated[str, *_word_of(ContextExchange)] = Field(
        default="ring", description="How a context group shares keys and values."
    )
    rank_order: Annotated[str, *_word_of(RankOrder)] = Field(
        default="tensor-context-data-pipeline", description="Which groups sit side by side, nearest first."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        faults = list(self._without_effect())
        if faults:
            raise Misfits(faults)
        return self

    def _without_effect(self) -> Iterator[tuple[str, str]]:
        if self.pipeline == 1:
            if self.virtual_pipeline > 1:
                yield (
                    "virtual_pipeline",
                    "has no effect with one pipeline stage; leave it out or raise pipeline",
                )
            if self.schedule != "1f1b":
                yield "schedule", "has no effect with one pipeline stage; leave it out or raise pipeline"
        if self.context == 1 and self.context_exchange != "ring":
            yield (
                "context_exchange",
                "has no effect without context parallelism; leave it out or raise context",
            )
        if self.hybrid_shard and self.zero_stage != 3:
            yield (
                "hybrid_shard",
                f"shards parameters, but zero_stage is {self.zero_stage}; write zero_stage: 3",
            )
        if self.sequence_parallel and self.tensor == 1:
            yield "sequence_parallel", "has no effect with tensor: 1; leave it out or raise tensor"


def _layout_branch(given: object) -> str:
    return "degrees" if isinstance(given, dict | LayoutDocument) else "search"


class JobDocument(Document):
    """What is to be trained, in which batches, by which framework."""

    kind: Annotated[
        Literal["training", "serving"], AfterValidator(_training), WithJsonSchema({"const": "training"})
    ] = Field(default="training", description="Only training in this release.")
    model: Annotated[str, AfterValidator(_readable_model)] = Field(
        description="A model of the catalogue, or the path of a Hugging Face config.json."
    )
    sequence_length: Annotated[int, Field(strict=True, ge=1, le=_LONGEST_SEQUENCE)] = Field(
        description="Tokens of one sequence."
    )
    global_batch: Count = Field(description="Sequences per optimizer step.")
    precision: Precision = Field(default=Precision.BF16, description="Number format of the matrix products.")
    tokens: Annotated[float, Field(strict=True, gt=0, le=1e18)] | None = Field(
        default=None, description="Length of the whole training."
    )
    framework: Annotated[
        str, AfterValidator(_known_framework), WithJsonSchema({"enum": list(FRAMEWORKS)})
    ] = Field(default="megatron", description="What runs the job.")
    layout: Annotated[
        Annotated[Literal["search"], Tag("search")] | Annotated[LayoutDocument, Tag("degrees")],
        Discriminator(_layout_branch),
    ] = Field(default="search", description="The word search, or the degrees of a fixed layout.")

    @model_validator(mode="after")
    def _fits(self, info: ValidationInfo) -> Self:
        if isinstance(self.layout, LayoutDocument):
            model = load_model(self.model, folder=folder_of(_path_of(info)))
            faults = list(_layout_misfits(self, self.layout, model))
            if faults:
                raise Misfits(faults)
        return self


def _layout_misfits(job: JobDocument, layout: LayoutDocument, model: Model) -> Iterator[tuple[str, str]]:
    replicas = (layout.data or 1) * layout.micro_batch
    if job.global_batch % replicas:
        of_data = f"data {layout.data} x " if layout.data else ""
        what = f"{of_data}micro_batch {layout.micro_batch}" + (f" = {replicas}" if of_data else "")
        yield "layout.micro_batch", f"{what} does not divide the {job.global_batch} sequences of a step"
    if layout.expert > 1 and not model.experts:
        yield (
            "layout.expert",
            f"{model.name} is a dense model, it has no experts to spread; leave the key out",
        )
    elif model.experts and model.experts % layout.expert:
        yield "layout.expert", f"{layout.expert} does not divide the {model.experts} experts of {model.name}"
    chunks = layout.pipeline * layout.virtual_pipeline
    if chunks > model.layers + 2:  # the embedding and the output head may be stages of their own
        what = f"pipeline {layout.pipeline} x virtual_pipeline {layout.virtual_pipeline} = {chunks}"
        yield "layout.pipeline", f"{what} is more chunks than {model.name} has layers ({model.layers})"
    if layout.context > job.sequence_length:
        yield (
            "layout.context",
            f"{layout.context} is more than the {job.sequence_length} tokens of a sequence",
        )
