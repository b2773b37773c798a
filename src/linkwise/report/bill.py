"""Money and energy of a layout as they are published and printed; nothing of it where no prices are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from linkwise.report.tables import Column
from linkwise.report.wording import three_digits

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

    from linkwise.estimate.money import Bill

__all__ = ["BILL_FIELDS", "BilledResult", "bill_columns", "bill_fields"]

_MILLION = 1e6
_J_PER_KWH = 3.6e6


class BilledResult(BaseModel):
    """What a layout costs; a field that is not known is absent, not null, when it is written."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    energy_j_per_step: float | None = Field(
        default=None,
        description="Upper bound of nodes and fabric, without cooling; only where prices are given.",
    )
    energy_kwh_per_million_tokens: float | None = Field(
        default=None, description="The same for a million tokens."
    )
    cost_usd_per_step: float | None = Field(default=None, description="Only where prices are given.")
    cost_usd_per_million_tokens: float | None = Field(
        default=None, description="Only where prices are given."
    )
    cost_usd_per_run: float | None = Field(
        default=None, description="Only where prices and the tokens of the whole training are given."
    )

    @model_serializer(mode="wrap")
    def _without_absent(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = write(self)
        bill = {name: written.pop(name) for name in BILL_FIELDS if name in written}
        return {**written, **{name: each for name, each in bill.items() if each is not None}}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the schema of the fields: leaving one out does not change what it is."""
        return handler({key: each for key, each in core_schema.items() if key != "serialization"})


BILL_FIELDS = tuple(BilledResult.model_fields)
"""Names of the fields that stand in a layout only where prices are given."""


def bill_fields(bill: Bill | None) -> dict[str, float | None]:
    """Return the values of `BILL_FIELDS`, in the units that are published; none without a bill.

    Parameters
    ----------
    bill
        Energy and money of a layout.
    """
    if bill is None:
        return {}
    per_token = bill.energy_j_per_token
    return {
        "energy_j_per_step": bill.energy_j_per_step,
        "energy_kwh_per_million_tokens": None if per_token is None else per_token * _MILLION / _J_PER_KWH,
        "cost_usd_per_step": bill.cost_usd_per_step,
        "cost_usd_per_million_tokens": bill.cost_usd_per_token * _MILLION,
        "cost_usd_per_run": bill.cost_usd_per_run,
    }


def bill_columns(layouts: Sequence[BilledResult]) -> list[Column]:
    """Return the columns of the table of money and energy; none where no prices are given.

    Parameters
    ----------
    layouts
        Best first.
    """
    return list(_columns(layouts))


def _columns(layouts: Sequence[BilledResult]) -> Iterator[Column]:
    def column(heading: str, value: Callable[[BilledResult], float | None]) -> Iterator[Column]:
        values = [value(each) for each in layouts]
        if any(each is not None for each in values):
            cells = tuple("-" if each is None else three_digits(each) for each in values)
            yield Column(heading=heading, cells=cells, group=heading)

    yield from column("USD per\nmillion tokens", lambda each: each.cost_usd_per_million_tokens)
    yield from column("USD\nper step", lambda each: each.cost_usd_per_step)
    yield from column("USD\nper run", lambda each: each.cost_usd_per_run)
    yield from column("kWh per\nmillion tokens", lambda each: each.energy_kwh_per_million_tokens)
