"""A job that is watched: its logs, its host and its servers in, alerts and values out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from linkwise.diagnose.doctor import Diagnosis, diagnose
from linkwise.diagnose.finding import Severity as FindingSeverity
from linkwise.diagnose.following import Change, ChangeKind
from linkwise.diagnose.vocabulary import title_of
from linkwise.monitor.alert import Alert, AlertKind, Objective, Severity
from linkwise.monitor.alert_book import AlertBook
from linkwise.monitor.drift import Drift, DriftKind, DriftRule, DriftWatch
from linkwise.monitor.endpoints import Endpoint
from linkwise.monitor.follower import Follower
from linkwise.monitor.host_counters import PortGrowth, PortsWatch
from linkwise.monitor.job_steps import Gap, JobSteps
from linkwise.monitor.stall import StallRule
from linkwise.monitor.stragglers import stragglers_of
from linkwise.monitor.tail import Piece, Tail
from linkwise.readers.job_log.values import JobLog

__all__ = ["Watch", "WatchClocks", "values_of"]

_LOOK_S = 5.0
"""Between two looks at servers and ports [s]."""
_RANK_PATIENCE_STEPS = 5.0
_RANK_PATIENCE_S = 10.0
"""How long a rank may be silent while others go on, the longer one: output is buffered (assumed) [1, s]."""
_OBJECTIVE_STEPS = 20
"""Before a bar of a rollout is held to a job: the 95th percentile of fewer is their largest [1]."""
_MOST_DRIFTS = 1_000
_USER_XIDS = frozenset({13, 31, 43, 45})
"""Xids that a fault of the program causes as well as one of the GPU (NVIDIA, XID Errors, r580): 13 graphics
engine exception, 31 MMU fault, 43 GPU stopped processing, 45 preemptive cleanup."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchClocks:
    """The clocks a watch goes by.

    Parameters
    ----------
    monotonic
        Never goes back [s].
    day
        Seconds since 1970 [s].
    is_live
        Whether the job runs while it is watched; a recording is judged by the clock of its logs.
    """

    monotonic: Callable[[], float]
    day: Callable[[], float]
    is_live: bool = True


@dataclass(slots=True)
class Watch:
    """One job.

    Parameters
    ----------
    find
        Returns the inputs that appeared since it was last called.
    clocks
        What time it is.
    steps
        Its steps.
    expects_steps
        Whether there is a job that must do steps, beside servers and ports.
    objectives
        What must be kept.
    endpoints
        Servers whose metrics are looked at.
    ports
        The RDMA ports of this host; ``None`` to leave them alone.
    stall
        When it is called stalled.
    rule
        When a drift is told; ``None`` to look for none.
    """

    find: Callable[[], Sequence[Tail]]
    clocks: WatchClocks
    steps: JobSteps = field(default_factory=JobSteps)
    expects_steps: bool = True
    objectives: tuple[Objective, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    ports: PortsWatch | None = None
    stall: StallRule = field(default_factory=StallRule)
    rule: DriftRule | None = field(default_factory=DriftRule)
    book: AlertBook = field(default_factory=AlertBook)
    diagnosis: Diagnosis | None = None
    drifts: list[Drift] = field(default_factory=list)
    drift: DriftWatch = field(init=False)
    follower: Follower = field(init=False)
    port_growth: tuple[PortGrowth, ...] = ()
    is_stalled: bool = False
    _begun_s: float = 0.0
    _new_drifts: list[Drift] = field(default_factory=list)
    _looked_s: float = -math.inf
    _restarts: int = 0

    def __post_init__(self) -> None:
        """Tie the parts together."""
        self.drift = DriftWatch(rule=self.rule or DriftRule())
        if self.rule is not None:
            self.steps.sink = self._take_step_time
        self.follower = Follower(
            find=self.find, judge=self._judge, clock=self.clocks.monotonic, hear=self._hear
        )
        self._begun_s = self.clocks.day()

    def turn(self) -> tuple[Alert, ...]:
        """Read what was added, look at what is due, and return what is to be told."""
        self.steps.gap_s = self.stall.limit_s(self.steps.times.median or 0.0)
        return self._look(self.follower.turn())

    def _look(self, changes: Sequence[Change]) -> tuple[Alert, ...]:
        told = [alert for each in changes for alert in self._interconnect(each)]
        for look in (
            self._drifts,
            self._nan,
            self._went_back,
            self._gaps,
            self._stalled,
            self._stragglers,
            self._xids,
            self._outside,
            self._judged_objectives,
        ):
            told.extend(look())
        return tuple(told)

    def finish(self) -> tuple[Alert, ...]:
        """Return what is left to be told, having read what is left and let go of the inputs."""
        self.diagnosis = self.follower.finish(self._judge)
        self.steps.finish(now_s=self.clocks.day())
        self._looked_s = -math.inf
        changes, self.follower.told = self.follower.told.tell(self.diagnosis)
        return self._look(changes)

    @property
    def at_s(self) -> float:
        """Return the time to write beside an alert: that of the log where it has one [s]."""
        last_s = self.steps.last_clock_s
        return last_s if self.steps.has_log_clock and last_s is not None else self.clocks.day()

    def _judge(self, log: JobLog) -> Diagnosis:
        self.diagnosis = diagnose(log)
        return self.diagnosis

    def _hear(self, piece: Piece) -> None:
        if piece.is_restart:
            self.steps.restart(piece.name)
        if piece.data:
            self.steps.feed(piece.name, piece.data, now_s=self.clocks.day())

    def _take_step_time(self, number: int, time_s: float) -> None:
        if (drift := self.drift.add(number, time_s)) is not None:
            self._new_drifts.append(drift)

    def _alert(
        self, kind: AlertKind, severity: Severity, summary: str, *, subject: str = "", step: int | None = None
    ) -> Alert:
        return Alert(
            kind=kind,
            severity=severity,
            summary=summary,
            subject=subject,
            at_s=self.at_s,
            step=self.steps.last_step if step is None else step,
        )

    def _over(self, kind: AlertKind, subject: str, summary: str) -> tuple[Alert, ...]:
        return self.book.end(kind, subject, summary, at_s=self.at_s, step=self.steps.last_step)

    def _interconnect(self, change: Change) -> tuple[Alert, ...]:
        finding = change.finding
        if finding is None:
            alert = self._alert(AlertKind.INTERCONNECT, Severity.CRITICAL, change.reason)
            return self.book.tell(alert)
        if change.kind is ChangeKind.WITHDRAWN:
            return self._over(AlertKind.INTERCONNECT, finding.cause, change.reason)
        is_broken = finding.severity is FindingSeverity.BROKEN
        fix = f"; to mend it: {finding.fix[0]}" if finding.fix else ""
        return self.book.tell(
            self._alert(
                AlertKind.INTERCONNECT,
                Severity.CRITICAL if is_broken else Severity.WARNING,
                f"{title_of(finding.cause)}, confidence {finding.confidence}{fix}",
                subject=finding.cause,
            )
        )

    def _drifts(self) -> Iterator[Alert]:
        new, self._new_drifts = self._new_drifts, []
        for each in new:
            if len(self.drifts) < _MOST_DRIFTS:
                self.drifts.append(each)
            kind = _ALERT_OF_DRIFT[each.kind]
            if each.kind is DriftKind.RECOVERED:
                text = f"step time is back at {each.after:.4g} s, from {each.before:.4g} s"
                for alert in (AlertKind.STEP_TIME_ROSE, AlertKind.STEP_TIME_CREPT):
                    yield from self._over(alert, "", text)
                continue
            yield from self._over(kind, "", "another level was reached")
            yield from self.book.tell(self._alert(kind, Severity.WARNING, _drift_text(each), step=each.step))

    def _nan(self) -> tuple[Alert, ...]:
        if not self.steps.nan_steps:
            return ()
        at = self.steps.nan_at
        text = f"loss or gradient norm is no number, first at step {at}"
        return self.book.tell(self._alert(AlertKind.NOT_A_NUMBER, Severity.CRITICAL, text, step=at))

    def _went_back(self) -> tuple[Alert, ...]:
        if self.steps.restarts == self._restarts:
            return ()
        self._restarts = self.steps.restarts
        text = (
            f"the count of steps went back, for the {_ordinal(self.steps.restarts)} time; "
            f"{self.steps.lost_steps} steps are done again so far"
        )
        return self.book.note(self._alert(AlertKind.RESTARTED, Severity.WARNING, text))

    def _gaps(self) -> Iterator[Alert]:
        """Tell silences that the clock of the log shows; while the job runs its own end is seen in time."""
        gaps, self.steps.gaps = self.steps.gaps, []
        limit_s = self.stall.limit_s(self.steps.times.median or 0.0)
        for each in () if self.clocks.is_live else gaps:
            if each.end_s - each.start_s < limit_s:
                continue  # before there were steps to go by, a shorter time was looked for
            yield from self.book.tell(_gap_alert(each, limit_s))
            yield from self.book.end(
                AlertKind.STALLED, "", f"step {each.step} came", at_s=each.end_s, step=each.step
            )

    def _stalled(self) -> tuple[Alert, ...]:
        """Tell that no step was heard of for too long, by the clock of this machine."""
        if not self.clocks.is_live or not self.expects_steps:
            return ()
        limit_s = self.stall_limit_s
        silent_s = self.clocks.day() - (self.steps.heard_s or self._begun_s)
        self.is_stalled = silent_s > limit_s
        if not self.is_stalled:
            return self._over(AlertKind.STALLED, "", f"step {self.steps.last_step} came")
        what = "step" if self.steps.count else "first step"
        text = f"no {what} for {silent_s:.0f} s; told after {limit_s:.0f} s"
        return self.book.tell(self._alert(AlertKind.STALLED, Severity.CRITICAL, text))

    @property
    def stall_limit_s(self) -> float:
        """Return how long the job may do no step now [s]."""
        return self.stall.limit_s(self.steps.times.median, beside=self.steps.mark)

    def _stragglers(self) -> Iterator[Alert]:
        steps = self.steps
        if len(steps.ranks) < 2 or steps.last_step is None or self.is_stalled:
            return
        patience_s = max(_RANK_PATIENCE_S, _RANK_PATIENCE_STEPS * (steps.times.median or 0.0))
        # In a recording the files of ranks are read one after the other; who is behind shows only live.
        found = stragglers_of(
            steps.ranks,
            last_step=steps.last_step,
            now_s=self.clocks.day(),
            patience_s=patience_s if self.clocks.is_live else math.inf,
        )
        names = {each.name for each in found}
        for kind, subject in list(self.book.active):
            if kind is AlertKind.STRAGGLER and subject not in names:
                yield from self._over(kind, subject, f"rank {subject} is in step again")
        for each in found:
            text = f"rank {each.name} is out of step: {each.why}"
            yield from self.book.tell(
                self._alert(AlertKind.STRAGGLER, Severity.WARNING, text, subject=each.name)
            )

    def _xids(self) -> Iterator[Alert]:
        for bus, number in self.steps.xids:
            yield from self._xid(bus, number)

    def _xid(self, gpu: str, number: int) -> tuple[Alert, ...]:
        is_user = number in _USER_XIDS
        text = f"Xid {number} of GPU {gpu}" + (", which a fault of the program causes too" if is_user else "")
        severity = Severity.WARNING if is_user else Severity.CRITICAL
        return self.book.tell(self._alert(AlertKind.XID, severity, text, subject=f"{gpu} {number}"))

    def _outside(self) -> Iterator[Alert]:
        """Look at servers and ports where that is due."""
        now_s = self.clocks.monotonic()
        if now_s - self._looked_s < _LOOK_S:
            return
        self._looked_s = now_s
        for each in self.endpoints:
            each.look(now_s)
            yield from self._endpoint(each)
        if self.ports is not None:
            self.port_growth = self.ports.look(now_s)
            for growth in self.port_growth:
                yield from self._port(growth)

    def _endpoint(self, each: Endpoint) -> Iterator[Alert]:
        if each.fault:
            alert = self._alert(AlertKind.ENDPOINT_SILENT, Severity.CRITICAL, each.fault, subject=each.url)
            yield from self.book.tell(alert)
            return
        yield from self._over(AlertKind.ENDPOINT_SILENT, each.url, f"{each.url} answers")
        if each.gpus is None:
            return
        for gpu, number in sorted(each.gpus.xids):
            yield from self._xid(gpu, number)
        for (gpu, counter), grown in sorted(each.gpus.link_errors.items()):
            text = f"{counter} of GPU {gpu} grew by {grown:.0f}"
            yield from self.book.tell(
                self._alert(AlertKind.LINK_ERRORS, Severity.WARNING, text, subject=f"{gpu} {counter}")
            )

    def _port(self, growth: PortGrowth) -> Iterator[Alert]:
        for name, count in growth.errors.items():
            text = f"port {growth.port}: {name} grew by {count}"
            yield from self.book.tell(
                self._alert(AlertKind.LINK_ERRORS, Severity.WARNING, text, subject=f"{growth.port} {name}")
            )
        if growth.was_active and growth.state and growth.state != "ACTIVE":
            text = f"port {growth.port} is {growth.state}; it was ACTIVE"
            yield from self.book.tell(
                self._alert(AlertKind.LINK_ERRORS, Severity.CRITICAL, text, subject=growth.port)
            )
        else:
            yield from self._over(AlertKind.LINK_ERRORS, growth.port, f"port {growth.port} is ACTIVE again")

    def _judged_objectives(self) -> Iterator[Alert]:
        if not self.objectives:
            return
        values = values_of(self)
        for each in self.objectives:
            value = values.get(each.metric)
            if value is None or (
                each.metric.startswith("train.") and len(self.steps.times) < _OBJECTIVE_STEPS
            ):
                continue
            if each.is_met(value):
                text = f"{each.metric} is {value:.4g}, and meets {each.bar:.4g}"
                yield from self._over(AlertKind.OBJECTIVE, each.name, text)
                continue
            wanted = each.comparison.value.replace("_", " ")
            text = f"{each.name}: {each.metric} is {value:.4g}, must be {wanted} {each.bar:.4g}"
            yield from self.book.tell(
                self._alert(AlertKind.OBJECTIVE, each.severity, text, subject=each.name)
            )


def values_of(watch: Watch) -> dict[str, float]:
    """Return the values of a watched job by the names of `METRICS`; what was not seen is left out.

    Parameters
    ----------
    watch
        The job.
    """
    steps = watch.steps
    found: dict[str, float | None] = {
        "train.step_time": steps.times.median,
        "train.step_time_p95": steps.times.quantile(0.95),
        "train.tokens_per_s": steps.tokens_rates.median,
        "train.loss": steps.losses.median,
        "train.grad_norm": steps.grad_norms.median,
        "train.nan_steps": float(steps.nan_steps) if steps.count else None,
        "train.communication_fraction": steps.communication.median,
        "train.goodput_fraction": steps.goodput_fraction,
        "train.restarts": float(steps.restarts) if steps.count else None,
        "train.lost_steps": float(steps.lost_steps) if steps.count else None,
        "train.time_to_start": steps.time_to_start_s,
    }
    felt = [each.felt for each in watch.endpoints if each.felt is not None]
    # Of several servers the worst one counts: that is what some user feels.
    found |= {
        "serving.ttft_p50": _worst(each.ttft_s.get(0.5) for each in felt),
        "serving.ttft_p99": _worst(each.ttft_s.get(0.99) for each in felt),
        "serving.tpot_p50": _worst(each.tpot_s.get(0.5) for each in felt),
        "serving.tpot_p99": _worst(each.tpot_s.get(0.99) for each in felt),
        "serving.error_fraction": _worst(each.error_fraction for each in felt),
        "serving.aborted_fraction": _worst(each.aborted_fraction for each in felt),
        "serving.queue": _worst(each.queue for each in felt),
    }
    return {name: value for name, value in found.items() if value is not None}


def _worst(values: Iterator[float | None]) -> float | None:
    return max((each for each in values if each is not None), default=None)


_ALERT_OF_DRIFT = {
    DriftKind.LEVEL: AlertKind.STEP_TIME_ROSE,
    DriftKind.CREEP: AlertKind.STEP_TIME_CREPT,
    DriftKind.SPREAD: AlertKind.STEP_TIME_SPREAD,
    DriftKind.RECOVERED: AlertKind.STEP_TIME_ROSE,
}


def _drift_text(drift: Drift) -> str:
    if drift.kind is DriftKind.SPREAD:
        return (
            f"step times scatter by {drift.after:.1%} since about step {drift.since_step}, "
            f"by {drift.before:.1%} before"
        )
    word = "crept" if drift.kind is DriftKind.CREEP else "rose"
    since = (
        "since the first steps" if drift.kind is DriftKind.CREEP else f"since about step {drift.since_step}"
    )
    return (
        f"step time {word} from {drift.before:.4g} s to {drift.after:.4g} s ({drift.ratio - 1:+.1%}) {since}"
    )


def _gap_alert(gap: Gap, limit_s: float) -> Alert:
    return Alert(
        kind=AlertKind.STALLED,
        severity=Severity.CRITICAL,
        summary=f"no step for {gap.end_s - gap.start_s:.0f} s; told after {limit_s:.0f} s",
        at_s=gap.start_s + limit_s,
        step=gap.step - 1,
    )


def _ordinal(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}th")
