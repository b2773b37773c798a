"""One estimate taken apart: every term with its inputs, and what a tenth more of each figure buys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkwise.estimate import communication, compute, data_parallel, memory, schedule
from linkwise.estimate.columns import Evaluation, Table
from linkwise.estimate.job_inputs import checked_layout, fixed_columns, layout_columns
from linkwise.estimate.origins import Origin, input_origins, reaching_terms
from linkwise.estimate.terms import TERMS

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.estimate.term import Term
    from linkwise.job import Job
    from linkwise.layout import Layout

__all__ = ["Sensitivity", "TracedInput", "TracedTerm", "sensitivities", "trace"]

_GROUPS: Mapping[str, str] = {
    one.name: group.__name__.rsplit(".", 1)[-1]
    for group in (compute, communication, data_parallel, schedule, memory)
    for one in group.TERMS
}

_SCALED: tuple[tuple[str, str, tuple[str, ...], float], ...] = (
    ("tensor FLOP/s", "10 % more", ("peak_linear_flop_per_s", "peak_half_flop_per_s"), 1.1),
    ("memory bandwidth", "10 % more", ("memory_bytes_per_s",), 1.1),
    ("NVLink", "10 % more", ("nvlink_bytes_per_s",), 1.1),
    ("NIC", "10 % more", ("nic_bytes_per_s",), 1.1),
    ("latency of sends", "10 % less", ("network_latency_s", "collective_latency_s"), 0.9),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedInput:
    """One input of a term.

    Parameters
    ----------
    name
        Name of the column.
    value
        Its value.
    unit
        Its unit, where it is a term or a figure.
    origin
        ``term``, ``figure``, ``job``, ``model``, ``layout``, ``cluster``, ``framework`` or ``prices``.
    basis
        Basis of a figure, else `origin`.
    source, layer
        Of a figure: where it was read, and which layer of figures it came from.
    """

    name: str
    value: float
    unit: str | None
    origin: str
    basis: str
    source: str | None = None
    layer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedTerm:
    """One term of an estimate.

    Parameters
    ----------
    name, group
        Its name, and the part of the estimate it belongs to: compute, communication, schedule, memory,
        energy, goodput or money.
    value, unit
        What it came to.
    formula, source
        How, and where the formula comes from.
    inputs
        What it was computed from, in the order of the formula.
    """

    name: str
    group: str
    value: float
    unit: str
    formula: str
    source: str
    inputs: tuple[TracedInput, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """What a change of one figure buys.

    Parameters
    ----------
    figure
        What was changed: ``"NIC"``.
    change
        By how much: ``"10 % more"``.
    columns
        The columns that were scaled.
    step_time_s
        The step with it [s].
    saved_s
        By how much the step is shorter [s]; negative where it is longer.
    saved_fraction
        The same over the step as it is [1].
    """

    figure: str
    change: str
    columns: tuple[str, ...]
    step_time_s: float
    saved_s: float
    saved_fraction: float


def trace(job: Job, cluster: Cluster, layout: Layout) -> tuple[TracedTerm, ...]:
    """Return the terms that step time and memory of a layout rest on, in the order they are computed.

    Parameters
    ----------
    job, cluster, layout
        What is estimated.

    Raises
    ------
    InputError
        When the layout cannot run at all.
    """
    evaluation = Evaluation(_one_row(job, cluster, layout), TERMS)
    origins = input_origins(job, cluster)
    names = reaching_terms("step_time_s", "memory_bytes")
    return tuple(_traced(TERMS[name], evaluation, origins) for name in names)


def sensitivities(job: Job, cluster: Cluster, layout: Layout) -> tuple[Sensitivity, ...]:
    """Return what 10 % more of each hardware figure (less, of latency) does to the step time of a layout.

    Parameters
    ----------
    job, cluster, layout
        What is estimated.

    Raises
    ------
    InputError
        When the layout cannot run at all.

    Notes
    -----
    The same terms, run with one input scaled.
    """
    table = _one_row(job, cluster, layout)
    step = Evaluation(table, TERMS).fixed("step_time_s")
    found = []
    for figure, change, columns, factor in _SCALED:
        scaled = table.replaced({name: table.fixed[name] * factor for name in columns})
        changed = Evaluation(scaled, TERMS).fixed("step_time_s")
        found.append(
            Sensitivity(
                figure=figure,
                change=change,
                columns=columns,
                step_time_s=changed,
                saved_s=step - changed,
                saved_fraction=(step - changed) / step,
            )
        )
    return tuple(found)


def _one_row(job: Job, cluster: Cluster, layout: Layout) -> Table:
    placed = checked_layout(job, cluster, layout)
    return Table(rows=1, fixed=fixed_columns(job, cluster), varying=layout_columns((placed,)))


def _traced(term: Term, evaluation: Evaluation, origins: Mapping[str, Origin]) -> TracedTerm:
    return TracedTerm(
        name=term.name,
        group=_GROUPS[term.name],
        value=evaluation.fixed(term.name),
        unit=term.unit,
        formula=term.formula,
        source=term.source,
        inputs=tuple(_traced_input(name, evaluation.fixed(name), origins) for name in term.inputs),
    )


def _traced_input(name: str, value: float, origins: Mapping[str, Origin]) -> TracedInput:
    if name in TERMS:
        return TracedInput(name=name, value=value, unit=TERMS[name].unit, origin="term", basis="term")
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
