"""The doctor on the reports whose cause is known: a guard against regressions, see `tests/data/nccl_cases.md`."""

from pathlib import Path

import pytest

from linkwise.calibrate.doctor_score import read_cases, score_doctor
from linkwise.errors import DocumentError, InputError
from linkwise.report.doctor_validation import doctor_validation_result

_DATA = Path(__file__).parents[1] / "data"


def test_known_cases_are_answered():
    result = doctor_validation_result(score_doctor(_DATA / "nccl_cases.jsonl", _DATA / "nccl_cases"))
    assert (result.ill, result.well) == (58, 14)
    assert result.first_fraction >= 0.95
    assert result.within_three_fraction >= 0.97
    assert result.verdict_fraction >= 0.95
    assert result.well_fraction == 1.0
    assert result.first_fraction > result.words_first_fraction + 0.2


@pytest.mark.parametrize(("line", "words"), [
    ("[1]", "write an object"),
    ("{", "is no case"),
    ('{"id": "A", "category": "nonsense", "severity": "slow"}', "no cause"),
    ('{"id": "A", "category": "rails", "severity": "bad"}', "none of broken"),
    ('{"category": "rails", "severity": "slow"}', "id is missing"),
    ("", "holds no case"),
])  # fmt: skip
def test_faulty_cases_are_named(tmp_path, line, words):
    (tmp_path / "cases.jsonl").write_text(line + "\n")
    with pytest.raises(DocumentError, match=words):
        read_cases(tmp_path / "cases.jsonl")


def test_a_folder_without_logs_is_said(tmp_path):
    with pytest.raises(InputError, match=r"NAME\.log"):
        score_doctor(_DATA / "nccl_cases.jsonl", tmp_path)
