from pathlib import Path

import pytest

from linkwise.cluster import load_cluster
from linkwise.cluster.cluster import FabricKind
from linkwise.cluster.document import HEADER, ClusterDocument
from linkwise.cluster.reading import load_document
from linkwise.cluster.variants import VariantAxes, cluster_variants
from linkwise.documents import parse_document
from linkwise.errors import DocumentError

EXAMPLES = Path(__file__).parents[2] / "examples"
LEAF_SPINE = "nodes: 4\nnode: dgx-h100\nfabric: {kind: leaf-spine, link: infiniband-ndr-400, switch: quantum-2-qm9700}\n"


def read(text):
    return parse_document(f"linkwise: cluster/1\n{text}", ClusterDocument, HEADER)


def refused(document, **axes):
    with pytest.raises(DocumentError) as caught:
        cluster_variants(document, VariantAxes(**axes))
    return [(fault.key, fault.message) for fault in caught.value.faults]


def test_variants_without_axes_are_the_cluster():
    assert cluster_variants(load_document("dgx-h100:4"), VariantAxes()) == (load_cluster("dgx-h100:4"),)


def test_variants_are_every_combination_the_last_axis_fastest():
    axes = VariantAxes(fabrics=("infiniband-ndr-400", "roce-400"), oversubscription=(1.0, 2.0))
    found = cluster_variants(read(LEAF_SPINE), axes)
    assert [(one.fabric.link.name, one.fabric.oversubscription) for one in found] == [
        ("infiniband-ndr-400", 1.0),
        ("infiniband-ndr-400", 2.0),
        ("roce-400", 1.0),
        ("roce-400", 2.0),
    ]
    assert [one.name.split(", ")[1:] for one in found][1] == ["infiniband-ndr-400", "2:1"]
    assert {one.fabric.kind for one in found} == {FabricKind.LEAF_SPINE}


def test_variant_with_another_link_has_its_rate_and_the_nearest_switch_that_carries_it():
    same, other, half = cluster_variants(
        read(LEAF_SPINE), VariantAxes(fabrics=("infiniband-ndr-400", "roce-400", "infiniband-hdr-200"))
    )
    assert (same.fabric.switch, same.nic_bytes_per_s) == ("quantum-2-qm9700", 50e9)
    # Both have 64 ports of 400 Gbit/s; of the two that do, the power of a Tomahawk 4 is known.
    assert (other.fabric.switch, other.nic_bytes_per_s) == ("tomahawk-4", 50e9)
    assert half.fabric.switch == "quantum-2-qm9700"
    assert not any("assumed with" in words for words in same.assumptions)
    assert "switch tomahawk-4 assumed with roce-400" in other.assumptions[-1]


def test_variant_takes_a_switch_with_a_price_before_one_without():
    (found,) = cluster_variants(
        load_document(str(EXAMPLES / "owned-infiniband.yaml")), VariantAxes(fabrics=("roce-400",))
    )
    assert found.fabric.switch == "spectrum-4-sn5600"
    assert "of those with a price" in found.assumptions[-1]


def test_variant_keeps_the_oversubscription_of_rails_that_the_nearest_switch_needs_too():
    rails = "nodes: 100\nnode: dgx-h100\nfabric: {kind: rail-only, oversubscription: 2}\n"
    (found,) = cluster_variants(read(rails), VariantAxes(fabrics=("roce-400",)))
    assert (found.fabric.switch, found.fabric.oversubscription) == ("tomahawk-4", 2.0)


def test_variants_of_the_domain_have_the_same_gpus_and_nics():
    whole = load_cluster("gb200-nvl72:36")
    eight, all_of_it = cluster_variants(load_document("gb200-nvl72:36"), VariantAxes(domains=(8, 72)))
    assert (eight.nvlink_domain_gpus, all_of_it.nvlink_domain_gpus) == (8, 72)
    assert eight.gpus == all_of_it.gpus == whole.gpus
    assert eight.node_bytes_per_s == whole.node_bytes_per_s
    assert any("2 trays share an NVLink domain" in said for said in eight.assumptions)


@pytest.mark.parametrize(
    ("text", "axes", "key", "says"),
    [
        (
            "dgx-h100:4",
            {"domains": (8, 72)},
            "domains",
            "72 is more than the GPUs of an NVLink domain of dgx-h100: 8",
        ),
        ("gb200-nvl72:36", {"domains": (6,)}, "domains", "neither whole nodes"),
        ("gb200-nvl72:36", {"domains": (0,)}, "domains", "neither whole nodes"),
        ("dgx-h100:4", {"fabrics": ("roce-400", "roce-400")}, "fabrics", "given twice"),
        ("dgx-h100:4", {"fabrics": ("roce-800",)}, "fabrics", "more than a NIC"),
        ("dgx-h100:4", {"fabrics": ("roce-4000",)}, "fabrics", "did you mean"),
        ("dgx-h100:4", {"fabrics": ("efa-v2",)}, "fabrics", "speaks efa"),
        ("dgx-h100:1", {"fabrics": ("roce-400",)}, "fabrics", "has no effect"),
        ("gb200-nvl72:18", {"fabrics": ("roce-400",), "domains": (72,)}, "fabrics", "has no effect"),
    ],
)
def test_variants_that_cannot_be_or_have_no_effect_are_refused(text, axes, key, says):
    ((given, message),) = refused(load_document(text), **axes)
    assert given == key
    assert says in message


@pytest.mark.parametrize("kind", ["single-switch", "rail-only"])
def test_oversubscription_without_uplinks_is_refused(kind):
    document = read(f"nodes: 4\nnode: dgx-h100\nfabric: {{kind: {kind}, link: infiniband-ndr-400}}\n")
    ((key, message),) = refused(document, oversubscription=(2.0,))
    assert key == "oversubscription"
    assert "no up-links" in message


def test_domains_beside_gpus_per_domain_are_refused():
    document = read("nodes: 36\nnode: gb200-nvl72\ngpus_per_domain: 64\n")
    ((_key, message),) = refused(document, domains=(8,))
    assert "gpus_per_domain" in message


def test_oversubscription_below_one_is_refused():
    assert refused(read(LEAF_SPINE), oversubscription=(0.5, 2.0))[0][0] == "oversubscription"


def test_faults_of_every_value_are_told_together():
    assert len(refused(load_document("dgx-h100:4"), fabrics=("roce-800", "nosuch", "roce-400"))) == 2


def test_a_fabric_matters_where_one_of_the_domains_is_narrow():
    axes = VariantAxes(fabrics=("infiniband-ndr-400", "roce-400"), domains=(8, 72))
    assert len(cluster_variants(load_document("gb200-nvl72:18"), axes)) == 4
