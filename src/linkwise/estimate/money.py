"""Money of a step and of a run, as terms on columns; bills of layouts whose step time is known.

Only what `prices/1` states is in it: hours of GPUs, and electricity paid beside them.
Not here: the power behind the energy (`energy`), and which layout is cheapest (`search`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkwise.estimate import energy
from linkwise.estimate.columns import Evaluation, Table
from linkwise.estimate.origins import Origin
from linkwise.estimate.term import Floats, Term, term, term_table
from linkwise.estimate.trace import TracedInput, TracedTerm
from linkwise.units import format_quantity

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.cluster.prices import Prices
    from linkwise.job import Job

__all__ = ["BILL_TERMS", "TERMS", "Bill", "bill_assumptions", "bills", "trace_bill"]

_DEFINED = "by definition"
_PUE = "ISO/IEC 30134-2, Data centres, key performance indicators: power usage effectiveness (PUE), 2016"


@term("USD", "GPUs x price of one for a time x step time", _DEFINED)
def gpu_usd_per_step(gpus: Floats, gpu_usd_per_s: Floats, step_time_s: Floats) -> Floats:
    """Return what the GPUs of a step cost."""
    return gpus * gpu_usd_per_s * step_time_s


@term("USD", "energy x PUE x price of electricity", _PUE)
def electricity_usd_per_step(energy_j_per_step: Floats, pue: Floats, electricity_usd_per_j: Floats) -> Floats:
    """Return what the electricity of a step costs, cooling and conversion included."""
    return energy_j_per_step * pue * electricity_usd_per_j


@term("USD", "GPUs + electricity", _DEFINED)
def cost_usd_per_step(gpu_usd_per_step: Floats, electricity_usd_per_step: Floats) -> Floats:
    """Return what a step costs."""
    return gpu_usd_per_step + electricity_usd_per_step


@term("USD/token", "cost of a step / its tokens", _DEFINED)
def cost_usd_per_token(cost_usd_per_step: Floats, tokens_per_step: Floats) -> Floats:
    """Return what a token costs."""
    return cost_usd_per_step / tokens_per_step


@term("USD", "cost of a step x steps", "derived: steps back to back, no interruption and no spare")
def cost_usd_per_run(cost_usd_per_step: Floats, steps: Floats) -> Floats:
    """Return what the whole training costs."""
    return cost_usd_per_step * steps


TERMS = (
    gpu_usd_per_step,
    electricity_usd_per_step,
    cost_usd_per_step,
    cost_usd_per_token,
    cost_usd_per_run,
)

BILL_TERMS: Mapping[str, Term] = term_table(energy.TERMS, TERMS)
"""Every term of a bill by name; the step time is a column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """Energy and money of one layout.

    Parameters
    ----------
    energy_j_per_step
        Energy of the machines for one optimizer step, without cooling [J]; ``None`` where their power is not
        known.
    energy_j_per_token
        The same for one token [J/token].
    cost_usd_per_step
        What a step costs [USD].
    cost_usd_per_token
        What a token costs [USD/token].
    cost_usd_per_run
        What the whole training costs [USD]; ``None`` where its length is not stated.
    """

    energy_j_per_step: float | None
    energy_j_per_token: float | None
    cost_usd_per_step: float
    cost_usd_per_token: float
    cost_usd_per_run: float | None


def bills(job: Job, cluster: Cluster, step_times_s: Sequence[float]) -> tuple[Bill, ...] | None:
    """Return the bill of each layout, in the same order; ``None`` where no prices are given.

    Parameters
    ----------
    job, cluster
        What is run on what; the cluster has the prices.
    step_times_s
        Step time of each layout [s].
    """
    if cluster.prices is None:
        return None
    evaluation = _evaluation(job, cluster, cluster.prices, step_times_s)
    wanted = _wanted(job, cluster)
    found = {name: evaluation[name] for name in wanted}

    def value(name: str, row: int) -> float | None:
        return float(found[name][row]) if name in found else None

    return tuple(
        Bill(
            energy_j_per_step=value("energy_j_per_step", row),
            energy_j_per_token=value("energy_j_per_token", row),
            cost_usd_per_step=float(found["cost_usd_per_step"][row]),
            cost_usd_per_token=float(found["cost_usd_per_token"][row]),
            cost_usd_per_run=value("cost_usd_per_run", row),
        )
        for row in range(len(step_times_s))
    )


def bill_assumptions(cluster: Cluster) -> tuple[str, ...]:
    """Return what bills take for granted, in sentences for a reader; none where no prices are given.

    Parameters
    ----------
    cluster
        The cluster with its prices.
    """
    prices = cluster.prices
    if prices is None:
        return ()
    return f"prices of {prices.date}: {_price_words(prices)}", energy.energy_assumption(cluster)


def trace_bill(job: Job, cluster: Cluster, step_time_s: float) -> tuple[TracedTerm, ...]:
    """Return the terms of the bill of one layout with their inputs; none where no prices are given.

    Parameters
    ----------
    job, cluster
        What is run on what.
    step_time_s
        Its step time [s].
    """
    if cluster.prices is None:
        return ()
    evaluation = _evaluation(job, cluster, cluster.prices, (step_time_s,))
    for name in _wanted(job, cluster):
        evaluation.fixed(name)
    origins = _origins(cluster, cluster.prices)
    groups = {one.name: "energy" for one in energy.TERMS} | {one.name: "money" for one in TERMS}
    # Without a power the energy is not known; the terms on the way to a bill without electricity say nothing.
    unknown = () if energy.power_draw(cluster) is not None else tuple(one.name for one in energy.TERMS)
    return tuple(
        TracedTerm(
            name=name,
            group=groups[name],
            value=evaluation.fixed(name),
            unit=BILL_TERMS[name].unit,
            formula=BILL_TERMS[name].formula,
            source=BILL_TERMS[name].source,
            inputs=tuple(_traced_input(each, evaluation, origins) for each in BILL_TERMS[name].inputs),
        )
        for name in evaluation.computed()
        if name not in unknown
    )


def _wanted(job: Job, cluster: Cluster) -> tuple[str, ...]:
    known = ("energy_j_per_step", "energy_j_per_token") if energy.power_draw(cluster) is not None else ()
    run = ("cost_usd_per_run",) if job.steps is not None else ()
    return (*known, "cost_usd_per_step", "cost_usd_per_token", *run)


def _evaluation(job: Job, cluster: Cluster, prices: Prices, step_times_s: Sequence[float]) -> Evaluation:
    draw = energy.power_draw(cluster)
    fixed = {
        "consumers": 0.0 if draw is None else draw.consumers,
        "consumer_power_w": 0.0 if draw is None else draw.figure.value,
        "gpus": cluster.gpus,
        "tokens_per_step": job.tokens_per_step,
        "gpu_usd_per_s": prices.gpu_usd_per_s or 0.0,
        "electricity_usd_per_j": prices.electricity_usd_per_j or 0.0,
        "pue": prices.pue or 1.0,
        **({} if job.steps is None else {"steps": job.steps}),
    }
    return Evaluation(
        Table(
            rows=len(step_times_s),
            fixed={name: np.array([value], dtype=np.float64) for name, value in fixed.items()},
            varying={"step_time_s": np.array(step_times_s, dtype=np.float64)},
        ),
        BILL_TERMS,
    )


def _price_words(prices: Prices) -> str:
    words = []
    if prices.gpu_usd_per_s is not None:
        words.append(f"{format_quantity(prices.gpu_usd_per_s, 'usd_per_s')} a GPU")
    if prices.electricity_usd_per_j is None:
        return f"{words[0]}; electricity is not paid apart"
    rate = format_quantity(prices.electricity_usd_per_j, "usd_per_j")
    loss = "PUE 1 (not stated: no cooling)" if prices.pue is None else f"PUE {prices.pue:g}"
    words.append(f"electricity {rate} at {loss}")
    alone = "" if prices.gpu_usd_per_s is not None else "; the GPUs themselves are not priced"
    return ", and beside it ".join(words) + alone


def _origins(cluster: Cluster, prices: Prices) -> dict[str, Origin]:
    origins = {}
    for name, unit in {"gpu_usd_per_s": "USD/s", "electricity_usd_per_j": "USD/J", "pue": "1"}.items():
        said = "not stated in " if getattr(prices, name) is None else ""
        source = f"{said}{prices.path or 'the prices'}, {prices.date}"
        origins[name] = Origin(kind="prices", unit=unit, source=source)
    for name in ("consumers", "gpus"):
        origins[name] = Origin(kind="cluster", source=cluster.name)
    for name in ("tokens_per_step", "steps"):
        origins[name] = Origin(kind="job")
    draw = energy.power_draw(cluster)
    if draw is not None:
        figure = draw.figure
        origins["consumer_power_w"] = Origin(
            kind="figure", unit=figure.unit, basis=figure.basis, source=figure.source, layer=figure.layer
        )
    return origins


def _traced_input(name: str, evaluation: Evaluation, origins: Mapping[str, Origin]) -> TracedInput:
    value = evaluation.fixed(name)
    if name in BILL_TERMS or name == "step_time_s":
        unit = "s" if name == "step_time_s" else BILL_TERMS[name].unit
        return TracedInput(name=name, value=value, unit=unit, origin="term", basis="term")
    origin = origins[name]
    return TracedInput(
        name=name,
        value=value,
        unit=origin.unit,
        origin=origin.kind,
        basis=origin.kind if origin.basis is None else str(origin.basis),
        source=origin.source,
        layer=origin.layer,
    )
