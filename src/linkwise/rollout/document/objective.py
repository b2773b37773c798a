"""Objectives of a `rollout/1` document: what is run, what is compared, and why that number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
    WithJsonSchema,
    model_validator,
)

from linkwise.documents import Bytes, Count, Document, Misfits
from linkwise.errors import UnitError, UnknownName
from linkwise.network.setting import OPERATIONS
from linkwise.rollout.document.fields import Day, Name, Word, schema_of_any
from linkwise.rollout.metrics import METRICS, Metric, find_metric, parse_metric, parse_ratio
from linkwise.rollout.plan import Against, Aggregate, Dimension, Severity

__all__ = ["ComparisonDocument", "ObjectiveDocument", "WorkloadDocument", "bar_of"]

_Bar = Annotated[StrictStr | StrictInt | StrictFloat, schema_of_any("97 %", "300 GB/s", 2.5)]


def _operation(given: str) -> str:
    if given not in OPERATIONS:
        raise UnknownName.among(OPERATIONS, kind="collective", given=given)
    return given


class CollectivesWorkload(Document):
    """Collectives of all GPUs of the step."""

    kind: Literal["collectives"]
    operations: Annotated[
        list[Annotated[str, AfterValidator(_operation), WithJsonSchema({"enum": list(OPERATIONS)})]],
        Field(min_length=1),
    ] = Field(description="In the words of nccl-tests.")
    sizes: Annotated[list[Bytes], Field(min_length=1)] = Field(description="Of the full buffer.")


class PairsWorkload(Document):
    """Exchanges of disjoint pairs of nodes, in rounds."""

    kind: Literal["pairs"]
    size: Bytes = Field(description="Of one exchange.")
    rounds: Count = Field(default=5, description="Each round covers every node of the step once.")


class TrainingWorkload(Document):
    """The small transformer of linkwise bench training."""

    kind: Literal["training"]
    cut: Literal["ddp", "fsdp", "tensor", "pipeline"] = Field(description="How the model is cut.")
    steps: Annotated[int, Field(strict=True, ge=5, le=100_000)] = Field(default=20, description="Of one run.")


class JobWorkload(Document):
    """The job of the configuration, launched."""

    kind: Literal["job"]
    steps: Annotated[int, Field(strict=True, ge=5, le=1_000_000)] | None = Field(
        default=None, description="Of one run; its own number without."
    )


class EndpointWorkload(Document):
    """A running server: `linkwise watch` reads it, no run of a rollout does."""

    kind: Literal["endpoint"]
    url: Annotated[str, Field(strict=True, pattern=r"^https?://[^\s]+$", max_length=2000)] = Field(
        description="Where it publishes metrics for Prometheus."
    )


WorkloadDocument = Annotated[
    CollectivesWorkload | PairsWorkload | TrainingWorkload | JobWorkload | EndpointWorkload,
    Field(discriminator="kind"),
]


class ComparisonDocument(Document):
    """One bar. A ratio is the value over what it is compared with."""

    to: Against = Field(description="What the value is compared with.")
    at_least: _Bar | None = Field(default=None, description="The least that passes.")
    at_most: _Bar | None = Field(default=None, description="The most that passes.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.at_least is None) == (self.at_most is None):
            given = "neither at_least nor at_most" if self.at_least is None else "at_least and at_most"
            raise Misfits([("", f"has {given}; give one of the two")])
        return self


class ObjectiveDocument(Document):
    """What must be reached, how it is measured, and why that number."""

    name: Name
    dimension: Dimension
    metric: Annotated[
        str, AfterValidator(lambda given: find_metric(given).name), WithJsonSchema({"enum": list(METRICS)})
    ]
    workload: WorkloadDocument
    aggregate: Aggregate = Field(default=Aggregate.MEDIAN, description="Of the samples of one run.")
    compare: Annotated[list[ComparisonDocument], Field(min_length=1)] = Field(description="All must be met.")
    severity: Severity = Severity.MUST
    why: Word = Field(description="Where the number comes from.")
    by: Word = Field(description="Who answers for it.")
    review_by: Day = Field(description="The day from which it must be looked at again.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        metric = find_metric(self.metric)
        faults = [*self._not_measured(metric), *self._wrong_bars(metric)]
        if faults:
            raise Misfits(faults)
        return self

    def _not_measured(self, metric: Metric) -> Iterator[tuple[str, str]]:
        if self.workload.kind not in metric.measured_by:
            by = " or ".join(sorted(metric.measured_by))
            yield "metric", f"nothing measures {metric.name} in {self.workload.kind}; it is of {by}"

    def _wrong_bars(self, metric: Metric) -> Iterator[tuple[str, str]]:
        for place, comparison in enumerate(self.compare):
            key = f"compare.{place}"
            if comparison.to is Against.PREDICTION and self.workload.kind not in metric.predicted_for:
                what = f"{metric.name} of {self.workload.kind}"
                yield f"{key}.to", f"no model predicts {what}; compare it with control, baseline or floor"
            try:
                bar_of(comparison, metric)
            except UnitError as error:
                yield f"{key}.{'at_most' if comparison.at_least is None else 'at_least'}", str(error)


def bar_of(comparison: ComparisonDocument, metric: Metric) -> float:
    """Return the number of a bar: in the SI unit of the metric for a floor, else a ratio [1].

    Parameters
    ----------
    comparison
        As the document has it.
    metric
        What is compared.

    Raises
    ------
    UnitError
        If it is not written as such.
    """
    given = comparison.at_most if comparison.at_least is None else comparison.at_least
    if comparison.to is Against.FLOOR:
        return parse_metric(given, metric)
    ratio = parse_ratio(given)
    if ratio <= 0:
        raise UnitError(f"{given!r} is not above zero, so that it decides nothing; write a ratio as '97 %'")
    return ratio
