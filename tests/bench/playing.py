"""A Python that plays torchrun: it says what its ranks would have measured."""

import sys

PROLOGUE = """
import json, os, sys, time
if sys.argv[1] == "-c":
    sys.exit(0)  # asked whether it has torch
kind, plan = sys.argv[-2], json.load(open(sys.argv[-1]))
ranks = int(sys.argv[sys.argv.index("--nproc-per-node") + 1])
def say(event, **values):
    os.write(1, ("@linkwise " + json.dumps(dict(event=event, **values)) + "\\n").encode())
for rank in range(ranks):
    say("ready", rank=rank, host="node-1", python="3.11.7", torch="2.13.0", pid=os.getpid())
"""

COLLECTIVES = """
for operation, sizes in plan["sizes_bytes"].items():
    for size in sizes:
        for repeat in range(plan["repeats"]):
            time_s = 1e-5 + size / 1e9 * (1 + repeat / 100)
            say("sample", operation=operation, size_bytes=size, calls=4, time_s=time_s, first_s=time_s / 2)
        say("checked", operation=operation, size_bytes=size, wrong=WRONG)
say("done")
"""

PAIRS = """
for number, pairs in enumerate(plan["rounds"]):
    for repeat in range(plan["repeats"]):
        for pair in pairs:
            slow = 1.3 if SLOW in pair else 1
            say("sample", round=number, pair=pair, time_s=1e-3 * slow * (1 + 0.002 * ((sum(pair) + repeat) % 5)))
say("done")
"""

TRAINING = """
for cut in plan["cuts"]:
    for step in range(plan["steps"]):
        phases = {"forward_s": 0.01, "backward_s": 0.02, "optimizer_s": 0.003}
        loss = 5 - step / 10 + (OFF if cut == "tensor" else 0)
        say("step", cut=cut, step=step, loss=loss, step_time_s=0.033 + step / 1e4, phases=phases)
say("done")
"""


def fake_python(path, script):
    """Return the path of a program that answers as a Python with torch, and plays a script."""
    program = path / "python-with-torch"
    program.write_text(f"#!{sys.executable}\n{PROLOGUE}{script}\n")
    program.chmod(0o755)
    return str(program)
