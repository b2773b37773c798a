"""Servers looked at through the metrics they show to Prometheus: what users feel, and Xids of their GPUs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from linkwise.errors import InputError
from linkwise.monitor.serving_names import SERVERS, GpuNames, ServerNames, Share, server_of
from linkwise.readers.prometheus_text import Exposition, Histogram, parse_exposition

__all__ = ["Endpoint", "Felt", "GpuErrors", "fetch_text"]

_TIMEOUT_S = 5.0
_LARGEST_BYTES = 64 << 20
_LEAST_REQUESTS = 1
_QUANTILES = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Felt:
    """What users of a server felt in the last while.

    Parameters
    ----------
    ttft_s, tpot_s
        Time to first token, and per token after it, by quantile; empty without requests [s].
    queue, running
        Requests that wait and that are worked on; ``None`` where not shown [1].
    requests, errors, aborted, timeouts
        That ended in that while; ``None`` where not shown [1].
    span_s
        How long it was; ``None`` for all since the server began, as of the first look [s].
    """

    ttft_s: Mapping[float, float]
    tpot_s: Mapping[float, float]
    queue: float | None
    running: float | None
    requests: float | None
    errors: float | None
    aborted: float | None
    timeouts: float | None
    span_s: float | None

    @property
    def error_fraction(self) -> float | None:
        """Return failed requests over all [1]."""
        return _fraction(self.errors, self.requests)

    @property
    def aborted_fraction(self) -> float | None:
        """Return requests that ended before their answer over all [1]."""
        return _fraction(self.aborted, self.requests)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuErrors:
    """What a DCGM exporter says of its GPUs.

    Parameters
    ----------
    xids
        GPU and number of each Xid since the watch began.
    link_errors
        Counters that grew since the watch began, by GPU and name [1].
    gpus
        How many it names [1].
    """

    xids: frozenset[tuple[str, int]]
    link_errors: Mapping[tuple[str, str], float]
    gpus: int


def fetch_text(url: str) -> str:
    """Return what an address shows.

    Parameters
    ----------
    url
        Of http or https.

    Raises
    ------
    InputError
        When it gives no answer, or another than 200.
    """
    import urllib.error
    import urllib.request

    wanted = {"Accept": "text/plain;version=0.0.4;q=1.0, */*;q=0.1"}
    try:
        request = urllib.request.Request(url, headers=wanted)  # noqa: S310 (checked by the command line)
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
            data: bytes = answer.read(_LARGEST_BYTES + 1)
    except urllib.error.HTTPError as error:
        raise InputError(f"{url}: answers {error.code} {error.reason}; name its /metrics") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise InputError(f"{url}: gives no answer ({reason})") from None
    return data.decode("utf-8", "replace")


@dataclass(slots=True)
class Endpoint:
    """One server that is looked at again and again.

    Parameters
    ----------
    url
        Where it shows its metrics.
    fetch
        Returns what an address shows, or raises `InputError`.
    span_s
        How far back percentiles reach [s].
    """

    url: str
    fetch: Callable[[str], str] = fetch_text
    span_s: float = 300.0
    server: str = ""
    fault: str = ""
    looks: int = 0
    felt: Felt | None = None
    gpus: GpuErrors | None = None
    _looks: deque[tuple[float, Exposition]] = field(default_factory=deque)
    _first: Exposition | None = None
    _xids: set[tuple[str, int]] = field(default_factory=set)

    def look(self, now_s: float) -> None:
        """Look at it once; `fault` says why where that failed.

        Parameters
        ----------
        now_s
            A clock that never goes back [s].
        """
        try:
            shown = parse_exposition(self.fetch(self.url), path=self.url)
        except InputError as error:
            self.fault = str(error)
            return
        self.fault = ""
        self.looks += 1
        self.server = server_of(shown)
        names = SERVERS.get(self.server)
        if names is not None:
            before_s, before = self._before(now_s)
            self.felt = _felt(names, shown, before, None if before_s is None else now_s - before_s)
        elif self.server == "dcgm":
            self.gpus = self._gpu_errors(shown)
        self._first = self._first or shown
        self._looks.append((now_s, shown))

    def _before(self, now_s: float) -> tuple[float | None, Exposition | None]:
        """Return the look that lies about `span_s` back, or the first one."""
        while len(self._looks) > 1 and now_s - self._looks[1][0] >= self.span_s:
            self._looks.popleft()
        return self._looks[0] if self._looks else (None, None)

    def _gpu_errors(self, shown: Exposition) -> GpuErrors:
        names, first = GpuNames(), self._first
        before = {} if first is None else _by_gpu(first, names.link_errors, names)
        now = _by_gpu(shown, names.link_errors, names)
        grown = {
            key: value - before.get(key, 0.0)
            for key, value in now.items()
            if first is not None and value > before.get(key, 0.0)
        }
        self._xids |= _new_xids(shown, first, names)
        gpus = {_gpu(labels, names) for each in shown.samples.values() for labels, _ in each}
        return GpuErrors(xids=frozenset(self._xids), link_errors=grown, gpus=len(gpus - {""}))


def _fraction(part: float | None, whole: float | None) -> float | None:
    if part is None or whole is None:
        return None
    return min(part / whole, 1.0) if whole >= _LEAST_REQUESTS else (1.0 if part > 0 else None)


def _felt(names: ServerNames, shown: Exposition, before: Exposition | None, span_s: float | None) -> Felt:
    return Felt(
        ttft_s=_quantiles(names.ttft, shown, before),
        tpot_s=_quantiles(names.tpot, shown, before),
        queue=_gauge(names.queue, shown),
        running=_gauge(names.running, shown),
        requests=_grown(names.requests, shown, before),
        errors=_grown(names.errors, shown, before),
        aborted=_grown(names.aborted, shown, before),
        timeouts=_grown(names.timeouts, shown, before),
        span_s=span_s,
    )


def _quantiles(names: Sequence[str], shown: Exposition, before: Exposition | None) -> dict[float, float]:
    for name in names:
        now = shown.histogram(name)
        if now is None:
            continue
        last: Histogram | None = None if before is None else before.histogram(name)
        latest = now.since(last)
        found = {fraction: latest.quantile(fraction) for fraction in _QUANTILES}
        return {fraction: value for fraction, value in found.items() if value is not None}
    return {}


def _gauge(names: Sequence[str], shown: Exposition) -> float | None:
    return next((value for name in names if (value := shown.sum(name)) is not None), None)


def _grown(shares: Sequence[Share], shown: Exposition, before: Exposition | None) -> float | None:
    """Return the largest growth of counters that say the same; of a server that began anew all it has."""
    found = [
        now if then is None or then > now else now - then
        for each in shares
        if (now := each.of(shown)) is not None
        for then in (None if before is None else each.of(before),)
    ]
    return max(found) if found else None


def _gpu(labels: Mapping[str, str], names: GpuNames) -> str:
    return next((labels[each] for each in names.gpu if labels.get(each)), "")


def _by_gpu(shown: Exposition, counters: Sequence[str], names: GpuNames) -> dict[tuple[str, str], float]:
    return {
        (_gpu(labels, names), counter): value
        for counter in counters
        for labels, value in shown.values(counter)
    }


def _new_xids(shown: Exposition, first: Exposition | None, names: GpuNames) -> set[tuple[str, int]]:
    """Return the Xids that counters or the last-value gauge show beyond the first look."""
    if first is None:
        return set()
    found = set()
    known = {_gpu(labels, names): value for labels, value in first.values(names.last_xid)}
    for labels, value in shown.values(names.last_xid):
        gpu = _gpu(labels, names)
        if value > 0 and value != known.get(gpu, 0.0):
            found.add((gpu, int(value)))
    for counter in names.xid_counts:
        before = {(_gpu(labels, names), labels.get("xid")): value for labels, value in first.values(counter)}
        for labels, value in shown.values(counter):
            key = (_gpu(labels, names), labels.get("xid"))
            if value > before.get(key, 0.0) and (key[1] or "").isdecimal() and int(key[1] or 0) > 0:
                found.add((key[0], int(key[1] or 0)))
    return found
