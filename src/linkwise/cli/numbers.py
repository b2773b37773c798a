"""Numbers and times of options: click takes nan and inf, which compare with nothing and mean nothing here."""

from __future__ import annotations

import math
from typing import Any

import click

from linkwise.errors import InputError, UnitError

__all__ = ["FiniteFloat", "quantity_of", "seconds_of"]


class FiniteFloat(click.FloatRange):
    """A number of an option that is finite, within bounds where there are any."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number, or fail as click does.

        Parameters
        ----------
        value
            What was given.
        param, ctx
            Whose value it is, for the message.
        """
        number = float(click.FLOAT.convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return float(super().convert(value, param, ctx))

    def _describe_range(self) -> str:
        """Return the bounds for the help; nothing where there are none."""
        return "" if self.min is None and self.max is None else super()._describe_range()


def seconds_of(text: str, option: str) -> float:
    """Return a time as it was written [s].

    Parameters
    ----------
    text
        With its unit.
    option
        What it was written for.

    Raises
    ------
    InputError
        When it is no time above zero.
    """
    time_s = quantity_of(text, "s", option=option, example="5 min")
    if not 0 < time_s < 1e9:
        raise InputError(f"{option} {text}: write a time above zero, such as '5 min'")
    return time_s


def quantity_of(text: str, dimension: str, *, option: str, example: str) -> float:
    """Return what was written for an option [SI unit of `dimension`].

    Parameters
    ----------
    text
        With its unit.
    dimension
        A key of `linkwise.units.DIMENSIONS`.
    option
        What it was written for.
    example
        What such an option usually is: that of the dimension may be far from it.

    Raises
    ------
    UnitError
        When it is none; the option is named.
    """
    from linkwise.units import find_dimension, parse

    try:
        return parse(text, dimension)
    except UnitError as error:
        usual = find_dimension(dimension).example
        raise UnitError(f"{option}: {str(error).replace(repr(usual), repr(example))}") from None
