"""Score the model on the published measurements and write docs/accuracy.md and docs/accuracy.json.

    python tools/accuracy.py [--keep-left-out]

The section on the doctor is left as it is; tools/doctor_accuracy.py writes it. The fits without one
publisher each take a minute; with --keep-left-out those of docs/accuracy.json are taken.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from linkwise.calibrate.accuracy import accuracy_figures, judged_bars, score_accuracy
from linkwise.calibrate.fit import leave_one_source_out
from linkwise.calibrate.measured import read_measurements
from linkwise.calibrate.predict import predict_runs
from linkwise.report.accuracy import accuracy_markdown
from linkwise.report.doctor_accuracy import doctor_section_of, with_doctor_section

ROOT = Path(__file__).parent.parent
MEASUREMENTS = ROOT / "tests" / "data" / "training.csv"
FIGURES = ROOT / "docs" / "accuracy.json"
PAGE = ROOT / "docs" / "accuracy.md"


def main() -> None:
    """Score, print the bars, and write the page and its figures."""
    measurements = read_measurements(MEASUREMENTS, use=("bench", "core"))
    runs = measurements.runs
    if "--keep-left-out" in sys.argv[1:]:
        left_out: Mapping[str, float] = json.loads(FIGURES.read_text(encoding="utf-8"))[
            "left_out_step_time_s"
        ]
    else:
        times = leave_one_source_out(runs)
        left_out = {run.id: float(f"{time:.5g}") for run, time in zip(runs, times, strict=True)}
    accuracy = score_accuracy(measurements, predict_runs(runs), left_out)
    figures = accuracy_figures(accuracy)
    for bar, value, met in judged_bars(figures):
        print(
            f"{'kept  ' if met else 'MISSED'} {bar.words}: {'-' if value is None else f'{100 * value:.2f} %'}"
        )
    kept = doctor_section_of(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else ""
    PAGE.write_text(with_doctor_section(accuracy_markdown(accuracy, figures), kept), encoding="utf-8")
    record = {
        "figures": {name: float(f"{value:.5g}") for name, value in figures.items()},
        "left_out_step_time_s": left_out,
    }
    FIGURES.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)} and {FIGURES.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
