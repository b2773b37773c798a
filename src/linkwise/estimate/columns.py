"""Columns of rows, and the evaluator that computes each term once per distinct input.

A table is a plain list of rows (measured runs: every row is its own job), or the *product* of axes: an axis
carries columns that vary together, and a row picks one entry of each axis. A column of a product has length
one along every axis it does not vary with, so a term of few columns is computed for their few combinations
and spread by broadcasting only where a wider term needs it. The result equals evaluating every row on its
own; it is only cheaper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from linkwise.estimate.term import Floats, Term

__all__ = ["Axis", "Evaluation", "Floats", "Integers", "Table"]

Integers = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis of a product of rows.

    Attributes
    ----------
    columns
        Columns that vary together along the axis, (entries,) each; at least one.
    """

    columns: Mapping[str, Floats]

    @property
    def entries(self) -> int:
        """Return the number of entries."""
        return len(next(iter(self.columns.values())))


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of candidates.

    Attributes
    ----------
    rows
        Number of rows; with axes, the product of their entries.
    axes
        Axes of a product, slowest first: the last one varies fastest from row to row. Put the longest last,
        where arithmetic runs through memory in order.
    fixed
        Columns of length one: model, hardware and constants of a search.
    varying
        Columns with one value per row; only without axes.
    """

    rows: int
    axes: tuple[Axis, ...] = ()
    fixed: Mapping[str, Floats]
    varying: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the entries of each axis; of a plain list, its rows."""
        return tuple(axis.entries for axis in self.axes) or (self.rows,)

    def columns(self) -> dict[str, Floats]:
        """Return every column in a shape that broadcasts to that of the table."""
        columns = {**self.fixed, **self.varying}
        for place, axis in enumerate(self.axes):
            shape = [1] * len(self.axes)
            shape[place] = axis.entries
            columns.update({name: values.reshape(shape) for name, values in axis.columns.items()})
        return columns

    def take(self, rows: Integers) -> Table:
        """Return the plain list of the given rows, in that order."""
        varying = {name: values[rows] for name, values in self.varying.items()}
        if self.axes:
            for axis, entries in zip(self.axes, np.unravel_index(rows, self.shape), strict=True):
                varying.update({name: values[entries] for name, values in axis.columns.items()})
        return Table(rows=len(rows), fixed=self.fixed, varying=varying)

    def replaced(self, columns: Mapping[str, Floats]) -> Table:
        """Return the table with fixed columns (length one) replaced or added."""
        return Table(rows=self.rows, axes=self.axes, fixed={**self.fixed, **columns}, varying=self.varying)


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
        self._columns = table.columns()

    def __getitem__(self, name: str) -> Floats:
        """Return the column of that name, one value per row.

        Raises
        ------
        KeyError
            When neither the table nor the terms have it.
        """
        return np.broadcast_to(self.compact(name), self.table.shape).reshape(-1)

    def compact(self, name: str) -> Floats:
        """Return the column of that name with length one along the axes it does not vary with.

        Raises
        ------
        KeyError
            When neither the table nor the terms have it.
        """
        known = self._columns.get(name)
        if known is None:
            term = self._terms[name]
            known = self._columns[name] = term.function(*[self.compact(column) for column in term.inputs])
        return known

    def fixed(self, name: str) -> float:
        """Return the value in the first row."""
        return float(self.compact(name).flat[0])

    def computed(self) -> tuple[str, ...]:
        """Return the names of the terms computed so far, in the order they were computed."""
        return tuple(name for name in self._columns if name in self._terms)
