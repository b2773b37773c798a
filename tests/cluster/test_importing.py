"""Files of other programs put together to a cluster."""

from pathlib import Path

import pytest

from linkwise.cluster.importing import import_cluster
from linkwise.cluster.reading import parse_cluster
from linkwise.errors import DocumentError, UnknownName

DATA = Path(__file__).parents[1] / "data/imports"


def texts(*names):
    return {name: (DATA / name).read_text() for name in names}


def imported(*names, **options):
    return import_cluster(texts(*names), **options)


def cluster_of(*names, **options):
    return parse_cluster(imported(*names, **options).text)


def refusal(files, **options):
    with pytest.raises(DocumentError) as told:
        import_cluster(files, **options)
    return str(told.value)


@pytest.mark.parametrize(
    ("name", "system"),
    [
        ("topo-1-plain-dgx1-v100.txt", "dgx-1-v100"),
        ("topo-2-affinity-dgx-a100.txt", "dgx-a100"),
        ("topo-3-gpu-numa-id-l40s.txt", "mgx-pcie-l40s-8"),
        ("nccl-dgx-h100.xml", "dgx-h100"),
        ("nccl-gb200-two-trays.xml", "gb200-nvl72"),
    ],
)
def test_system_of_the_catalogue_is_guessed_where_one_gpu_fits(name, system):
    found = imported(name)
    assert parse_cluster(found.text).system == system
    assert f"node: {system}  # assumed:" in found.text


def test_guess_is_refused_where_systems_of_several_gpus_fit():
    said = refusal(texts("topo-4-nic-legend-dgx-h100.txt"))
    assert "8 GPUs, 18 NVLinks each and 8 NICs fit nodes of several GPUs" in said
    assert "dgx-h100" in said
    assert "mi300x-8" not in said
    assert "nothing was written; read: topo-4-nic-legend-dgx-h100.txt as nvidia-smi topo -m" in said


@pytest.mark.parametrize("options", [{"system": "DGX_H100"}, {"gpu": "h100-sxm"}])
def test_option_decides_between_systems(options):
    cluster = cluster_of("topo-4-nic-legend-dgx-h100.txt", nodes=32, **options)
    assert (cluster.system, cluster.nodes, cluster.gpus) == ("dgx-h100", 32, 256)


def test_matrix_and_xml_of_one_node_make_one_cluster():
    found = imported("topo-4-nic-legend-dgx-h100.txt", "nccl-dgx-h100.xml", nodes=4)
    cluster = parse_cluster(found.text)
    assert (cluster.system, cluster.nodes) == ("dgx-h100", 4)
    assert cluster.fabric.link.name == "infiniband-ndr-400"
    assert any("far from every GPU: mlx5_bond_0" in note for note in found.notes)


def test_matrices_of_several_nodes_are_counted():
    text = (DATA / "topo-2-affinity-dgx-a100.txt").read_text()
    found = import_cluster({"a": text, "b": text, "c": text})
    assert parse_cluster(found.text).nodes == 3
    assert "nodes: 3  # assumed: a: 3 files of nvidia-smi topo -m, of one node each" in found.text


def test_files_that_contradict_are_refused():
    said = refusal(texts("topo-2-affinity-dgx-a100.txt", "topo-1-plain-dgx1-v100.txt"))
    assert "nvlinks: contradiction" in said
    said = refusal(texts("nccl-gb200-two-trays.xml", "nccl-dgx-h100.xml"))
    assert "gpus_per_node: contradiction: nccl-dgx-h100.xml says: 8 GPUs in the topology" in said


def test_option_that_contradicts_a_file_is_refused():
    said = refusal(texts("nccl-dgx-h100.xml"), system="dgx-a100")
    assert "its GPU is h100-sxm, but dgx-a100 has a100-sxm-80gb" in said
    assert "18 NVLinks, but dgx-a100 has 12" in said


def test_option_that_contradicts_a_device_is_refused():
    said = refusal(texts("nccl-dgx-h100.xml"), gpu="h200-sxm")
    assert "PCI device 10de:2330 is h100-sxm; --gpu says: h200-sxm" in said


def test_link_of_an_option_goes_before_that_of_a_file():
    found = imported("ibnetdiscover-rails.txt", system="dgx-h100", link="infiniband-hdr-200")
    assert "link: infiniband-hdr-200  # as the option says" in found.text
    assert any("400 Gbit/s; not used, --link goes before it" in note for note in found.notes)


def test_unknown_option_names_the_nearest():
    with pytest.raises(UnknownName, match="dgx-h100"):
        imported("nccl-dgx-h100.xml", system="dgx-h10")


def test_node_that_fits_no_system_is_described():
    pair = "\tGPU0\tGPU1\tNIC0\nGPU0\tX\tSYS\tPIX\nGPU1\tSYS\tX\tSYS\nNIC0\tPIX\tSYS\tX\n"
    assert "no file says which GPU it is" in refusal({"t": pair})
    cluster = parse_cluster(import_cluster({"t": pair}, gpu="a40", link="roce-100", nodes=4).text)
    assert (cluster.gpu.name, cluster.gpus, cluster.nics_per_node) == ("a40", 8, 1)
    assert cluster.nvlink_domain_gpus == 1
    assert cluster.fabric.link.name == "roce-100"
    alone = import_cluster({"t": pair}, gpu="a40")
    assert "the rate of its NICs is not known, give --link" in alone.text
    assert parse_cluster(alone.text).nics_per_node == 0
    assert "(with --link)" in refusal({"t": pair}, gpu="a40", nodes=4)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "f:1: is empty; read are: nvidia-smi topo -m"),
        ("hello\n", "f:1: is in no format that is read"),
        ("ab\n\0\n", "f:2: is not text: it holds zero bytes"),
    ],
)
def test_foreign_file_is_refused_with_the_formats_that_are_read(text, said):
    assert said in refusal({"f": text})


def test_faults_of_all_files_are_told_with_what_was_read():
    files = {**texts("nccl-dgx-h100.xml"), "cut.xml": "<system>", "other": "hello"}
    said = refusal(files)
    assert "cut.xml:1: not well-formed XML" in said
    assert "other:1: is in no format" in said
    assert "read: nccl-dgx-h100.xml as NCCL topology XML; not read: cut.xml, other" in said


def test_names_of_files_cannot_break_out_of_a_comment():
    text = (DATA / "nccl-dgx-h100.xml").read_text()
    found = import_cluster({"a\nnodes: 9\n": text}, name='odd "name": {x}')
    cluster = parse_cluster(found.text)
    assert (cluster.nodes, cluster.name) == (1, 'odd "name": {x}')


@pytest.mark.parametrize(
    ("name", "nodes"), [("slurm-tree.conf", 32), ("slurm-topology.yaml", 24), ("slurm-block.conf", 36)]
)
def test_scheduler_says_how_many_nodes_there_are(name, nodes):
    found = imported(name, "nccl-dgx-h100.xml")
    assert parse_cluster(found.text).nodes == nodes
    assert f"nodes: {nodes}  # {name}: {nodes} nodes on" in found.text
    assert "no file says what a node has" in refusal(texts(name))


def test_scheduler_goes_before_what_is_assumed_of_files_of_one_node():
    found = imported("slurm-block.conf", "nccl-gb200-two-trays.xml")
    cluster = parse_cluster(found.text)
    assert (cluster.system, cluster.nodes, cluster.nvlink_domain_gpus) == ("gb200-nvl72", 36, 72)
    assert any(
        "2 hosts with 4 GPUs; not used, slurm-block.conf goes before it" in note for note in found.notes
    )


def test_schedulers_that_contradict_are_refused_and_an_option_decides():
    files = texts("slurm-tree.conf", "slurm-topology.yaml")
    assert "nodes: contradiction" in refusal(files, system="dgx-h100")
    found = import_cluster(files, system="dgx-h100", nodes=20)
    assert parse_cluster(found.text).nodes == 20
    assert any("32 nodes on 2 switches; not used, --nodes goes before it" in note for note in found.notes)


def test_text_that_is_too_long_is_refused_before_it_is_read():
    assert "longer than 2 million characters" in refusal({"f": "SwitchName=a Nodes=b\n" * 200_000})


def test_scan_of_a_rail_optimized_fabric_says_all_but_the_gpu():
    found = imported("ibnetdiscover-rails.txt", "topo-4-nic-legend-dgx-h100.txt", system="dgx-h100")
    cluster = parse_cluster(found.text)
    assert (cluster.nodes, cluster.nics_per_node) == (4, 8)
    assert cluster.fabric.kind == "rail-optimized"
    assert (cluster.fabric.link.name, cluster.fabric.switch) == ("infiniband-ndr-400", "quantum-2-qm9700")
    # 32 ports of nodes over 16 up-links of the same rate.
    assert cluster.fabric.oversubscription == 2
    assert any("not counted as nodes, they have few ports: login1 (1)" in note for note in found.notes)
    assert any("gpu002 mlx5_5 [1] - MF0;leaf5:MQM9700/U1 [3] at 2xNDR" in note for note in found.notes)
    assert "# note: ibnetdiscover-rails.txt: degraded links of nodes" in found.text
    assert '  - {nics: "node 2 nic 5", rate: "200 Gbit/s"}  # gpu002 mlx5_5 [1]' in found.text
    assert cluster.node_bytes_per_s == pytest.approx(0.5 * 8 * 50e9)


def test_port_of_a_scan_that_is_missing_is_told_by_its_name():
    text = texts("ibnetdiscover-rails.txt").popitem()[1]
    kept = [each for each in text.split("\n\n") if '\nCa\t1 "H-a088c20300010003"' not in each]
    lines = [line for line in "\n\n".join(kept).splitlines() if "gpu001 mlx5_3" not in line]
    found = import_cluster({"f": "\n".join(lines)}, system="dgx-h100")
    assert '{nics: "node 1 nic 3", missing: true}  # gpu001 mlx5_3 1 has no link' in found.text
    assert parse_cluster(found.text).node_bytes_per_s == pytest.approx(0.5 * 7 * 50e9)


def test_slow_links_are_a_note_where_the_document_counts_otherwise():
    for options in ({"nodes": 8}, {"link": "infiniband-hdr-200"}):
        found = imported("ibnetdiscover-rails.txt", system="dgx-h100", **options)
        assert "changes:" not in found.text.replace("changes: the", "")
        assert any("1 slow or missing NIC not written as changes" in note for note in found.notes)


def test_scan_of_a_leaf_spine_fabric_names_the_degraded_link():
    found = imported("iblinkinfo-leaf-spine.txt", system="azure-nd-a100-v4")
    cluster = parse_cluster(found.text)
    assert (cluster.nodes, cluster.fabric.kind, cluster.fabric.oversubscription) == (6, "leaf-spine", 1)
    assert (cluster.fabric.link.name, cluster.fabric.switch) == ("infiniband-hdr-200", "quantum-qm8700")
    assert any("node5 mlx5_0 [1] - MF0;leaf1:MQM8700/U1 [3] at 4xEDR" in note for note in found.notes)
    assert any(
        "1 port of a host; azure-nd-a100-v4 has 8 NICs and goes before it" in note for note in found.notes
    )


@pytest.mark.parametrize("system", ["dgx-h100", "dgx-b200", "dgx-b300", "gb200-nvl72"])
def test_links_slower_than_the_nics_of_the_named_system_are_a_contradiction(system):
    said = refusal(texts("iblinkinfo-leaf-spine.txt"), system=system)
    assert "a node has 1 link of 200 Gbit/s (infiniband-hdr-200), but" in said
    assert "or give --link" in said
    found = imported("iblinkinfo-leaf-spine.txt", system=system, link="infiniband-hdr-200")
    assert parse_cluster(found.text).fabric.link.name == "infiniband-hdr-200"


def test_scan_of_one_switch_is_told_apart():
    cluster = cluster_of("iblinkinfo-lines.txt", system="dgx-h100")
    assert (cluster.nodes, cluster.fabric.kind) == (2, "single-switch")


def test_rails_without_spines_are_rail_only():
    lines = [f'Switch\t65 "S-a{rail}"\t# "leaf{rail}" enhanced port 0 lid {rail} lmc 0' for rail in range(2)]
    ports = [
        f'[{node}]\t"H-b{rail}{node}"[1](b)\t# "n{node} mlx5_{rail}" lid 9 4xNDR'
        for rail in range(2)
        for node in range(4)
    ]
    adapters = [f'Ca\t1 "H-b{rail}{node}"\t# "n{node} mlx5_{rail}"' for rail in range(2) for node in range(4)]
    text = "\n".join([lines[0], *ports[:4], lines[1], *ports[4:], *adapters])
    cluster = parse_cluster(import_cluster({"f": text}, system="dgx-h100").text)
    assert (cluster.nodes, cluster.fabric.kind, cluster.fabric.switch) == (4, "rail-only", "quantum-2-qm9700")


def test_instance_type_of_kubernetes_names_the_system():
    found = imported("kubernetes-aws-p5.json")
    cluster = parse_cluster(found.text)
    assert (cluster.system, cluster.nodes, cluster.nics_per_node) == ("aws-p5", 16, 32)
    assert "node: aws-p5  # kubernetes-aws-p5.json: instance type p5.48xlarge" in found.text


def test_kubernetes_labels_say_the_gpu_of_the_node():
    found = imported("kubernetes-gb200.json")
    cluster = parse_cluster(found.text)
    assert (cluster.system, cluster.nodes, cluster.nvlink_domain_gpus) == ("gb200-nvl72", 36, 72)
    assert any("2 NVLink domains of 18 nodes" in note for note in found.notes)


def test_nodes_that_are_not_alike_are_left_out_and_said():
    text = (DATA / "kubernetes-aws-p5.json").read_text()
    found = import_cluster(
        {"f": text.replace('"nvidia.com/gpu.count": "8"', '"nvidia.com/gpu.count": "4"', 3)}
    )
    assert parse_cluster(found.text).nodes == 13
    assert "nodes: 13  # assumed: f: 13 nodes of 17" in found.text
    assert any("not counted" in note and "3 with 4 NVIDIA-H100-80GB-HBM3" in note for note in found.notes)


def test_parts_of_gpus_are_said():
    text = (DATA / "kubernetes-aws-p5.json").read_text().replace("80GB-HBM3", "80GB-HBM3-MIG-1g.10gb")
    assert any("the GPUs are cut into parts" in note for note in import_cluster({"f": text}).notes)


def test_list_without_a_gpu_says_so():
    text = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}'
    assert any(
        "1 node, none with a GPU" in note for note in import_cluster({"f": text}, system="dgx-h100").notes
    )


def test_topograph_says_how_many_nodes_there_are():
    cluster = cluster_of("topograph-labels.json", "nccl-dgx-h100.xml")
    assert (cluster.system, cluster.nodes) == ("dgx-h100", 12)


def test_neighbours_of_a_node_say_the_rate_and_that_it_is_ethernet():
    found = imported("lldp-roce.json", "topo-4-nic-legend-dgx-h100.txt", system="dgx-h100", nodes=8)
    cluster = parse_cluster(found.text)
    assert (cluster.nodes, cluster.fabric.link.name, cluster.fabric.switch) == (8, "roce-400", None)
    assert any("not counted: eno1" in note for note in found.notes)


def test_matrix_and_neighbours_of_the_same_node_are_one_node():
    assert cluster_of("lldp-roce.json", "topo-4-nic-legend-dgx-h100.txt", system="dgx-h100").nodes == 1


def matrix_of(gpus, cell, nics=0, nic_cell="SYS"):
    names = [*(f"GPU{place}" for place in range(gpus)), *(f"NIC{place}" for place in range(nics))]
    rows = ["\t" + "\t".join(names)]
    for one in names:
        cells = []
        for other in names:
            of_gpus = one.startswith("GPU") and other.startswith("GPU")
            cells.append("X" if one == other else cell(int(one[3:]), int(other[3:])) if of_gpus else nic_cell)
        rows.append("\t".join([one, *cells]))
    return "\n".join(rows)


def test_pairs_with_a_bridge_are_domains_of_two():
    text = matrix_of(4, lambda one, other: "NV12" if one // 2 == other // 2 else "SYS", nics=1)
    cluster = parse_cluster(import_cluster({"f": text}).text)
    assert (cluster.system, cluster.nvlink_domain_gpus) == ("azure-nc-a100-v4", 2)


def test_link_of_nvlink_that_is_down_is_said_and_does_not_hide_the_system():
    text = matrix_of(8, lambda one, other: "NV10" if 3 in (one, other) else "NV12", nics=8, nic_cell="PXB")
    found = import_cluster({"f": text})
    assert parse_cluster(found.text).system == "dgx-a100"
    assert any("10 to 12 NVLinks; some are down" in note for note in found.notes)


def test_nic_for_storage_that_looks_like_the_others_does_not_hide_the_system():
    text = matrix_of(8, lambda *_: "NV12", nics=9)
    found = import_cluster({"f": text})
    assert parse_cluster(found.text).system == "dgx-a100"
    assert any("9 NICs in the matrix; dgx-a100 has 8 NICs and goes before it" in note for note in found.notes)


def test_mesh_in_a_matrix_and_in_xml_agree():
    xml = "".join(
        f'<pci busid="{gpu}" vendor="0x10de" device="0x20b2"><gpu dev="{gpu}">'
        + "".join(
            f'<nvlink target="{peer}" count="4" tclass="0x030200"/>' for peer in range(4) if peer != gpu
        )
        + "</gpu></pci>"
        for gpu in range(4)
    )
    files = {"m": matrix_of(4, lambda *_: "NV4"), "x": f"<system><cpu>{xml}</cpu></system>"}
    cluster = parse_cluster(import_cluster(files).text)
    assert (cluster.gpu.name, cluster.gpus_per_node, cluster.nvlink_domain_gpus) == ("a100-sxm-80gb", 4, 4)


def test_outline_of_a_cloud_counts_devices_and_asks_for_the_system():
    devices = "".join(
        f'<pci busid="g{place}" class="0x030200"/><pci busid="n{place}" class="0x020700"/>'
        for place in range(8)
    )
    files = {"f": f"<system><cpu>{devices}</cpu></system>"}
    assert "8 GPUs and 8 NICs fit nodes of several GPUs" in refusal(files)
    found = import_cluster(files, system="azure-nd-h100-v5")
    assert parse_cluster(found.text).nics_per_node == 8
    assert any("the file lists PCI devices only" in note for note in found.notes)


def test_nvlinks_that_lead_to_no_device_of_the_file_leave_the_domain_open():
    devices = "".join(
        f'<pci busid="{gpu}" vendor="0x10de" device="0x20b5"><gpu dev="{gpu}">'
        f'<nvlink target="{gpu}" count="12" tclass="0x030200"/></gpu></pci>'
        for gpu in range(4)
    )
    files = {"x": f"<system><cpu>{devices}</cpu></system>"}
    files["m"] = matrix_of(4, lambda one, other: "NV12" if one // 2 == other // 2 else "SYS")
    assert parse_cluster(import_cluster(files).text).nvlink_domain_gpus == 2


def test_switch_that_cannot_carry_the_link_of_an_option_is_left_out():
    cluster = cluster_of("iblinkinfo-leaf-spine.txt", system="dgx-h100", link="infiniband-ndr-400")
    assert (cluster.fabric.link.name, cluster.fabric.switch) == ("infiniband-ndr-400", "quantum-2-qm9700")


def test_interfaces_without_a_rate_count_and_slow_ones_do_not():
    text = (DATA / "lldp-roce.json").read_text().replace("400GBaseCR4", "unknown")
    found = import_cluster({"f": text}, system="dgx-h100")
    cluster = parse_cluster(found.text)
    assert cluster.fabric.link.name == "infiniband-ndr-400"
    assert "link: infiniband-ndr-400  # assumed: the link of dgx-h100" in found.text
    assert any("not counted: eno1" in note for note in found.notes)
    assert any("8 interfaces on 8 switches" in note for note in found.notes)
    slow = (DATA / "lldp-roce.json").read_text().replace("400GBaseCR4", "1000BaseT")
    assert any(
        "not counted: eno1, eth0" in note for note in import_cluster({"f": slow}, system="dgx-h100").notes
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"apiVersion": "v1", "items": [], "kind": "List", "metadata": {"resourceVersion": ""}}',
        '{"apiVersion": "v1", "kind": "List", "items": []}',
        '{"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": null}',
        '{"kind": "NodeList", "apiVersion": "v1"}',
    ],
)
def test_a_kubernetes_list_without_nodes_is_called_so(text):
    said = refusal({"nodes.json": text}, system="dgx-h100")
    assert "nodes.json: items: is a Kubernetes list without nodes" in said


def test_slow_port_of_a_topology_is_a_change_of_the_node_of_its_file():
    whole = texts("nccl-dgx-h100.xml").popitem()[1]
    before, slow, after = whole.partition('speed="400000"')
    slow = before + slow.replace("400000", "200000") + after
    found = import_cluster({"a": whole, "b": slow})
    assert '- {nics: "node 1 nic 0", rate: "200 Gbit/s"}  # mlx5_0 at 200 Gbit/s' in found.text
    cluster = parse_cluster(found.text)
    assert (cluster.system, cluster.node_bytes_per_s) == ("dgx-h100", pytest.approx(0.5 * 8 * 50e9))
    scan = texts("ibnetdiscover-rails.txt")
    both = import_cluster({"b": slow} | scan)
    # The scan knows its nodes and goes before what one file leads to assume.
    assert both.text.count("{nics:") == 1
    assert '{nics: "node 2 nic 5"' in both.text
