"""One table of candidates: its memory, its time where it fits, and the best few of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from linkwise.estimate.columns import Axis, Evaluation, Floats, Integers, Table
from linkwise.estimate.job_inputs import LAYOUT_COLUMNS
from linkwise.estimate.terms import MEMORY_PARTS, STEP_PARTS, TERMS
from linkwise.layout import ContextExchange, Layout, RankOrder, Recompute, Schedule
from linkwise.search.shortfall import shortfall_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["TIE_FRACTION", "Candidate", "Found", "search_table"]

TIE_FRACTION = 1e-3
"""Step times closer than this are equal to a reader: the plainer layout is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A layout with what it was ranked by: its step time [s], or the bytes it lacks.

    Parameters
    ----------
    rank
        Less is better.
    layout
        The layout.
    """

    rank: float
    layout: Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one table holds.

    Parameters
    ----------
    rows, fitting
        Layouts looked at, and those of them that fit.
    best
        The fastest layout of each of the best cuts, best first.
    shortfalls
        Layouts that do not fit, by reason.
    closest
        The layout that lacks least, where none fits.
    """

    rows: int
    fitting: int
    best: tuple[Candidate, ...]
    shortfalls: Mapping[str, int]
    closest: Candidate | None


def search_table(table: Table, *, top: int) -> Found:
    """Return the best layouts of a table, one of each cut.

    Parameters
    ----------
    table
        A product with the cuts on its last axis.
    top
        How many cuts to keep.
    """
    evaluation = Evaluation(table, TERMS)
    for part in MEMORY_PARTS:
        evaluation.compact(part)
    short = evaluation.compact("memory_bytes") - evaluation.compact("memory_available_bytes")
    short = _with_all_axes(short, table)
    fits = short <= 0.0
    fitting = int(np.count_nonzero(fits)) * (table.rows // fits.size)
    if fitting == table.rows:
        shortfalls: dict[str, int] = {}
    else:
        shortfalls = shortfall_counts(evaluation, fits)
    if not fitting:
        place = np.unravel_index(int(np.argmin(short)), short.shape)
        closest = Candidate(rank=float(short[place]), layout=_layout(table, place))
        return Found(rows=table.rows, fitting=0, best=(), shortfalls=shortfalls, closest=closest)
    best = _best(evaluation, fits, top)
    return Found(rows=table.rows, fitting=fitting, best=best, shortfalls=shortfalls, closest=None)


def _with_all_axes(values: Floats, table: Table) -> Floats:
    """Return a column with as many axes as its table, so that positions in it can be named."""
    return values.reshape((1,) * (len(table.axes) - values.ndim) + values.shape)


def _best(evaluation: Evaluation, fits: NDArray[np.bool_], top: int) -> tuple[Candidate, ...]:
    table = evaluation.table
    alive = np.flatnonzero(fits.any(axis=tuple(range(fits.ndim - 1))))
    if 4 * len(alive) < 3 * table.axes[-1].entries:
        table, fits = _of_cuts(table, alive), fits[..., alive]
        evaluation = Evaluation(table, TERMS)
    for part in STEP_PARTS:
        evaluation.compact(part)
    times = np.where(fits, evaluation.compact("step_time_s"), np.inf)
    times = np.broadcast_to(times, table.shape).reshape(-1, table.axes[-1].entries)
    fastest = times.min(axis=0)
    count = min(top, int(np.count_nonzero(fastest < np.inf)))
    cuts = np.argpartition(fastest, count - 1)[:count]
    cuts = cuts[np.argsort(fastest[cuts], kind="stable")]
    # The usual value of each choice comes first, so the first choice within a tie is the plainest.
    choices = np.argmax(times[:, cuts] <= fastest[cuts] * (1.0 + TIE_FRACTION), axis=0)
    return tuple(
        Candidate(
            rank=float(times[choice, cut]),
            layout=_layout(table, (*np.unravel_index(choice, table.shape[:-1]), cut)),
        )
        for choice, cut in zip(choices, cuts, strict=True)
    )


def _of_cuts(table: Table, cuts: Integers) -> Table:
    last = Axis(columns={name: values[cuts] for name, values in table.axes[-1].columns.items()})
    rows = table.rows // table.axes[-1].entries * len(cuts)
    return replace(table, rows=rows, axes=(*table.axes[:-1], last))


def _layout(table: Table, place: tuple[np.intp, ...]) -> Layout:
    """Return the layout at one entry of each axis."""
    cell = {
        name: float(values[entry])
        for axis, entry in zip(table.axes, place, strict=True)
        for name, values in axis.columns.items()
    }
    degrees = {name: int(cell[name]) for name in LAYOUT_COLUMNS}
    return Layout(
        tensor=degrees["tensor"],
        context=degrees["context"],
        pipeline=degrees["pipeline"],
        virtual_pipeline=degrees["virtual_pipeline"],
        expert=degrees["expert"],
        data=degrees["data"],
        micro_batch=degrees["micro_batch"],
        zero_stage=degrees["zero_stage"],
        recompute=Recompute(degrees["recompute"]),
        sequence_parallel=bool(degrees["sequence_parallel"]),
        hybrid_shard=bool(degrees["hybrid_shard"]),
        schedule=Schedule(degrees["schedule"]),
        rank_order=RankOrder(degrees["rank_order"]),
        context_exchange=ContextExchange(degrees["context_exchange"]),
    )
