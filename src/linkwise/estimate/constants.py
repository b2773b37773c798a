"""The shipped fit: constants of the estimate with basis, source and range, and columns bound to them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from linkwise.errors import UnknownName
from linkwise.figures import Basis, Figure

if TYPE_CHECKING:
    from linkwise.estimate.term import Floats
    from linkwise.job.framework import Habit


@cache
def shipped_constants() -> Mapping[str, Figure]:
    """Return every constant by name, from `constants.json`."""
    text = files("linkwise.estimate").joinpath("constants.json").read_text(encoding="utf-8")
    return {
        name: Figure(
            value=entry["value"],
            unit=entry["unit"],
            basis=Basis(entry["basis"]),
            source=entry["source"],
            layer="shipped fit",
        )
        for name, entry in json.loads(text).items()
    }


@cache
def constant_values() -> Mapping[str, float]:
    """Return the value of every shipped constant."""
    return {name: figure.value for name, figure in shipped_constants().items()}


@cache
def constants_digest() -> str:
    """Return the digest of every constant a calibration's factors belong to, those of collectives too."""
    from linkwise.network.collective_constants import collective_values

    values = sorted({**constant_values(), **collective_values()}.items())
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]


@cache
def values_without(publisher: str) -> Mapping[str, float]:
    """Return the value of every constant, as it would be without what was read off one publisher's runs.

    Parameters
    ----------
    publisher
        Its source key in the measured runs, as in ``SC21``. Constants that are held at a value from its runs
        (``known_from``) get the one they would have had (``unknown``).
    """
    text = files("linkwise.estimate").joinpath("constants.json").read_text(encoding="utf-8")
    held = {
        name: float(entry["unknown"])
        for name, entry in json.loads(text).items()
        if entry.get("known_from") == publisher
    }
    return {**constant_values(), **held}


@dataclass(frozen=True, slots=True)
class BoundColumns:
    """Columns whose cells are numbers or names of constants, ready to be resolved again and again.

    Attributes
    ----------
    numbers
        Columns without a constant, (rows,) each.
    names
        Per column with constants: the distinct cells, and per row which one.
    """

    numbers: Mapping[str, Floats]
    names: Mapping[str, tuple[tuple[Habit, ...], np.ndarray]]

    def resolve(self, constants: Mapping[str, float]) -> dict[str, Floats]:
        """Return the columns with every name replaced by its constant.

        Raises
        ------
        UnknownName
            When a habit names a constant that does not exist.
        """
        resolved = dict(self.numbers)
        for column, (cells, index) in self.names.items():
            resolved[column] = np.array([resolve(cell, constants) for cell in cells])[index]
        return resolved


def resolve(habit: Habit, constants: Mapping[str, float]) -> float:
    """Return a habit's number: itself, or the constant it names."""
    if not isinstance(habit, str):
        return float(habit)
    try:
        return constants[habit]
    except KeyError:
        raise UnknownName.among(constants, kind="constant", given=habit) from None


def bind_columns(rows: Sequence[Mapping[str, Habit]]) -> BoundColumns:
    """Return columns of rows that all have the same keys."""
    numbers: dict[str, Floats] = {}
    names: dict[str, tuple[tuple[Habit, ...], np.ndarray]] = {}
    for column in rows[0] if rows else ():
        cells = [row[column] for row in rows]
        if any(isinstance(cell, str) for cell in cells):
            distinct = tuple(dict.fromkeys(cells))
            position = {cell: index for index, cell in enumerate(distinct)}
            names[column] = (distinct, np.array([position[cell] for cell in cells], dtype=np.intp))
        else:
            numbers[column] = np.array(cells, dtype=np.float64)
    return BoundColumns(numbers, names)
