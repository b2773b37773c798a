"""`linkwise catalog`: hardware and models with their sources."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Sequence

import click

from linkwise import catalog as shelf
from linkwise.catalog import Entry
from linkwise.catalog.fields import UNITS
from linkwise.errors import InputError, UnknownName
from linkwise.figures import Figure
from linkwise.units import DIMENSIONS, format_quantity

__all__ = ["catalog"]

_COLUMNS = ("kind", "name", "field", "value", "unit", "basis", "source", "date", "note")
_SHOWN = {
    "gpu": (
        "architecture",
        "memory_bytes",
        "memory_bandwidth_bytes_per_s",
        "bf16_flop_per_s",
        "fp8_flop_per_s",
        "nvlink_bytes_per_s",
    ),
    "system": (
        "gpu",
        "gpus",
        "gpus_per_node",
        "nvlink_domain_gpus",
        "nic",
        "nics",
        "nic_bytes_per_s",
        "link",
    ),
    "link": ("protocol", "bytes_per_s", "achieved_fraction", "hop_s"),
    "switch": ("fabric", "ports", "port_bytes_per_s", "latency_s", "power_w"),
    "nic": ("protocols", "bytes_per_s", "pcie_bytes_per_s"),
    "cable": ("reach_m", "power_w", "price_usd"),
    "model": (
        "published_parameters_text",
        "published_active_parameters_text",
        "layers",
        "hidden",
        "heads",
        "moe_experts",
    ),
}
"""What the list of a kind has columns for; other kinds show the first four figures they have."""

_HEADINGS = {
    "published_parameters_text": "parameters, 1e9",
    "published_active_parameters_text": "active, 1e9",
    "bytes_per_s": "rate",
    "nic_bytes_per_s": "rate of a NIC",
    "port_bytes_per_s": "rate of a port",
}
"""Headings that are not the name of the field without its unit, which the cells have."""


_PROSE = ("source", "sources", "note")
"""Columns whose cells may go over several lines."""

_PROSE_WIDTH, _HEADING_WIDTH, _NO_LIMIT = 30, 16, 10_000

_DIMENSION_OF_UNIT = {each.unit: each.name for each in DIMENSIONS.values()}


@click.command()
@click.argument("kind", required=False)
@click.argument("name", required=False)
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True
)
def catalog(kind: str | None, name: str | None, form: str) -> None:
    """List what the catalogue holds, with sources.

    Without KIND its kinds; with KIND (gpu, system, nic, link, switch, cable, model...) the entries of that
    kind; with NAME every figure of one entry. A NAME may stand alone.
    """
    kinds = tuple(shelf.kinds())
    if kind is not None and name is None and _kind(kind, kinds) is None:
        kind, name = _kind_holding(kind, kinds), kind
    if kind is None:
        chosen = [shelf.entry(each, one) for each in kinds for one in shelf.names(each)]
    else:
        found = _kind(kind, kinds)
        if found is None:
            raise UnknownName.among(kinds, kind="kind of entry", given=kind)
        kind = found
        chosen = [_entry(kind, one, kinds) for one in (shelf.names(kind) if name is None else (name,))]
    if form == "json":
        click.echo(json.dumps({"schema": "linkwise.catalog/1", **_published(chosen)}, indent=2))
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(_COLUMNS)
        writer.writerows(row for entry in chosen for row in _rows(entry))
    elif kind is None:
        _print_table(("kind", "entries"), [(each, str(len(shelf.names(each)))) for each in kinds])
    elif name is None:
        _print_list(kind, chosen)
    else:
        _print_entry(chosen[0])


def _kind(given: str, kinds: Sequence[str]) -> str | None:
    plain = given.lower().replace("_", "-")
    return next((kind for kind in kinds if plain in (kind, f"{kind}s", f"{kind}es")), None)


def _entry(kind: str, name: str, kinds: Sequence[str]) -> Entry:
    try:
        return shelf.entry(kind, name)
    except UnknownName:
        for other in _kinds_holding(name, kinds):
            what = f"{name!r} is no {kind} but a {other}"
            raise InputError(f"{what}; 'linkwise catalog {other} {name}' prints it") from None
        raise


def _kind_holding(name: str, kinds: Sequence[str]) -> str:
    for kind in _kinds_holding(name, kinds):
        return kind
    names = (*kinds, *(one for kind in kinds for one in shelf.names(kind)))
    error = UnknownName.among(names, kind="kind or name", given=name)
    if error.nearest:
        raise error
    raise InputError(f"{error}; 'linkwise catalog' lists the kinds, 'linkwise catalog KIND' the names of one")


def _kinds_holding(name: str, kinds: Iterable[str]) -> Iterator[str]:
    for kind in kinds:
        try:
            shelf.entry(kind, name)
        except UnknownName:
            continue
        yield kind


def _published(entries: Iterable[Entry]) -> dict[str, object]:
    keys: set[str] = set()
    listed = []
    for entry in entries:
        keys.update(entry.sources)
        listed.append(
            {
                "kind": entry.kind,
                "name": entry.name,
                "aliases": list(entry.aliases),
                "figures": {field: _figure(figure) for field, figure in entry.figures.items()},
                "text": entry.text,
                "sources": list(entry.sources),
            }
        )
    found = [shelf.source(key) for key in sorted(keys)]
    sources = {
        each.key: {"reference": each.reference, "date": each.date, "note": each.note} for each in found
    }
    return {"entries": listed, "sources": sources}


def _figure(figure: Figure) -> dict[str, object]:
    return {
        "value": figure.value,
        "unit": figure.unit,
        "basis": str(figure.basis),
        "source": figure.source,
        "date": figure.date,
        "note": figure.note,
    }


def _rows(entry: Entry) -> Iterable[tuple[object, ...]]:
    """Return the figures of an entry as rows of `_COLUMNS`; an entry without figures has one row."""
    if not entry.figures:
        yield (entry.kind, entry.name, "", "", "", "", ", ".join(entry.sources), "", "")
    for field, figure in entry.figures.items():
        yield (entry.kind, entry.name, field, *_figure(figure).values())


def _print_list(kind: str, entries: Sequence[Entry]) -> None:
    fields = _SHOWN.get(kind) or tuple(dict.fromkeys(field for one in entries for field in one.figures))[:4]
    rows = [
        (
            entry.name,
            *(_cell(entry, field) for field in fields),
            ", ".join(entry.sources),
        )
        for entry in entries
    ]
    _print_table(("name", *(_heading(field) for field in fields), "sources"), rows)


def _heading(field: str) -> str:
    ending = next((each for each in UNITS if each != "fraction" and field.endswith(f"_{each}")), "")
    return _HEADINGS.get(field) or field.removesuffix(f"_{ending}").replace("_", " ")


def _cell(entry: Entry, field: str) -> str:
    if field in entry.figures:
        return _written(entry.figures[field])
    shape = entry.text.get("shape")
    value = entry.text.get(field, shape.get(field) if isinstance(shape, dict) else None)
    return "" if value is None else _plain(value)


def _print_entry(entry: Entry) -> None:
    click.echo(f"{entry.kind} {entry.name}")
    if entry.aliases:
        click.echo(f"also: {', '.join(entry.aliases)}")
    click.echo()
    figures = [
        (field, _written(one), one.basis, one.source, one.date or "", one.note or "")
        for field, one in entry.figures.items()
    ]
    if figures:
        _print_table(("figure", "value", "basis", "source", "date", "note"), figures)
        click.echo()
    for key, value in entry.text.items():
        click.echo(f"{key}: {_plain(value)}")
    click.echo("\nsources")
    for key in entry.sources:
        source = shelf.source(key)
        click.echo(f"  {key}: {source.reference}{f' ({source.date})' if source.date else ''}")


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {each}" for key, each in value.items() if each is not None)
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _written(figure: Figure) -> str:
    dimension = _DIMENSION_OF_UNIT.get(figure.unit)
    if dimension is not None:
        return format_quantity(figure.value, dimension)
    unit = "" if figure.unit == "1" else f" {figure.unit}"
    return f"{figure.value:.6g}{unit}" if figure.value < 1e6 else f"{figure.value:.4g}{unit}"


def _print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows as wide as they are into a pipe, for grep; on a terminal in tables no wider than it is."""
    from linkwise.report.tables import Column, console_for, split_table, stated_width

    as_wide_as_it_is = stated_width() is None and not sys.stdout.isatty()
    console = console_for(width=_NO_LIMIT if as_wide_as_it_is else None)
    columns = []
    for place, heading in enumerate(header):
        cells = [row[place] for row in rows]
        if not any(cells):
            continue
        if heading in _PROSE and not as_wide_as_it_is:
            cells = [_folded(cell, _PROSE_WIDTH) for cell in cells]
        columns.append(Column(heading=_folded(heading, _HEADING_WIDTH), cells=tuple(cells), justify="left"))
    for number, table in enumerate(split_table(columns[1:], key=columns[0], width=console.width)):
        if number:
            click.echo()
        console.print(table, crop=False)


def _folded(text: str, width: int) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False))
