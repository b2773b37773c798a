"""Types of the fields of a `rollout/1` document: ratios, GPU-time, argument lists, ranges of versions."""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from linkwise.errors import InputError, UnitError
from linkwise.rollout.metrics import parse_ratio
from linkwise.units import parse

__all__ = ["Argv", "Day", "GpuTime", "PositiveRatio", "SettingText", "Versions", "Word", "Words"]

_GPU_TIME = re.compile(r"\s*([\d._]+(?:[eE][+-]?\d+)?)\s*GPU[- ]?([a-z]+)\s*")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish"})
_VERSION = re.compile(r"(?:>=|<=|==|!=|>|<)?\s*v?\d+(?:\.\d+)*")


def _positive_ratio(given: object) -> float:
    value = parse_ratio(given)
    if not 0 < value < float("inf"):
        raise UnitError(f"{given!r} is not above zero; write a ratio as '97 %'")
    return value


def _gpu_time_s(given: object) -> float:
    match = _GPU_TIME.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        raise UnitError(f"{given!r} is no time of GPUs; write it as '40 GPU min' or '2 GPU h'")
    value = parse(f"{match[1]} {match[2]}", "s")
    if value <= 0:
        raise UnitError(f"{given!r} is not above zero; write it as '40 GPU min'")
    return value


def _argv(given: object) -> object:
    if isinstance(given, str):
        raise InputError(
            f"{given[:60]!r} is text for a shell; write a list of words, such as [scontrol, reconfigure]"
        )
    words = given if isinstance(given, list) else []
    if words and any(not isinstance(word, str) for word in words):
        raise InputError("every word must be text; put numbers in quotes")
    named = [str(word).rsplit("/", 1)[-1] for word in words]
    shell = next((place for place, word in enumerate(named) if word in _SHELLS), None)
    if shell is not None and any(re.fullmatch(r"-[a-z]*c[a-z]*", word) for word in words[shell + 1 :]):
        raise InputError(
            f"{named[shell]} -c runs text that nobody reviews; put it into a script file and name that"
        )
    return given


def _setting(given: object) -> object:
    if isinstance(given, bool | float):
        raise InputError(f"{given!r} may be spelled in several ways; put the value in quotes")
    return str(given) if isinstance(given, int) else given


def _words(given: object) -> object:
    return [given] if isinstance(given, str) else given


def _versions(given: object) -> object:
    if isinstance(given, int | float):
        raise InputError(f"{given!r} is a number, and 2.30 would be 2.3; put versions in quotes")
    parts = given.split(",") if isinstance(given, str) else [""]
    if any(_VERSION.fullmatch(part.strip()) is None for part in parts):
        raise InputError(f"{given!r} is no range of versions; write '>=2.28,<2.32', or '==2.30.4'")
    return given


def _day(given: object) -> object:
    try:
        return dt.date.fromisoformat(given) if isinstance(given, str) else _no_day(given)
    except ValueError:
        return _no_day(given)


def _no_day(given: object) -> object:
    raise InputError(f"{given!r} is no day; write year, month and day as 2027-02-20")


Day = Annotated[dt.date, BeforeValidator(_day), WithJsonSchema({"type": "string", "format": "date"})]
"""A day, as 2027-02-20."""

PositiveRatio = Annotated[
    float,
    BeforeValidator(_positive_ratio),
    PlainSerializer(lambda value: f"{100 * value:g} %"),
    WithJsonSchema({"type": ["string", "number"], "examples": ["97 %", 0.97], "description": "a ratio"}),
]
"""A ratio above zero, as a percentage or a number."""

GpuTime = Annotated[
    float,
    BeforeValidator(_gpu_time_s),
    PlainSerializer(lambda value: f"{value / 60:g} GPU min"),
    WithJsonSchema({"type": "string", "examples": ["40 GPU min"], "description": "time of GPUs"}),
]
"""GPUs times the time they are held [s]."""

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"


def _name(given: object) -> object:
    if isinstance(given, str) and re.search(_NAME, given) is None:
        raise InputError(
            f"{given[:80]!r} is no name; use up to 63 letters, digits, '.', '_' and '-', a letter or digit "
            "first"
        )
    return given


Name = Annotated[str, BeforeValidator(_name), Field(strict=True, pattern=_NAME)]
"""What a rollout, a step or an objective is called: part of the names of folders."""

Word = Annotated[str, Field(strict=True, min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$")]
"""A line of text that is not empty."""

Words = Annotated[
    list[Word],
    BeforeValidator(_words),
    WithJsonSchema({"type": ["array", "string"], "items": {"type": "string"}}),
]
"""One line of text or several."""

Argv = Annotated[
    list[Annotated[str, Field(strict=True, max_length=10_000, pattern=r"^[^\x00]+$")]],
    BeforeValidator(_argv),
    Field(min_length=1, max_length=1000),
]
"""A program and its arguments, as they are passed to it; no shell reads them."""

SettingText = Annotated[
    str,
    BeforeValidator(_setting),
    Field(strict=True, max_length=10_000),
    WithJsonSchema({"type": ["string", "integer"]}),
]
"""The value of a variable of the environment."""

Versions = Annotated[
    str, BeforeValidator(_versions), WithJsonSchema({"type": "string", "examples": [">=2.28,<2.32"]})
]
"""Bounds that a version must meet, all of them."""


def schema_of_any(*examples: Any) -> WithJsonSchema:
    """Return how a field is shown in the schema that is text with a unit, or a number.

    Parameters
    ----------
    examples
        What would be read.
    """
    return WithJsonSchema({"type": ["string", "number"], "examples": list(examples)})
