"""NCCL's choice: its own constants, against values worked by hand from its formulas."""

import numpy as np
import pytest

from linkwise.nccl.choice import candidates, choice_table, tree_correction
from linkwise.nccl.communicator import Communicator, Limits, limits_of, release_of
from linkwise.nccl.constants import release_constants

HOPPER = {"generation": "hopper", "local_bytes_per_s": 370.8e9, "has_multicast": True}
KIB, MIB = 2**10, 2**20


def group(ranks, domains=1, network=0.0, **changes):
    return Communicator(ranks=ranks, domains=domains, network_bytes_per_s=network, **{**HOPPER, **changes})


def named(offered, algorithm, protocol):
    return next(one for one in offered if (one.algorithm, one.protocol) == (algorithm, protocol))


def chosen(operation, there, *sizes):
    table = choice_table(operation, there)
    taken = [table.offered[place] for place in table.choose(np.array(sizes, dtype=float))]
    return [(one.algorithm, one.protocol) for one in taken]


def test_ring_ll_of_eight_gpus_has_fourteen_hops():
    one = named(candidates("all_reduce", group(8)), "ring", "ll")
    assert one.latency_s == pytest.approx((6.6 + 14 * 0.6) * 1e-6)
    # Half the planned rate is above the cap of 141 GB/s; 8/14 makes algorithm bandwidth of it.
    assert one.bytes_per_s == pytest.approx(141e9 * 8 / 14)


@pytest.mark.parametrize(("nodes", "latency_us"), [(2, 30.8), (4, 40.8), (8, 50.8)])
def test_tree_ll_over_nodes_adds_ten_us_per_doubling(nodes, latency_us):
    # 6.8 + 2 (7 x 1.0 + log2(k) 5.0): over a network a local hop is at least the posting overhead of 1 us.
    one = named(candidates("all_reduce", group(8 * nodes, nodes, 400e9)), "tree", "ll")
    assert one.latency_s == pytest.approx(latency_us * 1e-6)


def test_one_hopper_node_goes_from_ll_to_nvls():
    small, large = chosen("all_reduce", group(8), 512 * KIB, 4 * MIB)
    assert small == ("ring", "ll")
    assert large == ("nvls", "simple")


def test_two_hopper_nodes_go_from_trees_to_nvls_trees():
    names = chosen("all_reduce", group(16, 2, 400e9), 8 * KIB, 2 * MIB, 256 * MIB)
    assert names == [("tree", "ll"), ("tree", "ll128"), ("nvls_tree", "simple")]


@pytest.mark.parametrize(("ranks", "has"), [(4, False), (5, True), (8, True)])
def test_nvls_from_five_hopper_gpus(ranks, has):
    assert any(one.algorithm == "nvls" for one in candidates("all_reduce", group(ranks))) is has


def test_blackwell_gathers_without_ll128():
    there = group(8, generation="blackwell", local_bytes_per_s=721.8e9)
    assert {one.protocol for one in candidates("all_gather", there)} == {"ll", "simple"}


def test_only_all_reduce_has_trees():
    assert {one.algorithm for one in candidates("reduce_scatter", group(16, 2, 400e9))} == {"ring"}


def test_early_releases_have_no_nvls_and_lower_base_latency():
    offered = candidates("all_reduce", group(8, release=(2, 8)))
    assert {one.algorithm for one in offered} == {"ring", "tree"}
    assert named(offered, "ring", "ll").latency_s == pytest.approx((3.6 + 14 * 0.47) * 1e-6)


@pytest.mark.parametrize(
    ("release", "series"), [(None, (2, 12)), ((2, 27), (2, 12)), ((2, 11), (2, 0)), ((1, 3), (2, 0))]
)
def test_constants_are_those_of_the_release(release, series):
    assert release_constants(release).since == series


def test_every_series_names_its_source():
    assert all("tuning.cc" in release_constants(release).source for release in (None, (2, 8)))


def test_tree_correction_dips_at_medium_sizes():
    assert min(tree_correction(None, "ll")) == pytest.approx(0.4)
    assert tree_correction(None, "ll")[0] == tree_correction(None, "ll")[-1] == 1.0


@pytest.mark.parametrize(
    ("variables", "algorithms", "protocols"),
    [
        ({}, {"ring", "tree", "nvls", "nvls_tree"}, {"ll", "ll128", "simple"}),
        ({"NCCL_ALGO": "Ring"}, {"ring"}, {"ll", "ll128", "simple"}),
        ({"NCCL_ALGO": "^NVLS,NVLSTree"}, {"ring", "tree"}, {"ll", "ll128", "simple"}),
        ({"NCCL_NVLS_ENABLE": "0"}, {"ring", "tree"}, {"ll", "ll128", "simple"}),
        ({"NCCL_PROTO": "Simple,LL"}, {"ring", "tree", "nvls", "nvls_tree"}, {"ll", "simple"}),
        ({"NCCL_ALGO": "rnig"}, {"ring", "tree", "nvls", "nvls_tree"}, {"ll", "ll128", "simple"}),
    ],
)
def test_variables_limit_the_choice(variables, algorithms, protocols):
    assert limits_of(variables) == Limits(algorithms=frozenset(algorithms), protocols=frozenset(protocols))


def test_a_limit_leaves_only_what_it_names():
    limits = Limits(algorithms=frozenset({"ring"}), protocols=frozenset({"simple"}))
    assert len(candidates("all_reduce", group(16, 2, 400e9), limits)) == 1


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("2.27.3", (2, 27)),
        ("2.8.4", (2, 8)),
        ("2.30", (2, 30)),
        ("RCCL", None),
        ("", None),
        ("n/a (Open MPI 4)", None),
    ],
)
def test_release_is_read_from_a_version(text, release):
    assert release_of(text) == release
