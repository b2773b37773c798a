import csv
import io
import json

import pytest

from linkwise.estimate.money import Bill
from linkwise.report.bill import BILL_FIELDS, bill_columns, bill_fields
from linkwise.report.plan_csv import write_plan
from linkwise.report.plan_table import print_plan
from linkwise.report.results import PlanResult, published_json
from linkwise.report.tables import console_for

BILL = Bill(
    energy_j_per_step=3.6e6,
    energy_j_per_token=1.08,
    cost_usd_per_step=1.9,
    cost_usd_per_token=2.5e-7,
    cost_usd_per_run=3.4e6,
)
PRICED = bill_fields(BILL)


def table(result, width=100):
    file = io.StringIO()
    print_plan(result, console_for(file, width=width))
    return file.getvalue()


def csv_names(result):
    file = io.StringIO()
    write_plan(result, file)
    return list(csv.DictReader(io.StringIO(file.getvalue())))


def test_bill_is_published_per_million_tokens_and_in_kwh():
    # 1.08 J for a token: 1.08 MJ for a million, 0.3 kWh.
    assert PRICED["energy_kwh_per_million_tokens"] == pytest.approx(0.3)
    assert PRICED["cost_usd_per_million_tokens"] == pytest.approx(0.25)
    assert (PRICED["energy_j_per_step"], PRICED["cost_usd_per_run"]) == (3.6e6, 3.4e6)
    assert tuple(PRICED) == BILL_FIELDS


def test_json_has_money_and_energy_only_where_they_are_known(make_layout, make_plan):
    for fields, absent in (
        (PRICED, set()),
        ({**PRICED, "cost_usd_per_run": None}, {"cost_usd_per_run"}),
        ({}, set(BILL_FIELDS)),
    ):
        result = make_plan([make_layout(**fields)], closest=make_layout(**fields))
        text = published_json(result)
        for layout in (json.loads(text)["layouts"][0], json.loads(text)["closest"]):
            assert set(BILL_FIELDS) - set(layout) == absent
            assert layout["training_time_s"] is not None
        assert PlanResult.model_validate_json(text) == result


@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_schema_of_the_result_has_money_and_energy_as_fields_that_may_be_absent(mode):
    layout = PlanResult.model_json_schema(mode=mode)["$defs"]["LayoutResult"]
    assert set(BILL_FIELDS) < set(layout["properties"])
    assert not set(BILL_FIELDS) & set(layout["required"])
    assert "step_time_s" in layout["required"]


def test_csv_has_money_and_energy_only_where_prices_are_given(make_layout, make_plan):
    assert not set(BILL_FIELDS) & set(csv_names(make_plan([make_layout()]))[0])
    rows = csv_names(make_plan([make_layout(**PRICED), make_layout(**PRICED)]))
    assert [float(row["cost_usd_per_run"]) for row in rows] == [3.4e6, 3.4e6]


@pytest.mark.parametrize("layouts", [1, 2])
@pytest.mark.parametrize("width", [40, 100])
def test_table_has_money_and_energy_only_where_prices_are_given(make_layout, make_plan, layouts, width):
    assert "USD" not in table(make_plan([make_layout()] * layouts), width)
    text = table(make_plan([make_layout(**PRICED)] * layouts), width)
    for words in ("Money and energy", "USD per", "0.250", "3,400,000", "1.90", "kWh per", "0.300"):
        assert words in text, words
    assert "USD" in text


def test_columns_leave_out_what_is_not_known(make_layout):
    layouts = [make_layout(**{**PRICED, "cost_usd_per_run": None, "energy_kwh_per_million_tokens": None})]
    assert [column.heading for column in bill_columns(layouts)] == [
        "USD per\nmillion tokens",
        "USD\nper step",
    ]
    assert bill_columns([make_layout()]) == []
