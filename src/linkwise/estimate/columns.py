"""Columns of rows, and the evaluator that computes each term once per distinct input.

A table has *axes* (tensor degree, micro-batch, ...). A column knows which axes it varies along, so a term that reads only
the tensor degree and the micro-batch is computed for the few distinct pairs and gathered where a wider term needs it. The
result equals evaluating every row on its own; it is only cheaper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.estimate.term import Term

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis of a table: its distinct values and, per row, which of them the row has.

    Attributes
    ----------
    name
        Name of the column the axis carries.
    values : (distinct,)
        The distinct values, in any order.
    codes : (rows,)
        Position in `values` of each row.
    """

    name: str
    values: Floats
    codes: Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of candidates: axes, and columns that do not vary (length one) or vary with every row.

    Attributes
    ----------
    rows
        Number of rows.
    axes
        The axes; a column of the same name exists for each.
    fixed
        Columns of length one: model, hardware and constants of a search.
    varying
        Columns with one value per row: what measured runs need, where every row is its own job.
    """

    rows: int
    axes: tuple[Axis, ...] = ()
    fixed: Mapping[str, Floats]
    varying: Mapping[str, Floats]

    def take(self, rows: Integers) -> Table:
        """Return the table of the given rows, in that order."""
        axes = tuple(Axis(name=a.name, values=a.values, codes=a.codes[rows]) for a in self.axes)
        varying = {name: values[rows] for name, values in self.varying.items()}
        return Table(rows=len(rows), axes=axes, fixed=self.fixed, varying=varying)

    def replaced(self, columns: Mapping[str, Floats]) -> Table:
        """Return the table with fixed columns (length one) replaced or added."""
        return Table(rows=self.rows, axes=self.axes, fixed={**self.fixed, **columns}, varying=self.varying)


@dataclass(frozen=True, slots=True)
class _Domain:
    """The distinct combinations of some axes: per row which one, and one row that shows it."""

    index: Integers | None
    shown_by: Integers | None
    size: int


class Evaluation:
    """Lazily evaluated terms over one table.

    Parameters
    ----------
    table
        Rows to evaluate.
    terms
        Every term by name; a term's inputs are names of columns of the table or of other terms.
    """

    def __init__(self, table: Table, terms: Mapping[str, Term]) -> None:
        self.table = table
        self._terms = terms
        self._axes = table.axes
        self._every = (1 << len(table.axes)) | ((1 << len(table.axes)) - 1)
        self._row_mask = 1 << len(table.axes)
        self._domains: dict[int, _Domain] = {}
        self._gathers: dict[tuple[int, int], Integers] = {}
        self._columns: dict[str, tuple[Floats, int]] = {}
        for name, values in table.fixed.items():
            self._columns[name] = (values, 0)
        for name, values in table.varying.items():
            self._columns[name] = (values, self._every)
        for position, axis in enumerate(table.axes):
            self._columns[axis.name] = (axis.values, 1 << position)

    def __getitem__(self, name: str) -> Floats:
        """Return the column of that name, one value per row.

        Raises
        ------
        KeyError
            When neither the table nor the terms have it.
        """
        values, mask = self._column(name)
        return self._spread(values, mask)

    def fixed(self, name: str) -> float:
        """Return the value in the first row."""
        return float(self[name][0])

    def _spread(self, values: Floats, mask: int) -> Floats:
        if mask == 0:
            return np.broadcast_to(values, (self.table.rows,))
        index = self._domain(mask).index
        return values if index is None else values[index]

    def _column(self, name: str) -> tuple[Floats, int]:
        known = self._columns.get(name)
        if known is None:
            known = self._columns[name] = self._evaluate(self._terms[name])
        return known

    def _evaluate(self, term: Term) -> tuple[Floats, int]:
        inputs = [self._column(name) for name in term.inputs]
        mask = 0
        for _, input_mask in inputs:
            mask |= input_mask
        if mask and self._domain(mask).index is None:
            mask = self._every
        arguments = [self._gathered(values, have, mask) for values, have in inputs]
        return term.function(*arguments), mask

    def _gathered(self, values: Floats, have: int, want: int) -> Floats:
        if have in (0, want):
            return values
        key = (have, want)
        index = self._gathers.get(key)
        if index is None:
            source, target = self._domain(have), self._domain(want)
            if source.index is None:
                return values
            index = source.index if target.shown_by is None else source.index[target.shown_by]
            self._gathers[key] = index
        return values[index]

    def _domain(self, mask: int) -> _Domain:
        known = self._domains.get(mask)
        if known is None:
            known = self._domains[mask] = self._make_domain(mask)
        return known

    def _make_domain(self, mask: int) -> _Domain:
        if mask & self._row_mask:
            return _Domain(None, None, self.table.rows)
        last = mask.bit_length() - 1
        axis = self._axes[last]
        rest = mask & ~(1 << last)
        if rest == 0:
            return self._compressed(axis.codes, len(axis.values), keep=True)
        before = self._domain(rest)
        if before.index is None:
            return _Domain(None, None, self.table.rows)
        size = len(axis.values)
        return self._compressed(before.index * size + axis.codes, before.size * size, keep=False)

    def _compressed(self, codes: Integers, size: int, *, keep: bool) -> _Domain:
        rows = self.table.rows
        shown_by = np.zeros(size, dtype=np.intp)
        shown_by[codes] = np.arange(rows)
        if keep:
            return _Domain(codes, shown_by, size)
        present = np.zeros(size, dtype=bool)
        present[codes] = True
        distinct = np.flatnonzero(present)
        if 2 * len(distinct) > rows:
            return _Domain(None, None, rows)
        lookup = np.empty(size, dtype=np.intp)
        lookup[distinct] = np.arange(len(distinct))
        return _Domain(lookup[codes], shown_by[distinct], len(distinct))
