"""The topology file of NCCL: as NCCL reads it (where its library is installed), and as XML."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from linkwise import catalog
from linkwise.cluster import load_cluster
from linkwise.errors import InputError
from linkwise.network.exports import EXPORTS


def _library():
    try:
        package = importlib.util.find_spec("nvidia.nccl")
    except ModuleNotFoundError:
        return None
    places = [] if package is None else list(package.submodule_search_locations or ())
    found = [path for place in places for path in Path(place).glob("lib/libnccl.so.*")]
    return found[0] if found else None


@pytest.fixture
def searched(tmp_path):
    """Return what NCCL makes of a system."""
    library = _library()
    if library is None:
        pytest.skip("the library of NCCL is not installed: pip install nvidia-nccl-cu12==2.32.3")
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed")

    def search(system):
        file = tmp_path / "topology.xml"
        file.write_text(EXPORTS["nccl-xml"](load_cluster(f"{system}:4")), encoding="utf-8")
        script = Path(__file__).with_name("nccl_search.py")
        line = [sys.executable, str(script), str(library), str(file)]
        done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=True)
        found = json.loads(done.stdout)
        if "ring" not in found:
            pytest.skip(f"NCCL {found['version']} is not 2.32, whose structs this test knows")
        return found

    return search


@pytest.mark.parametrize("system", ["dgx-a100", "dgx-h100", "dgx-b200"])
def test_nccl_plans_with_the_rates_of_the_catalogue(searched, system):
    found = searched(system)
    cluster = load_cluster(f"{system}:4")
    link = catalog.entry("nvlink", f"nvlink-{cluster.gpu.nvlink_generation}")
    planned = link.figure("nccl_link_bytes_per_s").value * link.figure("links").value / 1e9
    assert found["NVL"] == [pytest.approx(planned, rel=2e-3)]
    assert found["NET"] == [cluster.nic_bytes_per_s / 1e9]
    for graph in ("ring", "tree"):
        rate = found[graph]["channels"] * found[graph]["gigabytes_per_s"]
        assert 0.97 * planned <= rate <= 1.001 * planned


@pytest.mark.parametrize("system", ["dgx-a100", "dgx-h100", "dgx-b300"])
def test_a_node_has_its_gpus_and_nics_each_on_one_bus(system):
    cluster = load_cluster(f"{system}:2")
    root = fromstring(EXPORTS["nccl-xml"](cluster))
    assert [gpu.get("dev") for gpu in root.iter("gpu")] == [
        str(each) for each in range(cluster.gpus_per_node)
    ]
    nics = list(root.iter("net"))
    assert len(nics) == cluster.nics_per_node
    assert {net.get("speed") for net in nics} == {str(round(cluster.nic_bytes_per_s * 8e-6))}
    buses = [device.get("busid") for device in root.iter("pci")]
    assert len(set(buses)) == len(buses)


def test_gpus_without_nvswitch_are_refused():
    with pytest.raises(InputError, match="not known to be joined by NVSwitch"):
        EXPORTS["nccl-xml"](load_cluster("dgx-1-v100:2"))
