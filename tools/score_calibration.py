"""Score how much a calibration helps on the published measurements, and write it into docs/calibration.md.

    python tools/score_calibration.py

The tables stand between the two marks of the page; the rest of it is written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from linkwise.calibrate.collective_runs import read_collectives
from linkwise.calibrate.measured import read_measurements
from linkwise.calibrate.site_score import (
    CollectiveGain,
    LayoutGain,
    layout_gains,
    node_gains,
    size_gains,
)

ROOT = Path(__file__).parent.parent
DATA = ROOT / "tests" / "data"
PAGE = ROOT / "docs" / "calibration.md"
START, END = "<!-- scores -->", "<!-- end of scores -->"
CLOSE = 0.10
"""Median error of a run of a collective that is wanted [1]."""


def main() -> None:
    """Score, print, and write the page."""
    collectives = read_collectives(DATA / "collectives.csv", DATA / "collective_runs.csv").runs
    steps = read_measurements(DATA / "training.csv", use=("bench", "core")).runs
    lines = [
        *_collective_table(size_gains(collectives), node_gains(collectives)),
        *_layout_table(layout_gains(steps)),
    ]
    text = "\n".join(lines)
    print(text)
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    tail = rest.partition(END)[2]
    PAGE.write_text(f"{head}{START}\n\n{text}\n\n{END}{tail}", encoding="utf-8")


def _collective_table(sizes: Sequence[CollectiveGain], nodes: Sequence[CollectiveGain]) -> Iterator[str]:
    rows = {
        "64 MiB and more, from 16 MiB and less": sizes,
        "the same, inside one domain": [each for each in sizes if not each.crosses],
        "the same, over a network": [each for each in sizes if each.crosses],
        "more than two nodes, from two": nodes,
        "the same, but broadcasts": [each for each in nodes if not each.identity.endswith("-bc")],
    }
    yield "| collectives | runs | shipped | calibrated | within 10 %: shipped | calibrated |"
    yield "|---|---:|---:|---:|---:|---:|"
    for name, gains in rows.items():
        before, after = (
            np.array([getattr(each, field) for each in gains])
            for field in ("before_fraction", "after_fraction")
        )
        cells = [np.median(before), np.median(after), np.mean(before <= CLOSE), np.mean(after <= CLOSE)]
        yield f"| {name} | {len(gains)} | {' | '.join(f'{100 * cell:.1f}' for cell in cells)} |"


def _layout_table(gains: Sequence[LayoutGain]) -> Iterator[str]:
    yield ""
    yield "| training | layouts | shipped | any two | reached | advised two: shipped | calibrated | reached |"
    yield "|---|---:|---:|---:|---|---:|---:|---|"
    for each in gains:
        percents = [
            100 * value for value in (each.before_fraction, each.after_fraction, *each.chosen_fractions)
        ]
        yield (
            f"| {each.name} | {each.layouts} | {percents[0]:.1f} | {percents[1]:.1f} | "
            f"{'yes' if each.reached else 'no'} | {percents[2]:.1f} | {percents[3]:.1f} | "
            f"{'yes' if each.chosen_reached else 'no'} |"
        )
    reached, chosen = sum(each.reached for each in gains), sum(each.chosen_reached for each in gains)
    better = sum(each.after_fraction < each.before_fraction for each in gains)
    before, after = (
        100.0 * np.mean([getattr(each, field) for each in gains])
        for field in ("before_fraction", "after_fraction")
    )
    yield ""
    yield (
        f"Of {len(gains)} groups {reached} come down to half or to 5 % with any two layouts (the median over "
        f"pairs), {chosen} with the two that are advised; {better} come down at all. "
        f"Mean over groups: {before:.1f} % shipped, {after:.1f} % with any two."
    )


if __name__ == "__main__":
    main()
