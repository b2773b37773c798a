"""Numbers as people read them: three significant digits, a unit that keeps them short."""

from __future__ import annotations

import math

from linkwise.units import DIMENSIONS, format_quantity

__all__ = ["counted", "duration", "gigabytes", "percent", "three_digits", "with_unit"]

_DAY_S = 86400.0
_YEAR_S = 365.25 * _DAY_S
_DIMENSION_OF_UNIT = {each.unit: each.name for each in DIMENSIONS.values()} | {
    "bytes": "bytes",
    "flop": "flop",
}


def three_digits(value: float) -> str:
    """Return a number with three significant digits, thousands set apart by commas.

    Parameters
    ----------
    value
        Any number.
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    rounded = float(f"{value:.3g}")
    magnitude = math.floor(math.log10(abs(rounded)))
    if not -4 <= magnitude < 9:
        return f"{rounded:.2e}"
    return f"{rounded:,.{max(0, 2 - magnitude)}f}"


def percent(fraction: float) -> str:
    """Return a ratio in percent, without the sign: three digits, or two after the point where small.

    Parameters
    ----------
    fraction
        The ratio [1].
    """
    value = 100 * fraction
    return "0" if round(value, 2) == 0 else f"{value:.{1 if abs(value) >= 9.995 else 2}f}"


def gigabytes(value_bytes: float) -> str:
    """Return a size in GB (1e9 bytes), without the unit.

    Parameters
    ----------
    value_bytes
        The size [bytes].
    """
    return three_digits(value_bytes / 1e9)


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count and its noun: ``"1 layout"``, ``"12,345 layouts"``.

    Parameters
    ----------
    count
        How many.
    noun, plural
        The word for one, and for many where it is not the first with an s.
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def duration(time_s: float) -> str:
    """Return a time that may be long: minutes, hours, days, or years from the thousandth day on.

    Parameters
    ----------
    time_s
        The time [s].
    """
    units = ((_YEAR_S, "years"), (_DAY_S, "days"), (3600.0, "hours"), (60.0, "minutes"))
    for length_s, word in units:
        if time_s >= (1000 * _DAY_S if length_s == _YEAR_S else length_s):
            return f"{three_digits(time_s / length_s)} {word}"
    return f"{three_digits(time_s)} seconds"


def with_unit(value: float, unit: str | None) -> str:
    """Return a value with the unit of a term or a figure; counts and numbers without unit stay whole.

    Parameters
    ----------
    value
        The value [`unit`].
    unit
        ``"s"``, ``"bytes"``, ``"B/s"``...; ``"1"`` or ``None`` for a bare number.
    """
    if unit in _DIMENSION_OF_UNIT:
        return format_quantity(value, _DIMENSION_OF_UNIT[unit])
    whole = math.isfinite(value) and value == round(value) and abs(value) < 1e9
    text = f"{value:,.0f}" if whole else three_digits(value)
    return text if unit in (None, "1") else f"{text} {unit}"
