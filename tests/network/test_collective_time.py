"""The time of a collective: choice, launch, and what cannot be."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from linkwise.calibrate.collective_fit import measured_gpus_of
from linkwise.calibrate.collective_runs import read_collectives
from linkwise.catalog import gpu, names
from linkwise.cluster import cluster_from_shorthand
from linkwise.cluster.reading import parse_cluster
from linkwise.errors import InputError
from linkwise.nccl.communicator import Limits
from linkwise.network.cluster_setting import assumptions_of, setting_of
from linkwise.network.collective_constants import collective_constants, in_si
from linkwise.network.collective_interval import interval_factors, measured_gpus
from linkwise.network.collective_time import collective_times
from linkwise.network.links import borrowed_generation, is_behind_nic, local_links, network_kind
from linkwise.network.setting import OPERATIONS, WITH_CHOICE, Launch, bus_factor

DATA = Path(__file__).parent.parent / "data"
MIB = float(2**20)


def setting(text, gpus=None, **changes):
    return replace(setting_of(cluster_from_shorthand(text), gpus=gpus), **changes)


def seconds(operation, there, *sizes):
    return collective_times(operation, there, np.array(sizes, dtype=float)).time_s


@pytest.mark.parametrize(
    ("operation", "factor"),
    [
        ("all_reduce", 1.75),
        ("all_gather", 0.875),
        ("reduce_scatter", 0.875),
        ("all_to_all", 0.875),
        ("broadcast", 1.0),
        ("reduce", 1.0),
        ("send_recv", 1.0),
    ],
)
def test_bus_factor_of_eight_ranks_is_that_of_nccl_tests(operation, factor):
    assert bus_factor(operation, 8) == pytest.approx(factor)
    times = collective_times(operation, setting("dgx-h100:1"), np.array([MIB]))
    assert times.busbw_bytes_per_s == pytest.approx(factor * MIB / times.time_s)


def test_names_go_with_the_choice():
    times = collective_times("all_reduce", setting("dgx-h100:1"), np.array([8.0, 2**30]))
    assert [times.names[place] for place in times.choice] == [("ring", "ll"), ("nvls", "simple")]


def test_one_size_gives_what_it_gives_in_a_column():
    there, sizes = setting("dgx-b200:4"), 8.0 * 2.0 ** np.arange(31)
    column = seconds("all_reduce", there, *sizes)
    assert column == pytest.approx([seconds("all_reduce", there, size)[0] for size in sizes], rel=1e-12)


def test_one_thread_for_all_gpus_is_slower():
    there = setting("dgx-a100:1")
    slow = replace(there, launch=Launch.ONE_THREAD)
    assert seconds("all_reduce", slow, 8) - seconds("all_reduce", there, 8) == pytest.approx(18e-6, rel=1e-3)
    assert seconds("all_to_all", slow, 8) == pytest.approx(86e-6)


def test_timing_through_pytorch_adds_the_same_at_every_size():
    there = setting("dgx-h200:1")
    slow = replace(there, launch=Launch.FRAMEWORK)
    added = seconds("all_reduce", slow, 8, 2**30) - seconds("all_reduce", there, 8, 2**30)
    assert added == pytest.approx([22e-6, 22e-6])


def test_sockets_are_slower_than_verbs():
    there = setting("dgx-h100:2")
    sockets = replace(there, network="sockets")
    assert np.all(seconds("all_reduce", sockets, 8, 2**30) > seconds("all_reduce", there, 8, 2**30))


def test_racks_of_nvlink_are_one_domain():
    there = setting("gb200-nvl72:18")
    assert (there.group.ranks, there.group.domains, there.network) == (72, 1, "nvlink")


def test_nics_of_all_trays_of_a_rack_add_up():
    assert setting("gb200-nvl72:36").group.network_bytes_per_s == pytest.approx(18 * 4 * 50e9)


def test_hosts_without_nvlink_are_what_nccl_calls_nodes():
    there = setting("mgx-pcie-l40s-8:2")
    assert (there.group.domains, there.group.generation) == (2, "pcie")


def test_bridged_pairs_meet_over_pcie():
    assert setting("azure-nc-a100-v4:1").bridged
    pair = setting("azure-nc-a100-v4:1", gpus=2)
    assert not pair.bridged
    assert pair.group.generation == "ampere"


@pytest.mark.parametrize(
    ("text", "gpus", "words"),
    [
        ("dgx-h100:1", 1, "at least two GPUs"),
        ("dgx-h100:1", 9, "more than the 8"),
    ],
)
def test_a_wrong_number_of_gpus_is_told(text, gpus, words):
    with pytest.raises(InputError, match=words):
        setting(text, gpus=gpus)


def test_one_rank_has_no_collective():
    there = setting("dgx-h100:1")
    alone = replace(there, group=replace(there.group, ranks=1))
    with pytest.raises(InputError, match="at least two GPUs"):
        seconds("all_reduce", alone, 8)


def test_nothing_left_to_choose_says_what_there_is():
    limits = Limits(algorithms=frozenset({"nvls"}))
    with pytest.raises(InputError, match="there are: ring ll, ring ll128"):
        seconds("all_gather", setting("dgx-h100:1", limits=limits), 8)


def test_assumptions_name_synchrony_routing_latency_and_release():
    cluster = cluster_from_shorthand("aws-p5:2")
    words = " ".join(assumptions_of(cluster, setting_of(cluster), "all_reduce"))
    for part in ("same moment", "routing adaptive", "4.9 / 5 / 7 times", "tuning.cc"):
        assert part in words


def test_no_network_no_words_of_it():
    cluster = cluster_from_shorthand("dgx-h100:1")
    assert "routing" not in " ".join(assumptions_of(cluster, setting_of(cluster), "all_reduce")).replace(
        "routing of", ""
    )


def told(text, operation, **changes):
    cluster = cluster_from_shorthand(text)
    return " ".join(assumptions_of(cluster, setting_of(cluster, **changes), operation))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_who_chose_is_told_where_there_is_a_choice(operation):
    words = told("dgx-h100:2", operation)
    assert ("as NCCL chooses them by default" in words) is (operation in WITH_CHOICE)
    assert ("more bytes may take less time" in words) is (operation in WITH_CHOICE)
    assert ("nothing to choose" in words) is (operation not in WITH_CHOICE)


@pytest.mark.parametrize("operation", WITH_CHOICE)
@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"algorithms": frozenset({"ring"})}, "algorithm ring as asked for"),
        ({"protocols": frozenset({"ll"})}, "protocol ll as asked for"),
        (
            {"algorithms": frozenset({"ring"}), "protocols": frozenset({"ll"})},
            "algorithm ring and protocol ll as asked for",
        ),
    ],
)
def test_what_was_asked_for_is_not_said_to_be_chosen(operation, limits, words):
    found = told("dgx-h100:2", operation, limits=Limits(**limits))
    assert words in found
    assert "by default" not in found
    assert ("as NCCL chooses it" in found) is (len(limits) == 1)


def test_collisions_are_said_once():
    cluster = parse_cluster(
        "linkwise: cluster/1\nnodes: 16\nnode: dgx-h100\n"
        "fabric: {kind: fat-tree, routing: {ecmp: {queue_pairs: 4}}}\n"
    )
    lines = list(assumptions_of(cluster, setting_of(cluster), "all_reduce"))
    assert sum("routing ecmp, queue pairs of a connection: 4" in line for line in lines) == 1


def test_networks_are_written_as_links_are():
    assert "over efa-v1 takes" in told("aws-p4d:2", "all_reduce")


NVLINKED = [name for name in names("gpu") if gpu(name).nvlink_bytes_per_s]


@pytest.mark.parametrize("name", NVLINKED)
def test_only_generations_that_were_measured_stand_for_themselves(name):
    known, architecture = borrowed_generation(gpu(name)), gpu(name).architecture.lower()
    measured = architecture.startswith(("volta", "ampere", "hopper", "blackwell", "cdna2", "cdna3", "cdna4"))
    assert (known is None) is measured


def test_rubin_is_said_to_borrow_from_blackwell():
    assert "no collective of rubin (Rubin) was measured" in told("vr-nvl144:18", "all_reduce")
    assert "those of Blackwell, and so is the interval" in told("vr-nvl144:18", "all_reduce")
    assert "no collective" not in told("gb200-nvl72:18", "all_reduce")


def test_the_cap_of_large_domains_grows_with_their_nvlink():
    old, new = (
        seconds("all_reduce", setting(f"{name}:18"), 2.0**34)[0] for name in ("gb200-nvl72", "vr-nvl144")
    )
    assert new < 0.6 * old


@pytest.mark.parametrize("operation", OPERATIONS)
def test_more_gpus_than_were_measured_are_told(operation):
    few, many = (told("dgx-h100:64", operation, gpus=gpus) for gpus in (16, 512))
    most = measured_gpus(operation, "domains")
    assert (f"beyond the {most:,} GPUs" in many) is (most > 0)
    assert ("no run of" in many) is (most == 0)
    assert ("beyond the" in few) is (0 < most < 16)


def test_measured_gpus_are_those_of_the_runs_kept():
    runs = read_collectives(DATA / "collectives.csv", DATA / "collective_runs.csv").runs
    for operation, by_reach in measured_gpus_of(runs).items():
        for reach, most in by_reach.items():
            assert measured_gpus(operation, reach) == most


def test_each_peer_adds_to_the_latency_of_an_all_to_all():
    few, many, most = (seconds("all_to_all", setting(f"dgx-h100:{nodes}"), 8)[0] for nodes in (2, 128, 8192))
    assert many - few == pytest.approx(0.24e-6 * 1008)
    assert most - many == pytest.approx(0.24e-6 * 64512)


@pytest.mark.parametrize(
    ("protocol", "rate", "nics", "kind"),
    [
        ("efa", 12.5e9, 4, "efa_v1"),
        ("efa", 12.5e9, 32, "efa_v2"),
        ("efa", 25e9, 16, "efa_v3"),
        ("efa", 50e9, 8, "efa_v4"),
        ("tcpx", 25e9, 4, "tcpx"),
        ("tcpx", 25e9, 8, "tcpxo"),
        ("tcp", 12.5e9, 1, "sockets"),
        ("unknown", 50e9, 8, "infiniband"),
    ],
)
def test_network_kind(protocol, rate, nics, kind):
    assert network_kind(protocol, rate, nics) == kind


@pytest.mark.parametrize(
    ("name", "generation"),
    [
        ("v100-sxm2-16gb", "volta"),
        ("b300-sxm", "blackwell"),
        ("gb300", "blackwell"),
        ("mi300x", "amd"),
        ("rtx-4090", "pcie"),
    ],
)
def test_generation_of_a_gpu(name, generation):
    assert local_links(gpu(name), ranks_per_domain=8).generation == generation


def test_gpus_behind_the_switch_of_their_nic():
    links = local_links(gpu("rtx-pro-6000-blackwell-server"), ranks_per_domain=8)
    assert is_behind_nic(links, 50e9)
    assert not is_behind_nic(links, 25e9)


def test_every_constant_has_a_source_and_every_unit_is_known():
    for name, figure in collective_constants().items():
        assert figure.source, name
        assert figure.unit in ("1", "s", "s^0.5", "B/s", "B")
    assert in_si(8.4, "us") == pytest.approx(8.4e-6)


def test_intervals_hold_the_prediction_and_are_wider_over_a_network():
    sizes = np.array([8.0, MIB, 2.0**25, 2.0**33])
    (low, high), (far_low, far_high) = (interval_factors(reach, sizes) for reach in ("one_domain", "domains"))
    assert np.all((low < 1) & (high > 1) & (far_low < 1) & (far_high > 1))
    assert np.all(far_high / far_low > high / low)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_million_sizes_a_second(operation):
    from timeit import repeat

    there, sizes = setting("dgx-h100:4"), np.geomspace(8, 2.0**34, 200_000)
    assert min(repeat(lambda: collective_times(operation, there, sizes), number=1, repeat=5)) < 0.2
