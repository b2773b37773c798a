"""Fit the constants of the time of collectives on published runs, and the intervals of its predictions.

    python tools/fit_collectives.py [COLLECTIVES.csv COLLECTIVE_RUNS.csv] [--write]

Healthy runs of nccl-tests and rccl-tests take part with their sizes from 64 KiB on, but for those that a rule
sets apart (`linkwise.calibrate.collective_score.rule_of`). Constants marked ``fit`` are fitted; the others
were read off the same curves, so leaving a source out protects the fitted ones only. Without --write it only
prints.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from linkwise.calibrate.collective_fit import (
    fit_collectives,
    fitted_factors,
    free_collective_constants,
    leave_one_source_out,
    measured_gpus_of,
    operation_factors,
    training_runs,
)
from linkwise.calibrate.collective_runs import read_collectives
from linkwise.calibrate.collective_score import CollectiveScore, predict_collectives, score_collectives
from linkwise.network.collective_constants import in_si
from linkwise.report.collective_page import accuracy_entry, collective_page

ROOT = Path(__file__).parent.parent
DATA = ROOT / "tests" / "data"
CONSTANTS = ROOT / "src" / "linkwise" / "network" / "collective_constants.json"
ACCURACY = ROOT / "src" / "linkwise" / "calibrate" / "collective_accuracy.json"
PAGE = ROOT / "docs" / "collectives.md"
INTERVALS = ROOT / "src" / "linkwise" / "network" / "collective_intervals.json"


def main() -> None:
    """Fit, say how good the fit is, and write the data files and the page if asked to."""
    paths = [Path(word) for word in sys.argv[1:] if not word.startswith("--")]
    measured = read_collectives(*(paths or [DATA / "collectives.csv", DATA / "collective_runs.csv"]))
    fitted = _as_written(fit_collectives(training_runs(measured.runs)))
    left_out = leave_one_source_out(measured.runs)
    seen = predict_collectives(measured.runs, constants=fitted)
    scores = {
        "in_sample": score_collectives(seen, skipped=measured.skipped),
        "left_out": score_collectives(left_out, skipped=measured.skipped),
    }
    for part, score in scores.items():
        _say(part, score)
    for one in free_collective_constants():
        print(f"  {one.name:26s} {fitted[one.name]:.4g}, began at {one.start:.4g}")
    if "--write" in sys.argv:
        most = measured_gpus_of(measured.runs)
        factors, operations = fitted_factors(left_out), operation_factors(left_out)
        _write(fitted, {"factors": factors, "operations": operations, "measured_gpus": most})
        _write_page({part: accuracy_entry(score) for part, score in scores.items()})


def _say(what: str, score: CollectiveScore) -> None:
    if score.errors is None or score.after_rules is None:
        raise SystemExit("no row could be scored")
    median = {
        group.name: group.errors.median_abs_error_fraction
        for group in score.by
        if group.key in ("reach", "size_class")
    }
    print(
        f"{what}: from 1 MiB {score.errors.median_abs_error_fraction:.4f}, "
        f"within 25 % {score.errors.within_25_fraction:.4f}; "
        f"after the rules {score.after_rules.median_abs_error_fraction:.4f}, "
        f"within 25 % {score.after_rules.within_25_fraction:.4f}; "
        f"runs {score.run_median_fraction:.4f}, "
        f"on several nodes {score.multi_node_run_median_fraction:.4f}; "
        f"under 1 MiB {median['under_1_mib']:.4f}, "
        f"on several nodes {median['multi_node_under_1_mib']:.4f}"
    )


def _as_written(fitted: dict[str, float]) -> dict[str, float]:
    """Return fitted constants with the digits that are written."""
    return fitted | {one.name: float(f"{fitted[one.name]:.4g}") for one in free_collective_constants()}


def _write_page(accuracy: dict[str, object]) -> None:
    ACCURACY.write_text(json.dumps(accuracy, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(collective_page(accuracy), encoding="utf-8")


def _write(fitted: dict[str, float], intervals: dict[str, object]) -> None:
    entries = json.loads(CONSTANTS.read_text(encoding="utf-8"))
    for name, entry in entries.items():
        if entry.get("fit"):
            entry["value"] = float(f"{fitted[name] / in_si(1.0, entry['unit']):.4g}")
    CONSTANTS.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    stated = json.loads(INTERVALS.read_text(encoding="utf-8")) | intervals
    INTERVALS.write_text(json.dumps(stated, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
