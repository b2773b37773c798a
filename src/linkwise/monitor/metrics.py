"""What a watch shows to Prometheus: families of metrics, an address to scrape, a file to collect.

References
----------
OpenMetrics 1.0 (names end in their unit, counters in ``_total``). Prometheus, node_exporter, textfile
collector (files are replaced at once, never written in place).
"""

from __future__ import annotations

import os
from collections import Counter as Counts
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from linkwise.errors import InputError
from linkwise.monitor.alert import AlertKind, Severity
from linkwise.monitor.drift import DriftKind
from linkwise.monitor.watching import Watch, values_of

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric
    from prometheus_client.registry import CollectorRegistry

__all__ = ["PREFIX", "MetricsServer", "registry_of", "serve", "write_textfile"]

PREFIX = "linkwise_watch"
_QUANTILES = (0.5, 0.95)

_GAUGES: Mapping[str, tuple[str, str]] = {
    "train.tokens_per_s": ("tokens_per_second", "Tokens in a second, median of the last steps."),
    "train.loss": ("loss", "Loss, median of the last steps."),
    "train.grad_norm": ("gradient_norm", "Norm of the gradient, median of the last steps."),
    "train.communication_fraction": (
        "communication_ratio",
        "Time of communication over step time, as far as timers of the framework show it.",
    ),
    "train.goodput_fraction": ("goodput_ratio", "Time in steps that count, of all time since the start."),
    "train.time_to_start": ("time_to_start_seconds", "From the first line of the log to the first step."),
}
_COUNTERS: Mapping[str, tuple[str, str]] = {
    "train.nan_steps": ("nan_steps", "Steps whose loss or gradient norm was no number."),
    "train.restarts": ("restarts", "Times the count of steps went back."),
    "train.lost_steps": ("lost_steps", "Steps that are done again after restarts."),
}


class MetricsServer(Protocol):
    """An address that is scraped."""

    @property
    def port(self) -> int:
        """Return the port it listens on."""

    def close(self) -> None:
        """Listen no more."""


class _Collector:
    """Families of metrics, made when they are asked for."""

    def __init__(self, watch: Watch, run: str) -> None:
        self._watch, self._run = watch, run

    def collect(self) -> Iterable[Metric]:
        """Return all families; a thread of its own asks for them, so that collections are copied first."""
        return tuple(_families(self._watch, self._run))

    def describe(self) -> Iterable[Metric]:
        """Return nothing: names are fixed, and need no look at the job."""
        return ()


def registry_of(watch: Watch, *, run: str) -> CollectorRegistry:
    """Return the registry that shows a watched job.

    Parameters
    ----------
    watch
        The job.
    run
        What the label ``run`` says of all its metrics.
    """
    from prometheus_client.registry import CollectorRegistry

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(watch, run))
    return registry


class _Server:
    def __init__(self, server: object, port: int) -> None:
        self._server, self._port = server, port

    @property
    def port(self) -> int:
        """Return the port it listens on."""
        return self._port

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()  # type: ignore[attr-defined]
        self._server.server_close()  # type: ignore[attr-defined]


def serve(registry: CollectorRegistry, *, host: str, port: int) -> MetricsServer:
    """Return an address at which the metrics are scraped, from a thread of its own.

    Parameters
    ----------
    registry
        What is shown.
    host, port
        Where; port 0 for any that is free.

    Raises
    ------
    InputError
        When it cannot be listened on.
    """
    from prometheus_client import start_http_server

    try:
        server, _ = start_http_server(port, addr=host, registry=registry)
    except (OSError, OverflowError) as error:
        raise InputError(f"--metrics {host}:{port}: cannot be listened on ({error})") from None
    return _Server(server, server.server_port)


def write_textfile(registry: CollectorRegistry, path: Path) -> None:
    """Write the metrics to a file, which is replaced at once.

    Parameters
    ----------
    registry
        What is shown.
    path
        The file; node_exporter wants a name that ends in ``.prom``.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    from prometheus_client.exposition import generate_latest

    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(generate_latest(registry))
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InputError(f"--textfile {path}: cannot be written ({error.strerror})") from None


def _families(watch: Watch, run: str) -> Iterator[Metric]:
    yield from _step_families(watch, run)
    yield from _alert_families(watch, run)
    yield from _state_families(watch, run)
    yield from _port_families(watch, run)
    yield from _endpoint_families(watch, run)


def _gauge(name: str, text: str, labels: Mapping[str, str], value: float) -> Metric:
    from prometheus_client.metrics_core import GaugeMetricFamily

    family = GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=list(labels))
    family.add_metric(list(labels.values()), value)
    return family


def _counter(name: str, text: str, rows: Iterable[tuple[Mapping[str, str], float]]) -> Metric:
    from prometheus_client.metrics_core import CounterMetricFamily

    found = list(rows)
    family = CounterMetricFamily(f"{PREFIX}_{name}", text, labels=list(found[0][0]) if found else [])
    for labels, value in found:
        family.add_metric(list(labels.values()), value)
    return family


def _summary(name: str, text: str, rows: Iterable[tuple[Mapping[str, str], float, float]]) -> Metric:
    """Return a family of quantiles: labels, the quantile, and its value."""
    from prometheus_client.metrics_core import Metric

    family = Metric(f"{PREFIX}_{name}", text, "summary")
    for labels, quantile, value in rows:
        family.add_sample(f"{PREFIX}_{name}", {**labels, "quantile": str(quantile)}, value)
    return family


def _step_families(watch: Watch, run: str) -> Iterator[Metric]:
    steps, labels = watch.steps, {"run": run}
    values = values_of(watch)
    yield _counter("steps", "Steps that were seen, each once.", [(labels, steps.count)])
    if steps.last_step is not None:
        yield _gauge("last_step", "Number of the last step.", labels, steps.last_step)
    if steps.heard_s is not None:
        text = "When the last step was heard of."
        yield _gauge("last_step_timestamp_seconds", text, labels, steps.heard_s)
    rows = [(labels, each, value) for each in _QUANTILES if (value := steps.times.quantile(each)) is not None]
    if rows:
        text = "Step time over the last steps, checkpoints, evaluations and the first steps left out."
        yield _summary("step_time_seconds", text, rows)
    for metric, (name, text) in _GAUGES.items():
        if metric in values:
            yield _gauge(name, text, labels, values[metric])
    for metric, (name, text) in _COUNTERS.items():
        yield _counter(name, text, [(labels, values.get(metric, 0.0))])
    if steps.tagged:
        text = "Steps left out of the step times, and what stood beside them."
        tagged = [
            ({"run": run, "beside": kind}, float(count)) for kind, count in sorted(steps.tagged.items())
        ]
        yield _counter("tagged_steps", text, tagged)


def _alert_families(watch: Watch, run: str) -> Iterator[Metric]:
    from prometheus_client.metrics_core import GaugeMetricFamily

    active = Counts((each.kind, each.severity) for each in tuple(watch.book.active.values()))
    family = GaugeMetricFamily(
        f"{PREFIX}_alerts", "Alerts that hold now.", labels=["run", "kind", "severity"]
    )
    for kind in AlertKind:
        for severity in (Severity.CRITICAL, Severity.WARNING):
            family.add_metric([run, kind.value, severity.value], active.get((kind, severity), 0))
    yield family
    told = Counts(each.kind for each in watch.drifts)
    yield _counter(
        "drifts",
        "Changes of the step time that were told.",
        [({"run": run, "kind": kind.value}, float(told.get(kind, 0))) for kind in DriftKind],
    )
    values = values_of(watch)
    met = GaugeMetricFamily(
        f"{PREFIX}_objective_met", "Whether an objective is met.", labels=["run", "objective"]
    )
    for each in watch.objectives:
        if each.metric in values:
            met.add_metric([run, each.name], float(each.is_met(values[each.metric])))
    if met.samples:
        yield met


def _state_families(watch: Watch, run: str) -> Iterator[Metric]:
    labels = {"run": run}
    text = "When the watch last looked."
    yield _gauge("last_look_timestamp_seconds", text, labels, watch.clocks.day())
    text = "How long the job may do no step before it is called stalled."
    yield _gauge("stall_limit_seconds", text, labels, watch.stall_limit_s)
    found = watch.diagnosis
    if found is not None:
        used = found.transport
        yield _gauge(
            "transport_info",
            "What the doctor says the job communicates over.",
            {
                "run": run,
                "intra_node": str(used.intra_node.value or ""),
                "inter_node": str(used.inter_node.value or ""),
                "verdict": found.verdict.value,
            },
            1,
        )
    if watch.steps.xids:
        by_number: Counts[int] = Counts()
        for (_, number), count in tuple(watch.steps.xids.items()):
            by_number[number] += count
        rows = [
            ({"run": run, "xid": str(number)}, float(count)) for number, count in sorted(by_number.items())
        ]
        yield _counter("xid_errors", "Lines of Xids in the logs.", rows)


def _port_families(watch: Watch, run: str) -> Iterator[Metric]:
    growth = watch.port_growth
    if not growth:
        return
    rows = [
        ({"run": run, "port": each.port, "counter": name}, float(count))
        for each in growth
        for name, count in each.errors.items()
    ]
    if rows:
        yield _counter("port_errors", "Errors of RDMA ports since the watch began.", rows)
    from prometheus_client.metrics_core import GaugeMetricFamily

    family = GaugeMetricFamily(
        f"{PREFIX}_port_bytes_per_second", "Data of RDMA ports.", labels=["run", "port", "direction"]
    )
    for each in growth:
        for way, value in (("sent", each.sent_bytes_per_s), ("received", each.received_bytes_per_s)):
            if value is not None:
                family.add_metric([run, each.port, way], value)
    yield family


def _endpoint_families(watch: Watch, run: str) -> Iterator[Metric]:
    if not watch.endpoints:
        return
    from prometheus_client.metrics_core import GaugeMetricFamily

    up = GaugeMetricFamily(
        f"{PREFIX}_endpoint_up", "Whether a server answers.", labels=["run", "endpoint", "server"]
    )
    for each in watch.endpoints:
        up.add_metric([run, each.url, each.server], float(not each.fault and each.looks > 0))
    yield up
    felt = [(each.url, each.felt) for each in watch.endpoints if each.felt is not None]
    for name, text, quantiles in (
        ("ttft_seconds", "Time to first token.", [(url, each.ttft_s) for url, each in felt]),
        ("tpot_seconds", "Time per output token.", [(url, each.tpot_s) for url, each in felt]),
    ):
        rows = [
            ({"run": run, "endpoint": url}, fraction, value)
            for url, found in quantiles
            for fraction, value in found.items()
        ]
        if rows:
            yield _summary(name, text, rows)
    for name, text, values in (
        ("queued_requests", "Requests that wait.", [(url, each.queue) for url, each in felt]),
        ("error_ratio", "Requests that failed.", [(url, each.error_fraction) for url, each in felt]),
        ("aborted_ratio", "Requests that ended early.", [(url, each.aborted_fraction) for url, each in felt]),
    ):
        family = GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=["run", "endpoint"])
        for url, value in values:
            if value is not None:
                family.add_metric([run, url], value)
        yield family
