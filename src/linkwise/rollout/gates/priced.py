"""What tokens cost in a run: its tokens per second, and the price of a second of its GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from linkwise.cluster import load_cluster
from linkwise.cluster.prices_document import read_prices
from linkwise.estimate.money import cluster_bill
from linkwise.rollout.measuring.measure import RunRequest
from linkwise.rollout.measuring.measured_result import MeasuredResult
from linkwise.rollout.plan import Scope

__all__ = ["asked_samples", "gpu_usd_per_s"]

_RATE, _COST = "train.tokens_per_s", "train.cost"


def asked_samples(
    request: RunRequest, found: MeasuredResult
) -> tuple[dict[str, tuple[float, ...]], dict[str, float]]:
    """Return the samples and predictions of a run that its objectives ask for.

    Parameters
    ----------
    request
        What was wanted.
    found
        What the run says of itself.
    """
    samples: Mapping[str, tuple[float, ...]] = found.samples
    predictions: Mapping[str, float] = found.predictions
    if _COST in request.metrics and found.ranks:
        price = gpu_usd_per_s(request.scope)
        if price is not None:
            usd_per_s = price * found.ranks
            rates = samples.get(_RATE, ())
            samples = {**samples, _COST: tuple(usd_per_s / rate for rate in rates)}
            if _RATE in predictions:
                predictions = {**predictions, _COST: usd_per_s / predictions[_RATE]}
    return (
        {name: samples[name] for name in request.metrics if samples.get(name)},
        {name: predictions[name] for name in request.metrics if name in predictions},
    )


def gpu_usd_per_s(scope: Scope) -> float | None:
    """Return what a second of one GPU of the cluster costs, with its share of everything else [USD/s].

    Parameters
    ----------
    scope
        Whose cluster; its prices are those of the scope, else of the document of the cluster. Without any
        ``None`` comes back.

    Notes
    -----
    The bill of the whole cluster over its GPUs: a step on few of them takes its share of the fabric.
    """
    return _gpu_usd_per_s(scope.cluster, scope.prices)


@lru_cache(maxsize=8)
def _gpu_usd_per_s(cluster: str, prices: str) -> float | None:
    there = load_cluster(cluster)
    if prices:
        there = replace(there, prices=read_prices(prices))
    bill = cluster_bill(there)
    return None if bill is None else bill.usd_per_s / there.gpus
