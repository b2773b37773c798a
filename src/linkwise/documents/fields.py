"""Types of the fields of documents: quantities with a unit, counts, and the model they stand in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from linkwise.errors import InputError, UnitError
from linkwise.units import find_dimension, format_quantity, parse

__all__ = [
    "Bytes",
    "BytesPerSecond",
    "Count",
    "Document",
    "FlopPerSecond",
    "Fraction",
    "Misfits",
    "Quantity",
    "Seconds",
    "Watts",
]


class Document(BaseModel):
    """A document or a part of one: unknown keys are faults, and what was read does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True)


class Misfits(InputError):
    """Parts of a document do not fit together.

    Raise it from a pydantic validator; the reader turns each pair into a fault of its own.

    Parameters
    ----------
    pairs
        Key below the validated part, dotted and possibly empty, and the message.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.pairs = tuple(pairs)
        super().__init__("; ".join(message for _, message in self.pairs))


@dataclass(frozen=True, slots=True)
class Quantity:
    """Marks a float field as a positive quantity written with its unit.

    Parameters
    ----------
    dimension
        A key of `linkwise.units.DIMENSIONS`.
    example
        Text that would be read, where that of the dimension is of another size than the field.
    """

    dimension: str
    example: str | None = None

    def read(self, given: object) -> float:
        """Return the number that a document gives for the field [SI unit of the dimension].

        Parameters
        ----------
        given
            What the document has.

        Raises
        ------
        UnitError
            If it is not text with a unit of the dimension, or not above zero.
        """
        wanted = find_dimension(self.dimension)
        example = self.example or wanted.example
        if isinstance(given, bool) or not isinstance(given, str | int | float):
            raise UnitError(f"{wanted.words} is due here; write it as {example!r}")
        try:
            value = parse(given if isinstance(given, str) else f"{given:g}", self.dimension)
        except UnitError as error:
            raise UnitError(str(error).replace(repr(wanted.example), repr(example))) from None
        if value <= 0:
            raise UnitError(f"{given!r} is not above zero; write {wanted.words} as {example!r}")
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema by which pydantic reads the field."""
        write = core_schema.plain_serializer_function_ser_schema(
            lambda value: format_quantity(value, self.dimension)
        )
        return core_schema.no_info_plain_validator_function(self.read, serialization=write)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the JSON Schema of the field."""
        wanted = find_dimension(self.dimension)
        number = r"^\s*\+?(\d[\d_]*\.?\d*|\.\d+)([eE][+-]?\d+)?\s*[A-Za-zµ$][A-Za-zµ$/*· ]*$"
        return {
            "type": "string",
            "pattern": number,
            "examples": [self.example or wanted.example],
            "description": f"{wanted.words}, with its unit",
        }


Bytes = Annotated[float, Quantity("bytes")]
BytesPerSecond = Annotated[float, Quantity("bytes_per_s")]
FlopPerSecond = Annotated[float, Quantity("flop_per_s")]
Seconds = Annotated[float, Quantity("s")]
Watts = Annotated[float, Quantity("w")]

Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000_000)]
"""A whole number from one."""

Fraction = Annotated[float, Field(strict=True, ge=0, le=1)]
"""A ratio from zero to one."""
