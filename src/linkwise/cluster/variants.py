"""Variants of one cluster: the same nodes with other links, NVLink domains or oversubscription."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType

from pydantic import ValidationError

from linkwise.cluster.cluster import Cluster, FabricKind
from linkwise.cluster.document import LARGEST_OVERSUBSCRIPTION, ClusterDocument
from linkwise.cluster.gpu_links import LARGEST_DOMAIN_GPUS
from linkwise.cluster.parts import fabric_parts_of, nearest_switch, node_of, rail_fits_a_switch
from linkwise.cluster.reading import cluster_of_document
from linkwise.documents.reading import faults_of_values
from linkwise.errors import DocumentError, Fault, UnknownName

__all__ = ["VariantAxes", "cluster_variants"]

_UPLINKS_THAT_NEVER_BIND: Mapping[FabricKind, str] = MappingProxyType(
    {
        FabricKind.SINGLE_SWITCH: "a single switch has no up-links",
        FabricKind.NONE: "there is no fabric",
        FabricKind.LINKS: "its table says which links there are",
    }
)
"""Kinds of fabric whose oversubscription moves no estimate, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantAxes:
    """What to vary of a cluster; an axis without values keeps what the cluster has.

    Parameters
    ----------
    fabrics
        Links of the catalogue, by name.
    domains
        GPUs of an NVLink domain.
    oversubscription
        Down-link over up-link bandwidth at the leaf, at least 1 [1].
    """

    fabrics: tuple[str, ...] = ()
    domains: tuple[int, ...] = ()
    oversubscription: tuple[float, ...] = ()

    @property
    def given(self) -> tuple[str, ...]:
        """Return the names of the axes that have values."""
        return tuple(name for name in ("fabrics", "domains", "oversubscription") if getattr(self, name))


def cluster_variants(document: ClusterDocument, axes: VariantAxes) -> tuple[Cluster, ...]:
    """Return a cluster for each combination of the values of the axes, the last axis varying fastest.

    Parameters
    ----------
    document
        The cluster that is varied.
    axes
        What to vary.

    Raises
    ------
    DocumentError
        When a value does not fit the nodes or is given twice, or an axis has no effect on this cluster; keys
        of the faults are the names of the axes.

    Notes
    -----
    With another link the cables of the document are left out, which may not carry it, and the switch is that
    of the catalogue that carries the link and is nearest to the one there was, so that variants differ in
    tiers and power by what they are built of and not by what is known of them.
    """
    cluster = cluster_of_document(document)
    wrong = [*_wrong_oversubscription(axes)]
    if wrong:
        raise DocumentError(wrong)
    faults = [
        *_repeated(axes),
        *_domain_faults(document, cluster, axes),
        *_idle_oversubscription(cluster, axes),
        *_stated_links(cluster, axes),
    ]
    if faults:
        raise DocumentError(faults)
    found = _variants(document, cluster, axes)
    idle = [name for name in axes.given if name != "domains"]
    if idle and all(one.domains == 1 or one.nodes_in_use == 1 for one in found):
        words = f"has no effect: nothing of {cluster.name} crosses a fabric, its GPUs are one domain or node"
        raise DocumentError(Fault(key=name, message=words) for name in idle)
    return found


def _variants(document: ClusterDocument, cluster: Cluster, axes: VariantAxes) -> tuple[Cluster, ...]:
    values = (axes.fabrics or (None,), axes.domains or (None,), axes.oversubscription or (None,))
    found: list[Cluster] = []
    faults: list[Fault] = []
    for link, domain, oversubscription in product(*values):
        try:
            changed, assumed = _with_fabric(document, link=link, oversubscription=oversubscription)
        except DocumentError as error:
            faults += error.faults
            continue
        variant = cluster_of_document(changed, domain_gpus=domain)
        words = [cluster.name]
        if variant.fabric.link is not None and link is not None:
            words.append(variant.fabric.link.name)
        if domain is not None:
            words.append(f"NVL{domain}")
        if oversubscription is not None:
            words.append(f"{oversubscription:g}:1")
        found.append(replace(variant, name=", ".join(words), assumptions=(*variant.assumptions, *assumed)))
    if faults:
        raise DocumentError(dict.fromkeys(faults))
    return tuple(found)


def _with_fabric(
    document: ClusterDocument, *, link: str | None, oversubscription: float | None
) -> tuple[ClusterDocument, tuple[str, ...]]:
    """Return the document with another link or oversubscription, all checked again, and what is assumed."""
    if link is None and oversubscription is None:
        return document, ()
    fabric = {} if document.fabric is None else dict(document.fabric)
    if oversubscription is not None:
        fabric["oversubscription"] = oversubscription
    built = fabric_parts_of(document.fabric, node_of(document.node))
    if link is None or link == built.link:
        return _checked(document, fabric), ()
    for key in ("switch", "node_cables", "switch_cables"):
        fabric.pop(key, None)
    fabric["link"] = link
    if built.switch is not None and built.link is not None:
        with suppress(DocumentError, UnknownName):
            priced = _priced_switches(document)
            switch = nearest_switch(link, built.switch, built.link, preferred=priced)
            changed = _checked(document, {**fabric, "switch": switch})
            return changed, _switch_words(switch, built.switch, link, is_priced=switch in priced)
    return _checked(document, fabric), ()


def _priced_switches(document: ClusterDocument) -> tuple[str, ...]:
    hardware = None if document.prices is None else document.prices.hardware
    return () if hardware is None else tuple(hardware.switches)


def _switch_words(switch: str | None, replaced: str, link: str, *, is_priced: bool) -> tuple[str, ...]:
    if switch is None or switch == replaced:
        return ()
    those = "those with a price" if is_priced else "those of the catalogue"
    why = f"of {those} that carry it the nearest to {replaced} in number of links"
    return (f"switch {switch} assumed with {link}: {why}; to name another, give each cluster as a document",)


def _checked(document: ClusterDocument, fabric: Mapping[str, object]) -> ClusterDocument:
    values = {**dict(document), "fabric": fabric}
    try:
        return ClusterDocument.model_validate(values)
    except ValidationError as error:
        faults = faults_of_values(error, ClusterDocument, values)
    raise DocumentError(_as_axis(fault) for fault in faults)


def _as_axis(fault: Fault) -> Fault:
    axis = "oversubscription" if fault.key.endswith("oversubscription") else "fabrics"
    return replace(fault, key=axis)


def _wrong_oversubscription(axes: VariantAxes) -> Iterator[Fault]:
    """Yield the values that no cluster can have, before what this one makes of the others."""
    for value in axes.oversubscription:
        if not 1 <= value <= LARGEST_OVERSUBSCRIPTION:
            words = f"{value:g} is not a ratio from 1 to {LARGEST_OVERSUBSCRIPTION}, down-links over up-links"
            yield Fault(key="oversubscription", message=words)


def _repeated(axes: VariantAxes) -> Iterator[Fault]:
    for name in axes.given:
        values = getattr(axes, name)
        for value in dict.fromkeys(value for value in values if values.count(value) > 1):
            yield Fault(key=name, message=f"{value} is given twice")


def _domain_faults(document: ClusterDocument, cluster: Cluster, axes: VariantAxes) -> Iterator[Fault]:
    if not axes.domains:
        return
    node = node_of(document.node)
    if document.gpus_per_domain is not None:
        words = f"has no effect beside the gpus_per_domain of {cluster.name}; leave that out"
        yield Fault(key="domains", message=words)
    is_rack = node.nvlink_domain_gpus > node.gpus_per_node
    for size in axes.domains:
        if size > node.nvlink_domain_gpus and not is_rack:
            widest = f"the GPUs of an NVLink domain of {node.system or node.gpu}: {node.nvlink_domain_gpus}"
            words = f"{size} is more than {widest}; describe racks of such nodes with nvlink_domain_gpus"
            yield Fault(key="domains", message=words)
        elif size > LARGEST_DOMAIN_GPUS:
            words = f"{size} is more than the {LARGEST_DOMAIN_GPUS} GPUs that NVLink is announced to join"
            yield Fault(key="domains", message=words)
        elif size < 1 or (size % node.gpus_per_node and node.gpus_per_node % size):
            words = f"{size} GPUs are neither whole nodes of {node.gpus_per_node} nor an even part of one"
            yield Fault(key="domains", message=words)


def _idle_oversubscription(cluster: Cluster, axes: VariantAxes) -> Iterator[Fault]:
    fabric = cluster.fabric
    why = _UPLINKS_THAT_NEVER_BIND.get(fabric.kind)
    link = None if fabric.link is None else fabric.link.name
    if rail_fits_a_switch(fabric.kind, cluster.nodes, fabric.switch, link):
        why = "a rail-only fabric has no up-links where a switch has a port for every node"
    if axes.oversubscription and why is not None:
        what = f"has no effect on {cluster.name}: {why}"
        todo = "give a cluster document whose fabric.kind is leaf-spine or fat-tree"
        yield Fault(key="oversubscription", message=f"{what}; {todo}")


def _stated_links(cluster: Cluster, axes: VariantAxes) -> Iterator[Fault]:
    if axes.fabrics and cluster.fabric.kind is FabricKind.LINKS:
        words = (
            f"has no effect on {cluster.name}: its table says which links there are; give a cluster for each"
        )
        yield Fault(key="fabrics", message=words)
