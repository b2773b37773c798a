"""A plan as CSV: one row per layout."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from linkwise.report.bill import BILL_FIELDS
from linkwise.report.results import LayoutResult

if TYPE_CHECKING:
    from linkwise.report.results import PlanResult

__all__ = ["write_plan"]


def write_plan(result: PlanResult, file: TextIO) -> None:
    """Write the layouts of a plan as CSV; where nothing fits, the closest alone, with `fits` 0.

    Parameters
    ----------
    result
        The plan as it is published.
    file
        Where to. Columns are the fields of a layout; parts are `part_compute_s`, `memory_weights_bytes`...
        Money and energy stand there where prices are given.
    """
    layouts = result.layouts or [each for each in (result.closest,) if each is not None]
    rows = [dict(_cells(layout)) for layout in layouts]
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _cells(layout: LayoutResult) -> Iterator[tuple[str, object]]:
    for name in LayoutResult.model_fields:
        if name in BILL_FIELDS:
            continue
        value = getattr(layout, name)
        if name == "parts":
            yield from ((f"part_{part}_s", part_s) for part, part_s in layout.parts.items())
        elif name == "memory_parts":
            yield from (
                (f"memory_{part}_bytes", part_bytes) for part, part_bytes in layout.memory_parts.items()
            )
        else:
            yield name, int(value) if isinstance(value, bool) else "" if value is None else value
    yield "fits", int(layout.short_bytes <= 0)
    bill = {name: getattr(layout, name) for name in BILL_FIELDS}
    yield from ((name, value) for name, value in bill.items() if value is not None)
