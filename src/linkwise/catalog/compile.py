"""Compile the entries under `data/` to `catalog.json`: ``python -m linkwise.catalog.compile``.

The YAML files are what people read and change; the compiled file is what a program loads in milliseconds.
All faults of all files are reported together, and nothing is written while there is one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from linkwise import units
from linkwise.catalog.fields import FOLDERS, SHAPE_COLUMNS, dimension_of, plain_name
from linkwise.catalog.store import COMPILED
from linkwise.errors import DocumentError, Fault, InputError
from linkwise.figures import Basis

__all__ = ["DATA", "compile_catalog", "render"]

DATA = Path(__file__).with_name("data")
"""Where the entries lie."""

_ENTRY_KEYS = {"name", "aliases", "assumed_aliases", "text", "figures", "sources"}
_FIGURE_KEYS = {"value", "basis", "source", "date", "note"}
_AGING = ("usd", "usd_per_s")
_REFERENCES = {"gpu": "gpu", "nic": "nic", "switch": "switch", "link": "link"}


def compile_catalog(data: Path = DATA) -> dict[str, Any]:
    """Return the content of the compiled file.

    Parameters
    ----------
    data
        Folder of the entries.

    Raises
    ------
    DocumentError
        With all faults of all files: a figure without source, basis or known unit, a price without date, an
        assumption without reason, a name that finds two entries, a source that nothing cites.
    """
    faults: list[Fault] = []
    sources = {key: _source(key, raw, faults) for key, raw in _read(data / "sources.yaml").items()}
    cited: set[str] = set()
    entries: dict[str, dict[str, Any]] = {kind: {} for kind in FOLDERS}
    for kind, path in _files(data):
        name, compiled = _entry(path, _read(path), sources=sources, faults=faults)
        entries[kind][name] = compiled
        cited.update(key for parts in compiled["figures"].values() for key in parts[2].split(", "))
        cited.update(compiled.get("sources", ()))
    faults += [
        Fault(path="sources.yaml", key=key, message="no figure cites this source; remove it")
        for key in sources
        if key not in cited
    ]
    spellings = {kind: _spellings(kind, entries[kind], faults) for kind in FOLDERS}
    faults += _dangling(entries)
    if faults:
        raise DocumentError(faults)
    return {"sources": sources, "entries": entries, "names": spellings}


def render(content: Mapping[str, Any]) -> str:
    """Return the compiled file as text: JSON with one entry on a line, so that changes can be read.

    Parameters
    ----------
    content
        What `compile_catalog` returned.
    """
    sections = []
    for section, part in content.items():
        body = _lines(part)
        if section != "sources":
            body = (
                "{\n" + ",\n".join(f"{_dumps(kind)}: {_lines(some)}" for kind, some in part.items()) + "\n}"
            )
        sections.append(f"{_dumps(section)}: {body}")
    return "{\n" + ",\n".join(sections) + "\n}\n"


def _lines(part: Mapping[str, Any]) -> str:
    return "{\n" + ",\n".join(f"{_dumps(key)}: {_dumps(value)}" for key, value in part.items()) + "\n}"


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _files(data: Path) -> Iterator[tuple[str, Path]]:
    for kind, folder in FOLDERS.items():
        for path in sorted((data / folder).glob("*.yaml")):
            yield kind, path


def _read(path: Path) -> dict[str, Any]:
    from ruamel.yaml import YAML

    content = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise DocumentError([Fault(path=path.name, message="a mapping is due")])
    return content


def _source(key: str, raw: object, faults: list[Fault]) -> list[str | None]:
    if not isinstance(raw, dict) or not raw.get("reference") or set(raw) - {"reference", "date", "note"}:
        faults.append(
            Fault(path="sources.yaml", key=key, message="give reference, and if known date and note; no more")
        )
        return ["", None, None]
    return [str(raw["reference"]), raw.get("date"), raw.get("note")]


def _entry(
    path: Path, raw: Mapping[str, Any], *, sources: Mapping[str, object], faults: list[Fault]
) -> tuple[str, dict[str, Any]]:
    where = f"{path.parent.name}/{path.name}"

    def fault(key: str, message: str) -> None:
        faults.append(Fault(path=where, key=key, message=message))

    name = str(raw.get("name", ""))
    if name != path.stem or name != name.lower() or " " in name or "_" in name:
        fault("name", f"{name!r} is not the name of the file in lower case with hyphens")
    for key in raw.keys() - _ENTRY_KEYS:
        fault(key, f"unknown key; an entry has {', '.join(sorted(_ENTRY_KEYS))}")
    figures: dict[str, list[Any]] = {}
    for field, figure in raw.get("figures", {}).items():
        try:
            figures[field] = _figure(field, figure, sources)
        except InputError as error:
            fault(f"figures.{field}", str(error))
    for key in raw.get("sources", ()):
        if key not in sources:
            fault("sources", f"{key!r} is not in sources.yaml")
    for column in _shape(raw).keys() - set(SHAPE_COLUMNS):
        fault(f"text.shape.{column}", "unknown column of a shape")
    if _shape(raw) and not raw.get("sources"):
        fault("sources", "a shape has no source")
    kept = {key: raw[key] for key in ("aliases", "assumed_aliases", "sources") if raw.get(key)}
    return name, {**kept, "text": raw.get("text", {}), "figures": figures}


def _shape(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    shape = raw.get("text", {}).get("shape")
    return shape if isinstance(shape, dict) else {}


def _figure(field: str, raw: object, sources: Mapping[str, object]) -> list[Any]:
    if not isinstance(raw, dict) or not {"value", "basis", "source"} <= raw.keys() <= _FIGURE_KEYS:
        raise InputError("give value, basis and source, and where they matter date and note; no more")
    if raw["basis"] not in set(Basis):
        raise InputError(f"basis {raw['basis']!r} is none of {', '.join(Basis)}")
    keys = raw["source"] if isinstance(raw["source"], list) else [raw["source"]]
    unknown = [str(key) for key in keys if key not in sources]
    if unknown or not keys:
        raise InputError(f"source {', '.join(unknown) or 'missing'} is not in sources.yaml")
    if raw["basis"] == Basis.ASSUMED and not raw.get("note"):
        raise InputError("it is assumed: say in a note why")
    if dimension_of(field) in _AGING and not raw.get("date"):
        raise InputError("a price ages: give its date")
    return [_si(field, raw["value"]), raw["basis"], ", ".join(keys), raw.get("date"), raw.get("note")]


def _si(field: str, value: object) -> float:
    dimension = dimension_of(field)
    if dimension in (None, "fraction"):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{value!r} is not a plain number, and {field} has no unit")
        return _tidy(float(value))
    if not isinstance(value, str):
        raise InputError(f"{value!r} has no unit")
    if dimension == "s_per_m":
        return _tidy(units.parse(value.removesuffix("/m"), "s"))
    return _tidy(units.parse(value, dimension))


def _tidy(value: float) -> float:
    """Return `value` without the last binary digits that conversion leaves: 4.5 ns is 4.5e-09."""
    short = float(f"{value:.14g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def _spellings(kind: str, entries: Mapping[str, Any], faults: list[Fault]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, entry in entries.items():
        for spelling in (name, *entry.get("aliases", ()), *entry.get("assumed_aliases", {})):
            other = found.setdefault(plain_name(str(spelling)), name)
            if other != name:
                faults.append(
                    Fault(path=f"{FOLDERS[kind]}/{name}.yaml", message=f"{spelling!r} also finds {other}")
                )
    return found


def _dangling(entries: Mapping[str, Mapping[str, Any]]) -> list[Fault]:
    return [
        Fault(
            path=f"systems/{name}.yaml",
            key=f"text.{key}",
            message=f"there is no {kind} {system['text'][key]!r}",
        )
        for name, system in entries["system"].items()
        for key, kind in _REFERENCES.items()
        if key in system["text"] and system["text"][key] not in entries[kind]
    ]


def main() -> int:
    """Write the compiled file and return 0, or print all faults and return 2."""
    try:
        content = compile_catalog(DATA)
    except DocumentError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    COMPILED.write_text(render(content), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
