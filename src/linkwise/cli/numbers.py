"""Numbers of options: click takes nan and inf, which compare with nothing and mean nothing here."""

from __future__ import annotations

import math
from typing import Any

import click

__all__ = ["FiniteFloat"]


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
