"""Steps of a small transformer, cut by torch's own modules as the layout says."""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
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
from .session import Session, say
from .transformer import Transformer, pause, token_loss

__all__ = ["measure"]

_SEED, _LEARNING_RATE = 7, 1e-3
_AXES = ("pipeline", "data", "tensor")
_ALONE_STEPS = 4
"""Measured alone, behind one that warms up [1]."""
Passed = tuple[float, float, float]
"""Loss of a step, and the seconds of its forward and backward passes on a core."""


@dataclass(frozen=True)
class _Cut:
    """A model on one rank, and how the passes of a step go, given its tokens and targets."""

    parameters: list[nn.Parameter]
    blocks: list[Any]
    passes: Callable[[torch.Tensor, torch.Tensor], Passed]


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
    torch.manual_seed(_SEED)
    mesh = _mesh_of(plan)
    make = _pipelined if mesh["pipeline"].size() > 1 else _whole
    cut = make(plan, mesh)
    optimizer = _optimizer(cut)
    generator = _generator(mesh)
    before: dict[str, list[int]] = {}
    pace = Pace(session)
    for step in range(-int(plan["warmup"]), int(plan["steps"])):
        if step == 0:
            before = session.counters()
        dist.barrier()
        session.tell("step begins", step=step)
        _slow_down(session, cut, plan, step)
        begin = time.perf_counter()
        loss, _, _ = cut.passes(*_tokens(plan, generator))
        _update(optimizer, plan)
        ended = time.perf_counter()
        pace.print_step(step, loss)
        time_s, largest = session.span(begin, ended, loss)
        session.tell("step", step=step, time_s=time_s, loss=largest)
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
    return DeviceMesh.from_group(groups, "cpu", mesh=ranks, mesh_dim_names=_AXES)


def _slow_down(session: Session, cut: _Cut, plan: Mapping[str, Any], step: int) -> None:
    """Let layers take longer from a step on, on the ranks of one node, where the plan says so."""
    slow = plan.get("slow")
    if slow and step == slow["step"] and plan["ranks"][session.rank]["namespace"] == slow["namespace"]:
        for block in cut.blocks:
            block.forward_s *= slow["factor"]
            block.backward_s *= slow["factor"]


def _optimizer(cut: _Cut) -> torch.optim.Optimizer:
    return torch.optim.SGD(cut.parameters, lr=_LEARNING_RATE, foreach=False)


def _generator(mesh: DeviceMesh) -> torch.Generator:
    """Return what draws the tokens of a replica."""
    return torch.Generator().manual_seed(_SEED + mesh["data"].get_local_rank())


def _update(optimizer: torch.optim.Optimizer, plan: Mapping[str, Any]) -> None:
    pause(float(plan["optimizer_s"]))
    optimizer.step()
    optimizer.zero_grad()


def measure_alone(rank: int, plan: Mapping[str, Any], meeting: Barrier) -> None:
    """Say what a step really computes on a core, nothing slept or sent: its passes and its update.

    Parameters
    ----------
    rank
        Of the job.
    plan
        As `measure` reads it.
    meeting
        Where the processes of all ranks wait for one another.

    Notes
    -----
    The model is cut as in the job, over groups of torch's fake backend, which answers at once: what torch's
    modules take of their own is in it. All ranks compute at once, as in the job, and their time on a core
    counts: waiting for one hangs on what else the machine does. It has processes of its own, as torch keeps
    what it has once planned for a mesh.
    """
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.set_num_threads(1)
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=len(plan["ranks"]))
    torch.manual_seed(_SEED)
    mesh = DeviceMesh("cpu", plan["mesh"], mesh_dim_names=_AXES)
    awake = {**plan, "forward_s": 0.0, "backward_s": 0.0, "optimizer_s": 0.0}
    make = _pipelined if mesh["pipeline"].size() > 1 else _whole
    cut = make(awake, mesh, is_alone=True)
    optimizer, generator = _optimizer(cut), _generator(mesh)
    times_s = []
    for number in range(_ALONE_STEPS + 1):
        given = _tokens(plan, generator)
        meeting.wait(timeout=float(plan["timeout_s"]))
        _, forward_s, backward_s = cut.passes(*given)
        begin = time.process_time()
        _update(optimizer, awake)
        times_s += [(forward_s, backward_s, time.process_time() - begin)] if number else []
    say("alone", rank=rank, times_s=times_s, cores=len(os.sched_getaffinity(0)))


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


def _whole(plan: Mapping[str, Any], mesh: DeviceMesh, *, is_alone: bool = False) -> _Cut:
    """Return a model without stages: data parallel, sharded or replicated, over a tensor group or not."""
    model = _stage(plan, mesh)
    count = int(plan["micro_batches"])
    wrapped, sync = _over_replicas(model, plan, mesh)

    def passes(tokens: torch.Tensor, targets: torch.Tensor) -> Passed:
        total, forward_s, backward_s = 0.0, 0.0, 0.0
        pairs = zip(tokens.chunk(count), targets.chunk(count), strict=True)
        for number, (given, target) in enumerate(pairs):
            # The fake backend has no futures, which DistributedDataParallel asks for when it sums.
            with sync(number == count - 1 and not (is_alone and wrapped is not model)):
                begin = time.process_time()
                loss = token_loss(wrapped(given), target) / count
                middle = time.process_time()
                loss.backward()
            forward_s, backward_s = forward_s + middle - begin, backward_s + time.process_time() - middle
            total += float(loss.detach())
        return total, forward_s, backward_s

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


def _pipelined(plan: Mapping[str, Any], mesh: DeviceMesh, *, is_alone: bool = False) -> _Cut:
    """Return one stage of a pipeline; alone it is the only one, and makes up what it would be sent."""
    pipeline = mesh["pipeline"]
    place, stages = pipeline.get_local_rank(), pipeline.size()
    whole = _stage(plan, mesh)
    model: nn.Module = whole
    if mesh["data"].size() > 1 and not is_alone:
        model, _ = _replicated(model, plan, mesh)
    # Stages agree on how they learn shapes, which takes groups that answer; alone there is one stage.
    seat, of, group = (
        (0, 1, mesh["tensor"].get_group()) if is_alone else (place, stages, pipeline.get_group())
    )
    given, found = (None, None) if is_alone else _shown(plan, whole)
    stage = PipelineStage(
        model, seat, of, torch.device("cpu"), input_args=given, output_args=found, group=group
    )
    has_loss = place == stages - 1
    schedule = Schedule1F1B(stage, int(plan["micro_batches"]), loss_fn=token_loss if has_loss else _total)
    hidden = int(plan["shape"]["hidden"])

    def passes(tokens: torch.Tensor, targets: torch.Tensor) -> Passed:
        losses: list[torch.Tensor] = []
        taken = tokens if place == 0 else torch.randn(*tokens.shape, hidden)
        inputs = (taken,) if place == 0 or is_alone else ()
        last = {"target": targets, "losses": losses} if has_loss or is_alone else {}
        begin = time.process_time()
        schedule.step(*inputs, **last)
        taken_s = time.process_time() - begin
        loss = float(torch.stack(losses).detach().mean()) if has_loss else 0.0
        # They are mixed; a backward pass has twice the products of a forward pass.
        return loss, taken_s / 3, 2 * taken_s / 3

    return _Cut(parameters=list(model.parameters()), blocks=list(whole.blocks), passes=passes)


def _shown(plan: Mapping[str, Any], stage: Transformer) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what a stage takes and gives for a micro-batch.

    Without, torch finds out by a pass of its own, whose gradients DistributedDataParallel takes for those of
    a step.
    """
    rows, length = int(plan["micro_batch"]), int(plan["sequence_length"])
    hidden, vocab = int(plan["shape"]["hidden"]), int(plan["shape"]["vocab"])
    tokens = torch.zeros((rows, length), dtype=torch.int64)
    given = tokens if stage.embedding is not None else torch.zeros((rows, length, hidden), requires_grad=True)
    width = hidden if stage.head is None else vocab
    return given, torch.zeros((rows, length, width), requires_grad=True)


def _total(found: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    """Return what stands for a loss where the next stage has it."""
    return found.sum()
