"""Score the doctor on the generated logs and on the reports, and write its section of docs/accuracy.md.

python tools/doctor_accuracy.py
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from linkwise.calibrate.doctor_score import DoctorScore, score_doctor
from linkwise.report.doctor_accuracy import doctor_accuracy_markdown, with_doctor_section

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "accuracy.md"
REPORTS = ROOT / "tests" / "data" / "nccl_cases"

sys.path.insert(0, str(ROOT))


def score_generated() -> DoctorScore:
    """Return the score on the logs of the generator, written to files as a user has them."""
    from tests.job_logs import cases

    with tempfile.TemporaryDirectory() as folder:
        known = []
        for case in cases():
            for name, text in case.files.items():
                end = "log" if name == "job.log" else f"{name}.txt"
                (Path(folder) / f"{case.id}.{end}").write_text(text, encoding="utf-8")
            if case.cause is not None:
                entry = {"id": case.id, "category": case.cause, "also": case.also, "severity": case.verdict}
                known.append(json.dumps(entry))
        listing = Path(folder) / "cases.jsonl"
        listing.write_text("\n".join(known) + "\n", encoding="utf-8")
        return score_doctor(listing, folder)


def section() -> str:
    """Return the section as it should be."""
    reports = score_doctor(REPORTS.with_suffix(".jsonl"), REPORTS)
    return doctor_accuracy_markdown(score_generated(), reports)


def main() -> None:
    """Write the section."""
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_doctor_section(page, section()), encoding="utf-8")
    print(f"wrote the section on the doctor of {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
