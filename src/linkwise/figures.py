"""A number with its unit, its basis, its source and the layer it came from.

Every hardware figure the program uses is a `Figure`, so that an answer can be traced to where its inputs were
read and is never stated with more confidence than the weakest of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

__all__ = ["Basis", "Figure", "Source", "weakest"]


class Basis(StrEnum):
    """How a figure is known, from the strongest to the weakest."""

    DATASHEET = "datasheet"
    """Stated by who makes or sells the thing, or by the standard it follows."""
    MEASURED = "measured"
    """Measured and published, or reported by the device itself."""
    DERIVED = "derived"
    """Computed from other figures, or a constant that another program plans with."""
    FITTED = "fitted"
    """Chosen so that predictions meet measurements."""
    ASSUMED = "assumed"
    """Not read in any source; the note says why this value was taken."""


_STRENGTH = {basis: place for place, basis in enumerate(Basis)}


def weakest(*bases: Basis) -> Basis:
    """Return the weakest of `bases`: the basis of what is computed from figures of each.

    Parameters
    ----------
    bases
        The bases of the inputs; at least one.

    Raises
    ------
    ValueError
        If there is none.
    """
    if not bases:
        raise ValueError("the weakest of no bases is not defined; give the basis of at least one input")
    return max(bases, key=_STRENGTH.__getitem__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number that was read, measured or assumed somewhere.

    Parameters
    ----------
    value
        The number [`unit`].
    unit
        Its unit, SI in the catalogue: ``"B/s"``, ``"FLOP/s"``, ``"1"`` for a count or a ratio.
    basis
        How it is known.
    source
        Keys of the sources it was read in, separated by a comma and a space.
    date
        When it was true, for figures that age (prices).
    note
        What a reader must know; the reason, where the basis is `Basis.ASSUMED`.
    layer
        Which layer of figures it came from: ``"catalogue"``, or the name of an overlay.
    """

    value: float
    unit: str
    basis: Basis
    source: str
    date: str | None = None
    note: str | None = None
    layer: str = "catalogue"

    def scaled(self, factor: float) -> Figure:
        """Return the figure times `factor`, derived at best, with the factor in the note.

        Parameters
        ----------
        factor
            What the value is multiplied by [1].
        """
        note = f"times {factor:g}" if self.note is None else f"times {factor:g}; {self.note}"
        return replace(self, value=self.value * factor, basis=weakest(self.basis, Basis.DERIVED), note=note)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where figures were read.

    Parameters
    ----------
    key
        The short name figures cite it by.
    reference
        Repository and file, address, or author, title and year.
    date
        When it was read or published, as far as known.
    note
        What to know about it, such as that it is secondary.
    """

    key: str
    reference: str
    date: str | None = None
    note: str | None = None
