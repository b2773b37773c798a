"""Settings that clusters need: as few as possible, and none that the default gives (NCCL user guide)."""

import pytest

from linkwise.cluster import cluster_from_shorthand
from linkwise.cluster.reading import parse_cluster
from linkwise.job import job_from_options
from linkwise.nccl.variables import NEWEST, parse_release, variables
from linkwise.settings.node import NodeFacts, matches, parse_node_facts
from linkwise.settings.recommended import recommended


def names(cluster, **given):
    there = (
        cluster_from_shorthand(cluster) if ":" in cluster and "\n" not in cluster else parse_cluster(cluster)
    )
    found = recommended(there, **{"release": NEWEST, **given})
    return {each.name: each.value for each in found.settings}


def document(fabric, node="dgx-h100"):
    return f"linkwise: cluster/1\nnodes: 8\nnode: {node}\nfabric: {fabric}\n"


def job(framework="megatron", layout=None):
    return job_from_options(
        {
            "model": "llama-3.1-70b",
            "sequence_length": 8192,
            "global_batch": 1024,
            "framework": framework,
            "precision": None,
            "tokens": None,
            "layout": layout,
        }
    )


TENSOR = {"tensor": 8, "pipeline": 4, "micro_batch": 1}


@pytest.mark.parametrize("cluster", ["dgx-h100:32", "dgx-b200:4", "dgx-h100:1", "gb200-nvl72:18"])
def test_infiniband_and_one_domain_need_nothing(cluster):
    assert names(cluster) == {}


def test_rails_that_nothing_joins_must_not_be_crossed():
    assert names(document("{kind: rail-only}")) == {"NCCL_CROSS_NIC": "0"}
    assert names(document("{kind: rail-optimized}")) == {}


def test_queue_pairs_of_ecmp_are_set_above_one():
    assert names(document("{kind: fat-tree, routing: {ecmp: {queue_pairs: 4}}}")) == {
        "NCCL_IB_QPS_PER_CONNECTION": "4"
    }
    assert names(document("{kind: fat-tree, routing: ecmp}")) == {}


def test_roce_needs_a_gid_before_2_21_and_a_class_where_it_is_known():
    assert names("oci-h100:4") == {}
    assert names("oci-h100:4", release=parse_release("2.20")) == {"NCCL_IB_GID_INDEX": "3"}
    assert names("oci-h100:4", dscp=26) == {"NCCL_IB_TC": "104"}  # DSCP is the upper 6 of 8 bits: RFC 2474


def test_efa_slingshot_and_tcpxo_need_what_their_plugins_do():
    assert names("aws-p5:4") == {"FI_EFA_USE_HUGE_PAGE": "0"}
    assert names("aws-p4d:4", release=parse_release("2.12"))["FI_PROVIDER"] == "efa"
    assert names("gh200-4:4")["NCCL_NET"] == "AWS Libfabric"
    assert "NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY" in names("gcp-a3-mega:4")


def test_fast_ethernet_without_rdma_needs_several_connections():
    inline = (
        "linkwise: cluster/1\nnodes: 4\nnode: {gpu: a100-sxm-80gb, gpus_per_node: 8, nics: 1, "
        "nic_bytes_per_s: %s Gbit/s}\nfabric: {kind: leaf-spine, link: ethernet-%s}\n"
    )
    assert names(inline % (100, 100)) == {"NCCL_SOCKET_NTHREADS": "4", "NCCL_NSOCKS_PERTHREAD": "4"}
    assert names(inline % (25, 25)) == {}


def test_devices_of_storage_are_left_out_where_they_are_known():
    nics = {f"mlx5_{number}": "InfiniBand" for number in range(8)}
    with_storage = NodeFacts(interfaces={}, devices={**nics, "mlx5_8": "Ethernet"})
    assert names("dgx-h100:4", node=with_storage) == {"NCCL_IB_HCA": "=" + ",".join(nics)}
    assert names("dgx-h100:4", node=NodeFacts(interfaces={}, devices=nics)) == {}


def test_megatron_needs_one_queue_before_blackwell_with_tensor_parallelism():
    # NVIDIA/Megatron-LM, megatron/training/arguments.py
    one = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    assert names("dgx-h100:32", job=job(layout=TENSOR)) == one
    assert names("dgx-b200:32", job=job(layout=TENSOR)) == {}
    assert names("dgx-h100:32", job=job(layout={**TENSOR, "tensor": 1})) == {}
    assert names("dgx-h100:32", job=job("torchtitan", layout=TENSOR)) == {}
    open_layout = recommended(cluster_from_shorthand("dgx-h100:32"), job(), release=NEWEST)
    assert open_layout.settings == ()
    assert any("CUDA_DEVICE_MAX_CONNECTIONS" in note for note in open_layout.notes)


@pytest.mark.parametrize("release", ["2.12", "2.18", "2.20", "2.27", "2.30.7"])
@pytest.mark.parametrize("cluster", ["dgx-h100:8", "oci-h100:8", "aws-p5:8", "gcp-a3-mega:8", "gh200-4:8"])
def test_no_setting_is_unknown_to_the_release_or_its_default(cluster, release):
    for name, value in names(cluster, release=parse_release(release), dscp=None).items():
        variable = variables().get(name)
        if variable is not None:
            assert variable.is_known(parse_release(release)), name
            assert variable.default(parse_release(release)) != value, name


def test_facts_of_a_node_are_read_from_what_its_tools_print():
    text = (
        "$ ip -d link show\n1: lo: <LOOPBACK,UP> mtu 65536 qdisc noqueue state UNKNOWN\n"
        "2: eth0@if7: <BROADCAST,UP> mtu 9000 qdisc mq state UP\n"
        "eth1             DOWN           \n"
        "/sys/class/infiniband/mlx5_0/ports/1/link_layer: InfiniBand\n"
        "hca_id:\tmlx5_9\n\ttransport:\t\t\tInfiniBand (0)\n\t\t\tport_lmc:\t\t0x00\n\t\t\tlink_layer:\t\tEthernet\n"
    )
    facts = parse_node_facts(text)
    assert facts.interfaces == {"eth1": None, "lo": 65536, "eth0": 9000}
    assert facts.devices == {"mlx5_0": "InfiniBand", "mlx5_9": "Ethernet"}
    assert parse_node_facts("nothing of it").devices is None


@pytest.mark.parametrize(
    ("text", "left"),
    # NCCL user guide, NCCL_SOCKET_IFNAME and NCCL_IB_HCA
    [
        ("eth", ["eth0", "eth1"]),
        ("=eth0", ["eth0"]),
        ("=eth0,eth1", ["eth0", "eth1"]),
        ("^docker", ["lo", "eth0", "eth1"]),
        ("^=eth0", ["lo", "eth1", "docker0"]),
        ("eth0:1", ["eth0"]),
    ],
)
def test_filter_leaves_what_nccl_would_take(text, left):
    assert matches(text, ["lo", "eth0", "eth1", "docker0"]) == left
