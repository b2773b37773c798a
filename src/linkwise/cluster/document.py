"""The `cluster/1` document: its keys, and which of their values fit together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    Tag,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from linkwise import catalog
from linkwise.cluster.changes_document import ChangeDocument, change_misfits
from linkwise.cluster.cluster import CableKind, FabricKind, GpuLinks, Routing, RoutingKind
from linkwise.cluster.gpu_links import gpu_links_misfits
from linkwise.cluster.link_table import LinkTable, read_link_table, table_of_rows
from linkwise.cluster.parts import fabric_switch_misfits, misfits, node_of, rate_text
from linkwise.cluster.prices import Prices
from linkwise.cluster.prices_document import read_prices
from linkwise.documents import BytesPerSecond, Count, Document, Misfits, Watts
from linkwise.errors import DocumentError, InputError

__all__ = [
    "HEADER",
    "LARGEST_OVERSUBSCRIPTION",
    "MOST_CHANGES",
    "ClusterDocument",
    "EcmpDocument",
    "FabricDocument",
    "NodeDocument",
]

HEADER = "cluster/1"

LARGEST_OVERSUBSCRIPTION = 1000
"""Down-links over up-links; more than that is a slip of the pen."""

MOST_CHANGES = 5_000
"""Changes of one document; a selector may name many parts."""

NICS_PER_GPU = 2
"""NICs that a server has slots for, for each GPU: no system of the catalogue has more."""

SLOW_NICS_PER_GPU = 4
"""The same for NICs of 100 Gbit/s and less: AWS P5 shows each card as four devices."""

_SLOW_NIC_BYTES_PER_S = 12.5e9

_ON_ONE_SWITCH = (FabricKind.SINGLE_SWITCH, FabricKind.NONE)


def _known(kind: str) -> AfterValidator:
    """Return the check that a name is one of the catalogue; an alias becomes the name."""
    find: Callable[[str], Any] = getattr(catalog, kind)
    return AfterValidator(lambda given: find(given).name)


def _prices(given: object, info: ValidationInfo) -> Prices | None:
    """Return the prices in the file that is named, relative to that of the cluster; its faults one by one."""
    if given is None or isinstance(given, Prices):
        return given
    if not isinstance(given, str) or given.strip() in ("", "-") or "\0" in given:
        raise InputError("the path of a prices/1 document is due here, such as prices.yaml")
    try:
        return read_prices(_beside(given, info))
    except DocumentError as error:
        raise Misfits([("", str(fault)) for fault in error.faults]) from None


def _links(given: object, info: ValidationInfo) -> LinkTable | None:
    """Return the table in the file that is named, or of the rows that are given; its faults one by one."""
    if given is None or isinstance(given, LinkTable):
        return given
    try:
        if isinstance(given, list):
            return table_of_rows(given)
        if not isinstance(given, str) or given.strip() in ("", "-") or "\0" in given:
            raise InputError(
                "the path of a CSV with the columns from, to, link or rate, count is due here, or a list of "
                "such rows"
            )
        return read_link_table(_beside(given, info))
    except DocumentError as error:
        raise Misfits([("", str(fault)) for fault in error.faults]) from None


def _beside(given: str, info: ValidationInfo) -> Path:
    """Return the path of a file that a document names, relative to that of the document."""
    path = info.context.get("path") if isinstance(info.context, dict) else None
    folder = Path() if path in (None, "<stdin>") else Path(path).parent
    return folder / given


def _pick(what: str) -> Discriminator:
    return Discriminator(lambda given: what if isinstance(given, dict | Document) else "name")


MOST_KINDS = 64
"""Kinds of nodes of one cluster."""


def _node_form(given: object) -> str:
    """Return which form of nodes a document has: a name, a description, or a list of kinds."""
    if isinstance(given, list | tuple):
        return "kinds"
    return "description" if isinstance(given, dict | Document) else "name"


class EcmpDocument(Document):
    """Routing by a hash of the flow."""

    queue_pairs: Annotated[int, Field(strict=True, ge=1, le=1024)] = 1


class RoutingDocument(Document):
    """Routing with options of its own."""

    ecmp: EcmpDocument


RoutingField = Annotated[
    Annotated[Literal["adaptive", "spray", "pinned", "ecmp"], Tag("name")]
    | Annotated[RoutingDocument, Tag("options")],
    _pick("options"),
]


class FabricDocument(Document):
    """The network between nodes; what is left out is the default of the system."""

    kind: FabricKind | None = Field(default=None, description="How the switches are wired.")
    link: Annotated[str, _known("link")] | None = Field(
        default=None, description="A link of the catalogue, such as infiniband-ndr-400."
    )
    switch: Annotated[str, _known("switch")] | None = Field(
        default=None, description="A switch of the catalogue."
    )
    oversubscription: Annotated[float, Field(ge=1, le=LARGEST_OVERSUBSCRIPTION, strict=True)] = Field(
        default=1.0, description="Down-link over up-link bandwidth at the leaf."
    )
    routing: RoutingField = Field(default="adaptive", description="How flows are laid on paths.")
    planes: Annotated[int, Field(strict=True, ge=1, le=16)] = Field(
        default=1, description="Links of one NIC, each to a network of its own."
    )
    groups: Annotated[int, Field(strict=True, ge=1, le=100_000)] | None = Field(
        default=None, description="Groups of a dragonfly-plus fabric; the fewest if left out."
    )

    links: Annotated[
        LinkTable | None,
        PlainValidator(_links),
        WithJsonSchema({"type": ["string", "array", "null"], "items": {"type": "object"}}),
    ] = Field(
        default=None,
        description="Every link, where kind is links: path of a CSV (from, to, link or rate, count) or rows.",
    )
    node_cables: CableKind = Field(
        default=CableKind.OPTICAL, description="Between nodes and leaves; what the fabric draws and costs."
    )
    switch_cables: CableKind = Field(default=CableKind.OPTICAL, description="Between switches.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        faults = [
            *self._switch_misfits(),
            *self._misfits_without_uplinks(),
            *self._group_misfits(),
            *self._table_misfits(),
        ]
        if faults:
            raise Misfits(faults)
        return self

    def _switch_misfits(self) -> Iterator[tuple[str, str]]:
        if self.switch is None or self.link is None:
            return
        yield from fabric_switch_misfits(self.switch, self.link)

    def _group_misfits(self) -> Iterator[tuple[str, str]]:
        if self.groups is not None and self.kind is not FabricKind.DRAGONFLY_PLUS:
            kind = "its default kind" if self.kind is None else self.kind
            yield "groups", f"has no effect: {kind} has no groups, dragonfly-plus alone has; leave it out"

    def _table_misfits(self) -> Iterator[tuple[str, str]]:
        if self.kind is not FabricKind.LINKS:
            if self.links is not None:
                yield (
                    "links",
                    "has no effect: a table of links goes with kind: links alone; write that or leave it out",
                )
            return
        if self.links is None:
            yield "links", "is missing; kind links takes a table: links: links.csv"
        if self.oversubscription != 1:
            yield "oversubscription", "has no effect: the table says which links there are; leave it out"
        if self.planes != 1:
            yield "planes", "has no effect: the table says which links there are; leave it out"

    def _misfits_without_uplinks(self) -> Iterator[tuple[str, str]]:
        if self.kind in _ON_ONE_SWITCH and self.oversubscription != 1:
            yield "oversubscription", f"has no effect: {self.kind} has no up-links; leave it out"
        if self.kind in _ON_ONE_SWITCH and self.routing != "adaptive":
            yield "routing", f"has no effect: {self.kind} has one path; leave it out"
        if self.kind is FabricKind.SINGLE_SWITCH and self.switch_cables is not CableKind.OPTICAL:
            yield "switch_cables", "has no effect: there is one switch; leave it out"
        if self.kind is FabricKind.NONE:
            if self.planes != 1:
                yield "planes", "has no effect: there is no fabric (kind: none); leave it out"
            for key in ("link", "switch", "node_cables", "switch_cables"):
                if getattr(self, key) not in (None, CableKind.OPTICAL):
                    yield key, "has no effect: there is no fabric (kind: none); leave it out"


class NodeDocument(Document):
    """One node (operating system) in the shape of a system of the catalogue."""

    model_config = ConfigDict(title="Node")

    gpu: Annotated[str, _known("gpu")]
    gpus_per_node: Annotated[int, Field(strict=True, ge=1, le=1024)]
    nvlink_domain_gpus: Annotated[int, Field(strict=True, ge=1, le=100_000)] | None = None
    gpu_links: GpuLinks | None = Field(
        default=None, description="What joins its GPUs; follows from gpu and nvlink_domain_gpus if left out."
    )
    nic: Annotated[str, _known("nic")] | None = None
    nics: Annotated[int, Field(strict=True, ge=0, le=4096)]
    nic_bytes_per_s: BytesPerSecond | None = None
    link: Annotated[str, _known("link")] | None = None
    switch: Annotated[str, _known("switch")] | None = None
    power_w: Watts | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        joined = gpu_links_misfits(self.gpu, self.gpus_per_node, self.nvlink_domain_gpus, self.gpu_links)
        faults = [*self._nic_misfits(), *self._nvlink_misfits(), *joined]
        if faults:
            raise Misfits(faults)
        return self

    def _nic_misfits(self) -> Iterator[tuple[str, str]]:
        rate = self.nic_bytes_per_s
        if self.nic is not None:
            most = catalog.nic(self.nic).bytes_per_s
            rate = most if rate is None else rate
            if rate > most * 1.001:
                yield (
                    "nic_bytes_per_s",
                    (f"{rate_text(rate)} is more than {self.nic} carries ({rate_text(most)})"),
                )
        if rate is None:
            if self.nics:
                yield "nics", "the rate of a NIC is not known; give nic (of the catalogue) or nic_bytes_per_s"
            return
        per_gpu = SLOW_NICS_PER_GPU if rate <= _SLOW_NIC_BYTES_PER_S else NICS_PER_GPU
        if self.nics > per_gpu * self.gpus_per_node:
            yield (
                "nics",
                (
                    f"{self.nics} NICs are more than the slots of a node with {self.gpus_per_node} GPUs "
                    f"({per_gpu} for each); give at most {per_gpu * self.gpus_per_node}"
                ),
            )

    def _nvlink_misfits(self) -> Iterator[tuple[str, str]]:
        wanted = self.nvlink_domain_gpus
        if wanted is None or wanted == 1:
            return
        if catalog.gpu(self.gpu).nvlink_bytes_per_s is None:
            yield "nvlink_domain_gpus", f"{self.gpu} has no NVLink; leave the key out or write 1"
        elif wanted > self.gpus_per_node and wanted % self.gpus_per_node:
            yield (
                "nvlink_domain_gpus",
                f"{wanted} GPUs are not a whole number of nodes of {self.gpus_per_node}",
            )


_OneNode = Annotated[str, _known("system"), Tag("name")] | Annotated[NodeDocument, Tag("description")]


class PartDocument(Document):
    """Nodes of one kind among several."""

    node: Annotated[_OneNode, _pick("description")] = Field(
        description="A system of the catalogue, or a description of the same shape."
    )
    nodes: Annotated[Count, Field(le=10_000_000)] = Field(description="How many there are of it.")


def _nodes_or_kinds(schema: dict[str, Any]) -> None:
    """Say in the JSON Schema that a list of kinds of nodes gives their number, too."""
    schema["required"] = [key for key in schema["required"] if key != "nodes"]
    schema["anyOf"] = [{"required": ["nodes"]}, {"properties": {"node": {"type": "array"}}}]


class ClusterDocument(Document):
    """A cluster: its nodes, alike or of several kinds, and the fabric between them."""

    model_config = ConfigDict(json_schema_extra=_nodes_or_kinds)

    name: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        default=None, description="What its owner calls it."
    )
    nodes: Annotated[Count, Field(le=10_000_000)] = Field(
        description="Operating systems; a tray of four GPUs in an NVL72."
    )
    node: Annotated[
        _OneNode | Annotated[list[PartDocument], Field(min_length=2, max_length=MOST_KINDS), Tag("kinds")],
        Discriminator(_node_form),
    ] = Field(
        description="A system of the catalogue, a description of the same shape, or a list of kinds of nodes."
    )
    gpus: Count | None = Field(default=None, description="Use only so many GPUs.")
    gpus_per_domain: Count | None = Field(
        default=None, description="Use only so many GPUs of each NVLink domain."
    )
    fabric: FabricDocument | None = Field(
        default=None, description="The network; the default of the system if left out."
    )
    prices: Annotated[
        Prices | None, PlainValidator(_prices), WithJsonSchema({"type": ["string", "null"]})
    ] = Field(default=None, description="Path of a prices/1 document, relative to this one.")
    changes: Annotated[list[ChangeDocument], Field(max_length=MOST_CHANGES)] = Field(
        default_factory=list, description="Missing or slow NICs, links, nodes, GPUs and switches."
    )

    @model_validator(mode="before")
    @classmethod
    def _sum_of_kinds(cls, given: Any) -> Any:
        """Return what was given with the number of nodes, which a list of kinds says by itself."""
        if not isinstance(given, dict) or "nodes" in given or not isinstance(given.get("node"), list):
            return given
        counts = [each.get("nodes") for each in given["node"] if isinstance(each, dict)]
        known = [count for count in counts if isinstance(count, int) and count > 0]
        return {**given, "nodes": max(1, min(sum(known), 10_000_000))}

    @model_validator(mode="after")
    def _fits(self) -> Self:
        faults = [*self._kind_misfits()]
        if faults:
            raise Misfits(faults)
        faults = [*misfits(self), *self._price_misfits()]
        faults += [] if faults else [*change_misfits(self)]
        if faults:
            raise Misfits(faults)
        return self

    def _kind_misfits(self) -> Iterator[tuple[str, str]]:
        if not isinstance(self.node, list):
            return
        there = sum(part.nodes for part in self.node)
        if there != self.nodes:
            yield "nodes", f"{self.nodes} nodes are not the {there} of all kinds; leave the key out"
        nodes = [part.node for part in self.node]
        for place, node in enumerate(nodes):
            if node in nodes[:place]:
                yield f"node.{place}", "is the same as one above; add up their numbers"

    def _price_misfits(self) -> Iterator[tuple[str, str]]:
        prices = self.prices
        if prices is None or (prices.electricity_usd_per_j is None and prices.cooling_usd_per_j is None):
            return
        key = "cooling" if prices.electricity_usd_per_j is None else "electricity"
        node = node_of(self.node)
        if node.power_w is None and catalog.gpu(node.gpu).tdp_w is None:
            what = f"the power of {node.system or node.gpu} is not in the catalogue"
            todo = f"leave {key} out of {prices.path}, or describe the node with its power_w"
            yield "prices", f"{key} has a price, but {what}; {todo}"


def routing_of(document: FabricDocument) -> Routing:
    """Return the routing that a document states.

    Parameters
    ----------
    document
        The fabric as it was read.
    """
    routing = document.routing
    if isinstance(routing, RoutingDocument):
        return Routing(kind=RoutingKind.ECMP, queue_pairs=routing.ecmp.queue_pairs)
    kind = RoutingKind(routing)
    return Routing(kind=kind, queue_pairs=1 if kind is RoutingKind.ECMP else None)
