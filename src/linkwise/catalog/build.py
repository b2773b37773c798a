"""From an entry, which holds everything, to the value that a caller computes with."""

from __future__ import annotations

from typing import Literal

from linkwise.catalog import store
from linkwise.catalog.fields import SHAPE_COLUMNS
from linkwise.catalog.values import Cable, Entry, Gpu, Link, ModelEntry, Nic, Switch, System
from linkwise.figures import Basis

__all__ = ["PRECISIONS", "cable", "gpu", "link", "model", "nic", "switch", "system"]

PRECISIONS = ("fp32", "tf32", "bf16", "fp16", "fp8", "nvfp4")
"""Precisions that a peak is held for."""


def _value(entry: Entry, field: str) -> float | None:
    figure = entry.figures.get(field)
    return None if figure is None else figure.value


def _whole(entry: Entry, field: str) -> int | None:
    value = _value(entry, field)
    return None if value is None else int(value)


def _text(entry: Entry, key: str) -> str | None:
    value = entry.text.get(key)
    return None if value is None else str(value)


def gpu(entry: Entry) -> Gpu:
    """Return the GPU that `entry` describes."""
    peaks = {each: _value(entry, f"{each}_flop_per_s") for each in PRECISIONS}
    return Gpu(
        name=entry.name,
        architecture=str(entry.text["architecture"]),
        memory_bytes=entry.figure("memory_bytes").value,
        memory_bandwidth_bytes_per_s=entry.figure("memory_bandwidth_bytes_per_s").value,
        flop_per_s={each: peak for each, peak in peaks.items() if peak is not None},
        nvlink_bytes_per_s=_value(entry, "nvlink_bytes_per_s"),
        scale_up=_text(entry, "scale_up"),
        scale_up_form=_text(entry, "scale_up_form"),
        nvlink_generation=_whole(entry, "nvlink_generation"),
        pcie_bytes_per_s=_value(entry, "pcie_bytes_per_s"),
        tdp_w=_value(entry, "tdp_w"),
        figures=entry.figures,
    )


def system(entry: Entry) -> System:
    """Return the server, rack or instance that `entry` describes."""
    kind: Literal["system", "instance"] = "instance" if entry.text["kind"] == "instance" else "system"
    return System(
        name=entry.name,
        kind=kind,
        gpu=str(entry.text["gpu"]),
        gpus=int(entry.figure("gpus").value),
        gpus_per_node=int(entry.figure("gpus_per_node").value),
        nvlink_domain_gpus=int(entry.figure("nvlink_domain_gpus").value),
        nic=_text(entry, "nic"),
        nics=int(entry.figure("nics").value),
        nic_bytes_per_s=entry.figure("nic_bytes_per_s").value,
        switch=_text(entry, "switch"),
        link=_text(entry, "link"),
        power_w=_value(entry, "power_w"),
        figures=entry.figures,
    )


def link(entry: Entry) -> Link:
    """Return the kind of network link that `entry` describes."""
    return Link(
        name=entry.name,
        protocol=str(entry.text["protocol"]),
        bytes_per_s=entry.figure("bytes_per_s").value,
        achieved_fraction=entry.figure("achieved_fraction").value,
        hop_s=entry.figure("hop_s").value,
        rdma=bool(entry.text["rdma"]),
        figures=entry.figures,
    )


def switch(entry: Entry) -> Switch:
    """Return the switch that `entry` describes."""
    return Switch(
        name=entry.name,
        fabric=str(entry.text["fabric"]),
        ports=int(entry.figure("ports").value),
        port_bytes_per_s=entry.figure("port_bytes_per_s").value,
        latency_s=_value(entry, "latency_s"),
        power_w=_value(entry, "power_w"),
        figures=entry.figures,
    )


def nic(entry: Entry) -> Nic:
    """Return the network card that `entry` describes."""
    protocols = entry.text["protocols"]
    return Nic(
        name=entry.name,
        bytes_per_s=entry.figure("bytes_per_s").value,
        protocols=tuple(protocols) if isinstance(protocols, list) else (str(protocols),),
        pcie_generation=_whole(entry, "pcie_generation"),
        pcie_lanes=_whole(entry, "pcie_lanes"),
        pcie_bytes_per_s=_value(entry, "pcie_bytes_per_s"),
        power_w=_value(entry, "power_w"),
        figures=entry.figures,
    )


def cable(entry: Entry) -> Cable:
    """Return the cable or transceiver that `entry` describes; the power of both ends of a cable is added."""
    per_end = _value(entry, "power_per_end_w")
    return Cable(
        name=entry.name,
        reach_m=_value(entry, "reach_m"),
        power_w=_value(entry, "power_w") if per_end is None else 2 * per_end,
        price_usd=_value(entry, "price_usd"),
        figures=entry.figures,
    )


def model(entry: Entry) -> ModelEntry:
    """Return the published shape that `entry` describes."""
    shape = entry.text.get("shape")
    known = shape if isinstance(shape, dict) else {}
    return ModelEntry(
        name=entry.name,
        aliases=entry.aliases,
        title=_text(entry, "title") or entry.name,
        hugging_face=_text(entry, "hugging_face"),
        shape={column: known.get(column) for column in SHAPE_COLUMNS},
        shape_basis=Basis(str(entry.text.get("shape_basis", Basis.ASSUMED))),
        published_parameters_text=_text(entry, "published_parameters_text"),
        published_active_text=_text(entry, "published_active_parameters_text"),
        source="; ".join(store.read_source(key).reference for key in entry.sources),
        notes=_text(entry, "note") or "",
    )
