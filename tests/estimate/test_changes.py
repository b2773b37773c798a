"""A step on a cluster with missing and slow parts: it waits for the slowest, on what is left."""

import pytest

from linkwise.cluster.reading import parse_cluster
from linkwise.estimate import estimate_layout
from linkwise.estimate.estimate import assumptions_of
from linkwise.job import Job
from linkwise.layout import Layout
from linkwise.model import load_model

LLAMA = Job(model=load_model("llama-3.1-70b"), sequence_length=8192, global_batch=1024)
LAYOUT = Layout(tensor=8, pipeline=4, zero_stage=1)


def cluster(*changes, kind="fat-tree"):
    listed = "".join(f"  - {{{each}}}\n" for each in changes)
    parts = f"kind: {kind}, link: infiniband-ndr-400, switch: quantum-2-qm9700"
    head = f"linkwise: cluster/1\nnodes: 32\nnode: dgx-h100\nfabric: {{{parts}}}\n"
    return parse_cluster(f"{head}changes:\n{listed}" if changes else head)


def estimated(*changes, kind="fat-tree"):
    return estimate_layout(LLAMA, cluster(*changes, kind=kind), LAYOUT)


def test_slow_gpu_slows_compute_and_not_the_rated_peak():
    whole, slow = estimated(), estimated("gpus: node 9 gpu 1, fraction: 0.8")
    # Products and attention are most of compute; they take 1 / 0.8 of their time.
    assert 1.15 < slow.parts["compute"] / whole.parts["compute"] < 1.25
    assert slow.parts["optimizer"] == pytest.approx(whole.parts["optimizer"])
    assert slow.mfu_fraction / whole.mfu_fraction == pytest.approx(whole.step_time_s / slow.step_time_s)


@pytest.mark.parametrize(
    "change",
    [
        "nics: node 9 nic 1, fraction: 0.25",
        "nics: 'node 9 nic 0-5', missing: true",
        "links: leaf 1 spine *, fraction: 0.25",
    ],
)
def test_slow_parts_of_the_network_slow_what_crosses_it(change):
    whole, slow = estimated(), estimated(change)
    assert slow.parts["compute"] == pytest.approx(whole.parts["compute"])
    assert slow.parts["pipeline"] + slow.parts["data"] > 1.5 * (whole.parts["pipeline"] + whole.parts["data"])
    assert slow.step_time_s > whole.step_time_s


def test_links_up_are_priced_as_those_of_the_worst_leaf_and_that_is_said():
    change = "links: leaf 1 spine 1, fraction: 0.5"  # 4 of the 32 links up of one leaf
    said = assumptions_of(LLAMA, cluster(change))
    assert any("0.875 of the links up of the worst leaf are left" in words for words in said)
    assert estimated(change).step_time_s >= estimated().step_time_s


def test_missing_nodes_are_no_layout_of_all_gpus():
    left = cluster("nodes: node 0-15, missing: true")
    assert estimate_layout(LLAMA, left, LAYOUT).layout.data == 4
    assert any("16 of 32 nodes are left out" in words for words in assumptions_of(LLAMA, left))
