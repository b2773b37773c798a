"""Quantities in and out: text with a unit to a number in SI, and back for a reader.

Conversion happens here and nowhere else. Inside the program every number is in seconds, bytes, bytes/s,
FLOP, FLOP/s, watts, joules, metres and US dollars. Bandwidths are of one direction, FLOPs are dense:
text cannot say which it means, so whoever writes a document keeps to that.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from linkwise.errors import UnitError, UnknownName, nearest_names

if TYPE_CHECKING:
    import pint

__all__ = ["DIMENSIONS", "Dimension", "find_dimension", "format_quantity", "parse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """What a number measures, and how it is written.

    Parameters
    ----------
    name
        Suffix of the names that hold such numbers: ``"bytes_per_s"``.
    words
        The same for a reader: ``"a rate in bytes per second"``.
    unit
        The unit numbers are kept in, as the definition file spells it.
    example
        Text that would be read.
    prefixes
        Prefixes used when printing, with the factor of each, from small to large.
    printed
        Another unit for printing, where people use one, and how many of it are one of `unit`.
    """

    name: str
    words: str
    unit: str
    example: str
    prefixes: tuple[tuple[float, str], ...] = ((1.0, ""),)
    printed: tuple[str, float] | None = None


_DECIMAL = ((1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P"), (1e18, "E"))
_SMALL = ((1e-9, "n"), (1e-6, "u"), (1e-3, "m"), (1.0, ""))

DIMENSIONS: dict[str, Dimension] = {
    each.name: each
    for each in (
        Dimension(name="bytes", words="a size in bytes", unit="B", example="80 GB", prefixes=_DECIMAL),
        Dimension(
            name="bytes_per_s",
            words="a rate in bytes or bits per second",
            unit="B/s",
            example="400 Gbit/s",
            prefixes=_DECIMAL,
        ),
        Dimension(
            name="bits_per_s",
            words="a line rate in bits per second",
            unit="bit/s",
            example="400 Gbit/s",
            prefixes=_DECIMAL,
        ),
        Dimension(name="flop", words="a count of FLOP", unit="FLOP", example="1.5 PFLOP", prefixes=_DECIMAL),
        Dimension(
            name="flop_per_s", words="a FLOP rate", unit="FLOP/s", example="989 TFLOP/s", prefixes=_DECIMAL
        ),
        Dimension(name="s", words="a time", unit="s", example="30 s", prefixes=_SMALL),
        Dimension(
            name="s_per_s",
            words="a working time per time",
            unit="s/s",
            example="40 h/month",
            printed=("h/month", 365.25 * 24 / 12),
        ),
        Dimension(name="w", words="a power", unit="W", example="700 W", prefixes=_DECIMAL),
        Dimension(name="j", words="an energy", unit="J", example="3.6 MJ", prefixes=_DECIMAL),
        Dimension(name="m", words="a length", unit="m", example="30 m"),
        Dimension(name="usd", words="an amount of US dollars", unit="USD", example="30000 USD"),
        Dimension(
            name="usd_per_s",
            words="a price per time",
            unit="USD/s",
            example="2.50 USD/h",
            printed=("USD/h", 3600.0),
        ),
        Dimension(
            name="usd_per_j",
            words="a price of energy",
            unit="USD/J",
            example="0.12 USD/kWh",
            printed=("USD/kWh", 3.6e6),
        ),
        Dimension(
            name="usd_per_token",
            words="a price per token",
            unit="USD/token",
            example="2 USD/Mtoken",
            printed=("USD/Mtoken", 1e6),
        ),
        Dimension(
            name="tokens", words="a count of tokens", unit="token", example="15 Ttoken", prefixes=_DECIMAL
        ),
        Dimension(
            name="tokens_per_s",
            words="a token rate",
            unit="token/s",
            example="900 token/s",
            prefixes=_DECIMAL,
        ),
    )
}

_QUANTITY = re.compile(r"\s*([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*(\S.{0,40})?\s*")
_UNIT = re.compile(r"[A-Za-zµμ$]+(?:\s*[/*·]\s*[A-Za-zµμ$]+){0,3}")
_LONGEST = 80


def find_dimension(name: str) -> Dimension:
    """Return the dimension called `name`.

    Parameters
    ----------
    name
        A key of `DIMENSIONS`.

    Raises
    ------
    UnknownName
        If there is none.
    """
    try:
        return DIMENSIONS[name]
    except KeyError:
        raise UnknownName.among(DIMENSIONS, kind="dimension", given=name) from None


def parse(text: str, dimension: str) -> float:
    """Return the number that `text` gives, in the SI unit of `dimension`.

    Parameters
    ----------
    text
        A number and a unit: ``"400 Gbit/s"``, ``"80 GiB"``, ``"5 us"``. Prefixes are decimal (``GB``) or
        binary (``GiB``); ``bit`` and ``B`` are a bit and a byte.
    dimension
        A key of `DIMENSIONS`.

    Raises
    ------
    UnitError
        If there is no unit, an unknown one, one of another dimension, or no finite number.
    UnknownName
        If `dimension` is none.
    """
    wanted = find_dimension(dimension)
    number, unit = _split(text, wanted)
    factor = _factor(unit, wanted)
    # Dividing by a whole number keeps "5 us" the float nearest to 5e-6; multiplying by 1e-6 does not.
    value = number * factor if factor >= 1 else number / _whole(1 / factor)
    if not math.isfinite(value):
        raise UnitError(f"{_shown(text)} is not a finite number")
    return value


def format_quantity(value: float, dimension: str) -> str:
    """Return `value` with three significant digits and the prefix that keeps it short.

    Parameters
    ----------
    value
        The number [SI unit of `dimension`].
    dimension
        A key of `DIMENSIONS`.
    """
    wanted = find_dimension(dimension)
    if not math.isfinite(value):
        return f"{value} {wanted.unit}"
    unit, per_unit = wanted.printed or (wanted.unit, 1.0)
    rounded = float(f"{value * per_unit:.3g}")
    factor, prefix = wanted.prefixes[0]
    if rounded == 0:
        return f"0 {unit}"
    for each, name in wanted.prefixes:
        if abs(rounded) >= each * (1 - 1e-12):
            factor, prefix = each, name
    return f"{_three_digits(rounded / factor)} {prefix}{unit}"


def _three_digits(value: float) -> str:
    if value != 0 and not 1e-4 <= abs(value) < 1e6:
        return f"{value:.2e}"
    places = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _split(text: str, wanted: Dimension) -> tuple[float, str]:
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise UnitError(f"{_shown(text)} is not {wanted.words}; write it as {wanted.example!r}")
    number, unit = match.groups()
    if unit is None:
        raise UnitError(f"{_shown(text)} has no unit; write {wanted.words} as {wanted.example!r}")
    return float(number), unit.strip()


def _whole(value: float) -> float:
    nearest = float(round(value)) if value < 1e18 else value
    return nearest if nearest and math.isclose(nearest, value, rel_tol=1e-12) else value


@cache
def _factor(unit: str, wanted: Dimension) -> float:
    import pint

    registry = _registry()
    if _UNIT.fullmatch(unit) is None:
        raise UnitError(_unknown_unit(unit, wanted))
    plain = unit.replace("$", "USD").replace("·", "*").replace(" ", "")
    try:
        return float(registry.Quantity(1.0, registry.parse_units(plain)).to(wanted.unit).magnitude)
    except pint.DimensionalityError:
        raise UnitError(f"{unit!r} is not a unit of {wanted.words}; write it as {wanted.example!r}") from None
    except (pint.UndefinedUnitError, pint.DefinitionSyntaxError, ValueError):
        raise UnitError(_unknown_unit(unit, wanted)) from None


def _unknown_unit(unit: str, wanted: Dimension) -> str:
    shown = f"unknown unit {_shown(unit)}"
    if re.search(r"(?:^|[kMGTP]i?)b(?:$|/|ps)", unit):
        return f"{shown}: 'b' is read as bit and as byte; write 'bit' or 'B', as in {wanted.example!r}"
    prefix = unit[:1].replace("K", "k") if unit in _BARE_PREFIXES and wanted.name == "bytes" else ""
    if prefix:
        binary, decimal = f"{prefix.upper()}iB", f"{prefix}B"
        return f"{shown}; write {binary!r} as nccl-tests means it, in steps of 1024, or {decimal!r} for 1000"
    near = nearest_names(unit, _spellings(wanted), count=1)
    hint = f"did you mean {near[0]!r}?" if near else f"write {wanted.words} as {wanted.example!r}"
    return f"{shown}; {hint}"


_BARE_PREFIXES = ("k", "K", "M", "G", "T", "Ki", "Mi", "Gi", "Ti")
"""What is left of a size in bytes where its unit is left out."""


def _spellings(wanted: Dimension) -> tuple[str, ...]:
    """Return the units that are suggested: no fractions of a byte, and no binary prefixes of seconds."""
    unit = wanted.unit
    if not unit.startswith(("B", "bit")):
        return tuple(prefix + unit for prefix in ("", "u", "m", "k", "M", "G", "T", "P"))
    units = (unit, unit.replace("B", "bit")) if unit.startswith("B") else (unit,)
    prefixes = ("", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti")
    return tuple(prefix + each for each in units for prefix in prefixes)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "...")


@cache
def _registry() -> pint.UnitRegistry[float]:
    import pint

    return pint.UnitRegistry(str(Path(__file__).with_name("units.txt")), cache_folder=None)
