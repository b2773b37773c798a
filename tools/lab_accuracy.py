"""Measure six cuts in labs of two shapes at two link rates, and write the table into docs/lab.md.

    python tools/lab_accuracy.py measure SHAPE RATE ROWS.jsonl [CUT...]   run and add rows, as root
    python tools/lab_accuracy.py write ROWS.jsonl                          print the table, write the page

SHAPE is 2x2 or 4x2 (nodes x GPUs), RATE 400 or 800 (Gbit/s of a node's NIC); all is slowed by 20,000, or
40,000 where twice the ranks share the cores.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linkwise.cluster import Cluster
from linkwise.cluster.reading import parse_cluster
from linkwise.job import Job
from linkwise.lab.design import design_of
from linkwise.lab.lab_job import LabJob, lab_job
from linkwise.lab.life import Ground, lab_in_use, take_down, take_up
from linkwise.lab.sweep import run_in_lab
from linkwise.lab.training import RunResult
from linkwise.layout import Layout
from linkwise.model import make_model

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "lab.md"
BEGIN, END = "<!-- accuracy: begin -->", "<!-- accuracy: end -->"
DILATION_PER_RANK, STEPS, SEQUENCE, MICRO_BATCH = 5_000.0, 5, 64, 2
STEP_BAR, MEDIAN_BAR, BYTES_BAR = 0.15, 0.08, 0.03
SHAPES = {"2x2": 2, "4x2": 4}
RATES = (800, 400)
LINKS = {800: "infiniband-xdr-800", 400: "infiniband-ndr-400"}


@dataclass(frozen=True)
class Cut:
    """One way to cut the model: the layout on so many ranks, and the micro-batches of a replica."""

    name: str
    tensor: int = 1
    pipeline: int = 1
    zero_stage: int = 0
    micro_batches: int = 2

    def layout(self, ranks: int) -> Layout:
        """Return it on a number of ranks; a degree of 0 takes all of them."""
        tensor, pipeline = self.tensor or ranks, self.pipeline or ranks
        return Layout(
            tensor=tensor,
            pipeline=pipeline,
            data=ranks // tensor // pipeline,
            micro_batch=MICRO_BATCH,
            zero_stage=self.zero_stage,
            sequence_parallel=False if tensor > 1 else None,
        )


CUTS = {
    cut.name: cut
    for cut in (
        Cut(name="DDP"),
        Cut(name="FSDP2", zero_stage=3),
        Cut(name="TP", tensor=0),
        Cut(name="PP 1F1B", pipeline=0, micro_batches=8),
        Cut(name="TP x DP", tensor=2),
        Cut(name="TP x FSDP2", tensor=2, zero_stage=3),
    )
}


def cluster_of(shape: str, rate: int) -> Cluster:
    """Return what is emulated: nodes of two GPUs, one NIC each."""
    return parse_cluster(
        f"linkwise: cluster/1\nname: lab-{shape}-{rate}\nnodes: {SHAPES[shape]}\n"
        f"node: {{gpu: h100-sxm, gpus_per_node: 2, nics: 1, nic_bytes_per_s: {rate} Gbit/s, "
        f"link: {LINKS[rate]}}}\nfabric: {{kind: single-switch}}\n"
    )


def job_of(cut: Cut, ranks: int) -> Job:
    """Return the job: a small model of the shape of Llama."""
    layout = cut.layout(ranks)
    model = make_model(
        name="small",
        layers=max(4, layout.pipeline),
        hidden=64,
        heads=8,
        kv_heads=8,
        head_dim=8,
        v_head_dim=8,
        vocab=256,
        ffn=176,
    )
    sequences = cut.micro_batches * MICRO_BATCH * (layout.data or 1)
    framework = "torchtitan" if cut.zero_stage else "megatron"
    return Job(
        model=model, sequence_length=SEQUENCE, global_batch=sequences, framework=framework, layout=layout
    )


def measure(shape: str, rate: int, names: Sequence[str] = tuple(CUTS)) -> Iterator[dict[str, Any]]:
    """Yield the row of each cut, measured in a lab that is made for it."""
    cluster, ground, lab = cluster_of(shape, rate), Ground(), f"a{os.getpid()}"
    take_up(design_of(cluster, dilation=DILATION_PER_RANK * cluster.gpus), name=lab, ground=ground)
    try:
        for name in names:
            with lab_in_use(lab, ground=ground) as (held, design):
                run = lab_job(job_of(CUTS[name], design.ranks), cluster, design)
                row = run_in_lab(run, lab=held, design=design, steps=STEPS, python=sys.executable)
            if row.result is None:
                raise SystemExit(f"{shape} {rate} {name}: {row.reason}")
            yield {"shape": shape, "rate": rate, "cut": name, **row_of(run, row.result)}
    finally:
        take_down(lab, ground=ground)


def row_of(run: LabJob, result: RunResult) -> dict[str, Any]:
    """Return the figures of a run."""
    return {
        "predicted_s": result.predicted.time_s,
        "measured_s": result.measured_s,
        "steps_s": list(result.steps_s),
        "parts_s": result.predicted.parts,
        "slept_s": run.forward_s + run.backward_s,
        "core_share": result.calibration.core_share,
        "alone_s": result.alone.forward_s + result.alone.backward_s,
        "bytes_off": max(tier.worst_fraction for tier in result.tiers),
        "wall_s": result.wall_s,
        "costs": [
            [kind.operation, f"{kind.groups} x {kind.ranks}", cost.round_s, cost.reached_fraction]
            for kind, cost in result.calibration.costs.items()
        ],
    }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows as Markdown, with how far they are off."""
    lines = [
        "| nodes x ranks | NIC | cut | predicted s | measured s | measured / predicted | bytes off |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        nic = f"{row['rate'] / (DILATION_PER_RANK * 2 * SHAPES[row['shape']]) * 1e3:.0f} Mbit/s"
        ratio = row["measured_s"] / row["predicted_s"]
        lines.append(
            f"| {row['shape']} | {nic} | {row['cut']} | {row['predicted_s']:.3g} | {row['measured_s']:.3g} | "
            f"{ratio:.3f} | {100 * row['bytes_off']:.1f} % |"
        )
    off = [abs(row["measured_s"] / row["predicted_s"] - 1.0) for row in rows]
    sent = max(row["bytes_off"] for row in rows)
    told = (
        f"{len(rows)} runs: steps are off by {100 * statistics.median(off):.1f} % in the median and "
        f"{100 * max(off):.1f} % at most, bytes of a link by {100 * sent:.1f} % at most."
    )
    return "\n".join([*lines, "", told])


def main(argv: Sequence[str]) -> None:
    """Measure, or write the page."""
    if argv[0] == "measure":
        _, shape, rate, path, *names = argv
        with Path(path).open("a", encoding="utf-8") as file:
            for row in measure(shape, int(rate), names or tuple(CUTS)):
                file.write(json.dumps(row) + "\n")
                file.flush()
                print(
                    f"{row['cut']:11s} predicted {row['predicted_s']:.3f} measured {row['measured_s']:.3f} "
                    f"ratio {row['measured_s'] / row['predicted_s']:.3f} bytes {row['bytes_off']:.3f} "
                    f"wall {row['wall_s']:.1f}",
                    flush=True,
                )
        return
    rows = [json.loads(line) for line in Path(argv[1]).read_text(encoding="utf-8").splitlines()]
    written = table(rows)
    print(written)
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n{written}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
