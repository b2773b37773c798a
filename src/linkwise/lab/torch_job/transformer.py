"""A small transformer of the shape of Llama, whose layers take as long as they are told to."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional

__all__ = ["Transformer", "pause", "paused_s", "token_loss"]

_PAUSED_S = [0.0]
"""What this process has slept in place of computing [s]."""


def pause(time_s: float) -> None:
    """Sleep in place of computing.

    Parameters
    ----------
    time_s
        How long [s].
    """
    begin = time.perf_counter()
    time.sleep(time_s)
    _PAUSED_S[0] += time.perf_counter() - begin


def paused_s() -> float:
    """Return what this process has slept in place of computing [s]."""
    return _PAUSED_S[0]


class _Paused(torch.autograd.Function):
    """Stands for the computing of a layer: sleeps on the way forward, and before its gradients."""

    @staticmethod
    def forward(ctx: Any, given: torch.Tensor, forward_s: float, backward_s: float) -> torch.Tensor:
        pause(forward_s)
        ctx.backward_s = backward_s
        return given.clone()  # a view would lose what sharding hooks on it

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        pause(ctx.backward_s)
        return gradients[0], None, None


class _Attention(nn.Module):
    def __init__(self, shape: Mapping[str, int]) -> None:
        super().__init__()
        hidden, self.head = shape["hidden"], shape["head_dim"]
        self.query = nn.Linear(hidden, shape["heads"] * self.head, bias=False)
        self.key = nn.Linear(hidden, shape["kv_heads"] * self.head, bias=False)
        self.value = nn.Linear(hidden, shape["kv_heads"] * self.head, bias=False)
        self.out = nn.Linear(shape["heads"] * self.head, hidden, bias=False)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        batch, length, _ = given.shape
        query, key, value = (
            each(given).view(batch, length, -1, self.head).transpose(1, 2)
            for each in (self.query, self.key, self.value)
        )
        groups = query.shape[1] // key.shape[1]
        key, value = (each.repeat_interleave(groups, dim=1) for each in (key, value))
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        found: torch.Tensor = self.out(mixed.transpose(1, 2).reshape(batch, length, -1))
        return found


class _Perceptron(nn.Module):
    def __init__(self, shape: Mapping[str, int]) -> None:
        super().__init__()
        self.gate = nn.Linear(shape["hidden"], shape["ffn"], bias=False)
        self.up = nn.Linear(shape["hidden"], shape["ffn"], bias=False)
        self.down = nn.Linear(shape["ffn"], shape["hidden"], bias=False)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.down(functional.silu(self.gate(given)) * self.up(given))
        return found


class _Block(nn.Module):
    def __init__(self, shape: Mapping[str, int], *, forward_s: float, backward_s: float) -> None:
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.RMSNorm(shape["hidden"]), nn.RMSNorm(shape["hidden"])
        self.attention, self.mlp = _Attention(shape), _Perceptron(shape)
        self.forward_s, self.backward_s = forward_s, backward_s

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        after = given + self.attention(self.attention_norm(given))
        found: torch.Tensor = _Paused.apply(
            after + self.mlp(self.mlp_norm(after)), self.forward_s, self.backward_s
        )
        return found


class Transformer(nn.Module):
    """The layers of one stage; the first has the embedding, the last the head.

    Parameters
    ----------
    shape
        ``layers``, ``hidden``, ``heads``, ``kv_heads``, ``head_dim``, ``ffn``, ``vocab``.
    stage, stages
        Which of how many.
    forward_s, backward_s
        What a layer takes for one micro-batch beside what it really computes [s].
    """

    def __init__(
        self,
        shape: Mapping[str, int],
        *,
        stage: int,
        stages: int,
        forward_s: float = 0.0,
        backward_s: float = 0.0,
    ) -> None:
        super().__init__()
        is_last = stage == stages - 1
        self.embedding = nn.Embedding(shape["vocab"], shape["hidden"]) if stage == 0 else None
        self.blocks = nn.ModuleList(
            _Block(shape, forward_s=forward_s, backward_s=backward_s)
            for _ in range(shape["layers"] // stages)
        )
        self.norm = nn.RMSNorm(shape["hidden"]) if is_last else None
        self.head = nn.Linear(shape["hidden"], shape["vocab"], bias=False) if is_last else None

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        """Return the logits, or the activations for the next stage."""
        found = given if self.embedding is None else self.embedding(given)
        for block in self.blocks:
            found = block(found)
        if self.norm is not None and self.head is not None:
            found = self.head(self.norm(found))
        return found


def token_loss(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return the mean cross entropy.

    Parameters
    ----------
    logits, target
        Of each token.
    """
    return functional.cross_entropy(logits.flatten(0, 1), target.flatten())
