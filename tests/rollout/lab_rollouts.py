"""Rollouts in a lab of two nodes: a small training over a shaped link, and changes that are good or bad."""

import os
import sys
from contextlib import contextmanager
from pathlib import Path

from linkwise.cli.main import run
from linkwise.lab.life import Ground, take_down
from tests.lab.test_design import DOCUMENT

STEPS = 8
TRAIN = """\
import os, time, torch, torch.distributed as dist
{habit}
dist.init_process_group("gloo")
ranks, rank = dist.get_world_size(), dist.get_rank()
torch.manual_seed(1)
teacher, model = torch.nn.Linear(256, 256), torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(model.parameters(), lr={rate})
for step in range(1, {steps} + 1):
    begin = time.perf_counter()
    torch.manual_seed(100 * step + rank)
    given = torch.randn(64, 256)
    loss = torch.nn.functional.mse_loss(model(given), teacher(given).detach())
    optimizer.zero_grad()
    loss.backward()
    time.sleep(0.05)  # what a larger model would compute
    for each in model.parameters():
        dist.all_reduce(each.grad)
        each.grad /= ranks
    optimizer.step()
    took_s = time.perf_counter() - begin
    if rank == 0:
        print(f"step {{step}} loss {{loss.item():.6g}} time {{took_s:.4f}} s tokens/s {{64 / took_s:.0f}}", flush=True)
dist.barrier()
dist.destroy_process_group()
"""
GOOD = {"habit": "", "rate": 30.0}
CONFIG = (
    '{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,'
    ' "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 256,'
    ' "max_position_embeddings": 64, "tie_word_embeddings": false, "rms_norm_eps": 1e-5}'
)
ROLLOUT = """\
linkwise: rollout/1
name: {name}
owner: tests
change: {{what: {name}, kind: settings}}
scope: {{cluster: cluster.yaml, place: "lab:{lab}", device: cpu}}
control: {{job: job.yaml{control}}}
candidate: {{job: job.yaml{candidate}}}
objectives:
  - name: step-time
    dimension: throughput
    metric: train.step_time
    workload: {{kind: job, steps: {steps}}}
    aggregate: median
    compare: [{{to: {against}, at_most: {bar}}}]
    severity: must
    why: a step half as long again shows
    by: tests
    review_by: 2099-01-01
  - name: loss
    dimension: quality
    metric: train.loss
    workload: {{kind: job, steps: {steps}}}
    aggregate: last
    compare: [{{to: floor, at_most: {loss}}}]
    severity: must
    why: it falls below the loss of a model that knows nothing
    by: tests
    review_by: 2099-01-01
valid_run: {{most_noise: 40 %, least_valid: 60 %}}
sampling: {{repeats: {repeats}, most_repeats: 8, warmup: 0}}
steps:
{step_lines}
when: {{fail: roll-back, inconclusive: suspend, error: roll-back, no_data: suspend}}
rollback: {{to: control{command}, rehearsed: 2026-11-01, verify: [step-time, loss]}}
incident: {{page: [tests], runbook: none, collect: [decisions]}}
"""


@contextmanager
def lab_of_two(path, name):
    """Build a lab of two nodes with a rank each, and take it down."""
    path.mkdir(parents=True, exist_ok=True)
    text = DOCUMENT.format(nodes=2, gpus=1, nics=1, kind="single-switch")
    (path / "cluster.yaml").write_text(text, encoding="utf-8")
    assert run(["lab", "up", str(path / "cluster.yaml"), "--name", name, "--scale", "5000"]) == 0
    try:
        yield name
    finally:
        take_down(name, ground=Ground())


def rate_command(path, lab, rate_bytes_per_s):
    """Write a script that gives the link of node 1 a rate, both ways; return the words that run it."""
    path.mkdir(parents=True, exist_ok=True)
    bits = f"{round(8 * rate_bytes_per_s)}bit"
    words = f"htb rate {bits} ceil {bits} burst 15k cburst 15k quantum 60000"
    ends = ((f"lw-{lab}-n1", "eth0"), (f"lw-{lab}-sw", "n1e0"))
    lines = [f"tc -n {ns} class change dev {dev} parent 1: classid 1:1 {words}" for ns, dev in ends]
    file = path / f"rate-{bits}.sh"
    file.write_text("\n".join(["set -e", *lines, ""]), encoding="utf-8")
    return ["sh", str(file)]


def write_rollout(path, lab, name, *, candidate="", control="", command="", steps, loss=0.3, **more):
    """Write a rollout and all it names; return its path."""
    path.mkdir(parents=True, exist_ok=True)
    text = DOCUMENT.format(nodes=2, gpus=1, nics=1, kind="single-switch")
    (path / "cluster.yaml").write_text(text, encoding="utf-8")
    (path / "config.json").write_text(CONFIG, encoding="utf-8")
    (path / "job.yaml").write_text(
        "linkwise: job/1\nmodel: config.json\nsequence_length: 64\nglobal_batch: 128\nframework: ddp\n"
        "layout: {micro_batch: 32}\n",
        encoding="utf-8",
    )
    lines = [
        f"  - {{name: {each}, target: {target}, objectives: [step-time, loss]}}" for each, target in steps
    ]
    values = {"repeats": 5, "against": "control", "bar": "150 %", **more}
    file = path / "rollout.yaml"
    file.write_text(
        ROLLOUT.format(
            name=name,
            lab=lab,
            steps=STEPS,
            loss=loss,
            candidate=candidate,
            control=control,
            command=command,
            step_lines="\n".join(lines),
            **values,
        ),
        encoding="utf-8",
    )
    return file


def program(path, name, **changes):
    """Write a training program, and return the key that names it."""
    path.mkdir(parents=True, exist_ok=True)
    values = {**GOOD, "steps": STEPS, **changes}
    (path / name).write_text(TRAIN.format(**values), encoding="utf-8")
    return f", script: {name}"


def clean_environment(monkeypatch):
    """Take out of the environment what moves data, and find the commands of this Python."""
    for name in [name for name in os.environ if name.startswith(("NCCL_", "GLOO_", "UCX_", "FI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
