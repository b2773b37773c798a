"""Fit the constants of the estimate and the intervals of its predictions on measured runs, and write both.

    python tools/fit.py [MEASUREMENTS.csv]

Every row of the file with task pretrain and use bench or core takes part; sources weigh alike. Intervals
come from fits that have not seen the publisher of a run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from linkwise.calibrate.fit import fit, fitted_intervals, free_constants, leave_one_source_out, predict
from linkwise.calibrate.measured import read_measurements

ROOT = Path(__file__).parent.parent
DEFAULT = ROOT / "tests" / "data" / "training.csv"
CONSTANTS = ROOT / "src" / "linkwise" / "estimate" / "constants.json"
INTERVALS = ROOT / "src" / "linkwise" / "estimate" / "intervals.json"


def main() -> None:
    """Fit, and write the two data files."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    runs = read_measurements(path, use=("bench", "core")).runs
    constants = fit(runs)
    measured = np.array([run.step_time_s for run in runs])
    for name, times in (
        ("in sample", predict(runs, constants)),
        ("left out", left_out := leave_one_source_out(runs)),
    ):
        error = np.abs(times / measured - 1.0)
        print(f"{name:10s} median {np.median(error):.3f} mean {np.mean(error):.3f} of {len(runs)} runs")
    entries = json.loads(CONSTANTS.read_text(encoding="utf-8"))
    for one in free_constants():
        entries[one.name]["value"] = float(f"{constants[one.name]:.4g}")
    CONSTANTS.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    INTERVALS.write_text(json.dumps(fitted_intervals(runs, left_out), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
