"""One rank: joins the others, times calls, and says what it saw on standard output."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import platform
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

__all__ = ["MARK", "Session", "join", "say", "told"]

MARK = "@linkwise "
"""What a line starts with that is meant for Linkwise."""

_MOST_BYTES = 4000
"""A line below the atomic write of a pipe (4096 bytes) is never mixed with that of another rank [bytes]."""


def say(event: str, **values: object) -> None:
    """Write one line for Linkwise.

    Parameters
    ----------
    event
        What happened.
    values
        What is to be said of it.
    """
    line = MARK + json.dumps({"event": event, **values}) + "\n"
    os.write(1, line.encode("ascii")[:_MOST_BYTES])


def told(error: BaseException) -> str:
    """Return an exception in one line of bounded length.

    Parameters
    ----------
    error
        Any.
    """
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:1000]


def join(plan: Mapping[str, Any]) -> Session:
    """Return this rank, joined with the others, having said who it is.

    Parameters
    ----------
    plan
        Names the ``device`` (cuda or cpu) and the seconds (``timeout_s``) a call may take.
    """
    threading.Thread(target=_end_with_parent, daemon=True).start()
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = _device(str(plan["device"]))
    backend = "nccl" if device.type == "cuda" else "gloo"
    timeout = dt.timedelta(seconds=float(plan["timeout_s"]))
    dist.init_process_group(backend, timeout=timeout, device_id=device if device.type == "cuda" else None)
    session = Session(rank=rank, ranks=ranks, device=device)
    session.fence()
    # Nodes of an emulated cluster share one kernel, and so its name.
    host = os.environ.get("LINKWISE_HOST") or socket.gethostname()
    say("ready", rank=rank, ranks=ranks, host=host, pid=os.getpid(), **_versions(device))
    return session


def _device(kind: str) -> torch.device:
    if kind == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise RuntimeError(
            f"torch {torch.__version__} sees no GPU; install a build for CUDA, or take --device cpu"
        )
    torch.set_float32_matmul_precision("high")  # TF32: what tensor cores take of float32
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if local >= torch.cuda.device_count():
        raise RuntimeError(f"local rank {local} has no GPU; torch sees {torch.cuda.device_count()}")
    torch.cuda.set_device(local)
    return torch.device("cuda", local)


def _versions(device: torch.device) -> dict[str, str]:
    found = {"python": platform.python_version(), "torch": str(torch.__version__)}
    if device.type == "cuda":
        nccl = torch.cuda.nccl.version()
        found |= {"nccl": ".".join(map(str, nccl)), "gpu": torch.cuda.get_device_name(device)}
    return found


def _end_with_parent() -> None:
    """End this rank when the standard input closes: who started it is gone, whatever ended it."""
    try:
        while os.read(0, 4096):
            pass
    except OSError:
        pass
    os._exit(1)


@dataclass(frozen=True)
class Session:
    """One rank among the others.

    Parameters
    ----------
    rank, ranks
        Which one, and how many there are.
    device
        What it computes on.
    """

    rank: int
    ranks: int
    device: torch.device

    def fence(self) -> None:
        """Wait until all ranks are here and their devices idle."""
        self.finish()
        if self.device.type == "cuda":
            dist.barrier(device_ids=[self.device.index])
            self.finish()
        else:
            dist.barrier()

    def finish(self) -> None:
        """Wait until the device of this rank is idle."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def time_calls(self, call: Callable[[], object], calls: int) -> float:
        """Return how long calls in a row take this rank, from a common start [s].

        Parameters
        ----------
        call
            What is timed.
        calls
            How often.
        """
        self.fence()
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        self.finish()
        return time.perf_counter() - begin

    def extremes(self, *values: float) -> tuple[list[float], list[float]]:
        """Return the largest and the smallest of each value over the ranks.

        Parameters
        ----------
        values
            Those of this rank.
        """
        both = torch.tensor([*values, *(-value for value in values)], dtype=torch.float64, device=self.device)
        dist.all_reduce(both, op=dist.ReduceOp.MAX)
        flat = both.tolist()
        return flat[: len(values)], [-value for value in flat[len(values) :]]

    def total(self, value: float) -> float:
        """Return the sum of a value over the ranks.

        Parameters
        ----------
        value
            That of this rank.
        """
        one = torch.tensor([value], dtype=torch.float64, device=self.device)
        dist.all_reduce(one)
        return float(one.item())

    def warm_up(self, call: Callable[[], object], plan: Mapping[str, Any]) -> int:
        """Call without timing, and return how many calls make one sample.

        Parameters
        ----------
        call
            What will be timed.
        plan
            ``warmup`` calls; ``calls`` of a sample, or ``None`` for as many as last ``sample_s``, at most
            ``most_calls``. All ranks come to the same number.
        """
        for _ in range(int(plan["warmup"])):
            call()
        if plan["calls"] is not None:
            return int(plan["calls"])
        (slowest,), _ = self.extremes(self.time_calls(call, 2) / 2)
        return max(1, min(int(plan["most_calls"]), math.ceil(float(plan["sample_s"]) / max(slowest, 1e-9))))

    def tell(self, event: str, **values: object) -> None:
        """Say something once for all ranks.

        Parameters
        ----------
        event, values
            As for `say`.
        """
        if self.rank == 0:
            say(event, **values)

    def leave(self) -> None:
        """Part from the others, and say that all is done."""
        self.fence()
        self.tell("done")
        sys.stdout.flush()
        dist.destroy_process_group()
