"""The `prices/1` document: its keys, and from its text to `Prices`."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from linkwise.cluster.prices import Prices
from linkwise.documents import Document, Misfits, Quantity, parse_document, read_text
from linkwise.errors import InputError

if TYPE_CHECKING:
    from os import PathLike

__all__ = ["HEADER", "PricesDocument", "parse_prices", "read_prices"]

HEADER = "prices/1"

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def _day(given: object) -> dt.date:
    """Return the day of ``2026-11-30``; nothing else is read, least of all a number as seconds since 1970."""
    if isinstance(given, dt.date):
        return given
    if given is None:
        raise InputError("the key has no value; write the day the prices were true as 2026-11-30")
    if not isinstance(given, str) or _DAY.fullmatch(given.strip()) is None:
        shown = repr(given) if isinstance(given, str | int | float) else "this"
        raise InputError(f"{shown[:80]} is not a day; write year, month and day as 2026-11-30")
    try:
        return dt.date.fromisoformat(given.strip())
    except ValueError as error:
        raise InputError(f"{given!r} is not a day of the calendar: {error}") from None


Day = Annotated[
    dt.date,
    PlainValidator(_day),
    WithJsonSchema({"type": "string", "format": "date", "examples": ["2026-11-30"]}),
]


class PricesDocument(Document):
    """What the owner of a cluster pays; at least one price."""

    date: Day = Field(description="The day these prices were true, year-month-day.")
    gpu_hour: Annotated[float, Quantity("usd_per_s")] | None = Field(
        default=None,
        description="One GPU for a time, rented or amortised, with everything that is not stated apart.",
    )
    electricity: Annotated[float, Quantity("usd_per_j")] | None = Field(
        default=None, description="Electricity that is paid beside gpu_hour, at the meter."
    )
    pue: Annotated[float, Field(strict=True, ge=1, le=5)] | None = Field(
        default=None, description="Energy at the meter over energy of the machines; with electricity."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        faults = list(self._misfits())
        if faults:
            raise Misfits(faults)
        return self

    def _misfits(self) -> Iterator[tuple[str, str]]:
        if self.electricity is None and self.pue is not None:
            yield "pue", "has no effect without a price of electricity; leave it out or give electricity"
        if self.gpu_hour is None and self.electricity is None:
            yield "", "no price is given; write gpu_hour: 2.50 USD/h, electricity: 0.10 USD/kWh, or both"


def read_prices(path: str | PathLike[str]) -> Prices:
    """Return the prices in a file.

    Parameters
    ----------
    path
        A `prices/1` document.

    Raises
    ------
    DocumentError
        With all faults of the file.
    """
    # Standard input is taken by the cluster or the job; a file called - is read as one.
    return parse_prices(read_text(Path(path).absolute() if str(path) == "-" else path), path=str(path))


def parse_prices(text: str, *, path: str | None = None) -> Prices:
    """Return the prices in the text of a `prices/1` document.

    Parameters
    ----------
    text
        The document.
    path
        The file it came from, for messages.

    Raises
    ------
    DocumentError
        With all faults of the document.
    """
    document = parse_document(text, PricesDocument, HEADER, path=path)
    return Prices(
        date=document.date,
        gpu_usd_per_s=document.gpu_hour,
        electricity_usd_per_j=document.electricity,
        pue=document.pue,
        path=path,
    )
