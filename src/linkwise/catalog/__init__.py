"""What vendors sell and models that exist, as data with a source for every figure; overlays of its figures.

It is not a judge: it knows no formula and chooses nothing. Bandwidths are of one direction, FLOPs dense.
Each entry is one YAML file under `data/`; ``python -m linkwise.catalog.compile`` writes `catalog.json`, which
a program loads. To add a GPU or a model: one file, then that command. Read `values` first, then `lookup`.
"""

from linkwise.catalog.lookup import (
    Catalog,
    Layer,
    cable,
    catalogue,
    entry,
    gpu,
    gpu_alias,
    kinds,
    link,
    model,
    names,
    nic,
    source,
    sources,
    switch,
    system,
    with_layers,
)
from linkwise.catalog.values import Cable, Entry, Gpu, GpuAlias, Link, ModelEntry, Nic, Switch, System

__all__ = [
    "Cable",
    "Catalog",
    "Entry",
    "Gpu",
    "GpuAlias",
    "Layer",
    "Link",
    "ModelEntry",
    "Nic",
    "Switch",
    "System",
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
