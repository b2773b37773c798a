"""Record the step times of a small real training job, with its checkpoints and evaluations.

    .venv/bin/python tools/record_steps.py OUT.log --steps 6000 --hidden 192 --ranks 2

The time of a step is that from the end of the one before to its own end, so that a checkpoint or an
evaluation in between counts to the step after it, as in torchtitan. Each line begins with the time of day.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import socket
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch import nn
from torch.nn.parallel import DistributedDataParallel

_VOCABULARY = 512
_CHECKPOINT_EVERY = 250
_EVALUATE_EVERY = 100
_EVALUATION_BATCHES = 6


class Transformer(nn.Module):
    """A small decoder."""

    def __init__(self, given: argparse.Namespace) -> None:
        super().__init__()
        self.tokens = nn.Embedding(_VOCABULARY, given.hidden)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                given.hidden, 4, 4 * given.hidden, dropout=0.0, batch_first=True, norm_first=True
            )
            for _ in range(given.layers)
        )
        self.head = nn.Linear(given.hidden, _VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the logits of the next token."""
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        x = self.tokens(tokens)
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return self.head(x)


def loss_of(model: nn.Module, given: argparse.Namespace) -> torch.Tensor:
    """Return the loss of a batch of made-up tokens that can be learnt: each follows from the one before."""
    first = torch.randint(_VOCABULARY, (given.batch, 1))
    steps = torch.cumsum(torch.randint(1, 4, (given.batch, given.sequence)), dim=1)
    tokens = torch.cat((first, (first + steps) % _VOCABULARY), dim=1)
    logits = model(tokens[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def say(out: IO[str] | None, text: str) -> None:
    """Write a line with the time of day."""
    if out is not None:
        out.write(f"{dt.datetime.now(tz=dt.UTC):%Y-%m-%d %H:%M:%S.%f} {text}\n")


def train(rank: int, given: argparse.Namespace, port: int) -> None:
    """Train on this rank; the first one writes."""
    torch.set_num_threads(given.threads)
    torch.manual_seed(7 + rank)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    dist.init_process_group("gloo", rank=rank, world_size=given.ranks)
    model = Transformer(given)
    wrapped = DistributedDataParallel(model) if given.ranks > 1 else model
    optimizer = torch.optim.AdamW(wrapped.parameters(), lr=1e-3, foreach=True)
    tokens = given.ranks * given.batch * given.sequence
    with tempfile.TemporaryDirectory() as folder, _opened(given.out if rank == 0 else None) as out:
        end_s = time.perf_counter()
        for step in range(1, given.steps + 1):
            loss = loss_of(wrapped, given)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(wrapped.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            loss_value, norm_value = loss.item(), norm.item()
            begin_s, end_s = end_s, time.perf_counter()
            took_s = end_s - begin_s
            say(
                out,
                f"step {step} loss {loss_value:.4f} time {took_s:.5f} s tokens/s {tokens / took_s:.0f} "
                f"grad_norm {norm_value:.3f}",
            )
            if step % _EVALUATE_EVERY == 0:
                evaluate(wrapped, given, step, out)
            if step % _CHECKPOINT_EVERY == 0 and rank == 0:
                torch.save([model.state_dict(), optimizer.state_dict()], Path(folder) / "checkpoint.pt")
                say(out, f"saved checkpoint at step {step}")
    dist.destroy_process_group()


def evaluate(model: nn.Module, given: argparse.Namespace, step: int, out: IO[str] | None) -> None:
    """Say the loss on a few other batches."""
    with torch.no_grad():
        losses = [loss_of(model, given).item() for _ in range(_EVALUATION_BATCHES)]
    say(out, f"validation loss at step {step}: {sum(losses) / len(losses):.4f}")


def _opened(path: str | None) -> AbstractContextManager[IO[str] | None]:
    return Path(path).open("w", encoding="ascii", buffering=1) if path else nullcontext()


def main() -> None:
    """Record one run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    for name, default in (("steps", 6000), ("hidden", 128), ("layers", 3), ("batch", 4), ("sequence", 64)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name in ("ranks", "threads"):
        parser.add_argument(f"--{name}", type=int, default=1)
    given = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes.spawn(train, args=(given, port), nprocs=given.ranks)


if __name__ == "__main__":
    main()
