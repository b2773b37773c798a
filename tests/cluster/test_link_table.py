"""Tables of links: what is read, and every fault with its place."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.cluster import FabricKind
from linkwise.cluster.link_table import node_number, parse_link_table, table_of_rows
from linkwise.cluster.reading import load_document, parse_cluster, read_cluster
from linkwise.cluster.variants import VariantAxes, cluster_variants
from linkwise.errors import DocumentError

HEADING = "from,to,link,rate,count\n"
FOUR = """\
node-0,leaf-1,,,8
node-1,leaf-1,,,8
node-2,leaf-2,,,8
leaf-2,node-3,,,8
leaf-1,spine-1,,400 Gbit/s,16
leaf-2,spine-1,infiniband-ndr-400,,16
"""


def faults_of(text):
    with pytest.raises(DocumentError) as raised:
        parse_link_table(text, path="links.csv")
    return [str(fault) for fault in raised.value.faults]


@pytest.fixture
def cluster_file(tmp_path):
    """Return what writes a cluster with a table and gives its path."""

    def write(rows=FOUR, *, nodes=4, more="", node="dgx-h100"):
        (tmp_path / "links.csv").write_text(HEADING + rows)
        path = tmp_path / "cluster.yaml"
        fabric = f"{{kind: links, links: links.csv{more}}}"
        path.write_text(f"linkwise: cluster/1\nnodes: {nodes}\nnode: {node}\nfabric: {fabric}\n")
        return path

    return write


def misfits(path):
    with pytest.raises(DocumentError) as raised:
        read_cluster(path)
    return [f"{fault.key}: {fault.message}" for fault in raised.value.faults]


def test_table_is_read_from_beside_the_cluster(cluster_file):
    cluster = read_cluster(cluster_file())
    table = cluster.fabric.table
    assert cluster.fabric.kind is FabricKind.LINKS
    assert [row.count for row in table.links] == [8, 8, 8, 8, 16, 16]
    assert {row.bytes_per_s for row in table.links} == {50e9}
    assert (cluster.node_bytes_per_s, cluster.fabric.link.name) == (400e9, "infiniband-ndr-400")


def test_table_stands_in_the_document_as_well():
    rows = "[{from: node-0, to: s, count: 8}, {from: s, to: node-1, rate: 200 Gbit/s, count: 4}]"
    text = f"linkwise: cluster/1\nnodes: 2\nnode: dgx-h100\nfabric: {{kind: links, links: {rows}}}\n"
    cluster = parse_cluster(text)
    assert [row.bytes_per_s for row in cluster.fabric.table.links] == [50e9, 25e9]
    # node-1 has 4 x 25 GB/s, the least: every one of eight NICs is priced with an eighth
    assert cluster.nic_bytes_per_s == pytest.approx(100e9 / 8)
    assert any("the links of node-1 carry 800 Gbit/s, the least" in line for line in cluster.assumptions)


def test_columns_may_be_left_out_and_blank_lines_are_passed_over():
    table = parse_link_table("to, from\nleaf-1,node-0\n\n leaf-1 ,node-1\n", path="x")
    assert [(row.ends, row.count) for row in table.links] == [
        (("node-0", "leaf-1"), 1),
        (("node-1", "leaf-1"), 1),
    ]


def test_all_faults_of_a_table_are_told_together():
    rows = (
        "node-0,leaf-1,,-4 Gbit/s,8\nnode-2,node-2,,,8\nnode-3,leaf-2,x,,4\nnode-3,leaf-2,,5,4\n"
        "node-1,leaf-1,,,8\nleaf-1,node-1,,,2\n,spine-1,infiniband-ndr-400,,0\nnode-4,leaf-1,roce-400,400 Gbit/s,\n"
        "a,b,,,1,2\n"
    )
    found = faults_of(HEADING + rows)
    wanted = [
        ("links.csv:2", "the rate -4 Gbit/s is not above zero"),
        ("links.csv:3", "node-2 is joined to itself"),
        ("links.csv:4", "unknown link 'x'"),
        ("links.csv:5", "'5' has no unit"),
        ("links.csv:7", "joined by such a link at links.csv:6 already"),
        ("links.csv:8", "from is empty"),
        ("links.csv:8", "count '0' is not a number of cables"),
        ("links.csv:9", "link and rate are both given"),
        ("links.csv:10", "more cells than the heading"),
    ]
    assert len(found) == len(wanted)
    for message, (place, words) in zip(found, wanted, strict=True):
        assert message.startswith(place)
        assert words in message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "there is no column 'from'"),
        ("from,to\n", "has no row"),
        ("from,to,speed\n", "unknown column 'speed'; the columns are from, to, link, rate, count"),
        ("from,to,counts\n", "did you mean 'count'"),
        ("from,to,to\n", "is there twice"),
        (HEADING + "".join(f"a{n},a{n},,,1\n" for n in range(80)), "30 further faults"),
    ],
)
def test_whole_tables_that_are_none(text, says):
    assert says in "\n".join(faults_of(text))


def test_rows_are_bounded(monkeypatch):
    monkeypatch.setattr("linkwise.cluster.link_table.MOST_ROWS", 3)
    assert "has more than 3 rows" in faults_of(HEADING + "a,b,,,1\n" * 4)[0]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (FOUR.replace("node-3", "node-9"), "node-9: there are 4 nodes, node-0 to node-3"),
        (FOUR.replace("leaf-2,node-3,,,8\n", ""), "node-3 without a link"),
        (
            FOUR.replace("node-0,leaf-1,,,8", "node-0,leaf-1,,,9"),
            "9 links of node-0 are more than its 8 NICs",
        ),
        (FOUR + "leaf-1,spine-2,,,4\n", "spine-2: joined to one end alone, so that nothing passes"),
        (FOUR + "a,b,,,4\nb,c,,,4\nc,a,,,4\n", "a: no node is joined to this network of switches"),
        (FOUR.replace(",16", ",60"), "the 76 links of leaf-1 are more than the ports of the switch"),
        (
            FOUR.replace("node-0,leaf-1,", "node-0,leaf-1,infiniband-xdr-800"),
            "800 Gbit/s is more than a NIC of",
        ),
        (
            FOUR.replace("leaf-2,spine-1", "leaf-3,spine-2"),
            "node-0 does not reach node-2, node-3: no switches",
        ),
        ("node-0,node-1,,,8\nnode-1,node-2,,,0\n", "count '0'"),
        ("node-0,node-1,,,4\nnode-1,node-2,,,4\nnode-2,node-3,,,4\n", "node-0 does not reach node-2, node-3"),
    ],
)
def test_tables_that_do_not_fit_the_nodes(cluster_file, rows, says):
    found = misfits(cluster_file(rows))
    assert any(says in message for message in found), found


def test_faults_of_the_fit_are_told_together(cluster_file):
    rows = FOUR.replace("node-3", "node-9").replace("node-0,leaf-1,,,8", "node-0,leaf-1,,,80")
    assert len(misfits(cluster_file(rows))) == 4


@pytest.mark.parametrize(
    ("fabric", "says"),
    [
        ("{kind: links}", "kind links takes a table: links: links.csv"),
        ("{kind: fat-tree, links: [{from: node-0, to: s}]}", "goes with kind: links alone"),
        ("{kind: links, links: [{from: node-0, to: s}], planes: 2}", "planes: has no effect"),
        (
            "{kind: links, links: [{from: node-0, to: s}], oversubscription: 2}",
            "oversubscription: has no effect",
        ),
        ("{kind: links, links: [7]}", "row 1: keys with their values are due here"),
        ("{kind: links, links: [{from: node-0, top: s}]}", "unknown column 'top'; did you mean 'to'?"),
        ("{kind: links, links: missing.csv}", "missing.csv: no such file"),
        ("{kind: links, links: 7}", "the path of a CSV"),
    ],
)
def test_keys_beside_a_table(fabric, says):
    with pytest.raises(DocumentError) as raised:
        parse_cluster(f"linkwise: cluster/1\nnodes: 1\nnode: dgx-h100\nfabric: {fabric}\n")
    assert says in str(raised.value)


def test_variants_of_stated_links_are_refused(cluster_file):
    document = load_document(str(cluster_file()))
    for axes in ({"fabrics": ("roce-400",)}, {"oversubscription": (2.0,)}):
        with pytest.raises(DocumentError, match="its table says which links there are"):
            cluster_variants(document, VariantAxes(**axes))


@settings(max_examples=100, deadline=None)
@given(
    st.one_of(
        st.text(max_size=300),
        st.text(alphabet='nodesfrtlik-01,"\n GbitxX/', max_size=300).map(HEADING.__add__),
    )
)
def test_any_text_is_a_table_or_has_faults(text):
    try:
        table = parse_link_table(text, path="x")
    except DocumentError as refused:
        table, faults = None, refused.faults
    if table is None:
        assert faults
    else:
        assert all(row.count >= 1 and len(set(row.ends)) == 2 for row in table.links)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["from", "to", "link", "rate", "count", "x"]),
            st.one_of(st.none(), st.integers(), st.text(max_size=12)),
        ),
        max_size=4,
    )
)
def test_any_rows_are_a_table_or_have_faults(rows):
    faults = "none"
    try:
        table_of_rows(rows)
    except DocumentError as refused:
        faults = refused.faults
    assert faults


@pytest.mark.parametrize(
    ("end", "number"), [("node-12", 12), ("node-", None), ("leaf-1", None), ("node-1x", None)]
)
def test_nodes_are_told_by_their_names(end, number):
    assert node_number(end) == number
