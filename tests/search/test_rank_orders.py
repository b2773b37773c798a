"""The same layout with its ranks in another order."""

import pytest

from linkwise.cluster import load_cluster
from linkwise.job import Job
from linkwise.layout import Layout, RankOrder
from linkwise.model import load_model
from linkwise.search import plan
from linkwise.search.rank_orders import rank_order_times_s

JOB = Job(model=load_model("llama-3.1-70b"), sequence_length=8192, global_batch=1024)
CLUSTER = load_cluster("dgx-h100:32")


def test_the_order_of_a_plan_takes_what_the_plan_says():
    best = plan(JOB, CLUSTER, top=1).layouts[0]
    times = rank_order_times_s(JOB, CLUSTER, best.layout)
    assert set(times) == set(RankOrder)
    assert times[best.layout.rank_order] == pytest.approx(best.step_time_s, rel=1e-12)
    assert min(times.values()) >= best.step_time_s * (1.0 - 1e-3)


@pytest.mark.parametrize(
    "layout",
    [Layout(tensor=8, pipeline=32, data=1), Layout(tensor=8, data=32, zero_stage=1, micro_batch=1)],
    ids=["no data ranks", "no stages"],
)
def test_one_order_is_no_choice(layout):
    assert rank_order_times_s(JOB, CLUSTER, layout) == {}
