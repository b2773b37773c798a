"""A comparison as CSV: one row per cluster."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from linkwise.report.comparison import ComparedResult

if TYPE_CHECKING:
    from linkwise.report.comparison import CompareResult, WallResult

__all__ = ["write_comparison"]

_TAKEN_APART = ("cluster", "exposed_s", "layout", "closest", "bill", "energy_leaves_out")
"""Fields that are no single value; exposed communication and bills get a column for each kind and line."""


def write_comparison(result: CompareResult, file: TextIO) -> None:
    """Write the clusters of a comparison as CSV.

    Parameters
    ----------
    result
        The comparison as it is published.
    file
        Where to. Columns are the fields of a cluster; exposed communication is `exposed_tensor_s`,
        `exposed_data_s`..., a line of the bill `staff_usd_per_million_tokens`...; `not_priced` names what the
        money lacks; `wall_gpus` is empty where the wall is not reached.
    """
    rows = [dict(_cells(each, wall)) for each, wall in zip(result.clusters, result.wall, strict=True)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _cells(each: ComparedResult, wall: WallResult) -> Iterator[tuple[str, object]]:
    for name in ComparedResult.model_fields:
        if name not in _TAKEN_APART:
            value = getattr(each, name)
            yield name, "" if value is None else value
    yield from ((f"exposed_{kind}_s", time_s) for kind, time_s in (each.exposed_s or {}).items())
    for line in each.bill.lines if each.bill is not None else ():
        amount = line.usd_per_million_tokens
        words = "_".join(line.name.replace(",", "").split()).lower()
        yield f"{words}_usd_per_million_tokens", "" if amount is None else amount
    if each.bill is not None:
        yield "not_priced", "; ".join(each.bill.not_priced)
    yield "energy_leaves_out", "; ".join(each.energy_leaves_out)
    yield "gpus", each.cluster.gpus
    yield "nodes", each.cluster.nodes
    yield "link", each.cluster.link or ""
    yield "wall_gpus", "" if wall.gpus is None else wall.gpus
