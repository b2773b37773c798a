"""Laws of bills that hold whatever the prices are."""

import datetime as dt
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.cluster import load_cluster
from linkwise.cluster.cluster import CableKind
from linkwise.cluster.prices import Checkpoints, Hardware, Part, Prices, Staff
from linkwise.estimate.money import bills, cluster_bill
from linkwise.job import Job
from linkwise.model import load_model

JOB = Job(model=load_model("llama-3.1-8b"), sequence_length=4096, global_batch=64, tokens=1e12)
CLUSTERS = {name: load_cluster(name) for name in ("dgx-h100:1", "dgx-h100:32", "gb200-nvl72:36", "aws-p5:4")}
DAY = dt.date(2026, 11, 30)
YEAR = 365.25 * 86400.0
MONEY = st.floats(0.01, 1e7)

HARDWARE = st.builds(
    Hardware,
    lifetime_s=st.floats(0.1 * YEAR, 20 * YEAR),
    residual_fraction=st.floats(0, 0.99),
    support_fraction_per_s=st.none() | st.floats(0, 1 / YEAR),
    spares_fraction=st.none() | st.floats(0, 1),
    systems=st.fixed_dictionaries({}, optional={"dgx-h100": MONEY, "gb200-nvl72": MONEY}),
    node_usd=st.none() | MONEY,
    nics=st.fixed_dictionaries({}, optional={"connectx-7": MONEY}),
    switches=st.fixed_dictionaries({}, optional={"quantum-2-qm9700": MONEY}),
    cables=st.fixed_dictionaries({}, optional={CableKind.OPTICAL: MONEY}),
)
PRICES = st.builds(
    Prices,
    date=st.just(DAY),
    gpu_usd_per_s=st.none() | st.floats(1e-6, 0.1),
    electricity_usd_per_j=st.none() | st.floats(1e-9, 1e-6),
    pue=st.none() | st.floats(1, 2),
    hardware=st.none() | HARDWARE,
    staff=st.none() | st.just(Staff(usd_per_s=0.03, share_per_1000_gpus={"infiniband": 0.1})),
    mtbf_s=st.fixed_dictionaries({}, optional=dict.fromkeys(Part, st.floats(1e8, 1e10))),
    restart_s=st.floats(1, 3600),
    checkpoints=st.none()
    | st.builds(Checkpoints, write_s=st.floats(1, 300), interval_s=st.floats(60, 36000)),
)


@settings(max_examples=50)
@given(PRICES, st.sampled_from(sorted(CLUSTERS)))
def test_lines_sum_to_the_cost_and_the_cost_is_that_of_a_token(prices, name):
    cluster = replace(CLUSTERS[name], prices=prices)
    bill = cluster_bill(cluster)
    (one,) = bills(JOB, cluster, [2.0])
    assert sum(line.usd_per_s for line in bill.lines) == pytest.approx(bill.usd_per_s, rel=1e-9)
    assert all(line.usd_per_s > 0 and line.arithmetic for line in bill.lines)
    assert one.cost_usd_per_step == pytest.approx(2.0 * bill.usd_per_s)
    assert one.cost_usd_per_token * JOB.tokens_per_step * bill.goodput_fraction == pytest.approx(
        2.0 * bill.usd_per_s
    )
    assert 0 < bill.goodput_fraction <= 1


@settings(max_examples=50)
@given(PRICES.filter(lambda each: each.hardware is not None), st.floats(1, 10))
def test_dearer_parts_never_make_a_token_cheaper_and_cost_what_they_say(prices, factor):
    cluster = replace(CLUSTERS["dgx-h100:32"], prices=prices)
    bought = prices.hardware
    dear = {
        name: {item: factor * usd for item, usd in getattr(bought, name).items()}
        for name in ("nics", "switches", "cables")
    }
    bill = cluster_bill(cluster)
    dearer = cluster_bill(replace(cluster, prices=replace(prices, hardware=replace(bought, **dear))))
    more = (factor - 1) * bill.fabric_usd
    assert dearer.fabric_usd - bill.fabric_usd == pytest.approx(more, abs=1e-6 * (1 + bill.fabric_usd))
    assert dearer.usd_per_s == pytest.approx(bill.usd_per_s + more * bill.fabric_usd_per_s_of_usd)
