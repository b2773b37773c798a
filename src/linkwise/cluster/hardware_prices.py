"""The key `hardware` of `prices/1`: what is bought, by its name in the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Self

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from linkwise import catalog
from linkwise.cluster.cluster import CableKind
from linkwise.cluster.prices import Hardware
from linkwise.documents import Document, Fraction, Misfits, Quantity
from linkwise.errors import InputError, nearest_names

__all__ = ["HardwareDocument", "hardware_of"]

_YEAR_S = 365.25 * 86400.0

_USD = Quantity("usd")

_DEAREST_USD = 1e10
"""Dearer than this one piece is a slip of the pen [USD]."""

_SHORTEST_S, _LONGEST_S = 86400.0, 100 * _YEAR_S
"""Nothing is written off in less than a day, or in more than a hundred years [s]."""


def _transceiver(given: str) -> str:
    """Return the name of a transceiver of the catalogue, which keeps them among its cables."""
    pluggable = [name for name in catalog.names("cable") if "power_w" in catalog.cable(name).figures]
    name = catalog.cable(given).name
    if name not in pluggable:
        hint = f"price it below cables ({', '.join(CableKind)}); transceivers: {', '.join(pluggable)}"
        raise InputError(f"{name} is a cable, not a transceiver; {hint}")
    return name


def _cable_kind(given: str) -> str:
    kinds = [str(kind) for kind in CableKind]
    if given not in kinds:
        near = nearest_names(given, kinds, count=1)
        raise InputError(
            f"unknown kind of cable; {f'did you mean {near[0]!r}?' if near else ', '.join(kinds)}"
        )
    return given


def _of_catalogue(kind: str) -> Callable[[str], str]:
    find: Callable[[str], Any] = getattr(catalog, kind)
    return lambda given: str(find(given).name)


def _amounts(name_of: Callable[[str], str], example: str) -> PlainValidator:
    """Return what reads a mapping from names to amounts of money; names become those of the catalogue."""

    def read(given: object) -> dict[str, float]:
        if not isinstance(given, dict) or not given:
            raise InputError(f"names with their prices are due below this key, such as {example}")
        found: dict[str, float] = {}
        faults = []
        for key, value in given.items():
            try:
                name, price = name_of(str(key)), _USD.read(value)
            except InputError as error:
                faults.append((str(key), str(error)))
                continue
            if price > _DEAREST_USD:
                faults.append((str(key), f"{value!r} for one is more than ten billion dollars"))
            if name in found:
                faults.append((str(key), f"{name} has a price above already, by another name; leave one"))
            found[name] = price
        if faults:
            raise Misfits(faults)
        return found

    return PlainValidator(read)


_SCHEMA = WithJsonSchema(
    {
        "type": "object",
        "additionalProperties": {"type": "string", "examples": ["25000 USD"]},
        "minProperties": 1,
    }
)
Lifetime = Annotated[float, Quantity("s", example="5 years")]

_Amounts = dict[str, float]
Systems = Annotated[_Amounts, _amounts(_of_catalogue("system"), "dgx-h100: 300000 USD"), _SCHEMA]
Gpus = Annotated[_Amounts, _amounts(_of_catalogue("gpu"), "h100-sxm: 25000 USD"), _SCHEMA]
Nics = Annotated[_Amounts, _amounts(_of_catalogue("nic"), "connectx-7: 1500 USD"), _SCHEMA]
Switches = Annotated[_Amounts, _amounts(_of_catalogue("switch"), "quantum-2-qm9700: 25000 USD"), _SCHEMA]
Transceivers = Annotated[_Amounts, _amounts(_transceiver, "osfp-800g-2xdr4: 1000 USD"), _SCHEMA]
Cables = Annotated[_Amounts, _amounts(_cable_kind, "optical: 100 USD"), _SCHEMA]


class HardwareDocument(Document):
    """What is bought, each at the price of one piece, and how it becomes a cost per time."""

    lifetime: Lifetime = Field(description="Time over which it is written off, such as 5 years.")
    residual: Fraction = Field(default=0.0, description="What it is worth then, of its price.")
    support: Fraction | None = Field(
        default=None, description="Support and maintenance for a year, of the price of all hardware."
    )
    spares: Fraction | None = Field(
        default=None, description="Spare parts that are bought with it, of the price of all hardware."
    )
    systems: Systems | None = Field(
        default=None, description="Systems of the catalogue as they are sold: a server, a rack of nodes."
    )
    node: Annotated[float, _USD] | None = Field(
        default=None, description="One node whose system has no price below systems."
    )
    gpus: Gpus | None = Field(default=None, description="GPUs of nodes that have no price.")
    nics: Nics | None = Field(
        default=None, description="NICs that the price of a node leaves out; others are part of it."
    )
    switches: Switches | None = Field(default=None, description="Switches without transceivers.")
    transceivers: Transceivers | None = Field(default=None, description="Transceivers of optical cables.")
    cables: Cables | None = Field(
        default=None, description="One cable by kind: optical (the fibre alone), dac, aoc."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        faults = [*self._misfits()]
        if faults:
            raise Misfits(faults)
        return self

    def _misfits(self) -> Iterator[tuple[str, str]]:
        priced = ("systems", "node", "gpus", "nics", "switches", "transceivers", "cables")
        if not any(getattr(self, key) for key in priced):
            yield "", f"nothing has a price; give one of {', '.join(priced)}"
        if self.node is not None and self.gpus is not None:
            yield "gpus", "has no effect: node prices every node with its GPUs; leave one of them out"
        if self.node is not None and self.node > _DEAREST_USD:
            yield "node", "is more than ten billion dollars; write the price of one"
        if not _SHORTEST_S <= self.lifetime <= _LONGEST_S:
            yield "lifetime", "is not between a day and a hundred years; write it as 5 years"
        if self.residual == 1:
            yield "residual", "1 means that nothing is written off; leave the hardware out, or write less"


def hardware_of(document: HardwareDocument | None) -> Hardware | None:
    """Return the purchase prices that a document states; ``None`` where it has none.

    Parameters
    ----------
    document
        The key `hardware` as it was read.
    """
    if document is None:
        return None
    support = document.support
    return Hardware(
        lifetime_s=document.lifetime,
        residual_fraction=document.residual,
        support_fraction_per_s=None if support is None else support / _YEAR_S,
        spares_fraction=document.spares,
        systems=document.systems or {},
        node_usd=document.node,
        gpus=document.gpus or {},
        nics=document.nics or {},
        switches=document.switches or {},
        transceivers=document.transceivers or {},
        cables={CableKind(kind): price for kind, price in (document.cables or {}).items()},
    )
