"""Laws of every estimate, on layouts drawn from whole search spaces."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.cluster import load_cluster
from linkwise.estimate.columns import Evaluation
from linkwise.estimate.terms import MEMORY_PARTS, STEP_PARTS, TERMS
from linkwise.job import Job
from linkwise.model import load_model
from linkwise.search import EVERYTHING, search_space

CASES = (
    ("gpt-3-175b", 2048, 1536, "dgx-h100:64"),
    ("deepseek-v3", 4096, 15360, "dgx-h100:256"),
    ("llama-3.1-8b", 8192, 128, "dgx-a100:4"),
    ("mixtral-8x7b", 4096, 720, "gb200-nvl72:36"),
    ("llama-2-7b", 4096, 64, "mgx-pcie-l40s-8:4"),
)
RATES = (
    "peak_linear_flop_per_s",
    "peak_half_flop_per_s",
    "memory_bytes_per_s",
    "nvlink_bytes_per_s",
    "nic_bytes_per_s",
)
LINKS = ("nvlink_bytes_per_s", "nic_bytes_per_s")
LATENCIES = ("collective_latency_s", "network_latency_s", "host_layer_s", "mixture_layer_s", "step_fixed_s")


@cache
def space_of(case):
    model, sequence, batch, cluster = CASES[case]
    job = Job(model=load_model(model), sequence_length=sequence, global_batch=batch)
    return search_space(job, load_cluster(cluster), offer=EVERYTHING)


@cache
def tables_of(case):
    return tuple(space_of(case).tables(20_000))


@st.composite
def some_rows(draw):
    """Draw a plain table of 64 layouts of one case."""
    tables = tables_of(draw(st.integers(0, len(CASES) - 1)))
    table = tables[draw(st.integers(0, len(tables) - 1))]
    rows = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).integers(0, table.rows, 64)
    return table.take(rows)


def scaled(table, names, factor):
    return table.replaced({name: table.fixed[name] * factor for name in names})


def column(table, name):
    return Evaluation(table, TERMS)[name]


LAWS = settings(max_examples=25, deadline=None)


@LAWS
@given(some_rows())
def test_parts_when_summed_are_the_step_and_the_memory(table):
    evaluation = Evaluation(table, TERMS)
    assert sum(evaluation[name] for name in STEP_PARTS) == pytest.approx(evaluation["step_time_s"], rel=1e-9)
    assert sum(evaluation[name] for name in MEMORY_PARTS) == pytest.approx(
        evaluation["memory_bytes"], rel=1e-9
    )
    for name in (*STEP_PARTS, *MEMORY_PARTS):
        assert (evaluation[name] >= 0.0).all(), name


@LAWS
@given(some_rows())
def test_zero_off_when_weights_cost_more_to_gather_pays_nothing_for_it(table):
    off = table.varying["zero_stage"] == 0.0
    evaluation = Evaluation(table, TERMS)
    dearer = Evaluation(scaled(table, ("gather_element_bytes",), 100.0), TERMS)
    assert (dearer["data_s"][off] == evaluation["data_s"][off]).all()
    most = evaluation["gradient_all_reduce_s"] + evaluation["expert_gradient_s"]
    assert (evaluation["data_s"][off] <= most[off] * (1.0 + 1e-12)).all()
    alone = off & (evaluation["gradient_ranks"] * evaluation["tensor"] <= 1.0)
    assert (evaluation["data_s"][alone] == 0.0).all()


@LAWS
@given(some_rows())
def test_tensor_group_when_it_spans_domains_pays_the_nics(table):
    evaluation = Evaluation(table, TERMS)
    spans = evaluation["tensor"] > evaluation["domain_gpus"]
    buffer = 2.0 * evaluation["tokens"] * evaluation["hidden"]
    # Half of an all-reduce on two domains crosses between them in each direction, through all NICs of a domain.
    bound = buffer / (evaluation["tensor_local"] * evaluation["nic_reached_bytes_per_s"])
    assert (evaluation["tensor_collective_s"][spans] >= bound[spans] * (1.0 - 1e-12)).all()
    slower = column(scaled(table, ("nic_bytes_per_s",), 0.01), "tensor_collective_s")
    assert (slower[spans] > evaluation["tensor_collective_s"][spans]).all()


@LAWS
@given(some_rows(), st.sampled_from(RATES), st.floats(1.0, 10.0))
def test_step_when_one_rate_rises_is_never_longer(table, rate, factor):
    before, after = column(table, "step_time_s"), column(scaled(table, (rate,), factor), "step_time_s")
    if rate.endswith("flop_per_s"):
        # A context ring hides behind the attention; where the host sets the pace of a layer, faster attention hides less.
        before, after = (times[table.varying["context"] == 1.0] for times in (before, after))
    # NCCL chooses by its own estimates: where a faster link hands over to another algorithm, that may be slower.
    handed_over = 1.1 if rate in LINKS else 1.0 + 1e-9
    assert (after <= before * handed_over).all()


@LAWS
@given(some_rows())
def test_step_when_every_rate_doubles_at_most_halves(table):
    """Latencies of collectives stay, and with them more than half; less by what another choice of NCCL saves."""
    idle = scaled(table, LATENCIES, 0.0)
    once, twice = column(idle, "step_time_s"), column(scaled(idle, RATES, 2.0), "step_time_s")
    assert (2.0 * twice >= 0.9 * once).all()
    assert (twice < once).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(CASES) - 1), st.integers(0, 2**32 - 1))
def test_product_when_rows_are_evaluated_one_by_one_is_exactly_the_same(case, seed):
    random = np.random.default_rng(seed)
    tables = tables_of(case)
    table = tables[random.integers(len(tables))]
    row = random.integers(0, table.rows, 1)
    together, alone = Evaluation(table, TERMS), Evaluation(table.take(row), TERMS)
    for name in TERMS:
        assert alone[name][0] == together[name][row[0]], name
