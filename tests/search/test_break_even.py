import datetime as dt
from dataclasses import replace

import pytest

from linkwise.cluster import load_cluster
from linkwise.cluster.cluster import CableKind
from linkwise.cluster.prices import Checkpoints, Hardware, Part, Prices
from linkwise.estimate.money import bills
from linkwise.job import Job
from linkwise.model import load_model
from linkwise.search import compare
from linkwise.search.break_even import break_even
from linkwise.search.comparison import Contender

LLAMA = Job(model=load_model("llama-3.1-8b"), sequence_length=4096, global_batch=64)
PRICES = Prices(
    date=dt.date(2026, 11, 30), gpu_usd_per_s=2.5 / 3600, electricity_usd_per_j=0.1 / 3.6e6, pue=1.3
)
H100, A100 = load_cluster("dgx-h100:2"), load_cluster("dgx-a100:4")


def contenders(*clusters):
    return compare(LLAMA, clusters).contenders


def usd_per_token(contender, gpu_usd_per_s):
    """Return the price of a token at a price of a GPU that includes everything."""
    all_in = Prices(date=PRICES.date, gpu_usd_per_s=gpu_usd_per_s)
    cluster = replace(contender.cluster, prices=all_in)
    (bill,) = bills(LLAMA, cluster, [contender.best.step_time_s])
    return bill.cost_usd_per_token


def test_break_even_of_equals_is_one():
    found = break_even(*contenders(H100, H100))
    assert found.price_ratio == 1.0
    assert found.most_usd_per_gpu_s is None


@pytest.mark.parametrize("swap", [False, True])
def test_break_even_at_its_price_a_token_costs_the_same(swap):
    there = contenders(replace(H100, prices=PRICES), replace(A100, prices=PRICES))
    found = break_even(*(reversed(there) if swap else there))
    assert found.faster is there[0]
    assert found.price_ratio > 1.0
    assert usd_per_token(found.faster, found.most_usd_per_gpu_s) == pytest.approx(
        usd_per_token(found.slower, found.slower_usd_per_gpu_s)
    )


def test_break_even_has_the_electricity_in_the_price_of_a_gpu():
    (there,) = contenders(replace(H100, prices=PRICES))
    found = break_even(there, there)
    # Two nodes of 10.2 kW, a switch of 747 W, 8 modules of 17 W and 16 of 9 W over 16 GPUs at PUE 1.3 and
    # 0.10 USD/kWh beside 2.50 USD an hour.
    kilowatts = 20.4 + 0.747 + 8 * 0.017 + 16 * 0.009
    assert found.slower_usd_per_gpu_s * 3600 == pytest.approx(2.5 + kilowatts / 16 * 1.3 * 0.1)


YEAR = 365.25 * 86400.0
OWNED = Prices(
    date=PRICES.date,
    electricity_usd_per_j=0.1 / 3.6e6,
    hardware=Hardware(
        lifetime_s=4 * YEAR,
        residual_fraction=0.2,
        support_fraction_per_s=0.06 / YEAR,
        spares_fraction=0.04,
        systems={"dgx-h100": 3e5, "dgx-a100": 1.5e5},
        switches={"quantum-2-qm9700": 3e4, "quantum-qm8700": 1.5e4},
        transceivers={"osfp-800g-2xdr4": 1e3, "osfp-400g-dr4-nic-side": 600.0},
        cables={CableKind.OPTICAL: 100.0, CableKind.AOC: 600.0},
    ),
)


def with_fabric_times(prices, factor):
    """Return prices at which every part of a fabric costs so many times as much."""
    bought = prices.hardware
    changed = {
        name: {item: factor * usd for item, usd in getattr(bought, name).items()}
        for name in ("switches", "transceivers", "cables")
    }
    return replace(prices, hardware=replace(bought, **changed))


def token_usd(contender):
    (bill,) = bills(LLAMA, contender.cluster, [contender.best.step_time_s])
    return bill.cost_usd_per_token


def test_break_even_of_a_fabric_makes_tokens_cost_the_same():
    # The price of nodes is such that a fabric can make up for it.
    near = replace(OWNED, hardware=replace(OWNED.hardware, systems={"dgx-h100": 2e5, "dgx-a100": 1.5e5}))
    found = break_even(*contenders(replace(H100, prices=near), replace(A100, prices=near)))
    # One switch, 8 twin-port modules, 16 at NICs, 16 fibres.
    assert found.faster_fabric_usd == pytest.approx(3e4 + 8e3 + 16 * 600 + 16 * 100)
    assert found.most_fabric_usd > 0
    factor = found.most_fabric_usd / found.faster_fabric_usd
    cheap = replace(
        found.faster, cluster=replace(found.faster.cluster, prices=with_fabric_times(near, factor))
    )
    assert token_usd(cheap) == pytest.approx(token_usd(found.slower))


def test_break_even_of_a_fabric_is_below_zero_where_no_price_of_it_makes_up():
    dear = replace(OWNED, hardware=replace(OWNED.hardware, systems={"dgx-h100": 3e6, "dgx-a100": 1.0}))
    found = break_even(*contenders(replace(H100, prices=dear), replace(A100, prices=dear)))
    assert found.most_fabric_usd < 0


def test_break_even_counts_the_time_that_is_lost_where_both_state_it():
    runs = replace(PRICES, mtbf_s={Part.GPU: 3.6e5}, restart_s=3600.0, checkpoints=Checkpoints(write_s=60.0))
    plain = break_even(*contenders(H100, A100)).price_ratio
    both = break_even(*contenders(replace(H100, prices=runs), replace(A100, prices=runs))).price_ratio
    one = break_even(*contenders(replace(H100, prices=runs), replace(A100, prices=PRICES))).price_ratio
    # Twice the GPUs are interrupted twice as often.
    assert both > plain
    assert one == plain


def test_break_even_without_prices_is_a_ratio_alone():
    found = break_even(*contenders(H100, A100))
    assert (found.slower_usd_per_gpu_s, found.faster_usd_per_gpu_s, found.most_usd_per_gpu_s) == (None,) * 3


def test_break_even_where_nothing_fits_is_none():
    (there,) = contenders(H100)
    assert break_even(there, Contender(cluster=A100, best=None)) is None
