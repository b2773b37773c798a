from dataclasses import replace

import pytest

from linkwise import catalog
from linkwise.cluster import load_cluster
from linkwise.errors import InputError
from linkwise.estimate.job_inputs import (
    LAYOUT_COLUMNS,
    checked_layout,
    job_columns,
    network_columns,
    nvlink_domain,
)
from linkwise.estimate.origins import input_names, input_origins
from linkwise.job import Job, Precision
from linkwise.layout import Layout, Schedule
from linkwise.model import load_model
from linkwise.network.group_times import GENERATIONS

LLAMA = Job(model=load_model("llama-3.1-8b"), sequence_length=8192, global_batch=128)


def clusters(*names):
    return [load_cluster(name) for name in names]


@pytest.mark.parametrize(
    "cluster", clusters("dgx-h100:4", "gb200-nvl72:18", "aws-p4d:2", "mgx-pcie-l40s-8:1")
)
def test_job_columns_when_joined_with_a_layout_are_all_that_terms_read(cluster):
    have = set(job_columns(LLAMA, cluster)) | set(LAYOUT_COLUMNS)
    assert input_names() <= have
    assert set(input_origins(LLAMA, cluster)) == input_names()


def test_share_when_a_dgx_h100_has_a_nic_per_gpu_is_400_gbit_per_s():
    columns = network_columns(load_cluster("dgx-h100:32"))
    assert columns["nic_bytes_per_s"] == pytest.approx(50e9)  # ConnectX-7 NDR, one direction
    assert columns["network_fraction"] == 0.97  # alone, of the catalogue
    assert columns["network_contention"] == "network_contention_rdma"
    assert columns["network_latency_s"] == pytest.approx(5e-6)


def test_fraction_when_the_transport_is_no_rdma_is_that_of_its_link():
    efa = network_columns(load_cluster("aws-p4d:2"))
    assert efa["network_fraction"] == 0.85  # catalogue: 57 to 78 GB/s of bus rate over 4 ports of 100 Gbit/s
    assert efa["network_contention"] == "network_contention_rdma"


def test_fraction_of_plain_tcp_is_fitted_up_to_the_rate_it_was_measured_at():
    cluster = load_cluster("dgx-h100:2")
    slow = replace(cluster, fabric=replace(cluster.fabric, link=catalog.link("ethernet-25")))
    assert network_columns(slow)["network_fraction"] == "network_fraction_tcp_many"
    assert network_columns(slow)["hop_network_fraction"] == "network_fraction_tcp_single"
    fast = network_columns(load_cluster("azure-nc-a100-v4:2"))
    assert fast["network_fraction"] == 0.45  # catalogue, 100 Gbit/s: its streams are bound by the CPU
    assert fast["network_contention"] == 1.0


def test_pcie_box_overlaps_no_tensor_traffic_and_has_the_collectives_of_pcie():
    columns = job_columns(LLAMA, load_cluster("mgx-pcie-l40s-8:2"))
    assert columns["tensor_exposed_fraction"] == 1.0
    assert GENERATIONS[int(columns["collective_generation"])] == "pcie"
    assert columns["nvlink_fraction"] == "pcie_fraction"


def test_single_precision_doubles_what_is_stored_and_sent():
    job = replace(LLAMA, precision=Precision.TF32)
    columns = job_columns(job, load_cluster("dgx-a100:1"))
    assert columns["element_bytes"] == columns["weight_element_bytes"] == columns["saved_input_bytes"] == 4.0
    assert columns["peak_half_flop_per_s"] == columns["peak_linear_flop_per_s"] == pytest.approx(156e12)


def test_domain_when_a_node_has_no_nvlink_is_the_node_at_pcie_rate():
    domain = nvlink_domain(load_cluster("mgx-pcie-l40s-8:2"))
    assert (domain.gpus, domain.is_pcie) == (8, True)
    assert domain.bytes_per_s == pytest.approx(31e9, rel=0.05)  # generation 4, 16 lanes, one direction
    assert "PCIe" in domain.assumption


def test_domain_when_a_rack_of_72_does_not_divide_the_gpus_is_used_up_to_64():
    domain = nvlink_domain(load_cluster("gb200-nvl72:64"))
    assert (domain.gpus, domain.is_pcie) == (64, False)
    assert "64 GPUs of each NVLink domain of 72" in domain.assumption
    assert nvlink_domain(load_cluster("gb200-nvl72:18")).gpus == 72


def test_precision_when_the_gpu_lacks_it_names_those_it_has():
    with pytest.raises(InputError, match=r"has no fp8.*choose one of: bf16, fp16"):
        job_columns(replace(LLAMA, precision=Precision.FP8), load_cluster("dgx-a100:1"))
    with pytest.raises(InputError, match=r"has no bf16.*choose one of: fp16"):
        job_columns(LLAMA, load_cluster("dgx-1-v100:1"))


def test_layout_when_blanks_are_left_takes_the_habits_of_the_framework():
    layout = checked_layout(LLAMA, load_cluster("dgx-h100:4"), Layout(tensor=4, pipeline=2))
    assert (layout.data, layout.sequence_parallel, layout.schedule) == (4, True, Schedule.ONE_F_1F1B)
    assert checked_layout(LLAMA, load_cluster("dgx-h100:4"), Layout()).sequence_parallel is False


def test_layout_when_nothing_divides_lists_every_reason():
    job = replace(LLAMA, global_batch=100, sequence_length=8191)
    with pytest.raises(InputError) as caught:
        checked_layout(job, load_cluster("dgx-h100:6"), Layout(tensor=3, context=2, expert=2))
    message = str(caught.value)
    assert "tensor does not divide 32 heads (tensor 3" in message
    assert "2 x context does not divide 8191 tokens" in message
    assert "global batch 100 is not a multiple of data x micro-batch" in message
    assert "the model has no experts" in message
