"""The topology file of NCCL: as NCCL reads it (where its library is installed), and as XML."""

import importlib.util
import json
import re
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


@pytest.mark.parametrize("system", ["dgx-2", "dgx-a100", "dgx-h100", "dgx-b200", "dgx-b300"])
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


@pytest.mark.parametrize("system", catalog.names("system"))
def test_a_node_is_told_of_nvswitch_only_where_the_catalogue_has_no_other_topology(system):
    topology = catalog.entry("system", system).text.get("topology")
    form = catalog.gpu(catalog.system(system).gpu).scale_up_form
    try:
        text = EXPORTS["nccl-xml"](load_cluster(f"{system}:72"))
    except InputError:
        return
    assert topology is None
    assert form == "switch or mesh"
    processors = {(cpu.get("arch"), cpu.get("vendor")) for cpu in fromstring(text).iter("cpu")}
    is_grace = catalog.system(system).gpu.startswith(("gb", "gh"))
    assert processors == {("arm64", "ARM") if is_grace else ("x86_64", "GenuineIntel")}


@pytest.mark.parametrize(
    ("system", "sm"),
    [
        ("dgx-2", "70"),
        ("dgx-a100", "80"),
        ("dgx-h100", "90"),
        ("gb200-nvl72", "100"),
        ("dgx-b300", "103"),
        ("gb300-nvl72", "103"),
    ],
)
def test_compute_capability_is_that_of_the_gpu(system, sm):
    root = fromstring(EXPORTS["nccl-xml"](load_cluster(f"{system}:18")))
    assert {gpu.get("sm") for gpu in root.iter("gpu")} == {sm}


def test_devices_have_the_names_of_their_drivers():
    def names(system):
        root = fromstring(EXPORTS["nccl-xml"](load_cluster(f"{system}:2")))
        return [net.get("name") for net in root.iter("net")]

    assert names("dgx-h100") == [f"mlx5_{each}" for each in range(8)]
    assert all(re.fullmatch(r"rdmap\d+s0", name) for name in names("aws-p5"))
    assert len(set(names("aws-p5"))) == 32


@pytest.mark.parametrize("system", ["dgx-1-v100", "aws-p3dn", "gh200-4", "azure-nc-a100-v4", "mi300x-8"])
def test_gpus_without_nvswitch_are_refused(system):
    with pytest.raises(InputError, match="not known to be joined by NVSwitch"):
        EXPORTS["nccl-xml"](load_cluster(f"{system}:2"))


def test_a_gpu_whose_compute_capability_is_not_known_is_refused():
    with pytest.raises(InputError, match="compute capability of rubin is not known"):
        EXPORTS["nccl-xml"](load_cluster("vr-nvl144:18"))


def test_a_node_of_one_gpu_is_refused(tmp_path):
    document = tmp_path / "one.yaml"
    document.write_text(
        "linkwise: cluster/1\nnodes: 4\nnode: {gpu: a40, gpus_per_node: 1, nvlink_domain_gpus: 1, "
        "nic: connectx-6, nics: 1, nic_bytes_per_s: 100 Gbit/s}\nfabric: {kind: leaf-spine, link: roce-100}\n",
        encoding="utf-8",
    )
    with pytest.raises(InputError, match="a node has one a40"):
        EXPORTS["nccl-xml"](load_cluster(str(document)))
