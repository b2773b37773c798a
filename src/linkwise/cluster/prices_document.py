"""The `prices/1` document: its keys, and from its text to `Prices`."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from linkwise.cluster.hardware_prices import HardwareDocument, hardware_of
from linkwise.cluster.prices import Checkpoints, Part, Prices, Staff
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


UsdPerSecond = Annotated[float, Quantity("usd_per_s")]
UsdPerJoule = Annotated[float, Quantity("usd_per_j")]
UsdPerHour = Annotated[float, Quantity("usd_per_s", example="120 USD/h")]
WorkingTime = Annotated[float, Quantity("s_per_s")]
Mtbf = Annotated[float, Quantity("s", example="50000 h")]
Pause = Annotated[float, Quantity("s", example="10 min")]

_NEVER_S = 1e4 * 365.25 * 86400.0
"""Longer than this a mean time between failures is a slip of the pen: 10,000 years [s]."""

_YEAR_S = 365.25 * 86400.0
"""Longer than this a restart, a checkpoint and its interval are one [s]."""

_DEAREST_USD_PER_S = 1e6 / 3600.0
"""Dearer than this an hour of a GPU or a person is one: a million dollars [USD/s]."""

_DEAREST_USD_PER_J = 1000 / 3.6e6
"""Dearer than this energy is one: 1,000 dollars for a kWh [USD/J]."""


class StaffHoursDocument(Document):
    """Working time for 1,000 GPUs by family of fabric."""

    infiniband: WorkingTime | None = None
    roce: WorkingTime | None = Field(default=None, description="RDMA over Ethernet; ethernet if left out.")
    ethernet: WorkingTime | None = Field(default=None, description="Every protocol over Ethernet switches.")
    efa: WorkingTime | None = None
    slingshot: WorkingTime | None = None
    none: WorkingTime | None = Field(default=None, description="Clusters without a fabric between nodes.")


class StaffDocument(Document):
    """People who run and tune a cluster; a fabric that is cheap to buy may be dear to tune."""

    hour: UsdPerHour = Field(description="What an hour of theirs costs.")
    per_1000_gpus: StaffHoursDocument = Field(description="Their working time for 1,000 GPUs, by fabric.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not self.hours:
            raise Misfits([("per_1000_gpus", "no fabric has hours; write infiniband: 40 h/month")])
        if self.hour > _DEAREST_USD_PER_S:
            raise Misfits([("hour", "is more than a million dollars an hour; write it as 120 USD/h")])
        long = [key for key, share in self.hours.items() if share > 1000]
        if long:
            words = "is more than 1,000 people who never sleep; write working time such as 40 h/month"
            raise Misfits([(f"per_1000_gpus.{key}", words) for key in long])
        return self

    @property
    def hours(self) -> dict[str, float]:
        """Return the working time of the families that have some [s/s]."""
        return {key: share for key, share in self.per_1000_gpus if share is not None}


class MtbfDocument(Document):
    """Mean time between failures of one part, those that interrupt training."""

    gpu: Mtbf | None = None
    node: Mtbf | None = Field(default=None, description="All of a node that is not stated apart.")
    nic: Mtbf | None = None
    switch: Mtbf | None = None
    cable: Mtbf | None = Field(default=None, description="With its transceivers.")


class FailuresDocument(Document):
    """How often training is interrupted, and how long it stands then."""

    mtbf: MtbfDocument
    restart: Pause = Field(description="From an interruption until training goes on.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not self.times:
            raise Misfits([("mtbf", "no part has a time; write gpu: 50000 h, of one GPU")])
        if self.restart > _YEAR_S:
            raise Misfits([("restart", "is more than a year; write it as 10 min")])
        long = [str(part) for part, time_s in self.times.items() if time_s > _NEVER_S]
        if long:
            raise Misfits(
                [(f"mtbf.{part}", "is more than 10,000 years; leave the part out") for part in long]
            )
        return self

    @property
    def times(self) -> dict[Part, float]:
        """Return the times of the parts that have one [s]."""
        return {Part(part): time_s for part, time_s in self.mtbf if time_s is not None}


class CheckpointDocument(Document):
    """How often a run saves its state, and what that takes."""

    write: Pause = Field(description="Time that training stands still for one.")
    interval: Pause | None = Field(
        default=None, description="Training time from one to the next; the best one if left out."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        long = [key for key, time_s in self if time_s is not None and time_s > _YEAR_S]
        if long:
            raise Misfits([(key, "is more than a year; write it as 30 s or 1 h") for key in long])
        return self


class PricesDocument(Document):
    """What the owner of a cluster pays; at least one price."""

    date: Day = Field(description="The day these prices were true, year-month-day.")
    gpu_hour: UsdPerSecond | None = Field(
        default=None,
        description="One GPU for a time, rented or amortised, with everything that is not stated apart.",
    )
    electricity: UsdPerJoule | None = Field(
        default=None, description="Electricity that is paid beside gpu_hour or hardware, at the meter."
    )
    pue: Annotated[float, Field(strict=True, ge=1, le=5)] | None = Field(
        default=None, description="Energy at the meter over energy of the machines; with electricity."
    )
    cooling: UsdPerJoule | None = Field(
        default=None, description="Cooling that is paid apart, per energy of the machines; not beside pue."
    )
    hardware: HardwareDocument | None = Field(
        default=None, description="What is bought: nodes, or beside gpu_hour the fabric alone."
    )
    staff: StaffDocument | None = Field(default=None, description="People who run and tune the cluster.")
    failures: FailuresDocument | None = Field(default=None, description="With checkpoint.")
    checkpoint: CheckpointDocument | None = Field(default=None, description="How work is saved.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        faults = [*self._misfits(), *self._misfits_of_runs(), *self._slips()]
        if faults:
            raise Misfits(faults)
        return self

    def _misfits(self) -> Iterator[tuple[str, str]]:
        if self.electricity is None and self.pue is not None:
            yield "pue", "has no effect without a price of electricity; leave it out or give electricity"
        if self.cooling is not None and self.pue is not None:
            yield "cooling", "pue counts the energy of cooling already; leave one of them out"
        if not any((self.gpu_hour, self.electricity, self.hardware, self.cooling, self.staff)):
            what = "gpu_hour: 2.50 USD/h, electricity: 0.10 USD/kWh, or both"
            yield "", f"no price is given; write {what}; or hardware, cooling or staff"
        bought = self.hardware
        if self.gpu_hour is not None and bought is not None:
            for key in ("systems", "node", "gpus"):
                if getattr(bought, key) is not None:
                    what = "gpu_hour pays for the nodes already"
                    yield f"hardware.{key}", f"{what}; leave one out (what you rent, or what you own)"

    def _slips(self) -> Iterator[tuple[str, str]]:
        if self.gpu_hour is not None and self.gpu_hour > _DEAREST_USD_PER_S:
            yield "gpu_hour", "is more than a million dollars an hour; write it as 2.50 USD/h"
        for key in ("electricity", "cooling"):
            if (getattr(self, key) or 0.0) > _DEAREST_USD_PER_J:
                yield key, "is more than 1,000 dollars for a kWh; write it as 0.10 USD/kWh"

    def _misfits_of_runs(self) -> Iterator[tuple[str, str]]:
        saved = self.checkpoint
        if self.failures is not None and saved is None:
            what = "how much work an interruption costs is not known"
            yield "failures", f"{what}; give checkpoint with write and interval"
        if saved is not None and saved.interval is None and self.failures is None:
            yield "checkpoint", "without failures there is no best interval; give interval, or failures"


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
        cooling_usd_per_j=document.cooling,
        hardware=hardware_of(document.hardware),
        staff=_staff(document.staff),
        mtbf_s={} if document.failures is None else document.failures.times,
        restart_s=None if document.failures is None else document.failures.restart,
        checkpoints=_checkpoints(document.checkpoint),
        path=path,
    )


def _staff(document: StaffDocument | None) -> Staff | None:
    return None if document is None else Staff(usd_per_s=document.hour, share_per_1000_gpus=document.hours)


def _checkpoints(document: CheckpointDocument | None) -> Checkpoints | None:
    if document is None:
        return None
    return Checkpoints(write_s=document.write, interval_s=document.interval)
