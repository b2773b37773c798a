"""What can be judged: every metric with its unit, its good direction, and the work that gives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from linkwise.errors import UnitError, UnknownName
from linkwise.rollout.plan import WorkloadKind
from linkwise.units import format_quantity, parse

__all__ = [
    "METRICS",
    "PLACES",
    "Metric",
    "Scale",
    "find_metric",
    "format_metric",
    "parse_metric",
    "parse_ratio",
    "place_kind",
]

_RUN = frozenset(WorkloadKind) - {WorkloadKind.ENDPOINT}
PLACES: Mapping[str, frozenset[WorkloadKind]] = {"local": _RUN, "slurm": _RUN, "lab": _RUN}
"""Where jobs run, and what work a rollout measures there: nothing runs on a server that is only read."""


class Scale(StrEnum):
    """How a value without a unit of `units` is written."""

    QUANTITY = "quantity"
    """With its unit."""
    FRACTION = "fraction"
    """As a percentage, or a number from 0 to 1."""
    NUMBER = "number"
    """Plain: a loss, a count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """Something that runs are measured by.

    Parameters
    ----------
    name
        ``what.of_it``.
    words
        For a reader, such as ``bus bandwidth``.
    scale
        How a value is written.
    unit
        A key of `linkwise.units.DIMENSIONS` for QUANTITY, else empty.
    is_more_better
        Whether a larger value is a better one.
    measured_by
        The work that gives it.
    predicted_for
        The work for which the model says it beforehand.
    needs_prices
        Whether it hangs on a list of prices.
    """

    name: str
    words: str
    scale: Scale = Scale.QUANTITY
    unit: str = ""
    is_more_better: bool
    measured_by: frozenset[WorkloadKind]
    predicted_for: frozenset[WorkloadKind] = frozenset()
    needs_prices: bool = False


_COLLECTIVES = frozenset({WorkloadKind.COLLECTIVES})
_PAIRS = frozenset({WorkloadKind.PAIRS})
_JOB = frozenset({WorkloadKind.JOB})
_TRAINED = frozenset({WorkloadKind.TRAINING, WorkloadKind.JOB})
_SERVED = frozenset({WorkloadKind.ENDPOINT})

METRICS: Mapping[str, Metric] = {
    each.name: each
    for each in (
        Metric(name="collective.busbw", words="bus bandwidth", unit="bytes_per_s", is_more_better=True,
               measured_by=_COLLECTIVES, predicted_for=_COLLECTIVES),
        Metric(name="collective.time", words="time of a collective", unit="s", is_more_better=False,
               measured_by=_COLLECTIVES, predicted_for=_COLLECTIVES),
        Metric(name="pairs.bandwidth", words="bandwidth of the slowest pair", unit="bytes_per_s",
               is_more_better=True, measured_by=_PAIRS),
        Metric(name="pairs.slow_nodes", words="nodes slower than the rest", scale=Scale.NUMBER,
               is_more_better=False, measured_by=_PAIRS),
        Metric(name="train.step_time", words="step time", unit="s", is_more_better=False,
               measured_by=_TRAINED, predicted_for=_JOB),
        Metric(name="train.tokens_per_s", words="tokens per second", unit="tokens_per_s", is_more_better=True,
               measured_by=_TRAINED, predicted_for=_JOB),
        Metric(name="train.loss", words="loss", scale=Scale.NUMBER, is_more_better=False,
               measured_by=_TRAINED),
        Metric(name="train.cost", words="price of a token", unit="usd_per_token", is_more_better=False,
               measured_by=_TRAINED, predicted_for=_JOB, needs_prices=True),
        Metric(name="serve.ttft", words="time to the first token", unit="s", is_more_better=False,
               measured_by=_SERVED),
        Metric(name="serve.tpot", words="time per output token", unit="s", is_more_better=False,
               measured_by=_SERVED),
        Metric(name="serve.error_fraction", words="share of failed requests", scale=Scale.FRACTION,
               is_more_better=False, measured_by=_SERVED),
        Metric(name="serve.waiting", words="requests that wait", scale=Scale.NUMBER, is_more_better=False,
               measured_by=_SERVED),
    )
}  # fmt: skip
"""All of them. Whoever measures gives samples under these names, in SI units."""


def find_metric(name: str) -> Metric:
    """Return a metric.

    Parameters
    ----------
    name
        Such as ``collective.busbw``.

    Raises
    ------
    UnknownName
        If there is none.
    """
    if name not in METRICS:
        raise UnknownName.among(METRICS, kind="metric", given=name)
    return METRICS[name]


def parse_metric(given: object, metric: Metric) -> float:
    """Return a value of a metric as a document gives it [SI unit of the metric].

    Parameters
    ----------
    given
        Text with a unit, a percentage, or a number.
    metric
        Of what.

    Raises
    ------
    UnitError
        If it is not written as the metric is.
    """
    if metric.scale is Scale.FRACTION:
        return parse_ratio(given)
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if metric.scale is Scale.NUMBER:
        if is_number:
            return float(given)  # type: ignore[arg-type]
        raise UnitError(f"{given!r} is no plain number; {metric.words} has no unit, write it as 2.5")
    if not isinstance(given, str) and not is_number:
        raise UnitError(f"{given!r} is no value of {metric.words}; write it with its unit")
    return parse(given if isinstance(given, str) else f"{given:g}", metric.unit)


def parse_ratio(given: object) -> float:
    """Return a ratio that a document gives as ``97 %`` or ``0.97`` [1].

    Parameters
    ----------
    given
        What the document has.

    Raises
    ------
    UnitError
        If it is neither, or a percentage without its sign.
    """
    text = given.strip() if isinstance(given, str) else ""
    number: object = given
    if text.endswith("%"):
        try:
            return float(text[:-1].replace("_", "")) / 100
        except ValueError:
            number = None
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise UnitError(f"{given!r} is no ratio; write it as '97 %' or 0.97")
    if number > _LARGEST_BARE_RATIO:
        raise UnitError(f"{given!r} is {number:g} times as much; write '{number:g} %' if that is meant")
    return float(number)


_LARGEST_BARE_RATIO = 5
"""Above, a number without a sign is more likely a percentage whose sign was forgotten [1]."""


def format_metric(value: float, metric: Metric) -> str:
    """Return a value of a metric for a reader.

    Parameters
    ----------
    value
        In the SI unit of the metric.
    metric
        Of what.
    """
    if metric.scale is Scale.QUANTITY:
        return format_quantity(value, metric.unit)
    return f"{100 * value:.3g} %" if metric.scale is Scale.FRACTION else f"{value:.4g}"


def place_kind(place: str) -> str:
    """Return the kind of a place: ``lab`` of ``lab:NAME``.

    Parameters
    ----------
    place
        As a scope names it.
    """
    return place.split(":", 1)[0]
