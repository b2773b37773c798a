"""What a lab builds of a cluster: hand-worked counts, rates and dilations."""

import pytest

from linkwise.cluster import cluster_from_shorthand
from linkwise.cluster.reading import parse_cluster
from linkwise.errors import InputError
from linkwise.lab.design import auto_dilation, design_of

DOCUMENT = """\
linkwise: cluster/1
name: four
nodes: {nodes}
node: {{gpu: h100-sxm, gpus_per_node: {gpus}, nics: {nics}, nic_bytes_per_s: 400 Gbit/s, link: infiniband-ndr-400}}
fabric: {{kind: {kind}}}
"""


def cluster(kind="single-switch", *, nodes=4, gpus=2, nics=1):
    return parse_cluster(DOCUMENT.format(kind=kind, nodes=nodes, gpus=gpus, nics=nics))


def test_auto_dilation_is_the_least_of_its_series_that_fits_nic_and_sum():
    # 400 Gbit/s to 40 Mbit/s is 10,000; eight ranks take 20 Mbit/s, 32 ranks 5 Mbit/s, which is 80,000
    assert auto_dilation(50e9, 4) == 10_000
    assert auto_dilation(50e9, 8) == 20_000
    assert auto_dilation(50e9, 32) == 100_000
    assert auto_dilation(5e6, 1) == 1
    assert auto_dilation(25e6, 1) == 5


def test_links_are_slower_by_the_dilation():
    design = design_of(cluster("leaf-spine, oversubscription: 2"), dilation=8000)
    assert design.nic_bytes_per_s == pytest.approx(50e9 / 8000)
    assert [trunk.bytes_per_s for trunk in design.trunks] == pytest.approx([25e9 / 8000] * 4)
    assert design.switches == ("leaf0", "leaf1", "leaf2", "leaf3", "spine")


def test_each_rail_has_a_leaf_and_rail_only_joins_none():
    joined = design_of(cluster("rail-optimized", gpus=2, nics=2))
    assert [nic.switch for nic in joined.nics[:2]] == ["leaf0", "leaf1"]
    assert [trunk.bytes_per_s * joined.dilation for trunk in joined.trunks] == pytest.approx([200e9] * 2)
    alone = design_of(cluster("rail-only", gpus=2, nics=2))
    assert alone.switches == ("rail0", "rail1")
    assert alone.trunks == ()


def test_more_nics_than_ranks_are_folded_at_their_sum():
    design = design_of(cluster(gpus=2, nics=4))
    assert design.nics_per_node == 2
    assert design.nic_bytes_per_s * design.dilation == pytest.approx(100e9)
    assert any("stands for 2" in note for note in design.notes)


def test_ranks_share_nics_in_blocks():
    design = design_of(cluster(gpus=4, nics=2))
    assert [design.nic_of(rank) for rank in range(8)] == [0, 0, 1, 1, 0, 0, 1, 1]
    assert [design.node_of(rank) for rank in range(8)] == [0, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda: cluster_from_shorthand("dgx-h100:4"), "4 nodes of 8 GPUs; the lab emulates up to 8 of 4"),
        (lambda: cluster(nodes=9), "9 nodes of 2 GPUs"),
        (lambda: cluster_from_shorthand("gb200-nvl72:4"), "spans nodes"),
        (lambda: cluster("dragonfly-plus", gpus=2), "no fabric of kind dragonfly-plus"),
    ],
)
def test_what_is_not_emulated_is_refused_with_what_to_do(given, words):
    with pytest.raises(InputError, match=words):
        design_of(given())


@pytest.mark.parametrize("factor", [10.0, 1e8])
def test_a_scale_out_of_range_is_refused_with_the_range(factor):
    with pytest.raises(InputError, match="give 400 to 400,000"):
        design_of(cluster(), dilation=factor)


def test_one_node_has_no_links():
    design = design_of(cluster(nodes=1))
    assert design.nics == ()
    assert design.dilation == 1
