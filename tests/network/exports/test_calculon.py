"""The system file of Calculon: by the rules of its reader, and read by Calculon itself where it is there."""

import importlib
import json

import pytest

from linkwise.cluster import load_cluster
from linkwise.cluster.reading import parse_cluster
from linkwise.errors import InputError
from linkwise.network.exports import EXPORTS


def system(cluster):
    return json.loads(EXPORTS["calculon"](load_cluster(cluster)))


def check_curve(curve):
    """Hold a list of [amount, efficiency] to what processor.py and memory.py ask for."""
    amounts = [amount for amount, _ in curve]
    assert amounts == sorted(set(amounts), reverse=True)
    assert amounts[-1] == 0
    assert all(0 < efficiency <= 1 for _, efficiency in curve)


@pytest.mark.parametrize("cluster", ["dgx-h100:32", "dgx-a100:1", "gb200-nvl72:36", "aws-p5:4", "mi300x-8:2"])
def test_file_keeps_the_rules_of_calculon(cluster):
    found = system(cluster)
    assert set(found["matrix"]) == set(found["vector"]) <= {"float8", "float16", "bfloat16", "float32"}
    for processor in (*found["matrix"].values(), *found["vector"].values()):
        assert processor["tflops"] > 0
        check_curve(processor["gflops_efficiency"])
    for memory in (found["mem1"], found["mem2"]):
        assert memory["GBps"] > 0
        check_curve(memory["MB_efficiency"])
    assert found["processing_mode"] in ("roofline", "no_overlap")
    for network in found["networks"]:
        assert set(network) == {
            "bandwidth",
            "efficiency",
            "size",
            "latency",
            "ops",
            "must_be_filled",
            "processor_usage",
        }
        assert network["bandwidth"] > 0
        assert 0 < network["efficiency"] <= 1
        assert 0 <= network["processor_usage"] < 1
        assert set(network["ops"]) == {"p2p", "reduce_scatter", "all_gather", "all_reduce"}
        assert network["ops"]["p2p"][1] is None
        assert all(offset is not None for name, (_, offset) in network["ops"].items() if name != "p2p")


def test_levels_of_a_superpod():
    found = system("dgx-h100:32")
    # H100 SXM data sheet: 989 TFLOP/s dense, NVLink 450 GB/s one direction; 400 Gbit/s for each GPU.
    assert found["matrix"]["bfloat16"]["tflops"] == 989
    assert [network["bandwidth"] for network in found["networks"]] == [450, 50]
    assert [network["size"] for network in found["networks"]] == [8, 256]
    assert [network["must_be_filled"] for network in found["networks"]] == [True, False]


def test_slow_nics_lower_the_level_of_the_fabric(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(
        "linkwise: cluster/1\nnodes: 4\nnode: dgx-h100\nchanges: [{nics: node 0 nic 0, fraction: 0.5}]\n"
    )
    assert system(str(path))["networks"][1]["bandwidth"] == 25


def test_cluster_without_a_network_is_refused():
    alone = parse_cluster("linkwise: cluster/1\nnodes: 1\nnode: dgx-h100\ngpus: 1\n")
    with pytest.raises(InputError, match="there is no network to model"):
        EXPORTS["calculon"](alone)


def test_calculon_reads_it():
    try:
        reader = importlib.import_module("calculon.system")
    except ImportError:
        pytest.skip("Calculon is not installed; no package index has it (github.com/calculon-ai/calculon)")
    there = reader.System(system("dgx-a100:4"))
    there.set_datatype("bfloat16")
    assert there.num_networks == 2
    # A ring of 8 sends 2 x 7/8 of the buffer.
    first = there.get_network(0)
    rate = 300e9 * system("dgx-a100:4")["networks"][0]["efficiency"]
    assert first.time("all_reduce", 2**30, 8) == pytest.approx(1.75 * 2**30 / rate, rel=0.01)
