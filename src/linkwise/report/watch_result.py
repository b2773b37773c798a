"""The published results `linkwise.watch/1` and `linkwise.watch.alert/1`: what a watch saw of a job."""

from __future__ import annotations

import datetime as dt
import math
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from linkwise.diagnose.doctor import Verdict
from linkwise.diagnose.finding import Severity as FindingSeverity
from linkwise.monitor.drift import FALSE_ALARMS, Drift
from linkwise.monitor.watching import values_of
from linkwise.readers.job_log.lines import printable
from linkwise.report.results import PublishedResult

if TYPE_CHECKING:
    from linkwise.monitor.alert import Alert
    from linkwise.monitor.endpoints import Endpoint
    from linkwise.monitor.watching import Watch

__all__ = ["WatchAlertResult", "WatchResult", "WatchVerdict", "alert_result", "watch_result"]


class WatchVerdict(StrEnum):
    """What is said of the job as a whole."""

    HEALTHY = "healthy"
    AGAINST = "against"
    """Something was told that speaks against it."""
    CANNOT_TELL = "cannot_tell"
    NOTHING = "nothing"
    """Nothing could be measured."""


class WatchAlertResult(PublishedResult):
    """One thing that was told."""

    published: Literal["linkwise.watch.alert/1"] = Field(default="linkwise.watch.alert/1", alias="schema")
    kind: str
    subject: str = Field(description="Which rank, link, finding or objective; may be empty.")
    severity: Literal["critical", "warning", "info"]
    is_over: bool = Field(description="Whether it says that an alert told before no longer holds.")
    summary: str
    at: str = Field(description="UTC; by the clock of the log where it has one.")
    step: int | None


class WatchStepsResult(PublishedResult):
    """The steps that were seen."""

    count: int = Field(description="Each once, whoever told it.")
    last: int | None
    lines: int = Field(description="Lines of all logs.")
    left_out: dict[str, int] = Field(
        description="Steps left out of the step times, by what stood beside them, such as a checkpoint."
    )


class WatchStepTimeResult(PublishedResult):
    """Step times over the last steps."""

    median_s: float
    p95_s: float
    count: int = Field(description="Steps they are of; 512 at most.")


class WatchDriftResult(PublishedResult):
    """One change of the step time."""

    kind: Literal["level", "spread", "creep", "recovered"]
    step: int = Field(description="At which it was told.")
    since_step: int = Field(description="About where it began.")
    before: float = Field(description="Level in seconds, or spread as a fraction of it.")
    after: float
    chance: float | None = Field(description="How often the rank test finds as much in steps that are alike.")


class WatchDriftsResult(PublishedResult):
    """How drift was looked for, and what was found."""

    method: str
    is_judged: bool = Field(description="False where steps were too few, or drift was not looked for.")
    steps_judged: int
    steps_needed: int
    false_alarms: int = Field(description="Told of healthy recordings that the settings were not chosen on.")
    healthy_steps: int = Field(description="Those recordings have.")
    found: list[WatchDriftResult]


class WatchTrainingResult(PublishedResult):
    """What users of a training job feel."""

    tokens_per_s: float | None = Field(
        description="Of the job where its log says so; of one GPU for torchtitan, samples for DeepSpeed."
    )
    loss: float | None
    grad_norm: float | None
    nan_steps: int
    communication_fraction: float | None
    time_to_start_s: float | None
    goodput_fraction: float | None
    restarts: int
    lost_steps: int
    ranks: int = Field(description="Ranks, or files, that told of steps.")


class WatchInterconnectResult(PublishedResult):
    """What the doctor says."""

    verdict: Literal["healthy", "slow", "broken", "cannot_tell"]
    intra_node: str
    inter_node: str
    findings: list[str] = Field(description="Causes, worst first.")


class WatchEndpointResult(PublishedResult):
    """What users of a server feel."""

    url: str
    server: str = Field(description="vllm, sglang, dcgm, or empty for another.")
    fault: str
    looks: int
    ttft_s: dict[str, float] = Field(description="By quantile.")
    tpot_s: dict[str, float] = Field(description="By quantile.")
    queue: float | None
    running: float | None
    requests: float | None
    errors: float | None
    aborted: float | None
    timeouts: float | None
    span_s: float | None = Field(description="Back to when; null for all since the server began.")
    gpus: int | None


class WatchPortResult(PublishedResult):
    """A port of this host."""

    port: str
    state: str
    errors: dict[str, int] = Field(description="Counters that grew since the watch began.")


class WatchObjectiveResult(PublishedResult):
    """An objective, as it stands at the end."""

    name: str
    metric: str
    comparison: Literal["at_most", "at_least"]
    bar: float
    value: float | None
    is_met: bool | None = Field(description="null where nothing measured it.")


class WatchResult(PublishedResult):
    """What a watch saw of a job."""

    published: Literal["linkwise.watch/1"] = Field(default="linkwise.watch/1", alias="schema")
    run: str
    verdict: WatchVerdict
    reason: str
    is_replay: bool
    steps: WatchStepsResult
    step_time: WatchStepTimeResult | None
    drift: WatchDriftsResult
    training: WatchTrainingResult
    stall_limit_s: float = Field(description="No step for so long is told as a stall, as of the end.")
    is_stalled: bool
    interconnect: WatchInterconnectResult | None
    endpoints: list[WatchEndpointResult]
    ports: list[WatchPortResult]
    objectives: list[WatchObjectiveResult]
    alerts: list[WatchAlertResult] = Field(description="All that was told, in order, a thousand at most.")
    unread: list[str]


def alert_result(alert: Alert) -> WatchAlertResult:
    """Return an alert as it is published.

    Parameters
    ----------
    alert
        What is told.
    """
    moment = dt.datetime.fromtimestamp(alert.at_s, tz=dt.UTC)
    return WatchAlertResult(
        kind=alert.kind.value,
        subject=printable(alert.subject),
        severity=alert.severity.value,
        is_over=alert.is_over,
        summary=printable(alert.summary),
        at=moment.isoformat(timespec="milliseconds"),
        step=alert.step,
    )


def watch_result(watch: Watch, *, run: str, is_replay: bool) -> WatchResult:
    """Return what a watch saw, as it is published.

    Parameters
    ----------
    watch
        The job, watched to its end.
    run
        Its name.
    is_replay
        Whether it was a recording.
    """
    verdict, reason = _verdict(watch)
    steps = watch.steps
    return WatchResult(
        run=run,
        verdict=verdict,
        reason=reason,
        is_replay=is_replay,
        steps=WatchStepsResult(
            count=steps.count, last=steps.last_step, lines=steps.lines, left_out=dict(steps.tagged)
        ),
        step_time=_step_time(watch),
        drift=_drifts(watch),
        training=_training(watch),
        stall_limit_s=watch.stall.limit_s(steps.times.median),
        is_stalled=watch.is_stalled,
        interconnect=_interconnect(watch),
        endpoints=[_endpoint(each) for each in watch.endpoints],
        ports=[
            WatchPortResult(port=each.port, state=each.state, errors=dict(each.errors))
            for each in watch.port_growth
        ],
        objectives=_objectives(watch),
        alerts=[alert_result(each) for each in watch.book.told],
        unread=[] if watch.diagnosis is None else [printable(each) for each in watch.diagnosis.unread],
    )


def _verdict(watch: Watch) -> tuple[WatchVerdict, str]:
    if watch.book.is_against:
        kinds = dict.fromkeys(
            each.kind.value for each in watch.book.told if not each.is_over and each.severity.value != "info"
        )
        return WatchVerdict.AGAINST, f"told: {', '.join(kinds)}"
    found = watch.diagnosis
    if found is not None and found.verdict in {Verdict.SLOW, Verdict.BROKEN}:
        return WatchVerdict.AGAINST, f"the doctor says {found.verdict.value}"
    served = any(each.looks for each in watch.endpoints)
    if not watch.steps.count and not served and not watch.port_growth:
        what = "no line of a step" if watch.steps.lines else "no line"
        return WatchVerdict.NOTHING, f"{what} in the logs, and no server or port to look at"
    if watch.steps.count and not watch.drift.is_ready and watch.rule is not None:
        needed = watch.rule.least_steps
        reason = f"{watch.drift.count} step times are too few to tell drift from noise; {needed} are needed"
        return WatchVerdict.CANNOT_TELL, reason
    missing = [each.name for each in _objectives(watch) if each.is_met is None]
    if missing:
        return WatchVerdict.CANNOT_TELL, f"nothing measured {', '.join(missing)}"
    return WatchVerdict.HEALTHY, ""


def _step_time(watch: Watch) -> WatchStepTimeResult | None:
    times = watch.steps.times
    median, tail = times.median, times.quantile(0.95)
    if median is None or tail is None:
        return None
    return WatchStepTimeResult(median_s=median, p95_s=tail, count=len(times))


def _drifts(watch: Watch) -> WatchDriftsResult:
    rule = watch.drift.rule
    return WatchDriftsResult(
        method=(
            f"rank tests (Mann-Whitney, Mood) of the last {rule.window} steps against the {rule.reference} "
            f"before, at {rule.chance:g}, with a margin of {rule.margin_fraction:.0%}"
        ),
        is_judged=watch.rule is not None and watch.drift.is_ready,
        steps_judged=watch.drift.count,
        steps_needed=rule.least_steps,
        false_alarms=FALSE_ALARMS.alarms,
        healthy_steps=FALSE_ALARMS.steps,
        found=[_drift(each) for each in watch.drifts],
    )


def _drift(drift: Drift) -> WatchDriftResult:
    return WatchDriftResult(
        kind=drift.kind.value,
        step=drift.step,
        since_step=drift.since_step,
        before=drift.before,
        after=drift.after,
        chance=None if math.isnan(drift.chance) else drift.chance,
    )


def _training(watch: Watch) -> WatchTrainingResult:
    steps, values = watch.steps, values_of(watch)
    return WatchTrainingResult(
        tokens_per_s=values.get("train.tokens_per_s"),
        loss=values.get("train.loss"),
        grad_norm=values.get("train.grad_norm"),
        nan_steps=steps.nan_steps,
        communication_fraction=values.get("train.communication_fraction"),
        time_to_start_s=values.get("train.time_to_start"),
        goodput_fraction=values.get("train.goodput_fraction"),
        restarts=steps.restarts,
        lost_steps=steps.lost_steps,
        ranks=len(steps.ranks),
    )


def _interconnect(watch: Watch) -> WatchInterconnectResult | None:
    found = watch.diagnosis
    if found is None or not watch.steps.lines:
        return None
    return WatchInterconnectResult(
        verdict=found.verdict.value,
        intra_node=str(found.transport.intra_node.value or ""),
        inter_node=str(found.transport.inter_node.value or ""),
        findings=[each.cause for each in found.findings if each.severity is not FindingSeverity.HARMLESS],
    )


def _endpoint(each: Endpoint) -> WatchEndpointResult:
    felt = each.felt
    return WatchEndpointResult(
        url=each.url,
        server=each.server,
        fault=printable(each.fault),
        looks=each.looks,
        ttft_s={} if felt is None else {f"{key:g}": value for key, value in felt.ttft_s.items()},
        tpot_s={} if felt is None else {f"{key:g}": value for key, value in felt.tpot_s.items()},
        queue=None if felt is None else felt.queue,
        running=None if felt is None else felt.running,
        requests=None if felt is None else felt.requests,
        errors=None if felt is None else felt.errors,
        aborted=None if felt is None else felt.aborted,
        timeouts=None if felt is None else felt.timeouts,
        span_s=None if felt is None else felt.span_s,
        gpus=None if each.gpus is None else each.gpus.gpus,
    )


def _objectives(watch: Watch) -> list[WatchObjectiveResult]:
    values = values_of(watch)
    return [
        WatchObjectiveResult(
            name=each.name,
            metric=each.metric,
            comparison=each.comparison.value,
            bar=each.bar,
            value=values.get(each.metric),
            is_met=None if each.metric not in values else each.is_met(values[each.metric]),
        )
        for each in watch.objectives
    ]
