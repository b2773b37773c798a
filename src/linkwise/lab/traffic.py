"""The calls of one training step in a lab: which groups call what, on how many bytes, how often.

They follow torch's own modules: DistributedDataParallel, fully_shard, parallelize_module, PipelineStage with
Schedule1F1B; parameters, gradients and activations have 4 bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from linkwise.lab.design import LabDesign
from linkwise.lab.routes import LabLink, path_between
from linkwise.layout import Layout
from linkwise.layout.ranks import rank_places
from linkwise.model import Model
from linkwise.network.gloo import GlooTraffic, gloo_traffic, link_loads

__all__ = ["ELEMENT_BYTES", "StepCall", "calls_of", "loads_of", "mesh_of", "parameters_of", "step_loads"]

ELEMENT_BYTES = 4
Group = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCall:
    """What several groups call at the same time.

    Parameters
    ----------
    part
        ``tensor``, ``hop``, ``gather`` (of parameters) or ``gradients``.
    operation
        Of `linkwise.network.gloo`; ``send`` from the first rank of a group to the second.
    groups
        The groups, their ranks in order.
    size_bytes
        Bytes of the full buffer [bytes].
    count
        How often per step [1].
    is_ahead
        Whether the next one is called before this has ended: torch's gloo has two of a group on their way.
    """

    part: str
    operation: str
    groups: tuple[Group, ...]
    size_bytes: float
    count: int
    is_ahead: bool = False


def mesh_of(layout: Layout, design: LabDesign) -> list[list[list[int]]]:
    """Return the rank of each stage, replica and tensor rank, as the layout's rank order places them.

    Parameters
    ----------
    layout
        A layout whose data degree is known.
    design
        The lab.
    """
    places = rank_places(layout, design.ranks_per_node)
    mesh = [[[0] * layout.tensor for _ in range(layout.data or 1)] for _ in range(layout.pipeline)]
    for rank, stage, replica, tensor in zip(
        *(places[name].tolist() for name in ("rank", "pipeline", "data", "tensor")), strict=True
    ):
        mesh[stage][replica][tensor] = rank
    return mesh


def calls_of(
    model: Model, layout: Layout, mesh: Sequence[Sequence[Sequence[int]]], *, tokens: int, micro_batches: int
) -> tuple[StepCall, ...]:
    """Return the calls of one step.

    Parameters
    ----------
    model
        What is trained, in whole stages of layers.
    layout
        Degrees and sharding.
    mesh
        As `mesh_of` gives it.
    tokens
        Of one micro-batch [tokens].
    micro_batches
        Per step and replica [1].
    """
    activations = float(ELEMENT_BYTES * tokens * model.hidden)
    return (
        *_tensor_calls(model, layout, mesh, activations, micro_batches),
        *_hops(mesh, activations, micro_batches),
        *_data_calls(model, layout, mesh, micro_batches),
    )


def loads_of(call: StepCall, design: LabDesign) -> dict[LabLink, float]:
    """Return the bytes on each link while all groups call once [bytes].

    Parameters
    ----------
    call
        What is called.
    design
        The lab.
    """
    loads: dict[LabLink, float] = {}
    for group in call.groups:
        traffic = traffic_of(call)
        for link, load in link_loads(traffic, group, lambda one, two: path_between(design, one, two)).items():
            loads[link] = loads.get(link, 0.0) + load
    return loads


def traffic_of(call: StepCall) -> GlooTraffic:
    """Return what one group of a call sends.

    Parameters
    ----------
    call
        What is called.
    """
    if call.operation == "send":
        both = gloo_traffic("send_recv", ranks=2, size_bytes=call.size_bytes)
        one_way, message = both.sent_bytes.copy(), both.messages.copy()
        one_way[1, 0] = message[1, 0] = 0.0
        return GlooTraffic(sent_bytes=one_way, messages=message, rounds=1)
    return gloo_traffic(call.operation, ranks=len(call.groups[0]), size_bytes=call.size_bytes)


def step_loads(calls: Sequence[StepCall], design: LabDesign) -> dict[LabLink, float]:
    """Return the bytes on each link of a whole step [bytes].

    Parameters
    ----------
    calls
        As `calls_of` gives them.
    design
        The lab.
    """
    total: dict[LabLink, float] = {}
    for call in calls:
        for link, load in loads_of(call, design).items():
            total[link] = total.get(link, 0.0) + call.count * load
    return total


def parameters_of(model: Model, *, tensor: int) -> Mapping[str, tuple[tuple[int, int], ...]]:
    """Return the shapes of the parameters on one tensor rank, rows first: of a layer, first and last ones.

    Parameters
    ----------
    model
        What is trained.
    tensor
        Tensor parallel degree.
    """
    hidden, head = model.hidden, model.head_dim
    query, key, ffn = model.heads * head // tensor, model.kv_heads * head // tensor, model.ffn // tensor
    layer = ((query, hidden), (key, hidden), (key, hidden), (hidden, query))
    return {
        "layer": (*layer, (ffn, hidden), (ffn, hidden), (hidden, ffn), (hidden, 1), (hidden, 1)),
        "first": ((model.vocab, hidden),),
        "last": ((hidden, 1), (model.vocab, hidden)),
    }


def _size(shapes: Sequence[tuple[int, int]], *, shards: int = 1) -> float:
    """Return the bytes of parameters whose rows are padded to whole shards."""
    return float(ELEMENT_BYTES * sum(-(-rows // shards) * shards * columns for rows, columns in shapes))


def _tensor_calls(
    model: Model, layout: Layout, mesh: Sequence[Sequence[Sequence[int]]], size_bytes: float, count: int
) -> Iterator[StepCall]:
    """Yield two all-reduces a layer each way (Shoeybi et al., Megatron-LM, 2019)."""
    if layout.tensor > 1:
        groups = tuple(tuple(group) for stage in mesh for group in stage)
        layers = model.layers // layout.pipeline
        yield StepCall(
            part="tensor",
            operation="all_reduce",
            groups=groups,
            size_bytes=size_bytes,
            count=4 * layers * count,
        )


def _hops(mesh: Sequence[Sequence[Sequence[int]]], size_bytes: float, count: int) -> Iterator[StepCall]:
    """Yield activations to each next stage and their gradients back."""
    for stage, after in pairwise(mesh):
        pairs = [
            pair for one, other in zip(stage, after, strict=True) for pair in zip(one, other, strict=True)
        ]
        for groups in (tuple(pairs), tuple((two, one) for one, two in pairs)):
            yield StepCall(part="hop", operation="send", groups=groups, size_bytes=size_bytes, count=count)


def _data_calls(
    model: Model, layout: Layout, mesh: Sequence[Sequence[Sequence[int]]], micro_batches: int
) -> Iterator[StepCall]:
    """Yield what gradients and sharded parameters take."""
    if (layout.data or 1) == 1:
        return
    shapes = parameters_of(model, tensor=layout.tensor)
    layers = model.layers // layout.pipeline
    for number, stage in enumerate(mesh):
        groups = tuple(zip(*stage, strict=True))
        ends = shapes["first"] * (number == 0) + shapes["last"] * (number == len(mesh) - 1)
        if layout.zero_stage == 3:
            yield from _sharded(shapes["layer"], ends, groups, layers=layers, count=micro_batches)
        elif layout.tensor > 1:
            yield from _units(shapes["layer"], ends, groups, layers=layers)
        else:
            size_bytes = layers * _size(shapes["layer"]) + _size(ends)
            buckets = math.ceil(size_bytes / _size(shapes["layer"]))
            yield StepCall(
                part="gradients",
                operation="all_reduce",
                groups=groups,
                size_bytes=size_bytes / buckets,
                count=buckets,
                is_ahead=True,
            )


def _units(
    layer: Sequence[tuple[int, int]],
    ends: Sequence[tuple[int, int]],
    groups: tuple[Group, ...],
    *,
    layers: int,
) -> Iterator[StepCall]:
    """Yield the gradients of replicas of tensor groups: each layer alone, then the rest."""
    for size_bytes, count in ((_size(layer), layers), (_size(ends), 1)):
        yield StepCall(
            part="gradients", operation="all_reduce", groups=groups, size_bytes=size_bytes, count=count
        )


def _sharded(
    layer: Sequence[tuple[int, int]],
    ends: Sequence[tuple[int, int]],
    groups: tuple[Group, ...],
    *,
    layers: int,
    count: int,
) -> Iterator[StepCall]:
    """Yield gathers before each pass of a layer, of the rest once, and the scatters of all gradients."""
    shards = len(groups[0])
    units = ((_size(layer, shards=shards), layers, 2), (_size(ends, shards=shards), 1, 1))
    for size_bytes, many, gathers in units:
        for part, operation, times in (("gather", "all_gather", gathers), ("gradients", "reduce_scatter", 1)):
            yield StepCall(
                part=part,
                operation=operation,
                groups=groups,
                size_bytes=size_bytes,
                count=many * times * count,
            )
