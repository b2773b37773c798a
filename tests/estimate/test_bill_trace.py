import datetime as dt
from dataclasses import replace

import pytest

from linkwise.cluster import load_cluster
from linkwise.cluster.prices import Hardware, Prices
from linkwise.estimate.bill_trace import trace_bill
from linkwise.job import Job
from linkwise.model import load_model

JOB = Job(model=load_model("llama-3.1-70b"), sequence_length=8192, global_batch=1024, tokens=15e12)
HOURS = Prices(date=dt.date(2026, 11, 30), gpu_usd_per_s=2.5 / 3600, path="p.yaml")
ALL = replace(HOURS, electricity_usd_per_j=0.1 / 3.6e6, pue=1.3)


def priced(prices, cluster="dgx-h100:32"):
    return replace(load_cluster(cluster), prices=prices)


def test_trace_has_nothing_without_prices():
    assert trace_bill(JOB, priced(None), 10.0) == ()


def test_trace_gives_every_term_with_inputs_and_where_prices_stand():
    terms = {term.name: term for term in trace_bill(JOB, priced(ALL), 10.0)}
    assert terms["cost_usd_per_step"].value == pytest.approx(1.902071, rel=1e-6)
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
    names = {term.name for term in terms}
    # Lines of nothing are left out, and so is goodput where checkpoints are not stated.
    assert {"rent_usd_per_s", "cost_usd_per_s"} <= names
    assert not names & {"node_electricity_usd_per_s", "nodes_usd_per_s", "goodput_fraction"}
    terms = trace_bill(JOB, priced(replace(ALL, pue=None)), 10.0)
    sources = {each.name: each.source for term in terms for each in term.inputs}
    assert sources["pue"] == "not stated in p.yaml, 2026-11-30"


def test_trace_says_what_purchase_prices_are_of():
    bought = Hardware(lifetime_s=1e8, systems={"dgx-h100": 3e5}, switches={"quantum-2-qm9700": 3e4})
    terms = trace_bill(JOB, priced(Prices(date=HOURS.date, hardware=bought, path="p.yaml")), 10.0)
    sources = {each.name: each.source for term in terms for each in term.inputs}
    assert sources["nodes_usd"] == "32 dgx-h100 x 300,000 USD = 9,600,000 USD; p.yaml, 2026-11-30"
    assert sources["fabric_usd"] == "12 quantum-2-qm9700 x 30,000 USD = 360,000 USD; p.yaml, 2026-11-30"
