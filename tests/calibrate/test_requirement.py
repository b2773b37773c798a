import pytest

from linkwise.calibrate.requirement import judge, parse_requirements
from linkwise.calibrate.validate import validate_training
from linkwise.errors import InputError, UnknownName


def test_parse_requirements_reads_several():
    limits = parse_requirements("median=0.08, mape=0.10")
    assert [(each.name, each.limit_fraction) for each in limits] == [("median", 0.08), ("mape", 0.1)]


@pytest.mark.parametrize(
    "text", ["", ",", "median", "median=", "median=x", "median=-1", "median=nan", "median=inf"]
)
def test_parse_requirements_refuses_what_is_no_limit(text):
    with pytest.raises(InputError):
        parse_requirements(text)


def test_parse_requirements_names_the_nearest_figure():
    with pytest.raises(UnknownName, match="did you mean median"):
        parse_requirements("medain=0.1")


def test_judge_holds_limits_against_the_score(write_runs, row):
    score = validate_training(write_runs(row()))
    size = score.errors.mape_fraction
    met = {
        each.limit_fraction: each.met
        for each in judge(parse_requirements(f"mape={size + 1e-6},mape={size - 1e-6}"), score)
    }
    assert met == {size + 1e-6: True, size - 1e-6: False}


def test_judge_takes_bias_by_its_size_and_coverage_from_below(write_runs, row):
    slow = validate_training(write_runs(row(step_time_s="100")))
    bias, coverage, none = judge(parse_requirements("bias=0.5,coverage=0,memory=10"), slow)
    assert not bias.met
    assert coverage.met
    assert none.value_fraction is None
    assert not none.met
