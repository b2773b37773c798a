"""Steps of a small transformer, cut by torch's own modules as the layout says."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

from . import collectives
from .pace import Pace
from .session import Session
from .transformer import Transformer, pause, token_loss

__all__ = ["measure"]

_SEED, _LEARNING_RATE = 7, 1e-3
_OWN_PASSES = 5


@dataclass(frozen=True)
class _Cut:
    """A model on one rank, and how its passes go: given tokens and targets of a step, the loss."""

    parameters: list[nn.Parameter]
    blocks: list[Any]
    passes: Callable[[torch.Tensor, torch.Tensor], float]


def measure(session: Session, plan: Mapping[str, Any]) -> None:
    """Train for some steps, each timed, with the bytes of all of them counted.

    Parameters
    ----------
    session
        This rank.
    plan
        ``calls`` that are measured first; ``shape``; ``mesh`` (ranks by stage, replica and tensor rank);
        ``zero_stage``; ``bucket_mib``; ``micro_batch``,
        ``micro_batches``, ``sequence_length``; ``forward_s``, ``backward_s``, ``optimizer_s``; ``steps`` and
        ``warmup``; ``slow``, if a node is to be slow: its ``namespace``, the ``step`` and a ``factor``.
    """
    collectives.measure(session, plan)
    _measure_own(session, plan)
    torch.manual_seed(_SEED)
    mesh = _mesh_of(plan)
    cut = _pipelined(plan, mesh) if mesh["pipeline"].size() > 1 else _whole(plan, mesh)
    optimizer = torch.optim.SGD(cut.parameters, lr=_LEARNING_RATE, foreach=False)
    generator = torch.Generator().manual_seed(_SEED + mesh["data"].get_local_rank())
    before: dict[str, list[int]] = {}
    pace = Pace(session)
    for step in range(-int(plan["warmup"]), int(plan["steps"])):
        if step == 0:
            before = session.counters()
        dist.barrier()
        session.tell("step begins", step=step)
        _slow_down(session, cut, plan, step)
        begin = time.perf_counter()
        loss = cut.passes(*_tokens(plan, generator))
        pause(float(plan["optimizer_s"]))
        optimizer.step()
        optimizer.zero_grad()
        own_s = time.perf_counter() - begin
        pace.print_step(step, loss)
        session.tell("step", step=step, time_s=session.slowest(own_s), loss=session.slowest(loss))
    after = session.counters()
    for link, values in after.items():
        sent, packets = (a - b for a, b in zip(values, before[link], strict=True))
        session.tell("counted step", link=link, bytes=sent, packets=packets)


def _mesh_of(plan: Mapping[str, Any]) -> DeviceMesh:
    """Return the mesh of the plan, whose groups wait no longer than that of all ranks.

    Notes
    -----
    A mesh that makes its own groups gives them torch's timeout, half an hour, whatever init_process_group was
    told; and the sends and receives of gloo keep the one that their group was made with.
    """
    ranks = torch.tensor(plan["mesh"], dtype=torch.int)
    timeout = dt.timedelta(seconds=float(plan["timeout_s"]))
    groups = []
    for dimension in range(ranks.dim()):
        rows = ranks.movedim(dimension, -1).reshape(-1, ranks.shape[dimension]).tolist()
        groups.append(dist.new_subgroups_by_enumeration(rows, timeout=timeout)[0])
    names = ("pipeline", "data", "tensor")
    return DeviceMesh.from_group(groups, "cpu", mesh=ranks, mesh_dim_names=names)


def _slow_down(session: Session, cut: _Cut, plan: Mapping[str, Any], step: int) -> None:
    """Let layers take longer from a step on, on the ranks of one node, where the plan says so."""
    slow = plan.get("slow")
    if slow and step == slow["step"] and plan["ranks"][session.rank]["namespace"] == slow["namespace"]:
        for block in cut.blocks:
            block.forward_s *= slow["factor"]
            block.backward_s *= slow["factor"]


def _measure_own(session: Session, plan: Mapping[str, Any]) -> None:
    """Say what a stage really computes for a micro-batch, all ranks at once; nothing is slept or sent."""
    stages, cut = len(plan["mesh"]), len(plan["mesh"][0][0])
    shape = {**plan["shape"]}
    shape |= {name: shape[name] // cut for name in ("heads", "kv_heads", "ffn")}
    model = Transformer(shape | {"layers": shape["layers"] // stages}, stage=0, stages=1)
    size = (int(plan["micro_batch"]), int(plan["sequence_length"]))
    tokens = torch.zeros(size, dtype=torch.int64)
    times_s = []
    for number in range(_OWN_PASSES + 1):
        dist.barrier()
        begin = time.perf_counter()
        loss = token_loss(model(tokens), tokens)
        middle = time.perf_counter()
        loss.backward()
        own = [session.slowest(middle - begin), session.slowest(time.perf_counter() - middle)]
        times_s += [own] if number else []
    session.tell("own", times_s=times_s)


def _tokens(plan: Mapping[str, Any], generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the tokens of all micro-batches of a replica, and what follows each."""
    rows = int(plan["micro_batch"]) * int(plan["micro_batches"])
    length, vocab = int(plan["sequence_length"]), int(plan["shape"]["vocab"])
    tokens = torch.randint(0, vocab, (rows, length + 1), generator=generator)
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def _stage(plan: Mapping[str, Any], mesh: DeviceMesh) -> Transformer:
    pipeline = mesh["pipeline"]
    model = Transformer(
        plan["shape"],
        stage=pipeline.get_local_rank(),
        stages=pipeline.size(),
        forward_s=float(plan["forward_s"]),
        backward_s=float(plan["backward_s"]),
    )
    if mesh["tensor"].size() > 1:
        for block in model.blocks:
            parallelize_module(block, mesh["tensor"], _tensor_plan())
    return model


def _tensor_plan() -> dict[str, Any]:
    """Return how a block is cut; its input is taken once for all matrices: two all-reduces go back."""
    given = {"input_layouts": Replicate(), "desired_input_layouts": Replicate()}
    columns = ("attention.query", "attention.key", "attention.value", "mlp.gate", "mlp.up")
    return {
        "attention": PrepareModuleInput(**given),
        "mlp": PrepareModuleInput(**given),
        **{name: ColwiseParallel() for name in columns},
        "attention.out": RowwiseParallel(),
        "mlp.down": RowwiseParallel(),
    }


def _whole(plan: Mapping[str, Any], mesh: DeviceMesh) -> _Cut:
    """Return a model without stages: data parallel, sharded or replicated, over a tensor group or not."""
    model = _stage(plan, mesh)
    count = int(plan["micro_batches"])
    wrapped, sync = _over_replicas(model, plan, mesh)

    def passes(tokens: torch.Tensor, targets: torch.Tensor) -> float:
        total = 0.0
        pairs = zip(tokens.chunk(count), targets.chunk(count), strict=True)
        for number, (given, target) in enumerate(pairs):
            with sync(number == count - 1):
                loss = token_loss(wrapped(given), target) / count
                loss.backward()
            total += float(loss.detach())
        return total

    return _Cut(parameters=list(wrapped.parameters()), blocks=list(model.blocks), passes=passes)


class _Synchronised:
    """Says before a pass whether its gradients are summed over the replicas."""

    def __init__(self, say: Callable[[bool], None]) -> None:
        self._say = say

    def __call__(self, is_last: bool) -> _Synchronised:  # noqa: FBT001 (one argument, called in one place)
        self._say(is_last)
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def _over_replicas(
    model: Transformer, plan: Mapping[str, Any], mesh: DeviceMesh
) -> tuple[nn.Module, Callable[[bool], Any]]:
    replicas, is_sharded = mesh["data"].size(), int(plan["zero_stage"]) == 3
    if replicas == 1:
        return model, _Synchronised(lambda _: None)
    if not is_sharded and mesh["tensor"].size() == 1:
        return _replicated(model, plan, mesh)
    # Replicas of a tensor group are hybrid sharding whose shards are whole: DDP does not take its tensors.
    group = mesh["data"] if is_sharded else mesh["data", "pipeline"]
    for block in model.blocks:
        fully_shard(block, mesh=group)
    root: Any = fully_shard(model, mesh=group)

    def say(is_last: bool) -> None:  # noqa: FBT001 (as torch has it)
        if not is_sharded:
            root.set_requires_gradient_sync(is_last)

    return root, _Synchronised(say)


def _replicated(
    model: nn.Module, plan: Mapping[str, Any], mesh: DeviceMesh
) -> tuple[nn.Module, Callable[[bool], Any]]:
    wrapped = DistributedDataParallel(
        model, process_group=mesh["data"].get_group(), bucket_cap_mb=float(plan["bucket_mib"])
    )

    def sync(is_last: bool) -> Any:  # noqa: FBT001 (one argument, called in one place)
        return _Synchronised(lambda _: None)(True) if is_last else wrapped.no_sync()

    return wrapped, sync


def _pipelined(plan: Mapping[str, Any], mesh: DeviceMesh) -> _Cut:
    pipeline = mesh["pipeline"]
    place, stages = pipeline.get_local_rank(), pipeline.size()
    whole = _stage(plan, mesh)
    model: nn.Module = whole
    if mesh["data"].size() > 1:
        model, _ = _replicated(model, plan, mesh)
    stage = PipelineStage(model, place, stages, torch.device("cpu"), group=pipeline.get_group())
    schedule = Schedule1F1B(stage, int(plan["micro_batches"]), loss_fn=token_loss)

    def passes(tokens: torch.Tensor, targets: torch.Tensor) -> float:
        losses: list[torch.Tensor] = []
        inputs = (tokens,) if place == 0 else ()
        last = {"target": targets, "losses": losses} if place == stages - 1 else {}
        schedule.step(*inputs, **last)
        return float(torch.stack(losses).detach().mean()) if losses else 0.0

    return _Cut(parameters=list(model.parameters()), blocks=list(whole.blocks), passes=passes)
