"""What a lookup returns: one value per kind of thing, with the figure behind every number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from linkwise.errors import UnknownName
from linkwise.figures import Basis, Figure

__all__ = ["Cable", "Entry", "Gpu", "GpuAlias", "Link", "ModelEntry", "Nic", "Switch", "System"]


def _figure(figures: Mapping[str, Figure], *, owner: str, name: str) -> Figure:
    try:
        return figures[name]
    except KeyError:
        raise UnknownName.among(figures, kind=f"figure of {owner}", given=name) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Everything the catalogue holds on one thing, as it was written down.

    Parameters
    ----------
    kind
        What it is: a key of `linkwise.catalog.fields.FOLDERS`.
    name
        Its name: lower case, with hyphens.
    aliases
        Other spellings that find it.
    assumed_aliases
        Spellings that could mean several entries, with the reason why they find this one.
    figures
        Its numbers by field [SI unit of the field's ending], each with basis and source.
    text
        What is not a number: names of other entries, topology, shape of a model, notes.
    sources
        Keys of all sources cited.
    """

    kind: str
    name: str
    aliases: tuple[str, ...]
    assumed_aliases: Mapping[str, str] = field(default_factory=dict, hash=False)
    figures: Mapping[str, Figure] = field(hash=False)
    text: Mapping[str, object] = field(hash=False)
    sources: tuple[str, ...]

    def figure(self, name: str) -> Figure:
        """Return the figure called `name`.

        Parameters
        ----------
        name
            Field of the figure.

        Raises
        ------
        UnknownName
            If the entry has none of that name.
        """
        return _figure(self.figures, owner=self.name, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuAlias:
    """Which GPU a spelling means, and whether that is certain.

    Parameters
    ----------
    name
        Name of the GPU in the catalogue.
    exact
        Whether the spelling can mean no other entry.
    note
        Why this entry was taken, where the spelling is vague.
    """

    name: str
    exact: bool
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One accelerator.

    Parameters
    ----------
    name
        Name in the catalogue: ``"h100-sxm"``.
    architecture
        Generation as its vendor calls it: ``"Hopper"``.
    memory_bytes
        Memory as the driver reports it, which decides what fits [B].
    memory_bandwidth_bytes_per_s
        Bandwidth of that memory [B/s].
    flop_per_s
        Dense peak by precision, of those it has: ``fp32 tf32 bf16 fp16 fp8 nvfp4`` [FLOP/s]. A missing
        precision is not supported (V100 has no bf16) or not known; ``nvfp4`` is MXFP4 on AMD parts.
    nvlink_bytes_per_s
        The scale-up link, one direction, all links of one GPU [B/s]: NVLink, or Infinity Fabric or ICI where
        `scale_up` says so; ``None`` without one.
    scale_up
        Name of the scale-up link: ``"NVLink 4"``, ``"Infinity Fabric"``.
    scale_up_form
        How it is wired: ``"switch or mesh"``, ``"bridge, pairs"``, ``"full mesh"``.
    nvlink_generation
        Generation of NVLink, or ``None``.
    pcie_bytes_per_s
        Host link, one direction [B/s]; ``None`` where it is not known.
    tdp_w
        Power limit as sold [W].
    figures
        The figures behind these values, and others of the entry.
    """

    name: str
    architecture: str
    memory_bytes: float
    memory_bandwidth_bytes_per_s: float
    flop_per_s: Mapping[str, float] = field(hash=False)
    nvlink_bytes_per_s: float | None = None
    scale_up: str | None = None
    scale_up_form: str | None = None
    nvlink_generation: int | None = None
    pcie_bytes_per_s: float | None = None
    tdp_w: float | None = None
    figures: Mapping[str, Figure] = field(default_factory=dict, hash=False, repr=False)

    def figure(self, name: str) -> Figure:
        """Return the figure behind the value called `name`; ``"bf16_flop_per_s"`` for one of `flop_per_s`.

        Parameters
        ----------
        name
            Field of the figure.

        Raises
        ------
        UnknownName
            If there is none.
        """
        return _figure(self.figures, owner=self.name, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A server or rack as it is sold, or an instance as it is rented.

    Parameters
    ----------
    name
        Name in the catalogue: ``"dgx-h100"``, ``"aws-p5"``.
    kind
        ``"system"`` or ``"instance"``.
    gpu
        Name of its GPU.
    gpus
        GPUs of the whole product (72 for a rack).
    gpus_per_node
        GPUs of one operating system.
    nvlink_domain_gpus
        GPUs that reach one another over the scale-up link without the network.
    nic
        Name of its NIC for the compute fabric, or ``None``.
    nics
        Such NICs of one operating system.
    nic_bytes_per_s
        Rate of one of them, one direction [B/s].
    switch
        Name of the switch of its usual fabric, or ``None``.
    link
        Name of the link of its usual fabric, or ``None``.
    power_w
        Power of the whole product [W].
    figures
        The figures behind these values, and others of the entry (prices).
    """

    name: str
    kind: Literal["system", "instance"]
    gpu: str
    gpus: int
    gpus_per_node: int
    nvlink_domain_gpus: int
    nic: str | None
    nics: int
    nic_bytes_per_s: float
    switch: str | None = None
    link: str | None = None
    power_w: float | None = None
    figures: Mapping[str, Figure] = field(default_factory=dict, hash=False, repr=False)

    def figure(self, name: str) -> Figure:
        """Return the figure behind the value called `name`; `UnknownName` if there is none."""
        return _figure(self.figures, owner=self.name, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One kind of network link, one port.

    Parameters
    ----------
    name
        Name in the catalogue: ``"infiniband-ndr-400"``.
    protocol
        ``infiniband roce tcp efa tcpx tcpxo slingshot``.
    bytes_per_s
        Line rate, one direction [B/s].
    achieved_fraction
        Share of it that large NCCL messages reach [1].
    hop_s
        One traversal of the network in NCCL's small-message model, software of both ends included [s]. It is
        not the latency of a switch.
    rdma
        Whether it moves memory without the processors of the hosts.
    figures
        The figures behind these values.
    """

    name: str
    protocol: str
    bytes_per_s: float
    achieved_fraction: float
    hop_s: float
    rdma: bool
    figures: Mapping[str, Figure] = field(default_factory=dict, hash=False, repr=False)

    def figure(self, name: str) -> Figure:
        """Return the figure behind the value called `name`; `UnknownName` if there is none."""
        return _figure(self.figures, owner=self.name, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """One network switch.

    Parameters
    ----------
    name
        Name in the catalogue: ``"quantum-2-qm9700"``.
    fabric
        Family it speaks: ``infiniband ethernet slingshot nvlink``.
    ports
        Number of ports.
    port_bytes_per_s
        Rate of one port, one direction [B/s].
    latency_s
        Through the switch, port to port [s].
    power_w
        Typical power without optics [W].
    figures
        The figures behind these values, and others of the entry.
    """

    name: str
    fabric: str
    ports: int
    port_bytes_per_s: float
    latency_s: float | None = None
    power_w: float | None = None
    figures: Mapping[str, Figure] = field(default_factory=dict, hash=False, repr=False)

    def figure(self, name: str) -> Figure:
        """Return the figure behind the value called `name`; `UnknownName` if there is none."""
        return _figure(self.figures, owner=self.name, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nic:
    """One network card.

    Parameters
    ----------
    name
        Name in the catalogue: ``"connectx-7"``.
    bytes_per_s
        Line rate of the card, one direction [B/s].
    protocols
        What it speaks, in the words of `Link.protocol`, and ``uec``, ``omni-path``.
    pcie_generation
        Generation of its host link, or ``None``.
    pcie_lanes
        Lanes of that link, or ``None``.
    pcie_bytes_per_s
        Rate of that link, one direction [B/s].
    power_w
        Power without optics [W].
    figures
        The figures behind these values, and others of the entry.
    """

    name: str
    bytes_per_s: float
    protocols: tuple[str, ...]
    pcie_generation: int | None = None
    pcie_lanes: int | None = None
    pcie_bytes_per_s: float | None = None
    power_w: float | None = None
    figures: Mapping[str, Figure] = field(default_factory=dict, hash=False, repr=False)

    def figure(self, name: str) -> Figure:
        """Return the figure behind the value called `name`; `UnknownName` if there is none."""
        return _figure(self.figures, owner=self.name, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cable:
    """One cable, transceiver or length of fibre.

    Parameters
    ----------
    name
        Name in the catalogue: ``"osfp-800g-2xdr4"``.
    reach_m
        Longest run [m].
    power_w
        Power of one piece: a transceiver, or both ends of a cable [W].
    price_usd
        Price of one piece [USD]; weak, see the figure.
    figures
        The figures behind these values, and others of the entry.
    """

    name: str
    reach_m: float | None = None
    power_w: float | None = None
    price_usd: float | None = None
    figures: Mapping[str, Figure] = field(default_factory=dict, hash=False, repr=False)

    def figure(self, name: str) -> Figure:
        """Return the figure behind the value called `name`; `UnknownName` if there is none."""
        return _figure(self.figures, owner=self.name, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """The shape of a language model as published.

    Parameters
    ----------
    name
        Name in the catalogue: ``"llama-3.1-70b"``.
    aliases
        Other spellings, its Hugging Face name among them.
    title
        The name as its publisher spells it.
    hugging_face
        Its repository there, or ``None``.
    shape
        Value by `linkwise.catalog.fields.SHAPE_COLUMNS`, ``None`` where a column says nothing; all are
        ``None`` where the shape is not known (`has_shape`).
    shape_basis
        `Basis.ASSUMED` where part of the shape was not published; the notes say which.
    published_parameters_text
        Published count in billions, as printed: its last digit says how exact it is.
    published_active_text
        The same for the parameters active per token.
    source
        Where the shape was read.
    notes
        What to know about it.
    """

    name: str
    aliases: tuple[str, ...]
    title: str
    hugging_face: str | None
    shape: Mapping[str, int | str | None] = field(hash=False)
    shape_basis: Basis
    published_parameters_text: str | None
    published_active_text: str | None
    source: str
    notes: str

    @property
    def has_shape(self) -> bool:
        """Whether the shape is known."""
        return self.shape["layers"] is not None
