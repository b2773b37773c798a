"""Limits on a score that a user asks for: ``median=0.08,mape=0.10``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from linkwise.calibrate.validate import TrainingScore
from linkwise.errors import InputError, UnknownName

__all__ = ["REQUIRABLE", "Requirement", "judge", "parse_requirements"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A limit on one figure of a score, and what the score is.

    Attributes
    ----------
    name
        A key of `REQUIRABLE`.
    limit_fraction
        The limit [1].
    value_fraction
        What the score is [1]; ``None`` where no row could be judged, or before `judge`.
    """

    name: str
    limit_fraction: float
    value_fraction: float | None = None

    @property
    def met(self) -> bool:
        """Return whether the limit holds; without a figure it does not."""
        if self.value_fraction is None:
            return False
        if self.name == "coverage":
            return self.value_fraction >= self.limit_fraction
        return abs(self.value_fraction) <= self.limit_fraction


def _of_errors(field: str) -> Callable[[TrainingScore], float | None]:
    def value(score: TrainingScore) -> float | None:
        return None if score.errors is None else float(getattr(score.errors, field))

    return value


REQUIRABLE: Mapping[str, Callable[[TrainingScore], float | None]] = {
    "median": _of_errors("median_abs_error_fraction"),
    "mape": _of_errors("mape_fraction"),
    "p90": _of_errors("p90_abs_error_fraction"),
    "bias": _of_errors("bias_fraction"),
    "coverage": _of_errors("interval_coverage_fraction"),
    "width": _of_errors("interval_median_width_fraction"),
    "regret": lambda score: score.regret.mean_fraction,
    "regret_p95": lambda score: score.regret.p95_fraction,
    "memory": lambda score: score.memory.median_abs_error_fraction,
    "infeasible": lambda score: score.memory.infeasible_fraction,
    "skipped": lambda score: sum(score.skipped.values()) / score.rows if score.rows else None,
}
"""What can be required: at most that much, of `bias` in size; of `coverage` at least that much."""


def parse_requirements(text: str) -> tuple[Requirement, ...]:
    """Return the limits in a text such as ``median=0.08,mape=0.10``.

    Raises
    ------
    InputError
        When a part has no ``=``, or its limit is no ratio of at least zero.
    UnknownName
        When a figure is not in `REQUIRABLE`.
    """
    requirements = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, limit = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise InputError(f"--require {part!r} has no limit; write it as {name or 'median'}=0.08")
        if name not in REQUIRABLE:
            raise UnknownName.among(REQUIRABLE, kind="figure of --require", given=name)
        requirements.append(Requirement(name=name, limit_fraction=_limit(part, limit)))
    if not requirements:
        raise InputError("--require is empty; write it as median=0.08,mape=0.10")
    return tuple(requirements)


def _limit(part: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise InputError(f"--require {part!r}: the limit is a ratio such as 0.08, at least 0")
    return value


def judge(requirements: tuple[Requirement, ...], score: TrainingScore) -> tuple[Requirement, ...]:
    """Return the limits with what the score is."""
    return tuple(
        Requirement(
            name=each.name,
            limit_fraction=each.limit_fraction,
            value_fraction=REQUIRABLE[each.name](score),
        )
        for each in requirements
    )
