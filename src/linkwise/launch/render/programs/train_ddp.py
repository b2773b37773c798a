"""Train a plain transformer with DistributedDataParallel on made-up tokens, one process for each GPU."""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

# Its defaults hold the group that there is when it is first imported, for good, and DDP imports it: so it is
# imported before there is one.
import torch.distributed.nn.functional
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("data", "micro-batch", "accumulate", "steps", "sequence-length"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ("layers", "hidden", "heads", "ffn", "vocab"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--precision", choices=("bf16", "fp16", "tf32"), required=True)
    parser.add_argument("--learning-rate", type=float, required=True)
    parser.add_argument("--recompute", action="store_true", help="compute whole layers again in backward")
    return parser.parse_args()


class Transformer(nn.Module):
    """A decoder of pre-norm layers, with learned positions."""

    def __init__(self, given: argparse.Namespace) -> None:
        super().__init__()
        self.tokens = nn.Embedding(given.vocab, given.hidden)
        self.positions = nn.Embedding(given.sequence_length, given.hidden)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                given.hidden,
                given.heads,
                given.ffn,
                dropout=0.0,
                activation="gelu",
                batch_first=True,
                norm_first=True,
            )
            for _ in range(given.layers)
        )
        self.norm = nn.LayerNorm(given.hidden)
        self.head = nn.Linear(given.hidden, given.vocab, bias=False)
        self.recomputes = given.recompute

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the logits of the next token."""
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=tokens.device)
        x = self.tokens(tokens) + self.positions(torch.arange(length, device=tokens.device))
        for layer in self.layers:
            if self.recomputes:
                x = checkpoint(layer, x, src_mask=mask, is_causal=True, use_reentrant=False)
            else:
                x = layer(x, src_mask=mask, is_causal=True)
        return self.head(self.norm(x))


def one_step(
    model: DistributedDataParallel,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    given: argparse.Namespace,
    device: torch.device,
) -> float:
    """Return the loss of one optimizer step: gradients are reduced in its last micro-batch alone."""
    kind = torch.float16 if given.precision == "fp16" else torch.bfloat16
    total = 0.0
    for number in range(given.accumulate):
        tokens = torch.randint(given.vocab, (given.micro_batch, given.sequence_length + 1), device=device)
        is_last = number == given.accumulate - 1
        with contextlib.nullcontext() if is_last else model.no_sync():
            with torch.autocast(device.type, dtype=kind, enabled=given.precision != "tf32"):
                logits = model(tokens[:, :-1])
                loss = nn.functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
            scaler.scale(loss / given.accumulate).backward()
        total += float(loss.detach()) / given.accumulate
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    return total


def main() -> None:
    """Train, and print a line for each step on rank 0."""
    given = arguments()
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if ranks != given.data:
        sys.exit(
            f"{ranks} processes, but the layout has {given.data} data ranks: render it for this many GPUs"
        )
    has_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if has_gpu else torch.device("cpu")
    if has_gpu:
        torch.cuda.set_device(device)
        torch.backends.cuda.matmul.allow_tf32 = given.precision == "tf32"
    dist.init_process_group("nccl" if has_gpu else "gloo", timeout=timedelta(minutes=10))
    torch.manual_seed(1234 + rank)
    model = Transformer(given).to(device)
    parallel = DistributedDataParallel(
        model, device_ids=[device.index] if has_gpu else None, gradient_as_bucket_view=True
    )
    optimizer = torch.optim.AdamW(parallel.parameters(), lr=given.learning_rate)
    scaler = torch.amp.GradScaler(device.type, enabled=given.precision == "fp16")
    if rank == 0:
        count = sum(each.numel() for each in model.parameters())
        print(f"{ranks} ranks, {dist.get_backend()}, {count:,} parameters", flush=True)
    tokens = given.data * given.micro_batch * given.accumulate * given.sequence_length
    for step in range(1, given.steps + 1):
        begun = time.perf_counter()
        loss = one_step(parallel, optimizer, scaler, given, device)
        if has_gpu:
            torch.cuda.synchronize()
        took_s = time.perf_counter() - begun
        if rank == 0:
            print(
                f"step {step} loss {loss:.4f} time {took_s:.4f} s tokens/s {tokens / took_s:.0f}", flush=True
            )
    # Ranks end together: one that leaves while another still talks to it can take that one down with it.
    dist.barrier()
    # What holds the group goes before it: a thread of gloo that outlives it can abort the rank at its end.
    del parallel, optimizer
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
