"""How long it takes `linkwise doctor --follow` from the line of a fault to its message.

    .venv/bin/python tools/follow_delay.py [LINES_PER_S] [SECONDS]

A log of 1,024 ranks, one line in ten NCCL's, is written at that rate (50,000 lines/s if left out) while the
doctor follows it. Every few seconds a fault is written among the lines; its delay is the time from the write
to the line that the doctor prints.
"""

import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from doctor_speed import nccl_line, other_line

RANKS = 1024
TICK_S = 0.01
EVERY_S = 2.0
FAULTS = {
    "fd_limit": "misc/socket.cc:1 NCCL WARN Net : Socket creation failed : Too many open files",
    "link_flap": "transport/net_ib.cc:1 NCCL WARN NET/IB : mlx5_3:1 Got async event : port error",
    "gpu_hw": None,
    "memlock": "misc/ibvwrap.cc:1 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory",
}
XID = "[ 8123.4] NVRM: Xid (PCI:0000:1b:00): 79, pid=4711, GPU has fallen off the bus."


def blocks(lines_per_tick: int) -> list[bytes]:
    """Return pieces of a log, one for each tick, to be written over and over."""
    source = random.Random(1)  # noqa: S311 (the same log every time)
    made = []
    for _ in range(100):
        lines = [
            (other_line if number % 10 else nccl_line)(source, source.randrange(RANKS))
            for number in range(lines_per_tick)
        ]
        made.append(("\n".join(lines) + "\n").encode())
    return made


def fault_line(text: str | None) -> bytes:
    """Return the line of a fault, as a rank or the kernel prints it."""
    return (XID if text is None else f"node007:1060:1560 [4] {text}").encode() + b"\n"


def write(path: Path, *, lines_per_s: int, length_s: float, written_s: dict[str, float]) -> int:
    """Write the log at its rate, with the faults in it, and return the lines."""
    lines = round(lines_per_s * TICK_S)
    pieces, faults = blocks(lines), iter(FAULTS.items())
    start_s = time.monotonic()
    next_fault_s = start_s + EVERY_S
    ticks = 0
    with path.open("ab", buffering=0) as file:
        while (now_s := time.monotonic()) < start_s + length_s:
            if now_s >= next_fault_s and (fault := next(faults, None)) is not None:
                file.write(fault_line(fault[1]))
                written_s[fault[0]] = time.monotonic()
                next_fault_s += EVERY_S
            while ticks * TICK_S <= now_s - start_s:
                file.write(pieces[ticks % len(pieces)])
                ticks += 1
            time.sleep(TICK_S / 2)
    return ticks * lines


def main() -> None:
    """Print the delay of each fault."""
    lines_per_s = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    length_s = float(sys.argv[2]) if len(sys.argv) > 2 else EVERY_S * (len(FAULTS) + 1)
    written_s: dict[str, float] = {}
    told_s: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.log"
        path.touch()
        linkwise = Path(sys.executable).with_name("linkwise")
        command = [str(linkwise), "doctor", "--follow", str(path), "--format", "json"]
        doctor = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

        def listen() -> None:
            for line in doctor.stdout or ():
                found = json.loads(line).get("finding")
                if found is not None:
                    told_s.setdefault(found["cause"], time.monotonic())

        listener = threading.Thread(target=listen)
        listener.start()
        time.sleep(1)
        count = write(path, lines_per_s=lines_per_s, length_s=length_s, written_s=written_s)
        doctor.terminate()
        listener.join(timeout=20)
        doctor.wait(timeout=20)
    print(f"{count / length_s:,.0f} lines/s written for {length_s:g} s")
    for cause, at_s in written_s.items():
        delay = f"{told_s[cause] - at_s:.2f} s" if cause in told_s else "not told"
        print(f"{cause:<12}{delay}")


if __name__ == "__main__":
    main()
