"""The stated 80 % interval of a step time: factors on the prediction, by class of run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

__all__ = ["interval_factors", "interval_key", "network_class"]


def interval_factors(key: str) -> tuple[float, float]:
    """Return by what the ends of the interval differ from the predicted step time, (low, high) [1].

    Parameters
    ----------
    key
        ``family/dense|mixture/network class`` as `interval_key` makes it; a class that was not fitted takes
        that of its family and kind of model, then of its family, then of ``all``.

    Notes
    -----
    Quantiles of measured over predicted time of runs that were left out of the fit (docs/accuracy.md).
    """
    table = _table()
    family, _, rest = key.partition("/")
    kind = f"{family}/{rest.partition('/')[0]}"
    return next(table[name] for name in (key, kind, family, "all") if name in table)


def interval_key(*, family: str, mixture: bool, network: str) -> str:
    """Return the class of a run that its interval is looked up by.

    Parameters
    ----------
    family
        Family of the framework.
    mixture
        Whether the model has routed experts.
    network
        As `network_class` gives it.
    """
    return f"{family}/{'mixture' if mixture else 'dense'}/{network}"


def network_class(node_bytes_per_s: float | None) -> str:
    """Return the class accuracy is reported by.

    Parameters
    ----------
    node_bytes_per_s
        All NICs of one operating system, one direction [bytes/s]; ``None`` for a run inside one NVLink
        domain.
    """
    if node_bytes_per_s is None:
        return "one node"
    gbit_per_s = node_bytes_per_s / 1.25e8
    if gbit_per_s >= 800.0:
        return "at least 800 Gbit/s per node"
    return "100 to 800 Gbit/s per node" if gbit_per_s >= 100.0 else "under 100 Gbit/s per node"


@cache
def _table() -> Mapping[str, tuple[float, float]]:
    text = files("linkwise.estimate").joinpath("intervals.json").read_text(encoding="utf-8")
    return {key: (entry["low"], entry["high"]) for key, entry in json.loads(text).items()}
