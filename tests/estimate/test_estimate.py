import re
from dataclasses import replace

import pytest

from linkwise.cluster import load_cluster
from linkwise.cluster.reading import parse_cluster
from linkwise.estimate import estimate_layout
from linkwise.estimate.estimate import assumptions_of
from linkwise.estimate.interval import interval_factors, interval_key, network_class
from linkwise.estimate.trace import trace
from linkwise.figures import Basis
from linkwise.job import Job
from linkwise.layout import Layout, Recompute
from linkwise.model import load_model

H100 = load_cluster("dgx-h100:32")
LLAMA = Job(model=load_model("llama-3.1-70b"), sequence_length=8192, global_batch=1024)
USUAL = Layout(tensor=4, pipeline=4, virtual_pipeline=5, zero_stage=1)


def test_estimate_when_the_layout_is_usual_is_what_engineers_see():
    estimate = estimate_layout(LLAMA, H100, USUAL)
    # NVIDIA's published runs of 70B models on H100 in bf16 reach 40 to 55 % of the dense peak.
    assert 0.40 < estimate.mfu_fraction < 0.58
    assert estimate.fits
    assert estimate.short_bytes == 0.0
    assert estimate.layout.data == 16
    assert estimate.basis in Basis


def test_parts_when_summed_are_the_total():
    estimate = estimate_layout(LLAMA, H100, USUAL)
    assert sum(estimate.parts.values()) == pytest.approx(estimate.step_time_s, rel=1e-12)
    assert sum(estimate.memory_parts.values()) == pytest.approx(estimate.memory_bytes, rel=1e-12)
    assert list(estimate.parts) == [
        "compute",
        "tensor",
        "context",
        "expert",
        "pipeline",
        "bubble",
        "data",
        "optimizer",
        "overhead",
    ]


def test_rate_when_the_step_is_known_follows_from_it():
    estimate = estimate_layout(LLAMA, H100, USUAL)
    assert estimate.tokens_per_s_per_gpu == pytest.approx(1024 * 8192 / 256 / estimate.step_time_s)
    assert estimate.step_time_low_s < estimate.step_time_s < estimate.step_time_high_s


def test_estimate_when_it_does_not_fit_is_a_value_with_what_is_short():
    estimate = estimate_layout(LLAMA, H100, Layout())
    assert not estimate.fits
    # 70.6e9 parameters of 2 bytes, gradients and optimizer state on one GPU of 80 GB.
    assert estimate.short_bytes > 1e12
    assert estimate.fullest_stage == 0


def test_fullest_stage_when_the_loss_outweighs_a_pipeline_is_the_last():
    job = replace(LLAMA, model=load_model("llama-3.1-8b"))
    layout = Layout(pipeline=8, zero_stage=1, recompute=Recompute.FULL, micro_batch=4)
    assert estimate_layout(job, H100, layout).fullest_stage == 7


@pytest.mark.parametrize("name", ["dgx-h100:1", "gb200-nvl72:18", "mgx-pcie-l40s-8:1", "azure-nc-a100-v4:2"])
def test_estimate_when_the_cluster_is_unusual_is_finite(name):
    job = Job(model=load_model("llama-3.1-8b"), sequence_length=4096, global_batch=720)
    estimate = estimate_layout(job, load_cluster(name), Layout(tensor=2, zero_stage=1))
    assert 0.0 < estimate.mfu_fraction < 1.0


def test_estimate_when_there_is_one_gpu_has_no_communication():
    cluster = replace(load_cluster("dgx-h100:1"), gpus=1, gpus_per_node=1, nvlink_domain_gpus=1)
    job = Job(model=load_model("gpt-2-124m"), sequence_length=1024, global_batch=64)
    parts = estimate_layout(job, cluster, Layout(micro_batch=8)).parts
    assert [parts[name] for name in ("tensor", "context", "expert", "pipeline", "data")] == [0.0] * 5


def test_interval_when_a_class_was_not_fitted_takes_that_of_all():
    low, high = interval_factors("nobody/dense/one node")
    assert 0.5 < low < 1.0 < high < 2.0
    assert interval_key(family="fsdp", mixture=True, network="one node") == "fsdp/mixture/one node"


@pytest.mark.parametrize(
    ("gbit", "name"),
    [
        (None, "one node"),
        (3200, "at least 800 Gbit/s per node"),
        (800, "at least 800 Gbit/s per node"),
        (100, "100 to 800 Gbit/s per node"),
        (25, "under 100 Gbit/s per node"),
    ],
)
def test_network_class_when_a_rate_is_given_is_that_of_the_accuracy_tables(gbit, name):
    assert network_class(None if gbit is None else gbit * 1.25e8) == name


@pytest.mark.parametrize(
    ("link", "shared"), [("infiniband-ndr-400", True), ("roce-200", True), ("ethernet-100", False)]
)
def test_assumptions_say_the_share_of_the_nics_that_a_step_is_priced_with(link, shared):
    text = f"linkwise: cluster/1\nnodes: 32\nnode: dgx-h100\nfabric: {{link: {link}}}\n"
    cluster = parse_cluster(text)
    (said,) = [words for words in assumptions_of(LLAMA, cluster) if "of the line rate" in words]
    alone, left = (float(part) / 100 for part in re.findall(r"(\d+)%", said + ("" if shared else " 100%")))
    terms = trace(LLAMA, cluster, Layout(tensor=8, pipeline=2))
    rate = next(term.value for term in terms if term.name == "nic_hop_bytes_per_s")
    assert rate == pytest.approx(cluster.nic_bytes_per_s * alone * left, rel=0.01)


def test_assumptions_when_the_fabric_is_a_default_say_so():
    assert any("fabric" in sentence for sentence in assumptions_of(LLAMA, H100))
    efa = load_cluster("aws-p4d:32")
    assert any("85% of the line rate of efa-v1" in sentence for sentence in assumptions_of(LLAMA, efa))
