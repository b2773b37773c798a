import pytest

from linkwise.report.wording import counted, duration, gigabytes, percent, three_digits


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (9.3512, "9.35"), (3589.9, "3,590"), (0.01234, "0.0123"), (99.96, "100"), (1e12, "1.00e+12"),
     (8388608, "8,390,000"), (1e-7, "1.00e-07")],
)  # fmt: skip
def test_three_digits(value, text):
    assert three_digits(value) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(0, "0"), (0.471234, "47.1"), (0.0912, "9.12"), (0.00456, "0.46"), (1.0, "100.0"), (1e-9, "0")],
)
def test_percent(fraction, text):
    assert percent(fraction) == text


def test_counted_knows_one_from_many():
    assert counted(1, "layout") == "1 layout"
    assert counted(12345, "layout") == "12,345 layouts"


def test_duration_takes_the_unit_people_use():
    assert duration(16_700_000) == "193 days"
    assert duration(90) == "1.50 minutes"
    assert duration(4e7) == "463 days"
    assert duration(1e8) == "3.17 years"


def test_gigabytes_are_decimal():
    assert gigabytes(71.23e9) == "71.2"
