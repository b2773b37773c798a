"""Metrics of a program as it shows them to Prometheus: its text, as values by name and labels.

References
----------
Prometheus, Exposition formats (the text format, version 0.0.4, and OpenMetrics 1.0).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from linkwise.errors import InputError

__all__ = ["Exposition", "Histogram", "parse_exposition"]

_LARGEST_BYTES = 64 << 20
_OPEN_METRICS_END = "# EOF"


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Counts of observations by their upper bounds, summed over all labels but the bound.

    Parameters
    ----------
    counts
        Observations at or below each bound; the bounds rise, the last is infinite.
    total
        Sum of all observations.
    """

    counts: Mapping[float, float]
    total: float = 0.0

    @property
    def count(self) -> float:
        """Return how many observations there are [1]."""
        return max(self.counts.values(), default=0.0)

    def since(self, before: Histogram | None) -> Histogram:
        """Return what was observed after an earlier look; all of it where the program began anew.

        Parameters
        ----------
        before
            The same histogram earlier.
        """
        if before is None or before.count > self.count:
            return self
        return Histogram(
            counts={bound: count - before.counts.get(bound, 0.0) for bound, count in self.counts.items()},
            total=self.total - before.total,
        )

    def quantile(self, fraction: float) -> float | None:
        """Return a quantile, by linear interpolation in its bucket; ``None`` without observations.

        Parameters
        ----------
        fraction
            From 0 to 1 [1].

        Notes
        -----
        As histogram_quantile of Prometheus: observations of a bucket are taken to be spread evenly in it, the
        first one begins at zero, and a quantile above the last finite bound is that bound.
        """
        if self.count <= 0:
            return None
        wanted = fraction * self.count
        below, low = 0.0, 0.0
        for bound, count in sorted(self.counts.items()):
            if count >= wanted:
                if math.isinf(bound):
                    return low
                share = (wanted - below) / (count - below) if count > below else 0.0
                return low + (bound - low) * share
            below, low = count, bound
        return low


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposition:
    """What a program shows.

    Parameters
    ----------
    samples
        By name: labels and value of each.
    """

    samples: Mapping[str, tuple[tuple[Mapping[str, str], float], ...]] = field(default_factory=dict)

    def values(self, name: str) -> Iterator[tuple[Mapping[str, str], float]]:
        """Yield labels and value of all samples of a name.

        Parameters
        ----------
        name
            As in the text.

        Notes
        -----
        The parser writes ``_total`` to the names of counters that lack it, as those of the DCGM exporter do.
        """
        yield from self.samples.get(name) or self.samples.get(f"{name}_total", ())

    def sum(self, name: str) -> float | None:
        """Return the sum of all samples of a name; ``None`` where there is none.

        Parameters
        ----------
        name
            As in the text.
        """
        found = [value for _, value in self.values(name)]
        return sum(found) if found else None

    def histogram(self, name: str) -> Histogram | None:
        """Return a histogram, summed over its labels; ``None`` where there is none.

        Parameters
        ----------
        name
            Without ``_bucket``.
        """
        counts: dict[float, float] = {}
        for labels, value in self.values(f"{name}_bucket"):
            try:
                bound = float(labels["le"])
            except (KeyError, ValueError):
                continue
            counts[bound] = counts.get(bound, 0.0) + value
        if not counts:
            return None
        return Histogram(counts=dict(sorted(counts.items())), total=self.sum(f"{name}_sum") or 0.0)


def parse_exposition(text: str, *, path: str) -> Exposition:
    """Return what a program shows to Prometheus.

    Parameters
    ----------
    text
        The text.
    path
        Where it came from, for messages.

    Raises
    ------
    InputError
        If it is no such text.
    """
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
    from prometheus_client.parser import text_string_to_metric_families as plain

    if len(text) > _LARGEST_BYTES:
        raise InputError(f"{path}: shows more than {_LARGEST_BYTES >> 20} MiB of metrics; it is not read")
    is_open = text.rstrip().endswith(_OPEN_METRICS_END)
    samples: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    try:
        for family in (open_metrics if is_open else plain)(text):
            for each in family.samples:
                samples.setdefault(each.name, []).append((each.labels, float(each.value)))
    except (ValueError, KeyError, IndexError) as error:
        raise InputError(f"{path}: is no text of Prometheus metrics ({error}); name its /metrics") from None
    if not samples:
        raise InputError(f"{path}: shows no metric; name the address that Prometheus would scrape")
    return Exposition(samples={name: tuple(each) for name, each in samples.items()})
