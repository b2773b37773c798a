"""The section of docs/accuracy.md on the doctor is that of the rules."""

import importlib.util
from pathlib import Path

from linkwise.report.doctor_accuracy import doctor_section_of, with_doctor_section

_ROOT = Path(__file__).parents[2]


def test_section_is_that_of_the_rules():
    spec = importlib.util.spec_from_file_location("doctor_accuracy", _ROOT / "tools" / "doctor_accuracy.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    page = (_ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    assert doctor_section_of(page) == tool.section(), "run python tools/doctor_accuracy.py"


def test_section_is_replaced_and_the_rest_of_the_page_kept():
    page = "# Accuracy\n\ntext\n"
    once = with_doctor_section(page, "\n## Doctor\n\nold\n")
    assert with_doctor_section(once, "\n## Doctor\n\nnew\n") == "# Accuracy\n\ntext\n\n## Doctor\n\nnew\n"
    assert with_doctor_section(once, "") == page
