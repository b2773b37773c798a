"""Lookups by kind and name, on the catalogue itself or on one with layers of figures over it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from linkwise.catalog import build, store
from linkwise.catalog.fields import FOLDERS, plain_name, unit_of
from linkwise.catalog.values import Cable, Entry, Gpu, GpuAlias, Link, ModelEntry, Nic, Switch, System
from linkwise.errors import InputError
from linkwise.figures import Figure, Source

__all__ = [
    "Catalog",
    "Layer",
    "cable",
    "catalogue",
    "entry",
    "gpu",
    "gpu_alias",
    "kinds",
    "link",
    "model",
    "names",
    "nic",
    "source",
    "sources",
    "switch",
    "system",
    "with_layers",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Figures that take the place of the catalogue's: a shipped fit, a site's calibration, the command line.

    Parameters
    ----------
    name
        What its figures say as their layer.
    figures
        Figure by ``"kind/name/field"``: ``"gpu/h100-sxm/memory_bandwidth_bytes_per_s"``. The field may be one
        that the entry does not have yet (a price).
    """

    name: str
    figures: Mapping[str, Figure]


class Catalog:
    """The catalogue, seen through layers of figures; a later layer wins.

    Parameters
    ----------
    layers
        The layers, from the lowest to the highest; none gives the catalogue as it ships.

    Raises
    ------
    InputError
        If a key of a layer is not ``"kind/name/field"``, names nothing, or its figure is in another unit.
    """

    def __init__(self, *layers: Layer) -> None:
        self.layers = layers
        self._figures: dict[tuple[str, str], dict[str, Figure]] = {}
        for layer in layers:
            for key, figure in layer.figures.items():
                kind, name, field = _split(key, figure, layer)
                over = self._figures.setdefault((kind, name), {})
                over[field] = replace(figure, layer=layer.name)

    def names(self, kind: str) -> tuple[str, ...]:
        """Return the names of all entries of `kind`, sorted; `UnknownName` if there is no such kind."""
        return store.all_names(kind)

    def entry(self, kind: str, name: str) -> Entry:
        """Return everything held on `name`.

        Parameters
        ----------
        kind
            A key of `linkwise.catalog.fields.FOLDERS`.
        name
            Its name or an alias; case, hyphens, underscores and spaces do not count.

        Raises
        ------
        UnknownName
            If there is no such kind or name; with the nearest names.
        """
        found = store.resolve(kind, name)
        plain = store.read_entry(kind, found)
        over = self._figures.get((kind, found))
        return plain if over is None else replace(plain, figures={**plain.figures, **over})

    def gpu(self, name: str) -> Gpu:
        """Return the GPU called `name`; `UnknownName` if there is none."""
        return build.gpu(self.entry("gpu", name))

    def system(self, name: str) -> System:
        """Return the server, rack or cloud instance called `name`; `UnknownName` if there is none."""
        return build.system(self.entry("system", name))

    def link(self, name: str) -> Link:
        """Return the kind of network link called `name`; `UnknownName` if there is none."""
        return build.link(self.entry("link", name))

    def switch(self, name: str) -> Switch:
        """Return the switch called `name`; `UnknownName` if there is none."""
        return build.switch(self.entry("switch", name))

    def nic(self, name: str) -> Nic:
        """Return the network card called `name`; `UnknownName` if there is none."""
        return build.nic(self.entry("nic", name))

    def cable(self, name: str) -> Cable:
        """Return the cable or transceiver called `name`; `UnknownName` if there is none."""
        return build.cable(self.entry("cable", name))

    def model(self, name: str) -> ModelEntry:
        """Return the published shape of the model called `name`; `UnknownName` if there is none."""
        return build.model(self.entry("model", name))


def _split(key: str, figure: Figure, layer: Layer) -> tuple[str, str, str]:
    parts = key.split("/")
    if len(parts) != 3:
        raise InputError(
            f"layer {layer.name!r}: {key!r} names no figure; write it as kind/name/field, "
            "such as gpu/h100-sxm/memory_bandwidth_bytes_per_s"
        )
    kind, name, field = parts
    if unit_of(field) != figure.unit:
        raise InputError(
            f"layer {layer.name!r}: {key} is in {figure.unit!r}, and the field is in {unit_of(field)!r}"
        )
    return kind, store.resolve(kind, name), field


_PLAIN = Catalog()


def catalogue() -> Catalog:
    """Return the catalogue as it ships, without layers."""
    return _PLAIN


def with_layers(*layers: Layer) -> Catalog:
    """Return the catalogue seen through `layers`, from the lowest to the highest.

    Parameters
    ----------
    layers
        Figures that take the place of the catalogue's.

    Raises
    ------
    InputError
        If a key of a layer names nothing, or its figure is in another unit.
    """
    return Catalog(*layers)


def kinds() -> tuple[str, ...]:
    """Return the kinds of entries."""
    return tuple(FOLDERS)


def names(kind: str) -> tuple[str, ...]:
    """Return the names of all entries of `kind`, sorted; `UnknownName` if there is no such kind."""
    return store.all_names(kind)


def entry(kind: str, name: str) -> Entry:
    """Return everything the catalogue holds on `name`; `UnknownName` with the nearest if there is none."""
    return _PLAIN.entry(kind, name)


@cache
def gpu(name: str) -> Gpu:
    """Return the GPU called `name`, by name or alias; `UnknownName` with the nearest if there is none."""
    return _PLAIN.gpu(name)


@cache
def system(name: str) -> System:
    """Return the server, rack or instance called `name`; `UnknownName` with the nearest if there is none."""
    return _PLAIN.system(name)


@cache
def link(name: str) -> Link:
    """Return the kind of network link called `name`; `UnknownName` with the nearest if there is none."""
    return _PLAIN.link(name)


@cache
def switch(name: str) -> Switch:
    """Return the switch called `name`; `UnknownName` with the nearest if there is none."""
    return _PLAIN.switch(name)


@cache
def nic(name: str) -> Nic:
    """Return the network card called `name`; `UnknownName` with the nearest if there is none."""
    return _PLAIN.nic(name)


@cache
def cable(name: str) -> Cable:
    """Return the cable or transceiver called `name`; `UnknownName` with the nearest if there is none."""
    return _PLAIN.cable(name)


@cache
def model(name: str) -> ModelEntry:
    """Return the published shape of a model; `UnknownName` with the nearest names if there is none."""
    return _PLAIN.model(name)


def gpu_alias(text: str) -> GpuAlias:
    """Return which GPU a spelling from measured data means, and whether that is certain.

    Parameters
    ----------
    text
        A spelling: ``"A100-SXM-80GB"``, ``"NVIDIA H100 80GB HBM3"``, ``"B200"``.

    Raises
    ------
    UnknownName
        If no GPU is spelled so; with the nearest names.
    """
    found = entry("gpu", text)
    if text == found.name or text in found.aliases:
        return GpuAlias(name=found.name, exact=True)
    notes = {plain_name(alias): note for alias, note in found.assumed_aliases.items()}
    note = notes.get(plain_name(text))
    return GpuAlias(name=found.name, exact=note is None, note=note)


def source(key: str) -> Source:
    """Return the source that figures cite as `key`; `UnknownName` if there is none."""
    return store.read_source(key)


def sources() -> tuple[Source, ...]:
    """Return all sources."""
    return tuple(store.read_source(key) for key in store.source_keys())
