import datetime as dt
from dataclasses import replace

import pytest

from linkwise.cluster import load_cluster
from linkwise.cluster.prices import Prices
from linkwise.estimate.bill_trace import trace_bill
from linkwise.estimate.money import bill_assumptions, bills
from linkwise.job import Job
from linkwise.model import load_model

JOB = Job(model=load_model("llama-3.1-70b"), sequence_length=8192, global_batch=1024, tokens=15e12)
HOURS = Prices(date=dt.date(2026, 11, 30), gpu_usd_per_s=2.5 / 3600, path="p.yaml")
ALL = replace(HOURS, electricity_usd_per_j=0.1 / 3.6e6, pue=1.3)


def priced(prices, cluster="dgx-h100:32"):
    return replace(load_cluster(cluster), prices=prices)


def test_bill_is_that_worked_by_hand():
    """256 GPUs in 32 nodes of 10.2 kW for 10 s: 0.71111 GPU hours, 3.264 MJ or 0.90667 kWh; 8,388,608 tokens."""
    (bill,) = bills(JOB, priced(ALL), [10.0])
    assert bill.energy_j_per_step == pytest.approx(3.264e6)
    assert bill.energy_j_per_token == pytest.approx(0.389099, rel=1e-5)
    assert bill.cost_usd_per_step == pytest.approx(1.777778 + 0.117867, rel=1e-6)
    assert 1e6 * bill.cost_usd_per_token == pytest.approx(0.225978, rel=1e-5)
    assert bill.cost_usd_per_run == pytest.approx(3.38968e6, rel=1e-5)


def test_bills_grow_with_the_step_time_and_keep_their_order():
    short, long = bills(JOB, priced(ALL), [10.0, 30.0])
    assert long.cost_usd_per_run == pytest.approx(3 * short.cost_usd_per_run)
    assert long.energy_j_per_step == pytest.approx(3 * short.energy_j_per_step)


def test_bill_has_the_hours_alone_when_electricity_is_not_paid_apart():
    (bill,) = bills(JOB, priced(HOURS), [10.0])
    assert bill.cost_usd_per_step == pytest.approx(1.777778, rel=1e-6)
    assert bill.energy_j_per_step == pytest.approx(3.264e6)


def test_bill_has_electricity_alone_when_hours_have_no_price():
    (bill,) = bills(JOB, priced(replace(ALL, gpu_usd_per_s=None, pue=None)), [10.0])
    assert bill.cost_usd_per_step == pytest.approx(0.0906667, rel=1e-6)


def test_bill_of_a_run_is_none_when_its_length_is_not_stated():
    (bill,) = bills(replace(JOB, tokens=None), priced(ALL), [10.0])
    assert bill.cost_usd_per_run is None
    assert bill.cost_usd_per_step > 0


def test_energy_is_none_when_no_power_is_known():
    (bill,) = bills(JOB, priced(HOURS, "vr-nvl144:18"), [10.0])
    assert (bill.energy_j_per_step, bill.energy_j_per_token) == (None, None)
    # 72 GPUs.
    assert bill.cost_usd_per_step == pytest.approx(72 * 2.5 / 360)


def test_nothing_is_said_without_prices():
    cluster = priced(None)
    assert bills(JOB, cluster, [10.0]) is None
    assert bill_assumptions(cluster) == trace_bill(JOB, cluster, 10.0) == ()


@pytest.mark.parametrize(
    ("prices", "says"),
    [
        (ALL, "2.5 USD/h a GPU, and beside it electricity 0.1 USD/kWh at PUE 1.3"),
        (HOURS, "2.5 USD/h a GPU; electricity is not paid apart"),
        (
            replace(ALL, gpu_usd_per_s=None, pue=None),
            "electricity 0.1 USD/kWh at PUE 1 (not stated: no cooling); the GPUs themselves are not priced",
        ),
    ],
)
def test_assumptions_name_the_prices_and_their_day(prices, says):
    assert bill_assumptions(priced(prices))[0] == f"prices of 2026-11-30: {says}"


def test_trace_gives_every_term_with_inputs_and_where_prices_stand():
    terms = {term.name: term for term in trace_bill(JOB, priced(ALL), 10.0)}
    assert terms["cost_usd_per_step"].value == pytest.approx(1.895644, rel=1e-6)
    assert [terms[name].group for name in ("energy_j_per_step", "cost_usd_per_run")] == ["energy", "money"]
    inputs = {each.name: each for term in terms.values() for each in term.inputs}
    assert inputs["gpu_usd_per_s"].origin == "prices"
    assert inputs["gpu_usd_per_s"].source == "p.yaml, 2026-11-30"
    assert inputs["consumer_power_w"].basis == "assumed"
    assert inputs["energy_j_per_step"].origin == "term"


def test_trace_has_no_energy_when_no_power_is_known():
    names = [term.name for term in trace_bill(JOB, priced(HOURS, "vr-nvl144:18"), 10.0)]
    assert "cost_usd_per_step" in names
    assert not [name for name in names if name.startswith("energy")]


def test_trace_says_what_is_not_stated():
    terms = trace_bill(JOB, priced(HOURS), 10.0)
    sources = {each.name: each.source for term in terms for each in term.inputs}
    assert sources["electricity_usd_per_j"] == "not stated in p.yaml, 2026-11-30"
