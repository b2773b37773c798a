"""Put figures beside what is often said of NVLink, InfiniBand and Ethernet, and write docs/claims.md.

    python tools/claims.py             # predict again; what the lab measured stays
    sudo python tools/claims.py lab    # measure again, too; with names of jobs behind it, those alone

Every verdict has a check: the page is not written when the figures no longer bear it out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE, MEASURED = ROOT / "docs" / "claims.md", ROOT / "docs" / "claims.json"
START, END = "<!-- figures -->", "<!-- end of figures -->"
LINKWISE = str(Path(sys.executable).with_name("linkwise"))
FOLDER = "examples/claims"
FABRICS = ("nvlink", "infiniband", "roce", "sockets", "ethernet")
LAB = {"fast": "400 Gbit/s a node", "slow": "100 Gbit/s a node"}
"""Clusters of the lab, which are dilated alike."""
LAB_JOBS = ("data", "tensor-inside", "tensor-across", "pipeline", "sharded")
LAB_SCALE = "5000"
LAB_STEPS = "5"


def linkwise(*words: str) -> dict[str, Any]:
    """Return what a command of Linkwise publishes."""
    argv = [LINKWISE, *words, "--format", "json"]
    done = subprocess.run(argv, check=False, cwd=ROOT, capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit(f"linkwise {' '.join(words)}: {done.stderr}")
    return dict(json.loads(done.stdout))


def step_s(job: str, cluster: str) -> float:
    """Return the predicted time of a step of the best layout [s]."""
    return float(linkwise("plan", job, f"{FOLDER}/{cluster}.yaml", "--top", "1")["layouts"][0]["step_time_s"])


def predicted() -> dict[str, Any]:
    """Return all figures that need no lab."""
    jobs = {name: f"{FOLDER}/{name}.yaml" for name in ("data", "tensor-inside", "tensor-across", "pipeline",
                                                       "fine-tuning", "fine-tuning-70b")}  # fmt: skip
    jobs["pre-training"] = "examples/llama-70b.yaml"
    steps = {job: {fabric: step_s(path, fabric) for fabric in FABRICS} for job, path in jobs.items()}
    sweeps = {
        fabric: linkwise("collective", "all_reduce", f"{FOLDER}/{fabric}.yaml", "--sizes", "1GiB")["rows"][0]
        for fabric in FABRICS
    }
    fabrics = {name: linkwise("fabric", f"{FOLDER}/{name}-8192.yaml") for name in ("infiniband", "roce")}
    alone = linkwise("plan", f"{FOLDER}/one-memory.yaml", "dgx-h100:1", "--top", "1")
    sharded = linkwise("plan", f"{FOLDER}/one-memory-sharded.yaml", "dgx-h100:1", "--top", "1")
    fallback = linkwise("doctor", f"{FOLDER}/fallback.log", "--cluster", "dgx-h100:2")
    warning = linkwise("doctor", f"{FOLDER}/warning.log")
    check = linkwise("env", "--check", f"{FOLDER}/settings.conf")
    return {
        "harmful": sorted({each["name"] for each in check["findings"] if each["severity"] == "harmful"}),
        "doctor": {"fallback": fallback["verdict"], "warning": warning["verdict"]},
        "step_s": steps,
        "busbw_bytes_per_s": {name: row["busbw_bytes_per_s"] for name, row in sweeps.items()},
        "fabrics": {
            name: {"switches": sum(found["switches"].values()), "modules": found["optics"]["modules"],
                   "tiers": found["tiers"], "power_w": found["power_w"]}
            for name, found in fabrics.items()
        },
        "one_memory": {"replicated": len(alone["layouts"]), "sharded": len(sharded["layouts"])},
    }  # fmt: skip


def measured(jobs: Sequence[str]) -> dict[str, Any]:
    """Return what a lab shows: cuts at two rates of the links between nodes."""
    if os.geteuid():
        raise SystemExit("the lab needs root: sudo python tools/claims.py lab")
    found: dict[str, Any] = {}
    for rate in LAB:
        name = f"claims-{rate}"
        subprocess.run([LINKWISE, "lab", "up", f"{FOLDER}/lab-{rate}.yaml", "--scale", LAB_SCALE, "--name", name],
                       cwd=ROOT, check=True)  # fmt: skip
        try:
            for job in jobs:
                run = linkwise("lab", "run", f"{FOLDER}/lab-{job}.yaml", name, "--steps", LAB_STEPS)
                keys = ("predicted_step_s", "measured_step_s", "steps_s", "tiers")
                found.setdefault(job, {})[rate] = {key: run[key] for key in keys}
        finally:
            subprocess.run([LINKWISE, "lab", "down", name], cwd=ROOT, check=True)
    return found


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Something that is often said.

    Parameters
    ----------
    words
        As it is said.
    command
        What shows it.
    predicted, measured
        Sentences of figures for real hardware, and of a lab; ``None`` where a lab cannot show it.
    verdict, why
        One word or two, and the condition.
    holds
        Whether the figures bear the verdict out.
    """

    words: str
    command: str
    predicted: Callable[[Mapping[str, Any]], str]
    measured: Callable[[Mapping[str, Any]], str] | None = None
    verdict: str
    why: str
    holds: Callable[[Mapping[str, Any], Mapping[str, Any]], bool]


def _ratio(figures: Mapping[str, Any], job: str, fabric: str, *, to: str = "infiniband") -> float:
    return float(figures["step_s"][job][fabric] / figures["step_s"][job][to])


def _slowed(lab: Mapping[str, Any], job: str, key: str = "measured_step_s") -> float:
    """Return how much longer a step takes over links of a quarter of the rate."""
    return float(lab[job]["slow"][key] / lab[job]["fast"][key])


def _lab_words(job: str) -> Callable[[Mapping[str, Any]], str]:
    def words(lab: Mapping[str, Any]) -> str:
        told = _slowed(lab, job, "predicted_step_s")
        return f"links of a quarter of the rate: step x {_slowed(lab, job):.2f} ({told:.2f} predicted)"

    return words


def _fabric_words(job: str, *, to: str = "infiniband") -> Callable[[Mapping[str, Any]], str]:
    def words(figures: Mapping[str, Any]) -> str:
        others = [name for name in ("nvlink", "infiniband", "ethernet") if name != to]
        shown = ", ".join(f"{_NAMES[name]} x {_ratio(figures, job, name, to=to):.2f}" for name in others)
        return f"step over {_NAMES[to]} {figures['step_s'][job][to]:.3g} s; {shown}"

    return words


_NAMES = {"nvlink": "NVLink between all nodes", "infiniband": "8 x 400 Gbit/s InfiniBand",
          "roce": "8 x 400 Gbit/s RoCE", "sockets": "sockets over 8 x 400 Gbit/s",
          "ethernet": "one port of 100 Gbit/s Ethernet"}  # fmt: skip


def _switch_words(figures: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{name}: {found['switches']} switches, {found['modules']:,} optical modules, "
        f"{found['power_w'] / 1e3:.0f} kW, {found['tiers']} tiers"
        for name, found in figures["fabrics"].items()
    )


def _busbw_words(*names: str) -> Callable[[Mapping[str, Any]], str]:
    def words(figures: Mapping[str, Any]) -> str:
        rates = figures["busbw_bytes_per_s"]
        return "all-reduce of 1 GiB: " + ", ".join(f"{_NAMES[n]} {rates[n] / 1e9:.3g} GB/s" for n in names)

    return words


CLAIMS = (
    Claim(
        words="Data parallelism tolerates Ethernet",
        command=f"linkwise plan {FOLDER}/data.yaml {FOLDER}/ethernet.yaml",
        predicted=_fabric_words("data"),
        measured=_lab_words("data"),
        verdict="with a large batch",
        why="Gradients cross once a step, whatever its tokens. With 262,144 tokens a GPU and step even one port "
        "of 100 Gbit/s costs little; with the 16,384 of a fine-tuning (below) it doubles the step.",
        holds=lambda figures, lab: (
            _ratio(figures, "data", "ethernet") < 1.2 and _slowed(lab, "data") < _slowed(lab, "tensor-across")
        ),
    ),
    Claim(
        words="Tensor parallelism does not",
        command=f"linkwise plan {FOLDER}/tensor-across.yaml {FOLDER}/ethernet.yaml",
        predicted=_fabric_words("tensor-across"),
        measured=_lab_words("tensor-across"),
        verdict="right",
        why="It all-reduces activations in every layer, and nothing hides that. Across nodes it is slow over "
        "InfiniBand already. Inside a node only its gradients notice the network.",
        holds=lambda figures, lab: (
            _ratio(figures, "tensor-across", "ethernet") > 5
            and _ratio(figures, "tensor-across", "nvlink") < 0.8
            and _slowed(lab, "tensor-across") > 1.5
        ),
    ),
    Claim(
        words="Pipeline parallelism needs NVLink",
        command=f"linkwise plan {FOLDER}/pipeline.yaml {FOLDER}/infiniband.yaml",
        predicted=_fabric_words("pipeline", to="nvlink"),
        measured=_lab_words("pipeline"),
        verdict="wrong",
        why="Stages hand on the activations of one micro-batch. Of all cuts it is the one that is made for the "
        "slow links between nodes; one port for eight pipelines is too little even for it.",
        holds=lambda figures, lab: (
            _ratio(figures, "pipeline", "infiniband", to="nvlink") < 1.05
            and _slowed(lab, "pipeline") < _slowed(lab, "tensor-across")
        ),
    ),
    Claim(
        words="Under 100 GPUs of fine-tuning, plain Ethernet is enough",
        command=f"linkwise compare {FOLDER}/fine-tuning.yaml {FOLDER}/infiniband.yaml {FOLDER}/ethernet.yaml",
        predicted=lambda figures: (
            f"8B: {_fabric_words('fine-tuning')(figures)}. 70B: {_fabric_words('fine-tuning-70b')(figures)}"
        ),
        measured=_lab_words("sharded"),
        verdict="often wrong",
        why="32 GPUs are fewer than 100, and small batches exchange gradients often. It depends on tokens a GPU "
        "and step, not on the number of GPUs. Adapters (LoRA) exchange little; they are not modelled.",
        holds=lambda figures, lab: (
            _ratio(figures, "fine-tuning", "ethernet") > 1.5 and _slowed(lab, "sharded") > 1.1
        ),
    ),
    Claim(
        words="NVLink inside and InfiniBand between is best for pre-training",
        command=f"linkwise compare examples/llama-70b.yaml {FOLDER}/infiniband.yaml {FOLDER}/roce.yaml",
        predicted=lambda figures: (
            f"{_fabric_words('pre-training')(figures)}, RoCE of the same rate "
            f"x {_ratio(figures, 'pre-training', 'roce'):.2f}"
        ),
        verdict="good, not alone",
        why="RDMA at that rate is what counts: RoCE of the same rate, without collisions, is as fast. A wider "
        "NVLink domain gains little where tensor parallelism fits into eight GPUs.",
        holds=lambda figures, _: (
            abs(_ratio(figures, "pre-training", "roce") - 1) < 0.02
            and _ratio(figures, "pre-training", "ethernet") > 1.05
        ),
    ),
    Claim(
        words="NVLink turns eight GPUs into one memory",
        command=f"linkwise plan {FOLDER}/one-memory.yaml dgx-h100:1",
        predicted=lambda figures: (
            "13B with a copy on each of eight GPUs: "
            f"{'fits' if figures['one_memory']['replicated'] else 'does not fit'}; in shares: "
            f"{'fits' if figures['one_memory']['sharded'] else 'does not fit'}"
        ),
        verdict="wrong",
        why="A GPU can read another's memory, at a seventh of the rate of its own or less, but what is held eight "
        "times is there eight times. Only cutting the job (ZeRO, tensor, pipeline) makes eight memories one.",
        holds=lambda figures, _: not figures["one_memory"]["replicated"] and figures["one_memory"]["sharded"],
    ),
    Claim(
        words="NCCL_SOCKET_IFNAME, NCCL_IB_HCA or NCCL_IB_DISABLE pick the fast path",
        command=f"linkwise env --check {FOLDER}/settings.conf",
        predicted=lambda figures: f"the three together: {', '.join(figures['harmful'])} do harm",
        verdict="wrong",
        why="NCCL takes RDMA by itself. NCCL_IB_HCA chooses among devices that work, NCCL_SOCKET_IFNAME the "
        "interface of start-up and of the fallback, and NCCL_IB_DISABLE=1 takes the fast path away. None "
        "brings a path that drivers, peer memory or cabling do not give.",
        holds=lambda figures, _: "NCCL_IB_DISABLE" in figures["harmful"],
    ),
    Claim(
        words="A line `NCCL WARN net/socket failed` shows the fallback",
        command=f"linkwise doctor {FOLDER}/fallback.log --cluster dgx-h100:2",
        predicted=lambda figures: (
            f"the doctor of that line: {figures['doctor']['warning'].replace('_', ' ')}; "
            f"of a log with the real ones: {figures['doctor']['fallback'].replace('_', ' ')}"
        ),
        verdict="wrong",
        why="NCCL prints no such line, and often no warning at all. A fallback is a line of INFO: `NET/IB : No device "
        "found.`, then `NET/Socket : Using`, and `via NET/Socket` on every channel between nodes.",
        holds=lambda figures, _: figures["doctor"] == {"fallback": "slow", "warning": "cannot_tell"},
    ),
    Claim(
        words="A fallback to sockets costs throughput",
        command=f"linkwise collective all_reduce {FOLDER}/sockets.yaml",
        predicted=lambda figures: (
            f"{_busbw_words('infiniband', 'sockets', 'ethernet')(figures)}; step of "
            f"tensor parallelism across nodes x {_ratio(figures, 'tensor-across', 'sockets'):.2f}, of data "
            f"parallelism x {_ratio(figures, 'data', 'sockets'):.2f}"
        ),
        verdict="right, not always seen",
        why="Collectives lose a half on eight ports, and nearly all where sockets take the one port of the host. "
        "A step that hides its traffic shows it late or not at all: look at the log, not at the step.",
        holds=lambda figures, _: (
            figures["busbw_bytes_per_s"]["sockets"] < 0.7 * figures["busbw_bytes_per_s"]["infiniband"]
        ),
    ),
    Claim(
        words="All-reduce bandwidth decides scaling",
        command=f"linkwise explain {FOLDER}/data.yaml {FOLDER}/ethernet.yaml",
        predicted=lambda figures: (
            f"{_busbw_words('infiniband', 'ethernet')(figures)}, "
            f"{figures['busbw_bytes_per_s']['infiniband'] / figures['busbw_bytes_per_s']['ethernet']:.0f} times; "
            f"step of data parallelism x {_ratio(figures, 'data', 'ethernet'):.2f}, of a pipeline "
            f"x {_ratio(figures, 'pipeline', 'ethernet'):.2f}"
        ),
        measured=lambda lab: ", ".join(f"{job} x {_slowed(lab, job):.2f}" for job in LAB_JOBS),
        verdict="half the truth",
        why="What decides is traffic that nothing hides, over all of the step. The same loss of bandwidth costs one "
        "layout a tenth and another a factor, so the cut comes first.",
        holds=lambda figures, _: (
            _ratio(figures, "data", "ethernet") < 1.2 and _ratio(figures, "tensor-across", "ethernet") > 5
        ),
    ),
    Claim(
        words="400 or 800 Gbit/s Ethernet reaches thousands of nodes cheaper",
        command=f"linkwise fabric {FOLDER}/roce-8192.yaml",
        predicted=_switch_words,
        verdict="fewer parts; price it",
        why="Switches of 128 ports of 400 Gbit/s join 1,024 nodes in two tiers where those of 64 need three. That "
        "is the switch, not Ethernet: count again with the switch you are offered, and put your prices and the "
        "hours of tuning into prices.yaml.",
        holds=lambda figures, _: (
            figures["fabrics"]["roce"]["tiers"] < figures["fabrics"]["infiniband"]["tiers"]
        ),
    ),
)


def main(arguments: list[str]) -> None:
    """Write the page, and its figures beside it."""
    kept = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    lab = dict(kept.get("lab", {}))
    if arguments[:1] == ["lab"]:
        lab |= measured(arguments[1:] or LAB_JOBS)
    figures = predicted()
    MEASURED.write_text(json.dumps({"predicted": figures, "lab": lab}, indent=1) + "\n", encoding="utf-8")
    for claim in CLAIMS:
        if not claim.holds(figures, lab):
            raise SystemExit(f"the figures do not bear out {claim.verdict!r} of {claim.words!r}")
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    text = "\n".join(_sections(figures, lab))
    PAGE.write_text(f"{head}{START}\n\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def _sections(figures: Mapping[str, Any], lab: Mapping[str, Any]) -> Iterator[str]:
    yield "| claim | verdict |"
    yield "| --- | --- |"
    for claim in CLAIMS:
        yield f"| {claim.words} | **{claim.verdict}** |"
    for claim in CLAIMS:
        yield ""
        yield f"### {claim.words}: {claim.verdict}"
        yield ""
        yield claim.why
        yield ""
        yield f"- predicted for real hardware: {claim.predicted(figures)}"
        yield f"- measured in the lab: {'it cannot show this' if claim.measured is None else claim.measured(lab)}"
        yield f"- command: `{claim.command}`"
    yield ""


if __name__ == "__main__":
    main(sys.argv[1:])
