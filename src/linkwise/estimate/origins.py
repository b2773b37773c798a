"""Where each column of an estimate comes from: a figure with its source, or the job, model or layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from linkwise.cluster.calibration import CALIBRATION_LAYER
from linkwise.estimate.calibrated import NO_LATENCY_FACTORS, calibrated_factors, columns_of
from linkwise.estimate.constants import shipped_constants
from linkwise.estimate.crossing import TIER_COLUMNS
from linkwise.estimate.inputs import model_inputs
from linkwise.estimate.job_inputs import LAYOUT_COLUMNS, framework_of_job, job_columns, nvlink_domain
from linkwise.estimate.terms import TERMS
from linkwise.figures import Basis, weakest
from linkwise.model import model_columns

if TYPE_CHECKING:
    from linkwise.catalog import Gpu
    from linkwise.cluster import Cluster
    from linkwise.figures import Figure
    from linkwise.job import Job

__all__ = ["Origin", "input_names", "input_origins", "reaching_terms", "weakest_basis"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the value of one column comes from.

    Attributes
    ----------
    kind
        ``figure``, ``job``, ``model``, ``layout``, ``cluster`` or ``framework``.
    unit
        Unit of a figure, else ``None``.
    basis
        Basis of a figure, else ``None``.
    source
        Sources of a figure, or the name of the job's model or framework.
    layer
        Layer of figures it came from, else ``None``.
    """

    kind: str
    unit: str | None = None
    basis: Basis | None = None
    source: str | None = None
    layer: str | None = None


@cache
def reaching_terms(*targets: str) -> tuple[str, ...]:
    """Return the terms that the targets rest on, in an order in which they can be computed, targets last.

    Parameters
    ----------
    targets
        Names of terms.
    """
    found: dict[str, None] = {}

    def visit(name: str) -> None:
        if name in found or name not in TERMS:
            return
        for column in TERMS[name].inputs:
            visit(column)
        found[name] = None

    for target in targets:
        visit(target)
    return tuple(found)


@cache
def input_names() -> frozenset[str]:
    """Return the columns, terms left out, that step time and memory read."""
    terms = reaching_terms("step_time_s", "memory_bytes")
    read = {column for name in terms for column in TERMS[name].inputs}
    return frozenset((read | {"memory_available_bytes"}) - set(TERMS))


def input_origins(job: Job, cluster: Cluster) -> Mapping[str, Origin]:
    """Return the origin of every column that step time and memory read.

    Parameters
    ----------
    job, cluster
        What is run on what.
    """
    columns = job_columns(job, cluster)
    of_model = set(model_inputs(model_columns([job.model])))
    origins: dict[str, Origin] = {name: Origin(kind="layout") for name in LAYOUT_COLUMNS}
    framework = Origin(kind="framework", source=framework_of_job(job).name)
    for name, value in columns.items():
        if name in of_model:
            origins[name] = Origin(kind="model", source=job.model.source or job.model.name)
        elif isinstance(value, str):
            origins[name] = _of_figure(shipped_constants()[value], named=value)
        else:
            origins[name] = framework
    for name in ("sequence_length", "global_batch"):
        origins[name] = Origin(kind="job")
    for name in ("gpus", "domain_gpus", "collective_generation", "collective_network", *TIER_COLUMNS):
        origins[name] = Origin(kind="cluster", source=cluster.name)
    origins.update(_gpu_origins(job, cluster))
    origins.update(_link_origins(cluster, columns))
    origins.update({name: Origin(kind="cluster", source="no calibration") for name in NO_LATENCY_FACTORS})
    origins.update(_calibrated_origins(job, cluster, origins))
    return {name: origin for name, origin in origins.items() if name in input_names()}


def _calibrated_origins(job: Job, cluster: Cluster, origins: Mapping[str, Origin]) -> dict[str, Origin]:
    """Return the origins of the columns that the site's calibration moves, which is their layer."""
    if cluster.calibration is None:
        return {}
    moved: dict[str, Origin] = {}
    for name, value in calibrated_factors(cluster.calibration, precision=str(job.precision)).items():
        for column in columns_of(name):
            before = origins[column]
            words = f"{before.source or 'the value above'}; times {name} {value:.3g}"
            bases = [Basis.FITTED] if before.basis is None else [before.basis, Basis.FITTED]
            moved[column] = Origin(
                kind="figure",
                unit=before.unit or "1",
                basis=weakest(*bases),
                source=f"{words}, {cluster.calibration.words}",
                layer=CALIBRATION_LAYER,
            )
    return moved


def weakest_basis(origins: Mapping[str, Origin]) -> Basis:
    """Return the basis of the weakest figure among the origins.

    Parameters
    ----------
    origins
        As `input_origins` gives them.
    """
    return weakest(
        Basis.DATASHEET, *(origin.basis for origin in origins.values() if origin.basis is not None)
    )


def _of_figure(figure: Figure, *, named: str | None = None) -> Origin:
    source = figure.source if named is None else f"{named}: {figure.source}" if figure.source else named
    return Origin(kind="figure", unit=figure.unit, basis=figure.basis, source=source, layer=figure.layer)


def _gpu_origins(job: Job, cluster: Cluster) -> dict[str, Origin]:
    gpu = cluster.gpu
    half = "bf16_flop_per_s" if gpu.flop_per_s.get("bf16") else "fp16_flop_per_s"
    linear = half if str(job.precision) in ("bf16", "fp16") else f"{job.precision}_flop_per_s"
    rate = "pcie_bytes_per_s" if nvlink_domain(cluster).is_pcie else "nvlink_bytes_per_s"
    named = {
        "peak_linear_flop_per_s": linear,
        "peak_half_flop_per_s": half,
        "memory_bytes_per_s": "memory_bandwidth_bytes_per_s",
        "memory_available_bytes": "memory_bytes",
        "nvlink_bytes_per_s": rate,
    }
    return {column: _gpu_origin(gpu, field) for column, field in named.items()}


def _gpu_origin(gpu: Gpu, field: str) -> Origin:
    figure = gpu.figures.get(field)
    if figure is None:
        return Origin(
            kind="figure", basis=Basis.ASSUMED, source=f"{gpu.name} has no {field}; the oldest server's"
        )
    return _of_figure(figure)


def _link_origins(cluster: Cluster, columns: Mapping[str, float | str]) -> dict[str, Origin]:
    link = cluster.fabric.link
    names = ("nic_bytes_per_s", "network_fraction", "hop_network_fraction", "network_latency_s")
    if link is None:
        return {name: Origin(kind="cluster", source="no fabric") for name in names}
    origins = {"network_latency_s": _of_figure(link.figure("hop_s"))}
    for name in ("network_fraction", "hop_network_fraction"):
        if not isinstance(columns[name], str):
            origins[name] = _of_figure(link.figure("achieved_fraction"))
    nics = f"{cluster.nics_per_node} NICs over {cluster.gpus_per_node} GPUs of a node, link {link.name}"
    if cluster.changes:
        nics += ", less what changes leave"
    origins["nic_bytes_per_s"] = Origin(
        kind="figure", unit="B/s", basis=Basis.DERIVED, source=nics, layer=link.figure("bytes_per_s").layer
    )
    return origins
