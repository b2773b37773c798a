"""How fast and in how much memory the doctor reads a log of 1,024 ranks, beside ripgrep or grep.

    .venv/bin/python tools/doctor_speed.py [MEBIBYTES]

Two logs are made: one line in ten NCCL's, and every line NCCL's. Each is read in a fresh process, so that the
peak of its memory is its own; rates are per second of that process, which a busy machine changes little.
"""

import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RANKS = 1024
BLOCK_BYTES = 32 << 20
READ = """
import resource, sys, time
from linkwise.diagnose.doctor import diagnose
from linkwise.readers.job_log.reading import read_job_logs
size = __import__("os").path.getsize(sys.argv[1])
start = time.process_time()
verdict = diagnose(read_job_logs(sys.argv[1:])).verdict
spent_s = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"{size / 1e6 / spent_s:.0f} MB/s, peak {peak:.0f} MiB, {verdict}")
"""


def nccl_line(source: random.Random, rank: int) -> str:
    """Return a line as a rank prints many of: channels, trees, affinity, calls."""
    node, device, kind = rank // 8, rank % 8, source.random()
    head = f"{rank}: node{node:03d}:{1000 + rank}:{1500 + rank} [{device}] NCCL INFO "
    channel = f"Channel {source.randrange(16):02d}/0 :"
    if kind < 0.45:
        return f"{head}{channel} {rank}[{device}] -> {rank + 1}[{(device + 1) % 8}] via P2P/CUMEM/read"
    if kind < 0.7:
        return f"{head}{channel} {rank}[{device}] -> {rank + 8}[{device}] [send] via NET/IB/{device}/GDRDMA"
    if kind < 0.8:
        return (
            f"{head}Trees [0] {rank + 1}/-1/-1->{rank}->{rank - 1} [1] {rank + 1}/-1/-1->{rank}->{rank - 1}"
        )
    if kind < 0.9:
        return f"{head}[Proxy Service] Device {device} CPU core {source.randrange(90)}"
    call = f"opCount {source.randrange(9999):x} sendbuff 0x7f{source.randrange(2**32):x} count 2097152"
    return f"{head}AllReduce: {call}"


def other_line(source: random.Random, rank: int) -> str:
    """Return a line as a trainer prints."""
    step, loss, rate = source.randrange(10**6), source.random(), source.randrange(99999)
    text = f"step={step} loss={loss:.4f} tok/s={rate} lr=3.0e-04 mfu=0.41 mem=71.2GiB"
    return f"{rank}: [2025-03-18 09:10:07] {text}"


def write(path: Path, size_bytes: int, every: int) -> None:
    """Write a log of about that size in which one line of `every` is NCCL's."""
    source = random.Random(1)  # noqa: S311 (the same log every time)
    lines: list[str] = []
    length = 0
    while length < BLOCK_BYTES:
        rank = source.randrange(RANKS)
        lines.append((other_line if len(lines) % every else nccl_line)(source, rank))
        length += len(lines[-1]) + 1
    block = ("\n".join(lines) + "\n").encode()
    with path.open("wb") as file:
        for _ in range(max(size_bytes // len(block), 1)):
            file.write(block)


def search_s(path: Path) -> tuple[str, float]:
    """Return the name of a search program that is here, and how long it takes to count lines with NCCL."""
    name = "rg" if shutil.which("rg") else "grep"
    start = time.perf_counter()
    subprocess.run([name, "-c", "NCCL", str(path)], check=True, capture_output=True)
    return name, time.perf_counter() - start


def main() -> None:
    """Print the rates."""
    size_bytes = int(sys.argv[1] if len(sys.argv) > 1 else 1024) << 20
    with tempfile.TemporaryDirectory() as folder:
        for every, label, bar in ((10, "one line in ten", 400), (1, "every line", 60)):
            path = Path(folder) / "job.log"
            write(path, size_bytes, every)
            found = subprocess.run(
                [sys.executable, "-c", READ, str(path)], check=True, capture_output=True, text=True
            )
            name, spent_s = search_s(path)
            rate = path.stat().st_size / 1e6 / spent_s
            print(f"{label} NCCL's: {found.stdout.strip()} (bar {bar} MB/s, 300 MB); {name} {rate:.0f} MB/s")


if __name__ == "__main__":
    main()
