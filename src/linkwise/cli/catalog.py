"""`linkwise catalog`: hardware and models with their sources."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Sequence

import click

from linkwise import catalog as shelf
from linkwise.catalog import Entry
from linkwise.errors import UnknownName
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
}

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
        chosen = [shelf.entry(kind, one) for one in ((name,) if name else shelf.names(kind))]
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


def _kind_holding(name: str, kinds: Sequence[str]) -> str:
    for kind in kinds:
        try:
            shelf.entry(kind, name)
        except UnknownName:
            continue
        return kind
    names = (*kinds, *(one for kind in kinds for one in shelf.names(kind)))
    raise UnknownName.among(names, kind="kind or name", given=name)


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
    _print_table(
        ("name", *(_HEADINGS.get(field, field.replace("_", " ")) for field in fields), "sources"), rows
    )


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
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in header:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 180)
    console.print(table)
