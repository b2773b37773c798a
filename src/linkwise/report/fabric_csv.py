"""The bill of materials of a fabric as rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkwise.report.fabric import FabricResult

__all__ = ["fabric_csv_rows"]


def fabric_csv_rows(result: FabricResult) -> Iterator[tuple[object, ...]]:
    """Yield the bill of materials as rows of a table, the heading first; with prices where they are given.

    Parameters
    ----------
    result
        The fabric as it is published.
    """
    heading = ("part", "tier", "item", "count")
    bill = result.bill
    if bill is None or not bill.parts:
        yield heading
        yield from _counted_rows(result)
        return
    yield (*heading, "unit_usd", "total_usd")
    units = {(each.part, each.item): each.unit_usd for each in bill.parts}
    nics = [("NIC", "", each.item, each.count) for each in bill.parts if each.part == "NIC"]
    for part, tier, item, count in (*_counted_rows(result), *nics):
        unit = units.get((part, _cable_kind(result, tier) if part == "cable" else item))
        yield (part, tier, item, count, *(("", "") if unit is None else (unit, count * unit)))


def _cable_kind(result: FabricResult, tier: str) -> str:
    return result.optics.node_cables if tier == "node_leaf" else result.optics.switch_cables


def _counted_rows(result: FabricResult) -> Iterator[tuple[str, str, str, int]]:
    modules = result.optics.by_module or {result.link: result.optics.modules}
    rows = (
        *(("switch", tier, result.switch, count) for tier, count in result.switches),
        *(("cable", tier, result.link, count) for tier, count in result.cables),
        *(("transceiver", "", module, count) for module, count in modules.items()),
    )
    yield from (row for row in rows if row[-1])
