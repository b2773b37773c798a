"""What is to be told of a watched job: alerts, and objectives that become alerts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from linkwise.errors import InputError, nearest_names

__all__ = ["METRICS", "Alert", "AlertKind", "Comparison", "Metric", "Objective", "Severity"]


class Severity(StrEnum):
    """How much an alert matters."""

    CRITICAL = "critical"
    """The job does no work, or useless work."""
    WARNING = "warning"
    INFO = "info"
    """Told, and no judgement against."""


class AlertKind(StrEnum):
    """What an alert is about; the rules written for Prometheus have the same names."""

    STEP_TIME_ROSE = "step_time_rose"
    STEP_TIME_SPREAD = "step_time_spread"
    STEP_TIME_CREPT = "step_time_crept"
    STALLED = "stalled"
    NOT_A_NUMBER = "not_a_number"
    STRAGGLER = "straggler"
    RESTARTED = "restarted"
    INTERCONNECT = "interconnect"
    XID = "xid"
    LINK_ERRORS = "link_errors"
    OBJECTIVE = "objective"
    ENDPOINT_SILENT = "endpoint_silent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One thing that is told.

    Parameters
    ----------
    kind, subject
        What it is about: the kind, and which rank, link, finding or objective; both are its identity.
    severity
        How much it matters.
    summary
        A sentence.
    at_s
        When, by the clock of the log where it has one, since 1970 [s].
    step
        The step that was done last; ``None`` before the first.
    is_over
        Whether it says that an alert told before no longer holds.
    """

    kind: AlertKind
    severity: Severity
    summary: str
    at_s: float
    step: int | None = None
    subject: str = ""
    is_over: bool = False


class Comparison(StrEnum):
    """How a value must lie to its bar."""

    AT_MOST = "at_most"
    AT_LEAST = "at_least"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A value of a watched job that an objective may name.

    Parameters
    ----------
    unit
        Of the value.
    text
        What it is.
    """

    unit: str
    text: str


METRICS: Mapping[str, Metric] = {
    "train.step_time": Metric(unit="s", text="median of the last steps"),
    "train.step_time_p95": Metric(unit="s", text="95th percentile of the last steps"),
    "train.tokens_per_s": Metric(unit="1/s", text="tokens in a second, of the last steps"),
    "train.loss": Metric(unit="1", text="median loss of the last steps"),
    "train.grad_norm": Metric(unit="1", text="median gradient norm of the last steps"),
    "train.nan_steps": Metric(unit="1", text="steps whose loss or gradient norm was no number"),
    "train.communication_fraction": Metric(unit="1", text="time of communication, as far as timers show it"),
    "train.goodput_fraction": Metric(unit="1", text="time in steps that count, of all time since the start"),
    "train.restarts": Metric(unit="1", text="times the count of steps went back"),
    "train.lost_steps": Metric(unit="1", text="steps done again after restarts"),
    "train.time_to_start": Metric(unit="s", text="from the first line of the log to the first step"),
    "serving.ttft_p50": Metric(unit="s", text="time to first token, median"),
    "serving.ttft_p99": Metric(unit="s", text="time to first token, 99th percentile"),
    "serving.tpot_p50": Metric(unit="s", text="time per output token, median"),
    "serving.tpot_p99": Metric(unit="s", text="time per output token, 99th percentile"),
    "serving.error_fraction": Metric(unit="1", text="requests that failed, of all"),
    "serving.aborted_fraction": Metric(unit="1", text="requests that ended before their answer, of all"),
    "serving.queue": Metric(unit="1", text="requests that wait"),
}
"""What an objective may name, and what `linkwise watch` publishes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A bar that a value of the watched job must keep.

    Parameters
    ----------
    name
        How people call it.
    metric
        One of `METRICS`.
    comparison
        Whether the value must be at most or at least the bar.
    bar
        In the unit of the metric.
    severity
        Of the alert when it is missed.

    Raises
    ------
    InputError
        When there is no such metric.
    """

    name: str
    metric: str
    comparison: Comparison
    bar: float
    severity: Severity = field(default=Severity.WARNING)

    def __post_init__(self) -> None:
        """Refuse a metric that nothing measures."""
        if self.metric not in METRICS:
            near = ", ".join(nearest_names(self.metric, METRICS)) or ", ".join(METRICS)
            raise InputError(
                f"objective {self.name!r}: nothing measures {self.metric!r} while a job is watched; "
                f"nearest: {near}"
            )

    def is_met(self, value: float) -> bool:
        """Return whether a value keeps the bar; what is no number does not.

        Parameters
        ----------
        value
            In the unit of the metric.
        """
        return value <= self.bar if self.comparison is Comparison.AT_MOST else value >= self.bar
