"""The published result `linkwise.validate/1`: how far predictions are from measurements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from linkwise.calibrate.peak_memory import MemoryScore
    from linkwise.calibrate.regret import RegretScore
    from linkwise.calibrate.score import ErrorScore
    from linkwise.calibrate.validate import TrainingScore

__all__ = [
    "GroupResult",
    "MemoryResult",
    "RegretResult",
    "RequirementResult",
    "ValidationResult",
    "WorstGroupResult",
    "validation_csv_rows",
    "validation_result",
]


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class GroupResult(_Result):
    """Errors of the rows that share one property."""

    key: str = Field(description="source, gpu, framework, family, kind, interconnect or complete.")
    name: str
    scored: int
    median_abs_error_fraction: float
    mape_fraction: float
    p90_abs_error_fraction: float
    bias_fraction: float
    interval_coverage_fraction: float
    interval_median_width_fraction: float


class WorstGroupResult(_Result):
    """The group of layouts with the largest regret."""

    source: str
    name: str
    layouts: int
    regret_fraction: float
    reason: str


class RegretResult(_Result):
    """What choosing a layout by prediction costs against the best one measured."""

    groups: int = Field(description="Groups of three layouts or more.")
    mean_fraction: float | None
    p95_fraction: float | None
    max_fraction: float | None
    worst: WorstGroupResult | None = None


class MemoryResult(_Result):
    """Predicted peak memory against measured."""

    scored: int = Field(description="Rows with a measured peak and a complete layout.")
    median_abs_error_fraction: float | None
    bias_fraction: float | None
    infeasible: int = Field(description="Rows scored for time that are said not to fit; they ran.")
    infeasible_fraction: float | None
    infeasible_ids: list[str]


class RequirementResult(_Result):
    """One limit that was asked for."""

    name: str
    limit_fraction: float
    value_fraction: float | None = Field(description="None where no row could be judged.")
    met: bool


class ValidationResult(_Result):
    """The model scored on measured training runs; errors are predicted over measured, minus one."""

    published: Literal["linkwise.validate/1"] = Field(default="linkwise.validate/1", alias="schema")
    kind: Literal["training"] = "training"
    rows: int = Field(description="Rows with task pretrain; with the wanted use, where one was given.")
    skipped: dict[str, int] = Field(description="Reason to number of rows that cannot be scored.")
    scored: int
    median_abs_error_fraction: float | None
    mape_fraction: float | None
    p90_abs_error_fraction: float | None
    bias_fraction: float | None
    interval_coverage_fraction: float | None
    interval_median_width_fraction: float | None
    regret: RegretResult
    memory: MemoryResult
    by: list[GroupResult]
    requirements: list[RequirementResult] = Field(default_factory=list)


_ERRORS = (
    "median_abs_error_fraction",
    "mape_fraction",
    "p90_abs_error_fraction",
    "bias_fraction",
    "interval_coverage_fraction",
    "interval_median_width_fraction",
)


def validation_result(
    score: TrainingScore, *, requirements: Sequence[RequirementResult] = ()
) -> ValidationResult:
    """Return a score as it is published.

    Parameters
    ----------
    score
        The score.
    requirements
        Limits that were asked for, judged.
    """
    return ValidationResult(
        rows=score.rows,
        skipped=dict(sorted(score.skipped.items(), key=lambda item: -item[1])),
        scored=0 if score.errors is None else score.errors.scored,
        **_errors(score.errors),
        regret=_regret(score.regret),
        memory=_memory(score.memory),
        by=[_group(each.key, each.name, each.score) for each in score.by],
        requirements=list(requirements),
    )


def _errors(errors: ErrorScore | None) -> dict[str, Any]:
    return {name: None if errors is None else getattr(errors, name) for name in _ERRORS}


def _group(key: str, name: str, errors: ErrorScore) -> GroupResult:
    return GroupResult(
        key=key, name=name, scored=errors.scored, **{each: getattr(errors, each) for each in _ERRORS}
    )


def _regret(regret: RegretScore) -> RegretResult:
    worst = regret.worst
    return RegretResult(
        groups=regret.groups,
        mean_fraction=regret.mean_fraction,
        p95_fraction=regret.p95_fraction,
        max_fraction=regret.max_fraction,
        worst=None
        if worst is None
        else WorstGroupResult(
            source=worst.source,
            name=worst.name,
            layouts=worst.layouts,
            regret_fraction=worst.regret_fraction,
            reason=worst.reason,
        ),
    )


def _memory(memory: MemoryScore) -> MemoryResult:
    return MemoryResult(
        scored=memory.scored,
        median_abs_error_fraction=memory.median_abs_error_fraction,
        bias_fraction=memory.bias_fraction,
        infeasible=memory.infeasible,
        infeasible_fraction=memory.infeasible_fraction,
        infeasible_ids=list(memory.infeasible_ids),
    )


def validation_csv_rows(result: ValidationResult) -> Iterator[tuple[object, ...]]:
    """Yield the heading and the errors of a result as rows of a CSV: all rows first, then every group."""
    yield ("key", "name", "scored", *_ERRORS)
    if result.scored:
        yield ("all", "all", result.scored, *(getattr(result, name) for name in _ERRORS))
    for group in result.by:
        yield (group.key, group.name, group.scored, *(getattr(group, name) for name in _ERRORS))
