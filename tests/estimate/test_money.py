import datetime as dt
from dataclasses import replace

import pytest

from linkwise.cluster import load_cluster
from linkwise.cluster.cluster import CableKind
from linkwise.cluster.prices import Checkpoints, Hardware, Part, Prices, Staff
from linkwise.cluster.reading import parse_cluster
from linkwise.errors import InputError
from linkwise.estimate.money import bill_assumptions, bills, cluster_bill
from linkwise.job import Job
from linkwise.model import load_model

JOB = Job(model=load_model("llama-3.1-70b"), sequence_length=8192, global_batch=1024, tokens=15e12)
HOURS = Prices(date=dt.date(2026, 11, 30), gpu_usd_per_s=2.5 / 3600, path="p.yaml")
ALL = replace(HOURS, electricity_usd_per_j=0.1 / 3.6e6, pue=1.3)


def priced(prices, cluster="dgx-h100:32"):
    return replace(load_cluster(cluster), prices=prices)


def test_bill_is_that_worked_by_hand():
    """256 GPUs in 32 nodes of 10.2 kW and a fabric of 17.796 kW (12 x 747 + 384 x 17 + 256 x 9 W) for 10 s.

    0.71111 GPU hours; 3.44196 MJ or 0.956100 kWh; 8,388,608 tokens; 1,788,140 steps.
    """
    (bill,) = bills(JOB, priced(ALL), [10.0])
    assert bill.energy_j_per_step == pytest.approx(3.44196e6)
    assert bill.energy_j_per_token == pytest.approx(0.410314, rel=1e-5)
    assert bill.cost_usd_per_step == pytest.approx(1.777778 + 0.124293, rel=1e-6)
    assert 1e6 * bill.cost_usd_per_token == pytest.approx(0.226745, rel=1e-5)
    assert bill.cost_usd_per_run == pytest.approx(1.902071 * JOB.steps, rel=1e-6)


def test_bills_grow_with_the_step_time_and_keep_their_order():
    short, long = bills(JOB, priced(ALL), [10.0, 30.0])
    assert long.cost_usd_per_run == pytest.approx(3 * short.cost_usd_per_run)
    assert long.energy_j_per_step == pytest.approx(3 * short.energy_j_per_step)


def test_bill_has_the_hours_alone_when_electricity_is_not_paid_apart():
    (bill,) = bills(JOB, priced(HOURS), [10.0])
    assert bill.cost_usd_per_step == pytest.approx(1.777778, rel=1e-6)
    assert bill.energy_j_per_step == pytest.approx(3.44196e6)


def test_bill_has_electricity_alone_when_hours_have_no_price():
    (bill,) = bills(JOB, priced(replace(ALL, gpu_usd_per_s=None, pue=None)), [10.0])
    assert bill.cost_usd_per_step == pytest.approx(0.0956100, rel=1e-6)


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
    assert cluster_bill(cluster) is None
    assert bill_assumptions(cluster) == ()


@pytest.mark.parametrize(
    ("prices", "says"),
    [
        (
            ALL,
            "2.5 USD/h a GPU, and beside it electricity 0.1 USD/kWh at PUE 1.3; not stated: failures and checkpoints",
        ),
        (HOURS, "2.5 USD/h a GPU; electricity is not paid apart; not stated: failures and checkpoints"),
        (
            replace(ALL, gpu_usd_per_s=None, pue=None),
            "electricity 0.1 USD/kWh at PUE 1 (not stated: no cooling); not stated: the GPUs themselves, staff, failures and checkpoints",
        ),
    ],
)
def test_assumptions_name_the_prices_and_their_day(prices, says):
    assert bill_assumptions(priced(prices))[0] == f"prices of 2026-11-30: {says}"


YEAR = 365.25 * 86400.0
BOUGHT = Hardware(
    lifetime_s=5 * YEAR,
    residual_fraction=0.1,
    support_fraction_per_s=0.05 / YEAR,
    spares_fraction=0.03,
    systems={"dgx-h100": 300_000.0, "gb200-nvl72": 3_600_000.0},
    switches={"quantum-2-qm9700": 25_000.0},
    transceivers={"osfp-800g-2xdr4": 1000.0, "osfp-400g-dr4-nic-side": 600.0},
    cables={CableKind.OPTICAL: 100.0},
)
OWNED = Prices(
    date=HOURS.date,
    electricity_usd_per_j=0.1 / 3.6e6,
    pue=1.3,
    hardware=BOUGHT,
    staff=Staff(
        usd_per_s=120 / 3600,
        share_per_1000_gpus={"infiniband": 40 * 12 * 3600 / YEAR, "ethernet": 160 * 12 * 3600 / YEAR},
    ),
    path="p.yaml",
)
RUNS = {
    "mtbf_s": {Part.GPU: 50_000 * 3600.0},
    "restart_s": 600.0,
    "checkpoints": Checkpoints(write_s=30.0, interval_s=3600.0),
}


def lines(prices, cluster="dgx-h100:32"):
    return {line.name: line.usd_per_s * YEAR for line in cluster_bill(priced(prices, cluster)).lines}


def test_lines_of_a_bought_cluster_are_those_worked_by_hand():
    """32 nodes of 300,000 USD are 9.6 million.

    Fabric: 12 switches x 25,000 + 384 modules x 1,000 + 256 x 600 + 512 fibres x 100 = 888,800 USD.
    """
    found = lines(OWNED)
    assert found["nodes"] == pytest.approx(9.6e6 * 0.9 / 5)
    assert found["fabric"] == pytest.approx(888_800 * 0.9 / 5)
    assert found["spares"] == pytest.approx(10_488_800 * 0.03 / 5)
    assert found["support"] == pytest.approx(10_488_800 * 0.05)
    assert found["staff"] == pytest.approx(0.256 * 40 * 12 * 120)
    hours = 365.25 * 24
    assert found["electricity, nodes"] == pytest.approx(326.4 * hours * 1.3 * 0.1)
    assert found["electricity, fabric"] == pytest.approx(17.796 * hours * 1.3 * 0.1)
    assert len(found) == 7
    assert cluster_bill(priced(OWNED)).usd_per_s * YEAR == pytest.approx(sum(found.values()))


def test_lines_say_how_they_came_about():
    words = {line.name: line.arithmetic for line in cluster_bill(priced(OWNED)).lines}
    assert words["nodes"] == "32 dgx-h100 x 300,000 USD = 9,600,000 USD, written off down to 10 % in 5 years"
    assert words["staff"] == "256 GPUs / 1,000 x 40 h/month (infiniband) x 120 USD/h"
    assert words["electricity, nodes"] == "32 nodes x 10.2 kW x PUE 1.3 x 0.1 USD/kWh"


def test_ethernet_has_the_hours_of_its_own_family():
    roce = "linkwise: cluster/1\nnodes: 32\nnode: dgx-h100\nfabric: {link: %s, switch: spectrum-4-sn5600}\n"
    for link in ("roce-400", "ethernet-100"):
        cluster = replace(parse_cluster(roce % link), prices=OWNED)
        staff = next(line for line in cluster_bill(cluster).lines if line.name == "staff")
        assert staff.usd_per_s * YEAR == pytest.approx(0.256 * 160 * 12 * 120)
    own = replace(OWNED, staff=Staff(usd_per_s=1.0, share_per_1000_gpus={"roce": 1.0, "ethernet": 2.0}))
    cluster = replace(parse_cluster(roce % "roce-400"), prices=own)
    assert "(roce)" in next(line.arithmetic for line in cluster_bill(cluster).lines if line.name == "staff")


def test_a_node_of_a_rack_is_its_share_of_the_price():
    # 18 nodes of a rack of 3.6 million USD: 200,000 each.
    found = lines(OWNED, "gb200-nvl72:36")
    assert found["nodes"] == pytest.approx(36 * 200_000 * 0.9 / 5)


def test_nodes_in_use_pay_for_their_share_of_the_fabric():
    text = "linkwise: cluster/1\nnodes: 32\nnode: dgx-h100\ngpus: 64\n"
    bill = cluster_bill(replace(parse_cluster(text), prices=OWNED))
    found = {line.name: line.usd_per_s * YEAR for line in bill.lines}
    assert found["nodes"] == pytest.approx(8 * 300_000 * 0.9 / 5)
    assert found["fabric"] == pytest.approx(888_800 / 4 * 0.9 / 5)
    assert bill.fabric_usd == pytest.approx(888_800 / 4)


def test_nics_with_a_price_are_paid_beside_the_nodes():
    apart = replace(OWNED, hardware=replace(BOUGHT, nics={"connectx-7": 1500.0}))
    assert lines(apart)["fabric"] == pytest.approx((888_800 + 256 * 1500) * 0.9 / 5)


def test_nics_with_a_price_are_paid_where_the_fabric_cannot_be_counted():
    apart = replace(OWNED, hardware=replace(BOUGHT, node_usd=2e5, nics={"connectx-7": 1500.0}))
    assert lines(apart, "dgx-h100:1")["fabric"] == pytest.approx(8 * 1500 * 0.9 / 5)
    assert "fabric" not in lines(OWNED, "dgx-h100:1")


def test_gpus_by_the_hour_with_a_fabric_that_is_bought():
    fabric = replace(BOUGHT, systems={})
    found = lines(replace(OWNED, gpu_usd_per_s=2.5 / 3600, hardware=fabric))
    assert "nodes" not in found
    assert found["GPUs by the hour"] == pytest.approx(256 * 2.5 * 365.25 * 24)
    assert found["support"] == pytest.approx(888_800 * 0.05)


def test_cooling_is_of_the_power_of_machines():
    found = lines(replace(ALL, electricity_usd_per_j=None, pue=None, cooling_usd_per_j=0.02 / 3.6e6))
    assert found["cooling"] == pytest.approx((326.4 + 17.796) * 365.25 * 24 * 0.02)


@pytest.mark.parametrize(
    ("changed", "cluster", "missing"),
    [
        ({}, "dgx-h100:32", ()),
        ({"hardware": replace(BOUGHT, systems={})}, "dgx-h100:32", ("nodes (dgx-h100)", "NICs (connectx-7)")),
        ({"hardware": replace(BOUGHT, systems={}, gpus={"h100-sxm": 1.0})}, "dgx-h100:32", ("nodes beside their GPUs", "NICs (connectx-7)")),
        ({"hardware": replace(BOUGHT, switches={}, cables={})}, "dgx-h100:32", ("switches (quantum-2-qm9700)", "cables (optical)")),
        ({"staff": Staff(usd_per_s=1.0, share_per_1000_gpus={"efa": 1.0})}, "dgx-h100:32", ("staff (per_1000_gpus has no hours for infiniband)",)),
        (
            {"hardware": replace(BOUGHT, node_usd=1.0), "staff": None},
            "aws-p5:2",
            (
                "the fabric (its switch is not known)",
                "electricity of nodes beside their GPUs",
                "electricity of the fabric",
            ),
        ),
    ],
)  # fmt: skip
def test_what_has_no_price_is_named_and_never_counted_as_nothing(changed, cluster, missing):
    there = priced(replace(OWNED, **changed), cluster)
    assert cluster_bill(there).not_priced == missing
    said = " ".join(bill_assumptions(there))
    assert all(each in said for each in missing)


def test_token_costs_more_by_the_time_that_is_lost():
    plain, runs = priced(OWNED), priced(replace(OWNED, **RUNS))
    (one,), (two,) = bills(JOB, plain, [10.0]), bills(JOB, runs, [10.0])
    fraction = cluster_bill(runs).goodput.fraction
    assert cluster_bill(plain).goodput is None
    assert two.cost_usd_per_step == one.cost_usd_per_step
    assert two.cost_usd_per_token == pytest.approx(one.cost_usd_per_token / fraction)
    assert two.cost_usd_per_run == pytest.approx(one.cost_usd_per_run / fraction)


def test_goodput_of_a_cluster_counts_every_part_that_fails():
    mtbf = {Part.GPU: 256e6, Part.NODE: 32e6, Part.NIC: 256e6, Part.SWITCH: 12e6, Part.CABLE: 512e6}
    found = cluster_bill(priced(replace(OWNED, **{**RUNS, "mtbf_s": mtbf}))).goodput
    assert found.interruptions_per_s == pytest.approx(5e-6)
    shares = (found.fraction, found.writing_fraction, found.redone_fraction, found.restarting_fraction)
    assert sum(shares) == pytest.approx(1.0)
    # To first order of 1 second: 30/3600 for writing, 5e-6 x 1815 done again, 5e-6 x 600 for restarts.
    assert found.redone_fraction / found.fraction == pytest.approx(5e-6 * 1815, rel=0.02)
    assert found.restarting_fraction / found.fraction == pytest.approx(5e-6 * 600, rel=0.02)


def test_runs_that_never_end_are_refused():
    often = replace(OWNED, **{**RUNS, "mtbf_s": {Part.GPU: 3600.0}})
    with pytest.raises(InputError, match=r"p.yaml: training is interrupted every 14.1 s .*failures.mtbf"):
        bills(JOB, priced(often), [10.0])
