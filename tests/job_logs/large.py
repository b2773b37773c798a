"""A log of any length, to measure how fast a reader is: `python -m tests.job_logs.large PATH --bytes 1GiB`.

It begins with the healthy start of a job of that many ranks; then the ranks print training lines, every n-th line one of
NCCL. With `--port-error` one host loses a port near the end, so that a reader has something to find.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.job_logs.faults.verbs import completion
from tests.job_logs.healthy import write
from tests.job_logs.job import INFINIBAND, Job
from tests.job_logs.releases import release
from tests.job_logs.script import Script
from tests.job_logs.writing import write_lines

_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 10**3, "MB": 10**6, "GB": 10**9, "B": 1}


def size_of(text: str) -> int:
    """Return `1GiB` in bytes."""
    for unit, factor in _UNITS.items():
        number = text.removesuffix(unit)
        if number != text and number.strip().replace(".", "", 1).isdigit():
            return int(float(number) * factor)
    if text.isdigit():
        return int(text)
    raise argparse.ArgumentTypeError(f"{text} is no size; write 512MiB, 1GiB or a number of bytes")


def start(ranks: int) -> Script:
    """Return the start of a job with eight ranks on a host."""
    per_node = min(8, ranks)
    hosts = tuple(f"gpu-{index:04d}" for index in range(max(1, ranks // per_node)))
    job = Job(
        release=release("2.27.5"),
        hosts=hosts,
        gpus_per_node=per_node,
        network=INFINIBAND,
        framework="",
        seed=42,
    )
    script = write(job)
    script.drop("destroy")
    return script


def training(script: Script, nccl_every: int) -> Iterator[str]:
    """Return blocks of lines, one block a step, without end."""
    heads = [f"[default{r.device}]:[{r.host}] rank {r.rank:5d} " for r in script.ranks]
    nccl = [
        f"{r.host}:{r.pid}:{r.pid + 612} [{r.device}] NCCL INFO AllReduce: opCount " for r in script.ranks
    ]
    tails = [
        f" sendbuff 0x7f1e40000000 recvbuff 0x7f1e40000000 count 16777216 datatype 9 op 0 root 0 comm {r.comm} [nranks={len(script.ranks)}] stream 0x55d0a1b2c3d0\n"
        for r in script.ranks
    ]
    step, count = 0, 0
    while True:
        step += 1
        parts: list[str] = []
        body = f"step {step:8d} | loss {2.1 + 8.0 / (1 + step / 500):8.5f} | grad_norm {1.0 + 1.0 / (1 + step):6.3f} | "
        for index, head in enumerate(heads):
            count += 1
            if count % nccl_every == 0:
                parts.append(f"{nccl[index]}{step * 3:x}{tails[index]}")
            else:
                parts.append(f"{head}{body}tokens/s {21_400 + (step * 37 + index * 11) % 600}\n")
        yield "".join(parts)


def port_error(script: Script) -> str:
    """Return what is printed when a host loses a port."""
    script.lines = []
    bad = script.ranks[-1]
    script.say(
        bad, "training", "async_event", hca="mlx5_0", event="port error", thread="progress", at_s=9000.0
    )
    completion(script, script.ranks[0], bad, 12, 9030.0)
    return write_lines(script, script.in_order())


def write_large(path: Path, *, size: int, ranks: int, nccl_every: int, with_port_error: bool) -> int:
    """Write the file and return its length [bytes]."""
    script = start(ranks)
    begin = write_lines(script, script.in_order())
    written = 0
    with path.open("w", encoding="ascii", buffering=2**20) as file:
        written += file.write(begin)
        for block in training(script, nccl_every):
            if written + len(block) > size:
                break
            written += file.write(block)
        if with_port_error:
            written += file.write(port_error(script))
    return written


def main(arguments: list[str] | None = None) -> int:
    """Write the file that the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.job_logs.large", description=__doc__.splitlines()[0]
    )
    parser.add_argument("path", type=Path)
    parser.add_argument("--bytes", type=size_of, default=size_of("1GiB"), metavar="SIZE")
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument(
        "--nccl-every", type=int, default=10, metavar="N", help="every N-th line is one of NCCL"
    )
    parser.add_argument("--port-error", action="store_true", help="one host loses a port near the end")
    chosen = parser.parse_args(arguments)
    if chosen.ranks < 1 or chosen.nccl_every < 1:
        parser.error("--ranks and --nccl-every must be at least 1")
    begun = time.perf_counter()
    written = write_large(
        chosen.path,
        size=chosen.bytes,
        ranks=chosen.ranks,
        nccl_every=chosen.nccl_every,
        with_port_error=chosen.port_error,
    )
    sys.stderr.write(f"{chosen.path}: {written / 2**20:.0f} MiB in {time.perf_counter() - begun:.1f} s\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
