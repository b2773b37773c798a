"""Bills of clusters as they are published and printed."""

import datetime as dt
import io
from dataclasses import replace

import pytest

from linkwise.cluster import load_cluster
from linkwise.cluster.cluster import CableKind
from linkwise.cluster.prices import Checkpoints, Hardware, Part, Prices, Staff
from linkwise.job import Job
from linkwise.model import load_model
from linkwise.report.cost import LOST, cost_result
from linkwise.report.cost_table import print_cost, print_costs
from linkwise.report.tables import console_for

JOB = Job(model=load_model("llama-3.1-70b"), sequence_length=8192, global_batch=1024)
YEAR = 365.25 * 86400.0
PRICES = Prices(
    date=dt.date(2026, 11, 30),
    electricity_usd_per_j=0.1 / 3.6e6,
    pue=1.3,
    hardware=Hardware(
        lifetime_s=5 * YEAR,
        support_fraction_per_s=0.05 / YEAR,
        spares_fraction=0.03,
        systems={"dgx-h100": 3e5},
        switches={"quantum-2-qm9700": 3e4},
        transceivers={"osfp-800g-2xdr4": 1e3, "osfp-400g-dr4-nic-side": 600.0},
        cables={CableKind.OPTICAL: 100.0},
    ),
    staff=Staff(usd_per_s=1 / 30, share_per_1000_gpus={"infiniband": 0.05}),
    mtbf_s={Part.GPU: 50_000 * 3600.0},
    restart_s=900.0,
    checkpoints=Checkpoints(write_s=30.0, interval_s=3600.0),
)
UNPRICED = replace(PRICES, hardware=replace(PRICES.hardware, switches={}), staff=None)


def cost(prices=PRICES, step_time_s=29.3):
    return cost_result(JOB, replace(load_cluster("dgx-h100:32"), prices=prices), step_time_s)


def printed(show, width=80):
    file = io.StringIO()
    show(console_for(file, width=width))
    text = file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    return text


def test_lines_sum_to_the_totals():
    found = cost()
    for field in ("usd_per_hour", "usd_per_gpu_hour", "usd_per_million_tokens"):
        amounts = [getattr(line, field) for line in found.lines]
        assert sum(each for each in amounts if each is not None) == pytest.approx(getattr(found, field))
    assert [line.name for line in found.lines][-1] == LOST


def test_a_line_is_that_worked_by_hand():
    # 32 x 300,000 USD in 5 years: 219 USD an hour; x 29.3 s / 8.388608 million tokens.
    nodes = cost().lines[0]
    assert nodes.usd_per_hour == pytest.approx(9.6e6 / 5 / 8766)
    assert nodes.usd_per_million_tokens == pytest.approx(nodes.usd_per_hour / 3600 * 29.3 / 8.388608)


def test_bill_is_none_without_prices_and_has_no_tokens_where_nothing_fits():
    assert cost(None) is None
    found = cost(step_time_s=None)
    assert found.usd_per_million_tokens is None
    assert found.usd_per_gpu_hour > 0


def test_goodput_of_a_bill_has_shares_that_sum_to_one():
    found = cost().goodput
    shares = (found.fraction, found.writing_fraction, found.redone_fraction, found.restarting_fraction)
    assert sum(shares) == pytest.approx(1.0)
    # 256 GPUs in 50,000 hours.
    assert found.interruptions_per_day == pytest.approx(24 * 256 / 50_000)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_table_of_one_bill_has_every_line_with_its_arithmetic(width):
    text = printed(lambda console: print_cost(cost(), console, of="layout 1"), width)
    words = " ".join(text.split())
    for line in cost().lines:
        assert f"{line.name}: {line.arithmetic}" in words
    assert "98.8 % of the time moves training on" in words
    assert "checkpoints every 1.00 hours; the best interval is 1.80 hours" in words
    assert ">" not in text


def test_table_says_what_is_not_priced_and_that_the_sum_is_more():
    text = printed(lambda console: print_cost(cost(UNPRICED), console, of="layout 1"))
    assert "not priced: switches (quantum-2-qm9700)" in text
    (whole,) = [line for line in text.splitlines() if line.startswith("in all")]
    assert whole.count(">") == 2


def test_table_of_several_bills_puts_them_side_by_side():
    both = {"1": cost(), "2": cost(UNPRICED)}
    text = printed(lambda console: print_costs(both, console))
    words = " ".join(text.split())
    assert "# 1" in text
    assert "# 2" in text
    staff = next(line for line in text.splitlines() if line.startswith("staff "))
    assert staff.split()[-1] == "-"
    # What is alike is said once, what differs with the cluster it is of.
    assert words.count("nodes: 32 dgx-h100 x 300,000 USD") == 1
    assert "fabric of 1: parts for 948,800 USD" in words
    assert "fabric of 2: parts for 588,800 USD" in words
    assert "not priced of 2: switches" in words
    assert words.count("of the time moves training on") == 1
    assert printed(lambda console: print_costs({}, console) or console.print("-")) == "-\n"


def test_best_interval_is_said_where_none_is_stated():
    free = replace(PRICES, checkpoints=Checkpoints(write_s=30.0))
    text = printed(lambda console: print_cost(cost(free), console, of="layout 1"))
    assert "checkpoints every 1.80 hours, the best interval" in text
    none = replace(PRICES, mtbf_s={}, restart_s=None)
    text = printed(lambda console: print_cost(cost(none), console, of="layout 1"))
    assert "no failures are stated" in text
