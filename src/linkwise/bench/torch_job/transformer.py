"""A small decoder-only transformer, whole or one stage of it, that torch's own modules can cut."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as nnf
from torch import nn

__all__ = ["Block", "Transformer", "token_loss", "tokens_of"]


class Attention(nn.Module):
    """Causal self-attention; the heads are those of the projections it is left with."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.head_size = hidden // heads
        self.query, self.key, self.value, self.out = (nn.Linear(hidden, hidden) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what each token takes from those before it."""
        query, key, value = (self._by_head(part(x)) for part in (self.query, self.key, self.value))
        mixed = nnf.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))

    def _by_head(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (-1, self.head_size)).transpose(1, 2)


class Block(nn.Module):
    """Attention and two linear layers, each with a norm before it."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.attention = Attention(hidden, heads)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the activations after the layer."""
        x = x + self.attention(self.attention_norm(x))
        return x + self.down(nnf.gelu(self.up(self.mlp_norm(x))))


class Transformer(nn.Module):
    """The whole model; `keep_stage` leaves one stage of it."""

    def __init__(self, shape: Mapping[str, Any]) -> None:
        super().__init__()
        hidden, vocabulary = int(shape["hidden"]), int(shape["vocabulary"])
        self.embedding: nn.Module | None = nn.Embedding(vocabulary, hidden)
        self.positions: nn.Module | None = nn.Embedding(int(shape["sequence_length"]), hidden)
        self.blocks = nn.ModuleList(Block(hidden, int(shape["heads"])) for _ in range(int(shape["layers"])))
        self.norm: nn.Module | None = nn.LayerNorm(hidden)
        self.head: nn.Module | None = nn.Linear(hidden, vocabulary, bias=False)

    def keep_stage(self, stage: int, stages: int) -> None:
        """Drop what belongs to other stages of the pipeline.

        Parameters
        ----------
        stage, stages
            Which one this is, from 0, and how many there are.
        """
        count = len(self.blocks)
        kept = range(stage * count // stages, (stage + 1) * count // stages)
        self.blocks = nn.ModuleList(self.blocks[place] for place in kept)
        if stage > 0:
            self.embedding = self.positions = None
        if stage < stages - 1:
            self.norm = self.head = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits, or the activations between two stages."""
        if self.embedding is not None and self.positions is not None:
            x = self.embedding(x) + self.positions(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            x = block(x)
        if self.norm is not None and self.head is not None:
            x = self.head(self.norm(x))
        return x


def tokens_of(shape: Mapping[str, Any], *, sequences: int, step: int) -> torch.Tensor:
    """Return the sequences of one step, the same in every process (sequences, sequence_length + 1).

    Parameters
    ----------
    shape
        ``vocabulary`` and ``sequence_length``.
    sequences
        How many, over all ranks.
    step
        Which step.

    Notes
    -----
    Each sequence counts on from a random token by a random stride, so that there is something to learn.
    """
    seeded = torch.Generator().manual_seed(1000 + step)
    vocabulary = int(shape["vocabulary"])
    start = torch.randint(vocabulary, (sequences, 1), generator=seeded)
    stride = torch.randint(1, 8, (sequences, 1), generator=seeded)
    return (start + stride * torch.arange(int(shape["sequence_length"]) + 1)) % vocabulary


def token_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy of a token.

    Parameters
    ----------
    logits, targets
        What is predicted, and what comes.
    """
    return nnf.cross_entropy(logits.flatten(0, 1), targets.flatten())
