import numpy as np
import pytest

from linkwise.cluster import load_cluster
from linkwise.cluster.reading import parse_cluster
from linkwise.estimate import energy
from linkwise.figures import Basis

INLINE = "{gpu: h100-sxm, gpus_per_node: 8, nic: connectx-7, nics: 8, link: infiniband-ndr-400%s}"


def inline(power=""):
    return parse_cluster(f"linkwise: cluster/1\nnodes: 4\nnode: {INLINE % power}\n")


@pytest.mark.parametrize(
    ("cluster", "consumers", "consumer", "each_w", "basis"),
    [
        # 10.2 kW a DGX H100, 120 kW a GB200 NVL72 of 18 nodes; 700 W a GPU where a cloud says nothing.
        ("dgx-h100:32", 32, "node", 10200.0, Basis.ASSUMED),
        ("gb200-nvl72:36", 36, "node", 120000.0 / 18, Basis.DERIVED),
        ("aws-p5:2", 16, "GPU", 700.0, Basis.DATASHEET),
    ],
)
def test_power_draw_is_of_nodes_where_known_else_of_gpus(cluster, consumers, consumer, each_w, basis):
    draw = energy.power_draw(load_cluster(cluster))
    assert (draw.consumers, draw.consumer, draw.figure.basis) == (consumers, consumer, basis)
    assert draw.figure.value == pytest.approx(each_w)


def test_power_draw_is_what_a_described_node_states():
    draw = energy.power_draw(inline(", power_w: 9 kW"))
    assert (draw.consumers, draw.consumer, draw.figure.value) == (4, "node", 9000.0)
    assert energy.power_draw(inline()).consumer == "GPU"


def test_power_draw_counts_only_nodes_in_use():
    cluster = parse_cluster("linkwise: cluster/1\nnodes: 4\nnode: dgx-h100\ngpus: 12\n")
    assert energy.power_draw(cluster).consumers == 2


def test_power_draw_is_none_when_the_catalogue_has_no_power():
    assert energy.power_draw(load_cluster("vr-nvl144:1")) is None


def test_power_draw_says_what_it_leaves_out():
    # The switch of an AWS P5 is not known.
    words = energy.power_draw(load_cluster("aws-p5:2")).assumption
    assert "700 W (datasheet); the rest of its node" in words
    assert "the fabric is not counted: its switch is not known" in words
    assert energy.power_draw(load_cluster("aws-p5:2")).fabric.power_w is None


def test_power_draw_has_the_switches_and_cable_ends_of_the_fabric():
    draw = energy.power_draw(load_cluster("dgx-h100:32"))
    # 12 switches of 747 W; 256 + 512 ends at switches on 384 twin-port modules of 17 W, 256 of 9 W at NICs.
    assert draw.fabric.power_w == pytest.approx(12 * 747 + 384 * 17 + 256 * 9)
    assert "so does the fabric, 17.8 kW: 12 quantum-2-qm9700 of 747 W" in draw.assumption


def test_power_draw_of_a_fabric_is_the_share_of_the_nodes_in_use():
    text = "linkwise: cluster/1\nnodes: 32\nnode: dgx-h100\ngpus: %d\n"
    whole, half = (energy.power_draw(parse_cluster(text % gpus)).fabric for gpus in (256, 128))
    assert half.power_w == pytest.approx(whole.power_w / 2)
    assert "for 16 of its 32 nodes" in half.words


def test_power_draw_of_one_node_has_no_fabric():
    draw = energy.power_draw(load_cluster("dgx-h100:1"))
    assert (draw.fabric.power_w, draw.fabric.words) == (0.0, "there is no fabric between nodes")


def test_energy_of_a_step_is_power_times_time():
    # 32 x 10.2 kW and 3.6 kW of fabric for 10 s.
    node_w = energy.node_power_w.function(np.array([32.0]), np.array([10200.0]))
    power_w = energy.cluster_power_w.function(node_w, np.array([3600.0]))
    energy_j = energy.energy_j_per_step.function(power_w, np.array([10.0]))
    assert energy_j == pytest.approx(3.3e6)
    assert energy.energy_j_per_token.function(energy_j, np.array([1.65e6])) == pytest.approx(2.0)
