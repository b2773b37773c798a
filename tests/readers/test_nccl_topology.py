"""NCCL's topology XML, and XML that is not."""

from pathlib import Path

import pytest

from linkwise.errors import DocumentError
from linkwise.readers.nccl_topology import is_nccl_topology, parse_nccl_topology

DATA = Path(__file__).parents[1] / "data/imports"
GPU = '<pci busid="b{0}" vendor="0x10de" device="0x2330"><gpu dev="{0}" sm="90"/></pci>'
TWO = f'<system version="1">\n<cpu numaid="0">\n{GPU.format(0)}\n{GPU.format(1)}\n</cpu>\n</system>\n'


def test_node_with_nvswitch_and_infiniband_is_read():
    text = (DATA / "nccl-dgx-h100.xml").read_text()
    assert is_nccl_topology(text)
    topology = parse_nccl_topology(text)
    assert len(topology.gpus) == len(topology.nets) == 8
    gpu, net = topology.gpus[0], topology.nets[0]
    assert (gpu.pci_id, sum(gpu.nvlinks.values()), gpu.switched) == ("10de:2330", 18, True)
    # 400,000 Mbit/s are 50 GB/s.
    assert (net.name, net.bytes_per_s, net.pci_id, net.infiniband) == ("mlx5_0", 50e9, "15b3:1021", True)


def test_outline_of_pci_devices_is_read_where_the_file_says_no_more():
    devices = "".join(
        f'<pci busid="g{place}" class="0x030200"/><pci busid="n{place}" class="0x020700"/>'
        for place in range(4)
    )
    topology = parse_nccl_topology(f'<system version="1"><cpu>{devices}</cpu></system>')
    assert [gpu.is_outline for gpu in topology.gpus] == [True] * 4
    assert [(net.name, net.infiniband, net.bytes_per_s) for net in topology.nets][:1] == [("n0", True, None)]


def test_hosts_of_one_nvlink_domain_are_told_apart():
    topology = parse_nccl_topology((DATA / "nccl-gb200-two-trays.xml").read_text())
    assert [gpu.host for gpu in topology.gpus] == ["0xabc"] * 4 + ["0xabd"] * 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TWO[:-10], "x:6: not well-formed XML: no element found; the file is cut short"),
        (TWO.replace('busid="b1"', 'busid="b0"'), "x:4: the GPU 'b0' is here and in line 3; keep one"),
        (
            "<graphs version='1'/>",
            "the root <graphs> is NCCL's graph of channels; give the file of NCCL_TOPO_DUMP_FILE",
        ),
        ("<html><body/></html>", "the root <html> is not NCCL's topology (<system>)"),
        ('<system version="1"><cpu/></system>', "the topology has no GPU"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><system>&a;</system>', "has a document type (<!DOCTYPE)"),
        ("<system>" + "<pci>" * 100, "nested more than 64 deep"),
        ("<system>" + "<pci/>" * 60_000 + "</system>", "more than 50,000 elements"),
        ('<system><net speed="fast" name="a"/><gpu/></system>', "speed='fast' is not a whole number"),
        ("<system", "not well-formed XML"),
        ("<system>\x01</system>", "not well-formed XML"),
    ],
)
def test_fault_is_told(text, said):
    with pytest.raises(DocumentError) as told:
        parse_nccl_topology(text, path="x")
    assert said in str(told.value)
    assert "internal" not in str(told.value)
