"""Verdicts for continuous integration, read back by others' programs."""

import datetime as dt
import json
from pathlib import Path

import jsonschema
import junitparser
import pytest

from linkwise.rollout.exports.ctrf import verdicts_ctrf
from linkwise.rollout.exports.junit import verdicts_junit
from linkwise.rollout.gates.judging import judge_step
from linkwise.rollout.plan import Against, Severity
from tests.rollout.making import TODAY, at_least, bad_run, objective, rollout, turns

NOW = dt.datetime(2026, 11, 30, 12, 0, tzinfo=dt.UTC)
_SCHEMA = Path(__file__).parents[2] / "data/schemas/ctrf.schema.json"
PLAN = rollout(
    objective(name="passes"),
    objective(at_least(120.0, Against.FLOOR), name="fails"),
    objective(at_least(1.0), name="open"),
    objective(at_least(0.9, Against.BASELINE), name="no-data"),
    objective(at_least(120.0, Against.FLOOR), name="should", severity=Severity.SHOULD),
    objective(at_least(120.0, Against.FLOOR), name="watched", severity=Severity.WATCH),
)
OURS = [100.0, 101.0, 99.0, 100.5, 99.5]


def verdict(*bad):
    return judge_step(PLAN, PLAN.steps[0], [*turns(OURS, [100.0] * 5), *bad], today=TODAY)


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "gates.xml").write_text(verdicts_junit(PLAN, [verdict()]), encoding="utf-8")
    (found,) = junitparser.JUnitXml.fromfile(str(tmp_path / "gates.xml"))
    return found


def test_junit_has_a_case_for_each_objective_and_fails_all_that_does_not_pass(suite):
    ends = {case.name: [type(each).__name__ for each in case.result] for case in suite}
    assert ends == {
        "passes": [],
        "fails": ["Failure"],
        "open": ["Failure"],
        "no-data": ["Error"],
        "should": ["Failure"],
        "watched": ["Skipped"],
    }
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (6, 3, 1, 1)


def test_junit_says_the_outcome_and_the_sentence(suite):
    (told,) = next(case for case in suite if case.name == "open").result
    assert told.type == "inconclusive"
    assert "The bar lies inside the interval" in told.message
    assert "values 100.0 101.0" in told.text
    assert {each.name: each.value for each in suite.properties()}["digest"] == PLAN.digest


def test_junit_holds_whatever_a_job_said(tmp_path):
    said = "\x00\x1b[31m <killed> & \ud800 \ufffe ]]>"
    text = verdicts_junit(PLAN, [verdict(bad_run(10, reason=said))])
    (tmp_path / "gates.xml").write_text(text, encoding="utf-8")
    (found,) = junitparser.JUnitXml.fromfile(str(tmp_path / "gates.xml"))
    assert "<killed> &" in next(iter(found)).system_out


def test_ctrf_is_valid_and_counts_only_passes_as_passed():
    told = json.loads(verdicts_ctrf(PLAN, [verdict()], now=NOW))
    jsonschema.Draft7Validator(
        json.loads(_SCHEMA.read_text(encoding="utf-8")), format_checker=jsonschema.FormatChecker()
    ).validate(told)
    summary = told["results"]["summary"]
    assert (summary["tests"], summary["passed"], summary["failed"], summary["other"]) == (6, 1, 2, 3)
    ends = {test["name"]: (test["status"], test["rawStatus"]) for test in told["results"]["tests"]}
    assert ends["one: open"] == ("other", "inconclusive")
    assert ends["one: watched"] == ("other", "fail")
    assert ends["one: no-data"] == ("other", "no data")


def test_ctrf_has_no_number_that_json_has_not():
    runs = turns([float("nan")] * 5, [100.0] * 5)
    told = verdicts_ctrf(PLAN, [judge_step(PLAN, PLAN.steps[0], runs, today=TODAY)], now=NOW)
    assert "NaN" not in told
    assert "Infinity" not in told
