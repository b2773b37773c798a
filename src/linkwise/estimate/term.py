"""A term: a small function on named columns, with the unit, formula and source that `explain` prints."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One named quantity of an estimate.

    Attributes
    ----------
    name
        Name of the column the term yields; the names of `inputs` are columns or other terms.
    unit
        Unit of the result: s, bytes, flop, 1.
    formula
        The formula as a reader would write it.
    source
        Author, title and year, or the derivation.
    function
        Takes the input columns in the order of `inputs` and returns one column.
    """

    name: str
    unit: str
    formula: str
    source: str
    inputs: tuple[str, ...]
    function: Callable[..., Floats]


def term(unit: str, formula: str, source: str) -> Callable[[Callable[..., Floats]], Term]:
    """Return a decorator that makes a `Term` of a function; its parameters name the input columns."""

    def declare(function: Callable[..., Floats]) -> Term:
        inputs = tuple(inspect.signature(function).parameters)
        return Term(
            name=function.__name__,
            unit=unit,
            formula=formula,
            source=source,
            inputs=inputs,
            function=function,
        )

    return declare


def term_table(*groups: tuple[Term, ...]) -> Mapping[str, Term]:
    """Return the terms of several groups by name.

    Raises
    ------
    ValueError
        When two terms have the same name.
    """
    table: dict[str, Term] = {}
    for group in groups:
        for one in group:
            if one.name in table:
                raise ValueError(f"two terms are named {one.name!r}; rename one of them")
            table[one.name] = one
    return table
