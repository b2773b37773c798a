"""A fabric as a table of its links, one row for the cables between two ends, as CSV or in the document.

An end is a node (``node-0``, ``node-1``... in the order of ranks) or else a switch, under any other name. A
cable carries its rate in both directions at once; a row stands for `count` cables that are alike.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from linkwise import catalog
from linkwise.documents import read_text
from linkwise.errors import DocumentError, Fault, InputError, UnknownName, nearest_names
from linkwise.units import format_quantity, parse

if TYPE_CHECKING:
    from os import PathLike

__all__ = [
    "COLUMNS",
    "LinkTable",
    "TableLink",
    "node_number",
    "parse_link_table",
    "read_link_table",
    "table_of_rows",
]

COLUMNS = ("from", "to", "link", "rate", "count")
"""Columns of the table; the last three may be left out."""

MOST_ROWS = 100_000
MOST_CABLES = 100_000
"""Cables of one row, and rows: more are a slip of the pen."""

_LARGEST_BYTES = 16_000_000
_MOST_FAULTS = 50
_NODE = re.compile(r"node-(\d{1,8})")
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLink:
    """The cables between two ends that are alike.

    Parameters
    ----------
    ends
        Names of both ends; their order says nothing.
    link
        Name of the link in the catalogue, or ``None`` for a rate or the default.
    bytes_per_s
        What one cable carries, each direction; ``None`` for the default of the fabric [bytes/s].
    count
        Cables.
    place
        Where the row stands: ``"links.csv:7"``, ``"row 3"``.
    """

    ends: tuple[str, str]
    link: str | None
    bytes_per_s: float | None
    count: int
    place: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkTable:
    """All links of a fabric; a table equals itself alone, which is quick to tell.

    Parameters
    ----------
    links
        The rows.
    path
        The file they were read from, or ``None`` where they stand in the document.
    """

    links: tuple[TableLink, ...]
    path: str | None = None

    @property
    def only_link(self) -> str | None:
        """Return the link of the catalogue that nodes have, where all rows that name one for nodes agree."""
        names = {row.link for row in self.links if any(node_number(end) is not None for end in row.ends)}
        return next(iter(names)) if len(names) == 1 else None

    def with_default(self, bytes_per_s: float) -> LinkTable:
        """Return the table with a rate for the rows that state none.

        Parameters
        ----------
        bytes_per_s
            Of the link of the fabric [bytes/s].
        """
        rows = (
            row if row.bytes_per_s is not None else replace(row, bytes_per_s=bytes_per_s)
            for row in self.links
        )
        return replace(self, links=tuple(rows))


def node_number(end: str) -> int | None:
    """Return the number of a node from its name; ``None`` for a switch.

    Parameters
    ----------
    end
        Name of an end.
    """
    match = _NODE.fullmatch(end)
    return int(match[1]) if match else None


def read_link_table(path: str | PathLike[str]) -> LinkTable:
    """Return the table in a CSV file.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    DocumentError
        With all faults of the file.
    """
    return parse_link_table(read_text(path, largest_bytes=_LARGEST_BYTES), path=str(path))


def parse_link_table(text: str, *, path: str) -> LinkTable:
    """Return the table in the text of a CSV file.

    Parameters
    ----------
    text
        CSV with a heading.
    path
        The file it came from, for messages.

    Raises
    ------
    DocumentError
        With all faults of the text.
    """
    rows = csv.DictReader(io.StringIO(text, newline=""), restkey="", skipinitialspace=True)
    try:
        heading = [name.strip() for name in rows.fieldnames or ()]
        faults = list(_heading_faults(heading))
        if faults:
            raise DocumentError(Fault(path=path, line=1, message=fault) for fault in faults)
        rows.fieldnames = heading
        found = [
            (f"{path}:{rows.line_num}", row)
            for row, _ in zip(rows, range(MOST_ROWS + 1), strict=False)
            if any(cell and cell.strip() for cell in row.values() if isinstance(cell, str))
        ]
    except csv.Error as error:
        message = f"is no CSV: {error}"
        raise DocumentError([Fault(path=path, line=rows.line_num, message=message)]) from None
    return _table(found, path)


def table_of_rows(rows: Iterable[object]) -> LinkTable:
    """Return the table that stands in a document as a list of mappings.

    Parameters
    ----------
    rows
        What the document has.

    Raises
    ------
    DocumentError
        With all faults of the rows.
    """
    found = []
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            message = "keys with their values are due here: {from: node-0, to: leaf-1, count: 8}"
            raise DocumentError([Fault(key=f"row {number}", message=message)])
        faults = list(_heading_faults([str(key) for key in row]))
        if faults:
            raise DocumentError(Fault(key=f"row {number}", message=fault) for fault in faults)
        found.append((f"row {number}", {str(key): _cell(value) for key, value in row.items()}))
    return _table(found, None)


def _cell(value: object) -> str:
    """Return a value of the document as CSV has it."""
    return "" if value is None else str(value)


def _heading_faults(heading: list[str]) -> Iterator[str]:
    wanted = f"the columns are {', '.join(COLUMNS)}; the last three may be left out"
    for name in COLUMNS[:2]:
        if name not in heading:
            yield f"there is no column {name!r}; {wanted}"
    for name in dict.fromkeys(heading):
        if heading.count(name) > 1:
            yield f"the column {name[:80]!r} is there twice"
        elif name not in COLUMNS:
            near = nearest_names(name, COLUMNS, count=1)
            yield f"unknown column {name[:80]!r}; " + (f"did you mean {near[0]!r}?" if near else wanted)


def _table(rows: list[tuple[str, dict[str, str]]], path: str | None) -> LinkTable:
    """Return the table of rows with their places, all faults gathered."""
    if not rows or len(rows) > MOST_ROWS:
        many = f"has more than {MOST_ROWS:,} rows; write cables that are alike as one with their count"
        message = many if rows else "has no row; write one for each pair of ends"
        raise DocumentError([Fault(path=path, key="" if path else "links", message=message)])
    faults: list[Fault] = []
    links: list[TableLink] = []
    seen: dict[tuple[frozenset[str], str], str] = {}
    for place, row in rows:
        link, wrong = _row(place, row)
        if link is not None:
            key = frozenset(link.ends), f"{link.link} {link.bytes_per_s}"
            if key in seen:
                one, other = link.ends
                wrong.append(
                    f"{one} and {other} are joined by such a link at {seen[key]} already; add up count"
                )
            seen.setdefault(key, place)
            links.append(link)
        faults.extend(Fault(message=f"{place}: {message}") for message in wrong)
    if faults:
        rest = len(faults) - _MOST_FAULTS
        more = [Fault(message=f"{path or 'links'}: {rest} further faults")] if rest > 0 else []
        raise DocumentError([*faults[:_MOST_FAULTS], *more])
    return LinkTable(links=tuple(links), path=path)


def _row(place: str, row: Mapping[str, str | list[str] | None]) -> tuple[TableLink | None, list[str]]:
    """Return the link of a row, unless its ends are wrong, and its faults."""
    if "" in row:
        return None, ["has more cells than the heading; quote cells with a comma"]
    cells = {name: str(row.get(name) or "").strip() for name in COLUMNS}
    ends = (cells["from"], cells["to"])
    faults = [f"{name} is empty; name a node (node-0) or a switch" for name in COLUMNS[:2] if not cells[name]]
    faults += [
        f"{end[:20]!r}... is longer than {_LONGEST_NAME} characters or has characters that cannot be printed"
        for end in ends
        if len(end) > _LONGEST_NAME or not end.isprintable()
    ]
    if ends[0] and ends[0] == ends[1]:
        faults.append(f"{ends[0][:_LONGEST_NAME]} is joined to itself; give two ends")
    rate = _rate(cells, faults)
    count = _count(cells["count"], faults)
    if faults:
        return None, faults
    return TableLink(ends=ends, link=cells["link"] or None, bytes_per_s=rate, count=count, place=place), []


def _rate(cells: Mapping[str, str], faults: list[str]) -> float | None:
    if cells["link"] and cells["rate"]:
        faults.append("link and rate are both given; leave one out")
        return None
    try:
        if cells["link"]:
            return catalog.link(cells["link"]).bytes_per_s
        if not cells["rate"]:
            return None
        rate = parse(cells["rate"][:_LONGEST_NAME], "bytes_per_s")
    except (UnknownName, InputError) as error:
        faults.append(str(error))
        return None
    if rate <= 0.0:
        faults.append(f"the rate {cells['rate']} is not above zero; leave out links that are down")
    return rate


def _count(text: str, faults: list[str]) -> int:
    if not text:
        return 1
    if not re.fullmatch(r"\d{1,7}", text) or not 1 <= int(text) <= MOST_CABLES:
        faults.append(f"count {text[:20]!r} is not a number of cables from 1 to {MOST_CABLES:,}")
        return 1
    return int(text)


def rate_words(row: TableLink) -> str:
    """Return what one cable of a row is, in words.

    Parameters
    ----------
    row
        With its rate.
    """
    return row.link or format_quantity(8 * (row.bytes_per_s or 0.0), "bits_per_s")
