"""The compiled catalogue: read once, turned into entries one at a time.

`catalog.json` holds ``sources`` (key to reference, date, note), ``entries`` (kind to name to entry) and
``names`` (kind to plain spelling to name). A figure is a list: value in SI, basis, source, date, note.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from linkwise.catalog.fields import FOLDERS, plain_name, unit_of
from linkwise.catalog.values import Entry
from linkwise.errors import UnknownName, nearest_names
from linkwise.figures import Basis, Figure, Source

__all__ = ["COMPILED", "all_names", "read_entry", "read_source", "resolve", "source_keys"]

COMPILED = Path(__file__).with_name("catalog.json")
"""Where the compiled catalogue lies."""


@cache
def _compiled() -> Mapping[str, Any]:
    content: Mapping[str, Any] = json.loads(COMPILED.read_bytes())
    return content


def _of_kind(section: str, kind: str) -> Mapping[str, Any]:
    if kind not in FOLDERS:
        raise UnknownName.among(FOLDERS, kind="kind of the catalogue", given=kind)
    found: Mapping[str, Any] = _compiled()[section][kind]
    return found


@cache
def all_names(kind: str) -> tuple[str, ...]:
    """Return the names of all entries of `kind`, sorted.

    Parameters
    ----------
    kind
        A key of `linkwise.catalog.fields.FOLDERS`.

    Raises
    ------
    UnknownName
        If there is no such kind.
    """
    return tuple(sorted(_of_kind("entries", kind)))


def resolve(kind: str, name: str) -> str:
    """Return the name of the entry that `name` spells, whatever its case and separators.

    Parameters
    ----------
    kind
        A key of `linkwise.catalog.fields.FOLDERS`.
    name
        Its name or an alias.

    Raises
    ------
    UnknownName
        If there is no such kind or name; with the nearest names.
    """
    spellings = _of_kind("names", kind)
    found = spellings.get(plain_name(name))
    if found is None:
        raise _unknown(kind, name)
    return str(found)


def _unknown(kind: str, name: str) -> UnknownName:
    words = "GPU" if kind == "gpu" else kind
    if nearest_names(name, all_names(kind)):
        return UnknownName.among(all_names(kind), kind=words, given=name)
    entries = _of_kind("entries", kind).values()
    aliases = tuple(alias for each in entries for alias in each.get("aliases", ()))
    return UnknownName.among((*all_names(kind), *aliases), kind=words, given=name)


@cache
def read_entry(kind: str, name: str) -> Entry:
    """Return the entry of that kind and exact name.

    Parameters
    ----------
    kind
        A key of `linkwise.catalog.fields.FOLDERS`.
    name
        Its name, as `resolve` gives it.
    """
    raw = _of_kind("entries", kind)[name]
    figures = {field: _figure(field, parts) for field, parts in raw["figures"].items()}
    cited = dict.fromkeys(key for each in figures.values() for key in each.source.split(", "))
    cited.update(dict.fromkeys(raw.get("sources", ())))
    return Entry(
        kind=kind,
        name=name,
        aliases=tuple(raw.get("aliases", ())),
        assumed_aliases=raw.get("assumed_aliases", {}),
        figures=figures,
        text=raw["text"],
        sources=tuple(cited),
    )


def _figure(field: str, parts: list[Any]) -> Figure:
    value, basis, source, date, note = parts
    return Figure(
        value=float(value), unit=unit_of(field), basis=Basis(basis), source=source, date=date, note=note
    )


def read_source(key: str) -> Source:
    """Return the source that figures cite as `key`.

    Parameters
    ----------
    key
        Its key.

    Raises
    ------
    UnknownName
        If there is none.
    """
    sources = _compiled()["sources"]
    if key not in sources:
        raise UnknownName.among(sources, kind="source", given=key)
    reference, date, note = sources[key]
    return Source(key=key, reference=reference, date=date, note=note)


def source_keys() -> tuple[str, ...]:
    """Return the keys of all sources, in the order of `data/sources.yaml`."""
    return tuple(_compiled()["sources"])
