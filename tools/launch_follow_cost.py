"""What following the logs of a launched job costs, in percent of one core.

    .venv/bin/python tools/launch_follow_cost.py [LINES_PER_S] [SECONDS]

A log of 64 ranks, one line in ten NCCL's and one in ten a step, is written at that rate (1,000 lines/s if
left out) while the loop of `linkwise launch` follows it: doctor, steps, state of the job, disk. Counted is
the CPU time of that loop after the first two seconds, in which it imports; the writer is another process.
"""

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from doctor_speed import nccl_line, other_line
from linkwise.launch.run import launching
from linkwise.launch.run.launch_folder import LaunchFolder
from linkwise.launch.run.launch_place import LocalLaunch
from linkwise.launch.run.steps import StepLog
from linkwise.monitor.job_watch import JobWatch, logs_of

WRITER = """
import sys, time
lines, rate, length = open(sys.argv[1]).read().splitlines(True), int(sys.argv[3]), float(sys.argv[4])
start, at = time.monotonic(), 0
with open(sys.argv[2], "a", buffering=1) as file:
    while time.monotonic() < start + length:
        until = int((time.monotonic() - start) * rate)
        file.write("".join(lines[number % len(lines)] for number in range(at, until)))
        at = until
        time.sleep(0.02)
"""
START_S = 2.0


def text_of(count: int) -> str:
    """Return lines of a job, to be written over and over."""
    source = random.Random(1)  # noqa: S311 (the same log every time)
    made = []
    for number in range(count):
        line = (other_line if number % 10 else nccl_line)(source, source.randrange(64))
        made.append(f"step {number} loss 1.0 time 0.1 s tokens/s 10" if number % 10 == 5 else line)
    return "\n".join(made) + "\n"


def main() -> None:
    """Print the share of one core."""
    rate = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    length_s = float(sys.argv[2]) if len(sys.argv) > 2 else 30.0
    with tempfile.TemporaryDirectory() as name, LaunchFolder(Path(name)) as folder:
        (folder.path / "lines").write_text(text_of(10_000))
        place, steps = LocalLaunch(script="start.sh"), StepLog(folder.path, 1.0)
        words = [sys.executable, "-c", WRITER, str(folder.path / "lines"), str(folder.path / "output.log")]
        with subprocess.Popen([*words, str(rate), str(length_s)]) as writer:
            doctor = JobWatch(logs_of(folder.path, place="local", handle=""))
            begun_s, looked_s, cpu_s, is_warm = time.monotonic(), 0.0, 0.0, False
            while writer.poll() is None:
                if not is_warm and time.monotonic() - begun_s > START_S:
                    is_warm, begun_s, cpu_s = True, time.monotonic(), time.process_time()
                if time.monotonic() - looked_s > launching.LOOK_S:
                    looked_s = time.monotonic()
                    steps.look()
                    place.state(folder.path, "1", run_id="none")
                    folder.free_bytes()
                    folder.written_bytes()
                doctor.turn()
                steps.read()
                time.sleep(launching.TICK_S)
            used_s, took_s = time.process_time() - cpu_s, time.monotonic() - begun_s
    print(f"{rate:,} lines/s for {took_s:.1f} s: {100 * used_s / took_s:.2f} % of one core")


if __name__ == "__main__":
    main()
