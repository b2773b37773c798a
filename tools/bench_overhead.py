"""How much longer a call takes in `linkwise bench` than in a bare loop of the same calls.

    python tools/bench_overhead.py [--ranks 2] [--pairs 101] [--sizes 1048576,4194304,16777216]

Starts one job of torchrun that times both in turns (A B B A) and prints for each size the median ratio and
its interval. Needs torch.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

BAR = 1.03
"""What the interval of the ratio must include or lie below."""


def main() -> int:
    """Return 0 where the bar holds at every size."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=101)
    parser.add_argument("--calls", type=int, default=5)
    parser.add_argument("--sizes", default="1048576,4194304,16777216")
    parser.add_argument("--operation", default="all_reduce")
    asked = parser.parse_args()
    if "RANK" in os.environ:
        _measure(asked)
        return 0
    return _judge(asked)


def _judge(asked: argparse.Namespace) -> int:
    from linkwise.evidence.comparison import Standing, ratio_interval, standing

    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(asked.ranks)]
    meeting = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--local-addr", "127.0.0.1"]
    environment = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", **os.environ}
    command = [*torchrun, *meeting, __file__, *sys.argv[1:]]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as job:
        lines = [json.loads(line) for line in job.stdout or () if line.startswith(b'{"size')]
    held = bool(lines) and job.returncode == 0
    for line in lines:
        found = ratio_interval(line["bench_s"], line["bare_s"])
        place = standing(found, BAR)
        held &= place is not Standing.ABOVE
        print(
            f"{line['size_bytes']:>10,} bytes: ratio {found.median:.4f}, interval {found.low:.4f} to "
            f"{found.high:.4f} ({found.count} pairs), {place} {BAR}"
        )
    return 0 if held else 1


def _measure(asked: argparse.Namespace) -> None:
    """Time both ways on this rank; the sample of the bench is taken with all that surrounds it."""
    sys.path.append(str(ROOT / "src" / "linkwise" / "bench"))
    from torch_job import collectives, session

    own = session.join({"device": "cpu", "timeout_s": 60})
    for size in map(int, asked.sizes.split(",")):
        one = collectives.prepare(own, asked.operation, size)
        one.given.zero_()
        one.call()

        def by_bench(call: Callable[[], object] = one.call) -> float:
            (slowest,), _ = own.extremes(own.time_calls(call, asked.calls) / asked.calls)
            return slowest

        def bare(call: Callable[[], object] = one.call) -> float:
            own.fence()
            begin = time.perf_counter()
            for _ in range(asked.calls):
                call()
            (slowest,), _ = own.extremes((time.perf_counter() - begin) / asked.calls)
            return slowest

        times: dict[Callable[[], float], list[float]] = {by_bench: [], bare: []}
        for number in range(asked.pairs):
            for way in (by_bench, bare) if number % 2 == 0 else (bare, by_bench):
                times[way].append(way())
        if own.rank == 0:
            line = {"size_bytes": size, "bench_s": times[by_bench], "bare_s": times[bare]}
            os.write(1, (json.dumps(line) + "\n").encode())
    own.leave()


if __name__ == "__main__":
    sys.exit(main())
