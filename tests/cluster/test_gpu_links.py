"""What joins the GPUs of a described node, and domains that nobody sells."""

import numpy as np
import pytest

from linkwise.cluster import GpuLinks, cluster_from_shorthand
from linkwise.cluster.reading import load_document, parse_cluster
from linkwise.cluster.variants import VariantAxes, cluster_variants
from linkwise.errors import DocumentError
from linkwise.estimate.job_inputs import nvlink_domain
from linkwise.network.cluster_setting import setting_of
from linkwise.network.collective_time import collective_times


def box(gpu="h100-nvl", gpus=8, more=""):
    node = f"{{gpu: {gpu}, gpus_per_node: {gpus}, nics: 0{more}}}"
    return parse_cluster(f"linkwise: cluster/1\nnodes: 1\nnode: {node}\nfabric: {{kind: none}}\n")


def seconds(cluster, gpus=None):
    setting = setting_of(cluster, gpus=gpus)
    return collective_times("all_reduce", setting, np.array([2.0**30])).time_s[0]


@pytest.mark.parametrize(
    ("gpu", "more", "links", "domain"),
    [
        ("h100-sxm", "", GpuLinks.NVSWITCH, 8),
        ("h100-sxm", ", gpu_links: nvlink-mesh", GpuLinks.NVLINK_MESH, 8),
        ("h100-nvl", "", GpuLinks.NVLINK_BRIDGE, 2),
        ("h100-nvl", ", nvlink_domain_gpus: 1", GpuLinks.PCIE, 1),
        ("h100-nvl", ", gpu_links: pcie", GpuLinks.PCIE, 1),
        ("h200-nvl", ", gpu_links: nvlink-bridge, nvlink_domain_gpus: 4", GpuLinks.NVLINK_BRIDGE, 4),
        ("l40s", "", GpuLinks.PCIE, 1),
        ("l40s", ", gpu_links: host-memory", GpuLinks.HOST_MEMORY, 1),
        ("mi300x", "", GpuLinks.INFINITY_FABRIC, 8),
    ],
)
def test_links_follow_from_the_gpu_unless_stated(gpu, more, links, domain):
    cluster = box(gpu, more=more)
    assert (cluster.gpu_links, cluster.nvlink_domain_gpus) == (links, domain)


@pytest.mark.parametrize(
    ("system", "links"),
    [("dgx-h100", "nvswitch"), ("azure-nc-a100-v4", "nvlink-bridge"), ("mgx-pcie-l40s-8", "pcie")],
)
def test_links_of_systems(system, links):
    assert cluster_from_shorthand(f"{system}:1").gpu_links == links


@pytest.mark.parametrize(
    ("gpu", "gpus", "more", "key", "says"),
    [
        (
            "h100-sxm",
            8,
            "gpu_links: pcie, nvlink_domain_gpus: 8",
            "nvlink_domain_gpus",
            "do not share NVLink",
        ),
        ("l40s", 8, "gpu_links: nvswitch", "gpu_links", "has PCIe alone; write pcie or host-memory"),
        ("h100-sxm", 8, "gpu_links: infinity-fabric", "gpu_links", "joined by NVLink 4"),
        ("mi300x", 8, "gpu_links: nvswitch", "gpu_links", "joined by Infinity Fabric"),
        (
            "h100-nvl",
            8,
            "gpu_links: nvlink-bridge, nvlink_domain_gpus: 8",
            "nvlink_domain_gpus",
            "2 or 4 GPUs",
        ),
        ("h100-sxm", 4, "gpu_links: nvlink-mesh, nvlink_domain_gpus: 8", "gpu_links", "span nodes"),
        (
            "h100-sxm",
            8,
            "gpu_links: nvswitch, nvlink_domain_gpus: 4",
            "nvlink_domain_gpus",
            "joins all 8 GPUs",
        ),
        ("l40s", 1, "gpu_links: pcie", "gpu_links", "has no effect"),
        ("h100-sxm", 8, "gpu_links: ethernet", "gpu_links", "'nvswitch'"),
    ],
)
def test_links_that_a_node_cannot_have_are_refused(gpu, gpus, more, key, says):
    with pytest.raises(DocumentError) as raised:
        box(gpu, gpus, f", {more}")
    (fault,) = raised.value.faults
    assert fault.key.endswith(key)
    assert says in fault.message


def test_slower_links_make_slower_collectives():
    order = ["nvswitch", "nvlink-mesh", "pcie"]
    times = [seconds(box(more=f", gpu_links: {links}")) for links in order]
    assert times == sorted(times)
    # through the host never faster than across the sockets; a bridged pair far faster than two GPUs over PCIe
    assert seconds(box(more=", gpu_links: host-memory")) >= times[-1]
    assert seconds(box(), gpus=2) < 0.5 * seconds(box(more=", gpu_links: pcie"), gpus=2)
    four = box("h200-nvl", more=", gpu_links: nvlink-bridge, nvlink_domain_gpus: 4")
    assert seconds(four, gpus=4) < 0.5 * seconds(box("h200-nvl"), gpus=4)


@pytest.mark.parametrize("links", ["pcie", "host-memory", "nvlink-bridge"])
def test_plans_place_groups_on_pcie(links):
    assert nvlink_domain(box(more=f", gpu_links: {links}")).is_pcie
    said = " ".join(box(more=f", gpu_links: {links}").assumptions)
    assert ("through the host" in said) == (links == "host-memory")


def test_domains_from_8_to_576():
    document = load_document("gb200-nvl72:288")
    found = cluster_variants(document, VariantAxes(domains=(8, 72, 144, 576)))
    assert [each.nvlink_domain_gpus for each in found] == [8, 72, 144, 576]
    said = [any("two tiers of NVSwitches" in line for line in each.assumptions) for each in found]
    assert said == [False, False, True, True]
    times = [seconds(each, gpus=576) for each in found]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize(
    ("text", "size", "says"),
    [
        ("gb200-nvl72:288", 580, "more than the 576 GPUs that NVLink is announced to join"),
        ("gb200-nvl72:288", 146, "neither whole nodes of 4"),
        ("mgx-pcie-l40s-8:8", 16, "16 is more than the GPUs of an NVLink domain"),
    ],
)
def test_domains_that_nvlink_does_not_join_are_refused(text, size, says):
    with pytest.raises(DocumentError, match=says):
        cluster_variants(load_document(text), VariantAxes(domains=(size,)))
