"""What a fabric costs, as it is published and printed."""

import datetime as dt
import io
from dataclasses import replace

import pytest

from linkwise.cluster import load_cluster
from linkwise.cluster.prices import Hardware, Prices
from linkwise.network.built_fabric import built_fabric
from linkwise.report.fabric_bill import fabric_bill, print_fabric_bill
from linkwise.report.tables import console_for

DAY = dt.date(2026, 11, 30)
SOME = Hardware(lifetime_s=5 * 365.25 * 86400.0, switches={"quantum-2-qm9700": 3e4})


def bill(cluster="dgx-h100:32", **prices):
    there = load_cluster(cluster)
    built = built_fabric(there)
    stated = Prices(date=DAY, **prices) if prices else None
    return fabric_bill(replace(there, prices=stated), built, gpus=there.gpus)


def printed(result, width=80):
    file = io.StringIO()
    print_fabric_bill(result, console_for(file, width=width))
    return file.getvalue()


def test_nothing_is_published_or_printed_without_prices():
    assert bill() is None
    assert printed(None) == ""


@pytest.mark.parametrize("width", [60, 80, 120])
def test_table_names_what_is_not_priced_and_keeps_to_the_width(width):
    text = printed(bill(hardware=SOME, electricity_usd_per_j=0.1 / 3.6e6), width)
    assert max(map(len, text.splitlines())) <= width
    assert ">360,000" in text
    assert "transceivers (osfp-800g-2xdr4)" in " ".join(text.split())


def test_parts_that_have_no_price_at_all_have_no_total():
    found = bill(hardware=replace(SOME, switches={"spectrum-4-sn5600": 1.0}))
    assert (found.total_usd, found.usd_per_gpu) == (None, None)
    assert all(each.total_usd is None for each in found.parts)
    assert "in all" in printed(found)


def test_rent_pays_for_the_parts_and_electricity_alone_says_that_it_does_not():
    rented = bill(gpu_usd_per_s=1e-3, electricity_usd_per_j=0.1 / 3.6e6)
    assert (rented.parts, rented.not_priced) == ([], [])
    metered = bill(electricity_usd_per_j=0.1 / 3.6e6)
    assert metered.not_priced == ["all parts (the prices have no hardware)"]
    (line,) = metered.per_year
    # 17.796 kW for a year of 8,766 hours.
    assert line.usd_per_year == pytest.approx(17.796 * 8766 * 0.1)
