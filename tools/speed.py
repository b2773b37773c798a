"""Print how fast the search and the start-up are, beside the bars they are held to; never fails.

Run by `make speed`. The search is GPT-3 175B on 512 GPUs, batch 1536, every axis: degrees, interleaving,
micro-batch, ZeRO, recomputation, sequence parallelism, schedule, rank order. A layout counts if memory was
computed and, where it fits, its step time with all parts; layouts that do not divide are not counted.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkwise.network.fat_tree import FatTree
    from linkwise.network.flows import Routes

ROOT = Path(__file__).resolve().parent.parent
CORE = ("linkwise",)
PEERS = (("calculon", 138.0), ("llm-analysis", 2000.0), ("SimuMax", 13.0))
"""Configurations per second of other planners, one core: warm calls of their entry points, measured once."""


def main() -> None:
    """Print every figure."""
    for show in (show_search, show_flows, show_plan, show_start, show_size):
        try:
            show()
        except Exception as error:  # noqa: BLE001 - figures are shown, whatever happens to one of them
            print(f"{show.__name__}: could not be measured ({type(error).__name__}: {error})")


def line(what: str, figure: str, bar: str, *, good: bool) -> None:
    """Print one figure beside its bar."""
    print(f"{what:44} {figure:>26}   bar {bar:<16} {'met' if good else 'MISSED'}")


def show_search() -> None:
    """Print rows per second of one core."""
    from linkwise.cluster import load_cluster
    from linkwise.job import Job
    from linkwise.model import load_model
    from linkwise.search import EVERYTHING, plan

    job = Job(model=load_model("gpt-3-175b"), sequence_length=2048, global_batch=1536)
    for system in ("dgx-a100:64", "dgx-h100:64"):
        cluster = load_cluster(system)
        found = plan(job, cluster, offer=EVERYTHING)
        seconds = min(_plan_cpu_s(plan, job, cluster, EVERYTHING) for _ in range(5))
        rate = found.evaluated / seconds
        print(
            f"GPT-3 175B on {system}: {found.evaluated:,} layouts, {found.fitting:,} fit, "
            f"{seconds:.3f} s of one core"
        )
        line("  layouts evaluated per second", f"{rate:,.0f} /s", ">= 1,000,000 /s", good=rate >= 1e6)
    for name, peer in PEERS:
        print(f"  {rate / peer:,.0f} times {name} ({peer:,.0f} /s)")


def _plan_cpu_s(plan: object, job: object, cluster: object, offer: object) -> float:
    start = time.process_time()
    plan(job, cluster, offer=offer)  # type: ignore[operator]
    return time.process_time() - start


def show_flows() -> None:
    """Print the time of explicit flows over fat trees of tens of thousands of GPUs."""
    import numpy as np

    from linkwise.network.flows import load_bound_s, max_min_rates

    def shifted(tree: FatTree, by: int, seed: int) -> Routes:
        source = np.arange(tree.gpus)
        return tree.routes(source, (source + by) % tree.gpus, np.zeros_like(source), seed=seed)

    def step(tree: FatTree, *shifts: int) -> float:
        start = time.perf_counter()
        for seed, by in enumerate(shifts):
            load_bound_s(shifted(tree, by, seed), np.full(tree.gpus, 1e9), tree.capacities)
        return time.perf_counter() - start

    def shared(tree: FatTree, by: int) -> float:
        start = time.perf_counter()
        max_min_rates(shifted(tree, by, 0), tree.capacities)
        return time.perf_counter() - start

    small, large = _fat_tree(65_536, 32), _fat_tree(102_400, 64)
    seconds = min(step(small, 1024) for _ in range(3))
    line("one step of 65,536 GPUs, explicit routes", f"{seconds:.3f} s", "0.5 s", good=seconds <= 0.5)
    seconds = min(shared(small, 1024) for _ in range(3))
    print(f"{'the same, shared by max-min fairness':44} {f'{seconds:.3f} s':>26}")
    seconds = min(step(large, 128, 8) for _ in range(3))
    line("gradient rings and sends, 102,400 GPUs", f"{seconds:.3f} s", "1 s", good=seconds <= 1.0)


def _fat_tree(gpus: int, ports: int) -> FatTree:
    """Return a rail-optimized fat tree of 400 Gbit/s whose switches have as many ports up as down."""
    from linkwise.network.fat_tree import FatTree

    return FatTree(
        gpus=gpus,
        gpus_per_node=8,
        down=ports,
        up=ports,
        leaves_per_pod=ports,
        rail_optimized=True,
        link_bytes_per_s=50e9,
    )


def show_plan() -> None:
    """Print wall time and memory of the README's `linkwise plan`, the whole process."""
    command = ("plan", "--model", "llama-3.1-70b", "--cluster", "dgx-h100:32")
    seconds, peak = min(
        _process(*command, "--sequence-length", "8192", "--global-batch", "1024") for _ in range(3)
    )
    line("linkwise plan (README), whole process", f"{seconds:.2f} s", "<= 2 s", good=seconds <= 2.0)
    line("  its peak memory", f"{peak / 1e6:.0f} MB", "<= 400 MB", good=peak <= 400e6)


def show_start() -> None:
    """Print the time to import the package and to print the help, whole processes."""
    bare = min(_timed(sys.executable, "-c", "pass") for _ in range(5))
    imported = min(_timed(sys.executable, "-c", "import linkwise") for _ in range(5))
    helped = min(_process("--help")[0] for _ in range(5))
    line(
        "import linkwise, whole process",
        f"{imported:.3f} s (bare {bare:.3f})",
        "<= 0.3 s",
        good=imported <= 0.3,
    )
    line("linkwise --help, whole process", f"{helped:.3f} s", "<= 0.3 s", good=helped <= 0.3)


def show_size() -> None:
    """Print what the package and its core dependencies take on disk."""
    names = _closure(CORE)
    total = sum(_size(name) for name in names)
    total += sum(file.stat().st_size for file in (ROOT / "src").rglob("*") if file.is_file())
    line(
        f"core install ({len(names)} distributions)",
        f"{total / 1e6:.0f} MB",
        "<= 120 MB",
        good=total <= 120e6,
    )


def _closure(names: tuple[str, ...]) -> set[str]:
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop().lower().replace("_", "-")
        if name in found:
            continue
        found.add(name)
        needed = [one for one in importlib.metadata.requires(name) or () if "extra ==" not in one]
        left += [re.split(r"[^A-Za-z0-9._-]", one, maxsplit=1)[0] for one in needed]
        left = [one for one in left if _installed(one)]
    return found


def _installed(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _size(name: str) -> int:
    files = importlib.metadata.files(name) or ()
    paths = (Path(str(file.locate())) for file in files)
    return sum(path.stat().st_size for path in paths if path.is_file())


def _timed(*command: str) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def _process(*arguments: str) -> tuple[float, float]:
    """Return wall time [s] and peak resident memory [bytes] of one run of the command line."""
    start = time.perf_counter()
    words = [sys.executable, "-c", "from linkwise.cli.main import main; main()", *arguments]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said = process.stderr.read().decode() if process.stderr else ""
            raise RuntimeError(
                said.strip().splitlines()[-1] if said.strip() else f"exit {process.returncode}"
            )
    unit = 1 if sys.platform == "darwin" else 1024
    return seconds, float(usage.ru_maxrss * unit)


if __name__ == "__main__":
    main()
