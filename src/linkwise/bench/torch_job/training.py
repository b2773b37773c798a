"""A few steps of a small transformer under each way to cut it, with torch's own modules."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

from .session import Session
from .transformer import Transformer, token_loss, tokens_of

__all__ = ["CUTS", "measure"]

_LEARNING_RATE = 1e-3
_SEED = 7


@dataclass(frozen=True)
class Cut:
    """A model on this rank, and how one step of it goes.

    Parameters
    ----------
    parameters
        What the optimizer moves.
    passes
        Does forward and backward on the tokens of a step; returns the loss of this rank, its share of the
        mean over ranks, and the seconds of its phases.
    """

    parameters: list[nn.Parameter]
    passes: Callable[[torch.Tensor], tuple[float, dict[str, float]]]


def measure(session: Session, plan: Mapping[str, Any]) -> None:
    """Train under every cut of the plan.

    Parameters
    ----------
    session
        This rank.
    plan
        ``cuts`` of `CUTS`; ``steps`` and ``warmup`` before them; ``shape`` of the model; ``batch`` of a rank;
        ``micro_batches`` of the pipeline.
    """
    for name in plan["cuts"]:
        session.tell("begin", cut=name)
        torch.manual_seed(_SEED)  # every cut starts from the same weights
        cut = CUTS[name](session, Transformer(plan["shape"]), plan)
        optimizer = torch.optim.AdamW(cut.parameters, lr=_LEARNING_RATE, foreach=False)
        for step in range(-int(plan["warmup"]), int(plan["steps"])):
            _step(session, plan, cut, optimizer, name=name, step=step)


def _step(
    session: Session,
    plan: Mapping[str, Any],
    cut: Cut,
    optimizer: torch.optim.Optimizer,
    *,
    name: str,
    step: int,
) -> None:
    """Do one step and say what it took; steps below 0 warm up."""
    sequences = int(plan["batch"]) * session.ranks
    tokens = tokens_of(plan["shape"], sequences=sequences, step=step).to(session.device)
    session.fence()
    begin = time.perf_counter()
    loss, phases = cut.passes(tokens)
    phases["optimizer"] = _timed(session, optimizer.step)
    optimizer.zero_grad()
    step_time_s = time.perf_counter() - begin
    slowest, _ = session.extremes(step_time_s, *phases.values())
    mean_loss = session.total(loss)
    named = {f"{phase}_s": value for phase, value in zip(phases, slowest[1:], strict=True)}
    if step >= 0:
        session.tell("step", cut=name, step=step, loss=mean_loss, step_time_s=slowest[0], phases=named)


def _timed(session: Session, call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    session.finish()
    return time.perf_counter() - begin


def _forward_and_backward(
    session: Session, model: nn.Module, tokens: torch.Tensor, *, share: float
) -> tuple[float, dict[str, float]]:
    losses: list[torch.Tensor] = []
    forward_s = _timed(session, lambda: losses.append(token_loss(model(tokens[:, :-1]), tokens[:, 1:])))
    backward_s = _timed(session, losses[0].backward)
    return float(losses[0].item()) * share, {"forward": forward_s, "backward": backward_s}


def _own(session: Session, tokens: torch.Tensor) -> torch.Tensor:
    return tokens.chunk(session.ranks)[session.rank]


def _ddp(session: Session, model: nn.Module, _plan: Mapping[str, Any]) -> Cut:
    model.to(session.device)
    wrapped = DistributedDataParallel(
        model, device_ids=[session.device.index] if session.device.type == "cuda" else None
    )

    def passes(tokens: torch.Tensor) -> tuple[float, dict[str, float]]:
        return _forward_and_backward(session, wrapped, _own(session, tokens), share=1 / session.ranks)

    return Cut(parameters=list(wrapped.parameters()), passes=passes)


def _fsdp(session: Session, model: Transformer, _plan: Mapping[str, Any]) -> Cut:
    model.to(session.device)
    mesh = init_device_mesh(session.device.type, (session.ranks,))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)

    def passes(tokens: torch.Tensor) -> tuple[float, dict[str, float]]:
        return _forward_and_backward(session, model, _own(session, tokens), share=1 / session.ranks)

    return Cut(parameters=list(model.parameters()), passes=passes)


_TENSOR_PLAN = {
    "attention.query": ColwiseParallel,
    "attention.key": ColwiseParallel,
    "attention.value": ColwiseParallel,
    "attention.out": RowwiseParallel,
    "up": ColwiseParallel,
    "down": RowwiseParallel,
}


def _tensor(session: Session, model: Transformer, _plan: Mapping[str, Any]) -> Cut:
    model.to(session.device)
    mesh = init_device_mesh(session.device.type, (session.ranks,))
    for block in model.blocks:
        parallelize_module(block, mesh, {name: style() for name, style in _TENSOR_PLAN.items()})

    def passes(tokens: torch.Tensor) -> tuple[float, dict[str, float]]:
        return _forward_and_backward(session, model, tokens, share=1 / session.ranks)

    return Cut(parameters=list(model.parameters()), passes=passes)


def _pipeline(session: Session, model: Transformer, plan: Mapping[str, Any]) -> Cut:
    model.keep_stage(session.rank, session.ranks)
    model.to(session.device)
    stage = PipelineStage(model, session.rank, session.ranks, session.device)
    schedule = Schedule1F1B(stage, int(plan["micro_batches"]), loss_fn=token_loss)
    is_first, is_last = session.rank == 0, session.rank == session.ranks - 1

    def passes(tokens: torch.Tensor) -> tuple[float, dict[str, float]]:
        losses: list[torch.Tensor] = []
        inputs = (tokens[:, :-1].contiguous(),) if is_first else ()
        targets = {"target": tokens[:, 1:].contiguous(), "losses": losses} if is_last else {}
        both_s = _timed(session, lambda: schedule.step(*inputs, **targets))
        loss = float(torch.stack(losses).mean().item()) if losses else 0.0
        return loss, {"schedule": both_s}

    return Cut(parameters=list(model.parameters()), passes=passes)


CUTS: dict[str, Callable[[Session, Transformer, Mapping[str, Any]], Cut]] = {
    "ddp": _ddp,
    "fsdp": _fsdp,
    "tensor": _tensor,
    "pipeline": _pipeline,
}
"""Ways to cut the model: each is torch's own module."""
