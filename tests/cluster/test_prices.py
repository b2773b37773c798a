import datetime as dt

import pytest

from linkwise.cluster.prices import STALE_DAYS, Prices, age_warning

PRICES = Prices(date=dt.date(2026, 6, 3), gpu_usd_per_s=1e-3, path="prices.yaml")


def after(days):
    return PRICES.date + dt.timedelta(days=days)


@pytest.mark.parametrize("days", [-1, 0, STALE_DAYS])
def test_age_warning_is_none_when_prices_are_fresh(days):
    assert age_warning(PRICES, today=after(days)) is None


def test_age_warning_counts_the_days_when_prices_are_older_than_180():
    warning = age_warning(PRICES, today=dt.date(2026, 12, 1))
    assert warning == (
        "prices.yaml: the prices are of 2026-06-03, 181 days old; look them up again and change the date"
    )


def test_age_warning_says_so_when_the_day_is_yet_to_come():
    assert "2026-06-03, a day that is not yet" in age_warning(PRICES, today=after(-2))
