"""Run flows and rings through SimGrid once and write tests/data/simgrid_flows.json, which tests compare with.

    python tools/simgrid_flows.py

Needs SimGrid with its Python binding (made with 3.32). The network model is CM02 without latency, window
or cross traffic: plain max-min sharing. Rings are run chunk by chunk, every rank waits for its neighbour.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

OUTPUT = Path(__file__).resolve().parent.parent / "tests" / "data" / "simgrid_flows.json"
OPTIONS = (
    "--cfg=network/model:CM02",
    "--cfg=network/crosstraffic:0",
    "--cfg=network/weight-S:0",
    "--cfg=network/bandwidth-factor:1",
    "--cfg=network/latency-factor:1",
    "--cfg=network/TCP-gamma:0",
    "--log=root.threshold:error",
)


def main() -> None:
    """Run one instance by its name in this process, or all of them and write the file."""
    if len(sys.argv) == 3:
        print(json.dumps(_run(sys.argv[1], int(sys.argv[2]))))
        return
    import subprocess

    cases = [("flows", seed) for seed in range(3)] + [("rings", seed) for seed in range(3)]
    results = []
    for kind, seed in cases:
        command = [sys.executable, __file__, kind, str(seed)]
        results.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    OUTPUT.write_text(json.dumps({"made_with": "SimGrid 3.32, CM02, no latency", "cases": results}) + "\n")


def _run(kind: str, seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    capacity = random.integers(1, 20, 24).astype(float) * 1e9
    if kind == "flows":
        paths = [random.choice(24, random.integers(1, 5), replace=False).tolist() for _ in range(120)]
        sizes = (random.integers(1, 40, 120) * 1e8).tolist()
        ends = _simulate_flows(paths, sizes, capacity)
        return {"kind": kind, "capacity": capacity.tolist(), "paths": paths, "bytes": sizes, "end_s": ends}
    capacity = np.full(24, 1e10)
    paths = [random.choice(24, 3, replace=False).tolist() for _ in range(12 * 8)]
    end = _simulate_rings(paths, 8, 400, 1e6, capacity)
    return {
        "kind": kind,
        "capacity": capacity.tolist(),
        "paths": paths,
        "members": 8,
        "bytes": 400 * 1e6,
        "end_s": end,
    }


def _network(capacity: np.ndarray, paths: Sequence[Sequence[int]]) -> tuple[Any, list[Any], list[Any]]:
    """Return the engine and a sender and a receiver for each path, with a route of its links between them."""
    from simgrid import Engine, LinkInRoute, NetZone

    engine = Engine([sys.argv[0], *OPTIONS])
    zone = NetZone.create_full_zone("fabric")
    links = [zone.create_link(f"link{i}", each).set_latency(0).seal() for i, each in enumerate(capacity)]
    senders = [zone.create_host(f"from{i}", 1e9).seal() for i in range(len(paths))]
    receivers = [zone.create_host(f"to{i}", 1e9).seal() for i in range(len(paths))]
    for sender, receiver, path in zip(senders, receivers, paths, strict=True):
        route = [LinkInRoute(links[link]) for link in path]
        zone.add_route(sender.netpoint, receiver.netpoint, None, None, route, False)
    zone.seal()
    return engine, senders, receivers


def _simulate_flows(
    paths: Sequence[Sequence[int]], sizes: Sequence[float], capacity: np.ndarray
) -> list[float]:
    from simgrid import Actor, Engine, Mailbox

    engine, senders, receivers = _network(capacity, paths)
    ends = [0.0] * len(paths)

    def send(number: int) -> None:
        Mailbox.by_name(str(number)).put("", int(sizes[number]))

    def receive(number: int) -> None:
        Mailbox.by_name(str(number)).get()
        ends[number] = Engine.clock

    for number, (sender, receiver) in enumerate(zip(senders, receivers, strict=True)):
        Actor.create(f"send{number}", sender, send, number)
        Actor.create(f"receive{number}", receiver, receive, number)
    engine.run()
    return ends


def _simulate_rings(
    paths: Sequence[Sequence[int]], members: int, chunks: int, chunk_bytes: float, capacity: np.ndarray
) -> float:
    """Return when the last ring has passed its chunks; hop h of a ring is path ring * members + h."""
    from simgrid import Actor, Engine, Mailbox, Semaphore

    engine, senders, receivers = _network(capacity, paths)
    arrived = [Semaphore(0) for _ in paths]

    def rank(hop: int, before: int) -> None:
        for _ in range(chunks):
            sending = Mailbox.by_name(str(hop)).put_async("", int(chunk_bytes))
            arrived[before].acquire()
            sending.wait()

    def receive(hop: int) -> None:
        for _ in range(chunks):
            Mailbox.by_name(str(hop)).get()
            arrived[hop].release()

    for hop, (sender, receiver) in enumerate(zip(senders, receivers, strict=True)):
        ring, place = divmod(hop, members)
        Actor.create(f"rank{hop}", sender, rank, hop, ring * members + (place - 1) % members)
        Actor.create(f"receive{hop}", receiver, receive, hop)
    engine.run()
    return float(Engine.clock)


if __name__ == "__main__":
    main()
