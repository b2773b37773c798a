"""`nvidia-smi topo -m` in four generations of its format, and what is no such matrix."""

from pathlib import Path

import pytest

from linkwise.errors import DocumentError
from linkwise.readers.topology_matrix import is_topology_matrix, parse_topology_matrix

DATA = Path(__file__).parents[1] / "data/imports"
PAIR = "\tGPU0\tGPU1\tNIC0\nGPU0\tX\tNV4\tPIX\nGPU1\tNV4\tX\tSYS\nNIC0\tPIX\tSYS\tX\n"


@pytest.mark.parametrize(
    ("name", "nics", "nvlinks", "nic_cell"),
    [
        ("topo-1-plain-dgx1-v100.txt", 4, 1, "PIX"),
        ("topo-2-affinity-dgx-a100.txt", 10, 12, "PXB"),
        ("topo-3-gpu-numa-id-l40s.txt", 2, 0, "PIX"),
        ("topo-4-nic-legend-dgx-h100.txt", 9, 18, "PIX"),
    ],
)
def test_each_generation_is_read(name, nics, nvlinks, nic_cell):
    text = (DATA / name).read_text()
    assert is_topology_matrix(text)
    matrix = parse_topology_matrix(text)
    assert matrix.gpus == tuple(f"GPU{place}" for place in range(8))
    assert len(matrix.nics) == nics
    assert matrix.nvlinks("GPU0", "GPU1") == nvlinks
    assert matrix.cells["GPU0", matrix.nics[0]] == nic_cell
    assert "SOC" not in matrix.cells.values()


def test_legend_names_the_devices_of_nics():
    matrix = parse_topology_matrix((DATA / "topo-4-nic-legend-dgx-h100.txt").read_text())
    assert matrix.nic_devices["NIC0"] == "mlx5_0"
    assert matrix.nic_devices["NIC8"] == "mlx5_bond_0"


def test_lines_around_the_matrix_do_not_matter():
    matrix = parse_topology_matrix(f"$ nvidia-smi topo -m\n{PAIR}\n$ exit\n")
    assert (matrix.gpus, matrix.nics) == (("GPU0", "GPU1"), ("NIC0",))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("GPU1\tNV4\tX", "GPU1\tNV2\tX", "t:3: GPU1 to GPU0 is NV2, but GPU0 to GPU1 is NV4 (line 2)"),
        ("NIC0\tPIX\tSYS\tX\n", "", "NIC0 has a column but no row; the matrix is cut short"),
        ("NIC0\tPIX\tSYS\tX\n", "NIC0\tPIX\n", "t:4: NIC0 has 1 cells and the header 3 devices"),
        ("GPU1\tNV4\tX\tSYS", "GPU0\tX\tNV4\tPIX", "t:3: GPU0 has a row here and in line 2; keep one"),
        ("GPU0\tGPU1\tNIC0", "GPU0\tGPU0\tNIC0", "t:1: the header names GPU0 more than once"),
        ("GPU0\tX\tNV4", "GPU0\tX\tOK", "t:2: 'OK' joins GPU0 and GPU1: topo -p2p prints such words"),
        ("GPU0\tX\tNV4", "GPU0\tX\tFAST", "'FAST' joins GPU0 and GPU1: X, NV#, PIX"),
        ("GPU0\tX\tNV4", "GPU0\tX\tX", "GPU0 and GPU1 have X; X stands for a device and itself only"),
        ("GPU0\tX\tNV4", "GPU7\tX\tNV4", "t:2: GPU7 has a row but no column; the header is cut or wrapped"),
    ],
)
def test_fault_is_told_with_its_line(old, new, said):
    with pytest.raises(DocumentError) as told:
        parse_topology_matrix(PAIR.replace(old, new), path="t")
    assert said in str(told.value)


def test_all_faults_are_told_at_once():
    with pytest.raises(DocumentError) as told:
        parse_topology_matrix(PAIR.replace("NV4\tPIX", "NV4\tBAD").replace("NIC0\tPIX", "NIC0\tWORSE"))
    assert len(told.value.faults) == 2


def test_huge_matrix_is_refused():
    with pytest.raises(DocumentError, match="300 devices are more than the 256"):
        parse_topology_matrix("\t".join(["", *(f"GPU{place}" for place in range(300))]))


def test_text_without_header_is_refused():
    with pytest.raises(DocumentError, match="no header line"):
        parse_topology_matrix("GPU0\tX\n")
