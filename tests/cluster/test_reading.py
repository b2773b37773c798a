import io
from pathlib import Path

import jsonschema
import pytest

from linkwise import catalog
from linkwise.cluster import FabricKind, RoutingKind, cluster_from_shorthand, load_cluster, read_cluster
from linkwise.cluster.document import HEADER, ClusterDocument
from linkwise.cluster.reading import parse_cluster
from linkwise.documents import json_schema
from linkwise.errors import DocumentError, InputError, UnknownName

_EXAMPLES = Path(__file__).parents[2] / "examples"
_TEMPLATE = Path(__file__).parents[2] / "src/linkwise/cluster/template.yaml"


def _read(body):
    return parse_cluster(f"linkwise: cluster/1\nname: test\n{body}", path="c.yaml")


def _faults(body):
    with pytest.raises(DocumentError) as caught:
        _read(body)
    return str(caught.value).splitlines()


def test_example_is_32_dgx_h100_on_rails():
    cluster = read_cluster(_EXAMPLES / "h100-256.yaml")
    assert (cluster.name, cluster.system, cluster.gpu.name) == ("h100-256", "dgx-h100", "h100-sxm")
    assert (cluster.nodes, cluster.gpus, cluster.nvlink_domain_gpus, cluster.domains) == (32, 256, 8, 32)
    assert (cluster.fabric.kind, cluster.fabric.switch) == (FabricKind.RAIL_OPTIMIZED, "quantum-2-qm9700")
    assert (cluster.nic_bytes_per_s, cluster.node_bytes_per_s) == (50e9, 400e9)
    assert cluster.gpu_network_bytes_per_s == 50e9
    assert cluster.assumptions == ()


def test_shorthand_equals_the_example_but_for_what_it_assumes():
    written, short = read_cluster(_EXAMPLES / "h100-256.yaml"), cluster_from_shorthand("dgx-h100:32")
    assert short.fabric == written.fabric
    assert "infiniband-ndr-400" in short.assumptions[0]


@pytest.mark.parametrize("name", catalog.names("system"))
def test_every_system_of_the_catalogue_makes_a_cluster(name):
    for nodes in (1, 2, 72):
        cluster = load_cluster(f"{name}:{nodes}")
        assert cluster.gpus == nodes * catalog.system(name).gpus_per_node
        assert cluster.nic_bytes_per_s == catalog.system(name).nic_bytes_per_s


def test_template_is_read():
    assert read_cluster(_TEMPLATE).gpus == 256


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("dgx-h100", InputError, "write 'dgx-h100:32'"),
        ("dgx-h100:0", InputError, "'0' in 'dgx-h100:0' is not a number of nodes"),
        ("dgx-h100:x", InputError, "is not a number of nodes"),
        ("dgx-h100:99999999999999", InputError, "is not a number of nodes from 1 to 10,000,000"),
        ("dgx-h10:4", UnknownName, "did you mean dgx-h100"),
        ("a:b:c", InputError, "is not SYSTEM:NODES"),
        ("", InputError, "neither a file nor SYSTEM:NODES"),
        ("nowhere/at-all.yaml", DocumentError, "no such file"),
    ],
)
def test_load_says_what_to_write_when_given_something_else(text, error, says):
    with pytest.raises(error) as caught:
        load_cluster(text)
    assert says in str(caught.value)


def test_standard_input_is_read_for_a_dash():
    stdin = io.BytesIO(b"linkwise: cluster/1\nnodes: 2\nnode: dgx-a100\n")
    assert load_cluster("-", stdin=stdin).gpus == 16


def test_nodes_count_trays_when_the_nvlink_domain_is_wider():
    cluster = _read("nodes: 36\nnode: gb200-nvl72\ngpus_per_domain: 64\n")
    assert (cluster.gpus, cluster.nvlink_domain_gpus, cluster.domains, cluster.gpus_per_node) == (
        128,
        64,
        2,
        4,
    )
    assert any("tray" in each for each in cluster.assumptions)


@pytest.mark.parametrize(
    ("body", "gpus", "per_node", "domain"),
    [
        ("nodes: 4\nnode: dgx-h100\ngpus_per_domain: 4\n", 16, 4, 4),
        ("nodes: 4\nnode: dgx-h100\ngpus: 30\n", 30, 8, 8),
        ("nodes: 4\nnode: dgx-h100\ngpus: 2\n", 2, 2, 2),
        ("nodes: 20\nnode: gb200-nvl72\n", 80, 4, 72),
        ("nodes: 20\nnode: gb200-nvl72\ngpus_per_domain: 32\n", 40, 4, 32),
    ],
)
def test_fewer_gpus_are_used_when_asked(body, gpus, per_node, domain):
    cluster = _read(body)
    assert (cluster.gpus, cluster.gpus_per_node, cluster.nvlink_domain_gpus) == (gpus, per_node, domain)


def test_inline_node_equals_the_system_of_the_same_shape():
    shape = "{gpu: h100-sxm, gpus_per_node: 8, nvlink_domain_gpus: 8, nic: connectx-7, nics: 8, nic_bytes_per_s: 400 Gbit/s,"
    inline = _read(f"nodes: 4\nnode: {shape} link: infiniband-ndr-400, switch: quantum-2-qm9700}}\n")
    named = _read("nodes: 4\nnode: dgx-h100\n")
    same = ("gpus", "gpus_per_node", "nvlink_domain_gpus", "gpu", "node_bytes_per_s", "fabric")
    assert [getattr(inline, each) for each in same] == [getattr(named, each) for each in same]


def test_slower_link_limits_the_nic():
    cluster = _read(
        "nodes: 4\nnode: dgx-h100\nfabric: {kind: leaf-spine, link: ethernet-100, routing: {ecmp: {queue_pairs: 4}}}\n"
    )
    assert (cluster.nic_bytes_per_s, cluster.fabric.switch) == (12.5e9, None)
    assert (cluster.fabric.routing.kind, cluster.fabric.routing.queue_pairs) == (RoutingKind.ECMP, 4)


_INLINE = "gpu: h100-sxm, gpus_per_node: 8"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("nodes: 0\nnode: dgx-h100\n", "c.yaml:3: nodes: 0 is not accepted"),
        ("nodes: 2\nnode: dgx-h10\n", "c.yaml:4: node: unknown system 'dgx-h10'; did you mean dgx-h100"),
        ("nodes: 2\nnode: dgx-h100\ngpus: 17\n", "c.yaml:5: gpus: 17 GPUs are more than the 16"),
        (
            "nodes: 2\nnode: dgx-h100\ngpus_per_domain: 9\n",
            "c.yaml:5: gpus_per_domain: 9 is more than there are",
        ),
        ("nodes: 2\nnode: dgx-h100\nprices: p.yaml\n", "c.yaml:5: prices: p.yaml: no such file"),
        ("nodes: 2\nnode: dgx-h100\nchanges: [{node: 1}]\n", "c.yaml:5: changes.0.node: "),
        (
            "nodes: 2\nnode: dgx-h100\nfabric:\n  switch: quantum-3\n",
            "c.yaml:6: fabric.switch: unknown switch",
        ),
        (
            "nodes: 2\nnode: dgx-h100\nfabric:\n  link: infiniband-ndr-400\n  switch: spectrum-4-sn5600\n",
            "c.yaml:7: fabric.switch: spectrum-4-sn5600 is a switch for ethernet",
        ),
        (
            "nodes: 2\nnode: dgx-h100\nfabric:\n  link: infiniband-ndr-400\n  switch: quantum-qm8700\n",
            "carries 200 Gbit/s, less than the 400 Gbit/s",
        ),
        (
            "nodes: 2\nnode: dgx-h100\nfabric:\n  link: infiniband-xdr-800\n",
            "more than a NIC of the node (400 Gbit/s)",
        ),
        (
            "nodes: 2\nnode: dgx-h100\nfabric:\n  link: slingshot-11\n",
            "the NIC connectx-7 speaks infiniband, roce",
        ),
        ("nodes: 2\nnode: dgx-h100\nfabric: {kind: none}\n", "c.yaml:5: fabric: is none"),
        ("nodes: 9\nnode: dgx-h100\nfabric: {kind: single-switch}\n", "72 links, more than the 64"),
        (
            "nodes: 2\nnode: dgx-h100\nfabric: {kind: rail-only, oversubscription: 2}\n",
            "oversubscription: has no effect",
        ),
        ("nodes: 2\nnode: dgx-h100\nfabric: {kind: rail-only, routing: spray}\n", "routing: has no effect"),
        ("nodes: 1\nnode: dgx-h100\nfabric: {kind: none, link: roce-400}\n", "fabric.link: has no effect"),
        ("nodes: 2\nnode: dgx-h100\nfabric: {oversubscription: 0.5}\n", "greater than or equal to 1"),
        (
            f"nodes: 2\nnode: {{{_INLINE}, nics: 17, nic: connectx-7, link: roce-400}}\n",
            "node.nics: 17 NICs are more",
        ),
        (
            f"nodes: 2\nnode: {{{_INLINE}, nics: 8, nic_bytes_per_s: 400, link: roce-400}}\n",
            "'400' has no unit",
        ),
        (
            f"nodes: 2\nnode: {{{_INLINE}, nics: 8, link: roce-400}}\n",
            "node.nics: the rate of a NIC is not known",
        ),
        (f"nodes: 2\nnode: {{{_INLINE}, nics: 8, nic: connectx-7}}\n", "fabric: is none"),
        (
            f"nodes: 2\nnode: {{{_INLINE}, nics: 8, nic: connectx-7, nic_bytes_per_s: 800 Gbit/s, link: roce-400}}\n",
            "800 Gbit/s is more than connectx-7 carries",
        ),
        (
            f"nodes: 2\nnode: {{{_INLINE}, nics: 0, link: roce-400}}\nfabric: {{link: roce-400}}\n",
            "node: has no NIC",
        ),
        (
            f"nodes: 2\nnode: {{{_INLINE}, nvlink_domain_gpus: 12, nics: 0}}\n",
            "not a whole number of nodes of 8",
        ),
        ("nodes: 2\nnode: {gpu: l40s, gpus_per_node: 8, nvlink_domain_gpus: 8, nics: 0}\n", "has no NVLink"),
    ],
)
def test_document_is_refused_when_parts_do_not_fit(body, says):
    assert any(says in fault for fault in _faults(body)), _faults(body)


def test_faults_in_several_parts_are_told_together():
    faults = _faults(
        "nodes: 2\nnode: dgx-h100\nfabric:\n  knid: leaf-spine\n  link: infniband-ndr-400\n"
        "  oversubscription: two\ngpus: none\nchanges: [1]\n"
    )
    assert [fault.split(": ")[1] for fault in faults] == [
        "fabric.knid",
        "fabric.link",
        "fabric.oversubscription",
        "gpus",
        "changes.0",
    ]


def test_json_schema_accepts_the_inline_form_with_units_only():
    schema = json_schema(ClusterDocument, HEADER)
    node = {"gpu": "h100-sxm", "gpus_per_node": 8, "nics": 8, "nic_bytes_per_s": "400 Gbit/s"}
    jsonschema.validate({"linkwise": "cluster/1", "nodes": 2, "node": node}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(
            {"linkwise": "cluster/1", "nodes": 2, "node": node | {"nic_bytes_per_s": 400}}, schema
        )


def test_planes_give_a_nic_several_links():
    fabric = "{kind: fat-tree, link: roce-400, switch: tomahawk-5, planes: 2}"
    cluster = parse_cluster(f"linkwise: cluster/1\nnodes: 8\nnode: dgx-b300\nfabric: {fabric}\n")
    assert (cluster.fabric.planes, cluster.nic_bytes_per_s, cluster.fabric.link.bytes_per_s) == (
        2,
        1e11,
        5e10,
    )


@pytest.mark.parametrize(
    ("fabric", "says"),
    [
        ("{planes: 2}", "more than a NIC of the node (800 Gbit/s); choose a slower link or fewer planes"),
        ("{kind: none, planes: 2}", "fabric.planes: has no effect: there is no fabric"),
        ("{planes: 0}", "fabric.planes"),
    ],
)
def test_planes_that_cannot_be_are_refused(fabric, says):
    with pytest.raises(DocumentError) as told:
        parse_cluster(f"linkwise: cluster/1\nnodes: 1\nnode: dgx-b300\nfabric: {fabric}\n")
    assert says in str(told.value)
