"""How fast `linkwise watch --replay` reads, and whether its memory grows with the job.

    .venv/bin/python tools/watch_speed.py [STEPS]

A log of that many steps (a million if left out) is written: once with a line for each step and nothing else,
once with nine lines of NCCL and of others to each step. Each is watched in a process of its own, by one core;
lines per second are of its CPU time; memory is its largest resident set, compared with that of a tenth
of the steps.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from doctor_speed import nccl_line, other_line

RANKS = 1024
BLOCK = 10_000


def step_line(source: random.Random, number: int) -> str:
    """Return the line of a step that takes 0.5 s, with 1 % of noise, and the time of day."""
    time_s = source.gauss(0.5, 0.005)
    day, hour = 1 + number // 172_800, number // 7200 % 24
    clock = f"2026-12-{day:02} {hour:02}:{number // 120 % 60:02}:{number // 2 % 60:02}"
    return f"{clock} step {number} loss 2.{number % 1000:04} time {time_s:.4f} s tokens/s {4096 / time_s:.0f}"


def plain(source: random.Random, number: int) -> Iterator[str]:
    """Yield a step alone."""
    yield step_line(source, number)


def mixed(source: random.Random, number: int) -> Iterator[str]:
    """Yield a step among other lines, one in three of NCCL."""
    for at in range(9):
        yield (other_line if at % 3 else nccl_line)(source, source.randrange(RANKS))
    yield step_line(source, number)


def write(path: Path, steps: int, lines: Callable[[random.Random, int], Iterator[str]]) -> int:
    """Write a log and return its lines."""
    source = random.Random(3)  # noqa: S311 (the same log every time)
    count = 0
    with path.open("w") as file:
        for start in range(1, steps + 1, BLOCK):
            block = [
                line
                for number in range(start, min(start + BLOCK, steps + 1))
                for line in lines(source, number)
            ]
            count += len(block)
            file.write("\n".join(block) + "\n")
    return count


def watched(path: Path) -> tuple[float, float, dict[str, object]]:
    """Return CPU seconds, MiB of memory and the result of a watch."""
    code = (
        "import resource, sys\n"
        "from linkwise.cli.main import run\n"
        "code = run(['watch', '--replay', sys.argv[1], '--format', 'json'])\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, code, file=sys.stderr)\n"
    )
    alone = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True, text=True, check=True, env={**os.environ, **alone},
    )  # fmt: skip
    cpu_s, mib, _ = done.stderr.split()[-3:]
    return float(cpu_s), float(mib), json.loads(done.stdout)


def main() -> None:
    """Print speed and memory."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in (("steps alone", plain), ("one line in ten a step", mixed)):
            memory = {}
            for count in (steps // 10, steps) if lines is plain else (steps // 10,):
                path = Path(folder) / "job.log"
                written = write(path, count, lines)
                cpu_s, mib, result = watched(path)
                memory[count] = mib
                seen = result["steps"]["count"]  # type: ignore[index]
                if seen != count:
                    sys.exit(f"{name}: {seen} of {count} steps were seen")
                print(
                    f"{name}: {written:,} lines, {path.stat().st_size / 1e6:.0f} MB, {cpu_s:.1f} s of CPU, "
                    f"{written / cpu_s:,.0f} lines/s, {mib:.0f} MiB, alerts {len(result['alerts'])}",  # type: ignore[arg-type]
                    flush=True,
                )
            if len(memory) == 2:
                few, many = memory.values()
                print(f"memory: {many - few:+.1f} MiB from {steps // 10:,} to {steps:,} steps")


if __name__ == "__main__":
    main()
