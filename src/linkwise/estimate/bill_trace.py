"""The terms of a bill with their inputs and where each comes from, as `explain` prints them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from linkwise.estimate import cost_terms, energy, goodput
from linkwise.estimate.cost_inputs import CostInputs, cost_inputs
from linkwise.estimate.cost_lines import bought_words
from linkwise.estimate.money import BILL_TERMS, bill_evaluation, bill_targets
from linkwise.estimate.origins import Origin
from linkwise.estimate.trace import TracedInput, TracedTerm
from linkwise.figures import Basis

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.cluster.prices import Prices
    from linkwise.estimate.columns import Evaluation
    from linkwise.job import Job

__all__ = ["trace_bill"]

_GROUPS: Mapping[str, str] = {
    one.name: group
    for group, module in (("energy", energy), ("goodput", goodput), ("money", cost_terms))
    for one in module.TERMS
}

_PRICE_UNITS: Mapping[str, str] = {
    "gpu_usd_per_s": "USD/s",
    "electricity_usd_per_j": "USD/J",
    "pue": "1",
    "cooling_usd_per_j": "USD/J",
    "lifetime_s": "s",
    "residual_fraction": "1",
    "spares_fraction": "1",
    "support_fraction_per_s": "1/s",
    "staff_hour_usd_per_s": "USD/s",
    "staff_per_1000_gpus": "1",
    "nodes_usd": "USD",
    "fabric_usd": "USD",
    "restart_s": "s",
    "checkpoint_write_s": "s",
    "stated_interval_s": "s",
    "gpu_failures_per_s": "1/s",
    "node_failures_per_s": "1/s",
    "nic_failures_per_s": "1/s",
    "switch_failures_per_s": "1/s",
    "cable_failures_per_s": "1/s",
}
"""Columns that a document of prices states, with their units."""


def trace_bill(job: Job, cluster: Cluster, step_time_s: float) -> tuple[TracedTerm, ...]:
    """Return the terms of the bill of one layout with their inputs; none where no prices are given.

    Parameters
    ----------
    job, cluster
        What is run on what.
    step_time_s
        Its step time [s].
    """
    prices = cluster.prices
    if prices is None:
        return ()
    inputs = cost_inputs(cluster, prices)
    evaluation = bill_evaluation(job, inputs, (step_time_s,))
    for name in bill_targets(job, inputs):
        evaluation.fixed(name)
    origins = _origins(cluster, prices, inputs)
    silent = _saying_nothing(prices, inputs, evaluation)
    return tuple(
        TracedTerm(
            name=name,
            group=_GROUPS[name],
            value=evaluation.fixed(name),
            unit=BILL_TERMS[name].unit,
            formula=BILL_TERMS[name].formula,
            source=BILL_TERMS[name].source,
            inputs=tuple(_traced_input(each, evaluation, origins) for each in BILL_TERMS[name].inputs),
        )
        for name in evaluation.computed()
        if name not in silent
    )


def _saying_nothing(prices: Prices, inputs: CostInputs, evaluation: Evaluation) -> set[str]:
    """Return the terms on the way to a bill that say nothing: lines of nothing, and what is not stated."""
    silent = {each.name for each in cost_terms.LINE_TERMS if not evaluation.fixed(each.name)}
    if inputs.draw is None:
        silent |= {one.name for one in energy.TERMS}
    if prices.checkpoints is None:
        silent |= {one.name for one in goodput.TERMS}
    return silent


def _origins(cluster: Cluster, prices: Prices, inputs: CostInputs) -> dict[str, Origin]:
    where = f"{prices.path or 'the prices'}, {prices.date}"
    origins = {}
    for name, unit in _PRICE_UNITS.items():
        said = "not stated in " if _is_absent(name, prices, inputs) else ""
        origins[name] = Origin(kind="prices", unit=unit, source=f"{said}{where}")
    for name, words in bought_words(inputs).items():
        origins[name] = Origin(kind="prices", unit="USD", source=f"{words}; {where}")
    for name in ("consumers", "gpus", "nodes", "nics", "switches", "cables"):
        origins[name] = Origin(kind="cluster", source=cluster.name)
    for name in ("tokens_per_step", "steps"):
        origins[name] = Origin(kind="job")
    draw = inputs.draw
    if draw is not None:
        figure = draw.figure
        origins["consumer_power_w"] = Origin(
            kind="figure", unit=figure.unit, basis=figure.basis, source=figure.source, layer=figure.layer
        )
        origins["fabric_power_w"] = Origin(
            kind="figure", unit="W", basis=Basis.DERIVED, source=draw.fabric.words
        )
    return origins


def _is_absent(name: str, prices: Prices, inputs: CostInputs) -> bool:
    """Return whether a column holds a default that no document states."""
    if name == "pue":
        return prices.pue is None
    if name == "stated_interval_s":
        return prices.checkpoints is None or prices.checkpoints.interval_s is None
    if name == "lifetime_s":
        return prices.hardware is None
    return not inputs.columns[name]


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
