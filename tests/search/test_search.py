from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from linkwise.cluster import load_cluster
from linkwise.estimate import estimate_layout
from linkwise.estimate.columns import Evaluation
from linkwise.estimate.terms import TERMS
from linkwise.job import Job
from linkwise.layout import Layout
from linkwise.model import load_model
from linkwise.search import EVERYTHING, plan, search_space

LLAMA = Job(model=load_model("llama-3.1-8b"), sequence_length=4096, global_batch=64)
TWO = load_cluster("dgx-h100:2")


def all_rows(job, cluster, offer):
    """Return step time (infinite where it does not fit) of every layout, each table spread to plain rows."""
    times = []
    for table in search_space(job, cluster, offer=offer).tables(5000):
        evaluation = Evaluation(table.take(np.arange(table.rows)), TERMS)
        fits = evaluation["memory_bytes"] <= evaluation["memory_available_bytes"]
        times.append(np.where(fits, evaluation["step_time_s"], np.inf))
    return np.concatenate(times)


def test_plan_when_every_layout_is_tried_one_list_finds_the_same_best():
    found = plan(LLAMA, TWO, offer=EVERYTHING, top=5)
    times = all_rows(LLAMA, TWO, EVERYTHING)
    assert found.evaluated == len(times)
    assert found.fitting == np.count_nonzero(times < np.inf)
    assert found.layouts[0].step_time_s <= times.min() * 1.001
    assert sum(count for reason, count in found.infeasible.items() if reason.startswith("memory")) == (
        found.evaluated - found.fitting
    )


def test_plan_when_listed_is_sorted_fits_and_names_each_cut_once():
    layouts = plan(LLAMA, TWO).layouts
    assert len(layouts) == 10
    steps = [one.step_time_s for one in layouts]
    assert steps == sorted(steps)
    assert all(one.fits for one in layouts)
    cuts = {
        (one.tensor, one.context, one.pipeline, one.virtual_pipeline, one.expert, one.micro_batch)
        for one in (estimate.layout for estimate in layouts)
    }
    assert len(cuts) == 10
    best = layouts[0]
    assert estimate_layout(LLAMA, TWO, best.layout) == best


@pytest.mark.parametrize("chunk_rows", [1, 700, 10**6])
def test_plan_when_cut_into_other_chunks_is_the_same(chunk_rows):
    only = {"tensor": (1, 2), "micro_batch": (1, 2)}
    assert plan(LLAMA, TWO, only=only, chunk_rows=chunk_rows) == plan(LLAMA, TWO, only=only)


def test_plan_when_a_pool_maps_is_the_same():
    with ThreadPoolExecutor(2) as pool:
        assert plan(LLAMA, TWO, map=pool.map) == plan(LLAMA, TWO)


def test_plan_when_the_layout_is_fixed_estimates_it_alone():
    found = plan(replace(LLAMA, layout=Layout(tensor=2)), TWO)
    assert (found.evaluated, len(found.layouts), found.closest) == (1, 1, None)
    assert found.layouts[0].layout.data == 8


def test_plan_when_nothing_fits_names_the_closest_and_the_bytes():
    job = Job(model=load_model("gpt-3-175b"), sequence_length=2048, global_batch=64)
    found = plan(job, load_cluster("dgx-h100:2"))
    assert found.layouts == ()
    assert found.closest is not None
    assert found.closest.short_bytes > 0.0
    fewest = min(
        float((Evaluation(table, TERMS)["memory_bytes"]).min())
        for table in search_space(job, load_cluster("dgx-h100:2")).tables(10_000)
    )
    assert found.closest.memory_bytes == fewest
    assert all(reason.startswith("memory: ") or "not" in reason for reason in found.infeasible)


def test_plan_when_the_fixed_layout_does_not_fit_says_which_bytes():
    job = Job(
        model=load_model("gpt-3-175b"), sequence_length=2048, global_batch=64, layout=Layout(pipeline=2)
    )
    found = plan(job, load_cluster("dgx-h100:2"))
    assert found.layouts == ()
    assert found.closest is not None
    assert found.infeasible == {"memory: optimizer (first stage)": 1}


def test_plan_when_the_readme_job_is_planned_is_what_engineers_run():
    job = Job(model=load_model("llama-3.1-70b"), sequence_length=8192, global_batch=1024)
    best = plan(job, load_cluster("dgx-h100:32")).layouts[0]
    # NVIDIA's recipes for 70B models on H100 take tensor 4 to 8 inside a node, pipeline 4 to 8, 40 to 55 % MFU.
    assert best.layout.tensor in (2, 4, 8)
    assert best.layout.tensor * best.layout.pipeline * best.layout.context in (8, 16, 32, 64)
    assert 0.40 < best.mfu_fraction < 0.58
