"""Fit the constants of the estimate and the intervals of its predictions on measured runs, and write both.

    python tools/fit.py [MEASUREMENTS.csv]

Rows with task pretrain and use bench or core take part, but for the third of the groups that
`linkwise.calibrate.fit.is_held_out` keeps apart; sources weigh alike. Intervals come from fits that have not
seen the publisher of a run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from linkwise.calibrate.accuracy import COMPOSED_SOURCE
from linkwise.calibrate.fit import (
    fit,
    fitted_intervals,
    free_constants,
    is_held_out,
    leave_one_source_out,
    predict,
)
from linkwise.calibrate.measured import MeasuredRun, read_measurements
from linkwise.estimate.columns import Floats

ROOT = Path(__file__).parent.parent
DEFAULT = ROOT / "tests" / "data" / "training.csv"
CONSTANTS = ROOT / "src" / "linkwise" / "estimate" / "constants.json"
INTERVALS = ROOT / "src" / "linkwise" / "estimate" / "intervals.json"


def main() -> None:
    """Fit, and write the two data files."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    runs = read_measurements(path, use=("bench", "core")).runs
    seen = [run for run in runs if not is_held_out(run)]
    constants = fit(seen)
    left_out = leave_one_source_out(runs)
    _say("fitted part", seen, predict(seen, constants))
    unseen = [run for run in runs if is_held_out(run)]
    _say("held-out part", unseen, predict(unseen, constants))
    _say("each publisher left out", runs, left_out)
    entries = json.loads(CONSTANTS.read_text(encoding="utf-8"))
    for one in free_constants():
        entries[one.name]["value"] = float(f"{constants[one.name]:.4g}")
    CONSTANTS.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    INTERVALS.write_text(json.dumps(fitted_intervals(runs, left_out), indent=1) + "\n", encoding="utf-8")


def _say(what: str, runs: Sequence[MeasuredRun], predicted_s: Floats) -> None:
    others = [place for place, run in enumerate(runs) if run.source != COMPOSED_SOURCE]
    measured = np.array([run.step_time_s for run in runs])
    error = np.abs(predicted_s / measured - 1.0)[others]
    print(
        f"{what:24s} median {np.median(error):.3f} mean {np.mean(error):.3f} "
        f"of {len(others)} runs without {COMPOSED_SOURCE}"
    )


if __name__ == "__main__":
    main()
