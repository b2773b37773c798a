"""What a fabric costs: its parts at their prices, and a year of it; published and printed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from linkwise.report.tables import Column, print_line, split_table, wrapped
from linkwise.report.wording import three_digits

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.cluster import Cluster
    from linkwise.network.built_fabric import BuiltFabric, PricedPart

__all__ = ["FabricBillResult", "PartResult", "YearResult", "fabric_bill", "print_fabric_bill"]

_YEAR_S = 365.25 * 86400.0

_NOT_PRICED = "not priced"


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PartResult(_Result):
    """One line of the bill of materials."""

    part: str = Field(description="switch, NIC, transceiver or cable.")
    item: str
    count: int
    unit_usd: float | None = Field(description="Of one; null where it is not priced.")
    total_usd: float | None = Field(description="count x unit_usd.")
    included: str | None = Field(description="With which other part it is paid, where it is.")


class YearResult(_Result):
    """One line of what a year costs."""

    name: str
    usd_per_year: float
    arithmetic: str = Field(description="How it came about.")


class FabricBillResult(_Result):
    """What a fabric costs, all its nodes wired; totals are of what is priced."""

    parts: list[PartResult] = Field(description="Empty where the prices have no hardware.")
    total_usd: float | None = Field(description="Of the parts that are priced; null where none is.")
    usd_per_gpu: float | None
    not_priced: list[str] = Field(description="Parts and lines that cost something that is not stated.")
    per_year: list[YearResult]
    usd_per_year: float
    usd_per_gpu_year: float


def fabric_bill(cluster: Cluster, built: BuiltFabric, *, gpus: int) -> FabricBillResult | None:
    """Return what a fabric costs as it is published; ``None`` where no prices are given.

    Parameters
    ----------
    cluster, built
        What there is, with its prices, and its fabric.
    gpus
        GPUs of all nodes on the fabric.
    """
    from linkwise.estimate.money import whole_fabric_lines
    from linkwise.network.built_fabric import priced_parts

    prices = cluster.prices
    if prices is None:
        return None
    parts = priced_parts(cluster, built) if prices.hardware is not None else ()
    years = [
        YearResult(name=line.name, usd_per_year=line.usd_per_s * _YEAR_S, arithmetic=line.arithmetic)
        for line in whole_fabric_lines(cluster, built, gpus=gpus)
    ]
    amounts = [each.total_usd for each in parts if each.total_usd is not None]
    total = sum(amounts) if amounts else None
    year = sum(each.usd_per_year for each in years)
    return FabricBillResult(
        parts=[_part(each) for each in parts],
        total_usd=total,
        usd_per_gpu=None if total is None else total / gpus,
        not_priced=[*_missing(cluster, built, parts)],
        per_year=years,
        usd_per_year=year,
        usd_per_gpu_year=year / gpus,
    )


def _part(each: PricedPart) -> PartResult:
    return PartResult(
        part=each.part,
        item=each.item,
        count=each.count,
        unit_usd=each.unit_usd,
        total_usd=each.total_usd,
        included=each.included,
    )


def _missing(cluster: Cluster, built: BuiltFabric, parts: tuple[PricedPart, ...]) -> Iterator[str]:
    from linkwise.estimate.cost_inputs import unstated_staff

    prices = cluster.prices
    if prices is None:
        return
    yield from (f"{each.plural} ({each.item})" for each in parts if each.is_missing)
    if not parts and prices.gpu_usd_per_s is None:
        yield "all parts (the prices have no hardware)"
    if built.power_w is None and (prices.electricity_usd_per_j or prices.cooling_usd_per_j):
        yield f"electricity ({built.power_words})"
    yield from unstated_staff(cluster, prices)


def print_fabric_bill(bill: FabricBillResult | None, console: Console) -> None:
    """Print what a fabric costs, with the arithmetic; nothing where no prices are given.

    Parameters
    ----------
    bill
        The bill as it is published.
    console
        Where to.
    """
    if bill is None:
        return
    if bill.parts:
        print_line(console, "\nWhat the fabric costs to buy [USD]")
        _print_parts(bill, console)
    if bill.per_year:
        print_line(console, "\nWhat a year of the fabric costs [USD]")
        _print_years(bill, console)
    if bill.not_priced:
        words = f"{_NOT_PRICED}, and so not counted: {'; '.join(bill.not_priced)}"
        print_line(console, wrapped(words, width=console.width, first="  ", indent="    "))


def _print_parts(bill: FabricBillResult, console: Console) -> None:
    more = ">" if any(each.unit_usd is None and not each.included for each in bill.parts) else ""
    total = _NOT_PRICED if bill.total_usd is None else f"{more}{bill.total_usd:,.0f}"
    key = Column(heading="part", cells=(*(each.part for each in bill.parts), "in all"), justify="left")
    columns = [
        Column(heading="item", cells=(*(each.item for each in bill.parts), ""), justify="left"),
        Column(heading="count", cells=(*(f"{each.count:,}" for each in bill.parts), "")),
        Column(heading="x price", cells=(*(_unit(each) for each in bill.parts), "")),
        Column(heading="= total", cells=(*map(_total, bill.parts), total)),
    ]
    for table in split_table(columns, key=key, width=console.width, best=None):
        console.print(table, crop=False)
    if bill.usd_per_gpu is not None:
        print_line(console, f"  per GPU: {more}{three_digits(bill.usd_per_gpu)} USD")


def _unit(part: PartResult) -> str:
    if part.unit_usd is None:
        return "" if part.included else _NOT_PRICED
    return f"{part.unit_usd:,.0f}" if part.unit_usd >= 100 else f"{part.unit_usd:.4g}"


def _total(part: PartResult) -> str:
    if part.total_usd is None:
        return f"paid with the {part.included}" if part.included else _NOT_PRICED
    return f"{part.total_usd:,.0f}"


def _print_years(bill: FabricBillResult, console: Console) -> None:
    key = Column(heading="line", cells=(*(each.name for each in bill.per_year), "in all"), justify="left")
    more = ">" if bill.not_priced else ""
    cells = (*(f"{each.usd_per_year:,.0f}" for each in bill.per_year), f"{more}{bill.usd_per_year:,.0f}")
    columns = [Column(heading="a year", cells=cells)]
    for table in split_table(columns, key=key, width=console.width, best=None):
        console.print(table, crop=False)
    for each in bill.per_year:
        words = f"{each.name}: {each.arithmetic}"
        print_line(console, wrapped(words, width=console.width, first="  ", indent="    "))
    print_line(console, f"  per GPU: {three_digits(bill.usd_per_gpu_year)} USD a year")
