"""Measured runs beside what their cluster should give: verdicts and causes."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from linkwise import catalog
from linkwise.calibrate.collective_runs import read_collectives
from linkwise.cluster import load_cluster
from linkwise.errors import InputError
from linkwise.network.cluster_setting import setting_of
from linkwise.network.collective_causes import suspects
from linkwise.network.collective_comparison import Verdict, compare_run, compare_times
from linkwise.network.collective_time import collective_times
from linkwise.readers.nccl_tests import parse_nccl_tests

DATA = Path(__file__).parents[1] / "data"
LARGE = np.array([2.0**power for power in range(20, 34)])


def read(name):
    return parse_nccl_tests((DATA / "nccl_tests" / name).read_text(encoding="utf-8"), path=name)


def compared(operation, cluster, name, **asked):
    return compare_run(operation, load_cluster(cluster), read(name), **asked)


@pytest.mark.parametrize(
    ("operation", "cluster", "name"),
    [
        ("all_reduce", "dgx-h100:2", "all-reduce-2n.txt"),
        ("all_gather", "dgx-a100:1", "all-gather-old.txt"),
        ("broadcast", "dgx-h100:1", "broadcast.txt"),
        ("all_to_all", "dgx-h100:1", "alltoall.json"),
    ],
)
def test_a_healthy_run_is_as_it_should_be(operation, cluster, name):
    found = compared(operation, cluster, name)
    assert found.verdict is Verdict.AS_IT_SHOULD_BE
    assert found.causes == ()
    assert found.ratio == pytest.approx(1.0, abs=0.05)


def test_one_nic_of_eight_is_named():
    found = compared("all_reduce", "dgx-h100:2", "all-reduce-one-nic.txt")
    assert found.verdict is Verdict.BELOW
    assert found.causes[0].cause == "1 of 8 NICs, or each at 12.5 % (PCIe: ACS, wrong slot)"
    assert found.causes[0].ratio == pytest.approx(found.ratio[-1], rel=0.05)
    assert found.causes[0].explained > 0.9


def test_sockets_are_named_though_large_messages_are_inside_the_interval():
    found = compared("all_reduce", "dgx-h100:2", "all-reduce-sockets.txt")
    assert found.verdict is Verdict.BELOW
    assert found.causes[0].cause == "sockets (TCP) instead of RDMA on the same NICs"


def test_small_sizes_alone_tell_nothing():
    assert compared("all_reduce", "dgx-h100:2", "tiny.txt").verdict is Verdict.CANNOT_TELL


@pytest.mark.parametrize("name", ["dgx-h100:2", "dgx-h100:1", "dgx-a100:4"])
@pytest.mark.parametrize("operation", ["all_reduce", "all_gather", "all_to_all"])
def test_each_suspect_that_shows_is_named_first_for_its_own_times(name, operation):
    cluster = load_cluster(name)
    setting = setting_of(cluster)
    expected = collective_times(operation, setting, LARGE).time_s
    for one in suspects(operation, setting, gpu=cluster.gpu, nics=8):
        time_s = collective_times(operation, one.setting, LARGE).time_s
        found = compare_times(operation, setting, LARGE, time_s, gpu=cluster.gpu, nics=8)
        if found.verdict is Verdict.BELOW:
            assert found.causes[0].explained == pytest.approx(1.0)
            assert found.causes[0].ratio == pytest.approx(expected[-1] / time_s[-1])


def test_what_nothing_explains_has_no_cause():
    cluster = load_cluster("dgx-h100:1")
    setting = setting_of(cluster)
    time_s = collective_times("all_reduce", setting, LARGE).time_s * 300
    found = compare_times("all_reduce", setting, LARGE, time_s, gpu=cluster.gpu, nics=8)
    assert (found.verdict, found.causes) == (Verdict.BELOW, ())


def test_a_run_faster_than_its_cluster_cannot_be_told():
    cluster = load_cluster("dgx-h100:1")
    setting = setting_of(cluster)
    time_s = collective_times("all_reduce", setting, LARGE).time_s / 3
    found = compare_times("all_reduce", setting, LARGE, time_s, gpu=cluster.gpu, nics=8)
    assert found.verdict is Verdict.CANNOT_TELL
    assert "faster" in found.reason


def test_what_is_odd_in_a_log_is_noted():
    run = read("all-gather-old.txt")
    run = replace(
        run, rows=(*run.rows[:-1], replace(run.rows[-1], wrong=3.0)), unfinished_lines=1, ranks=None, hosts=()
    )
    notes = "\n".join(compare_run("all_gather", load_cluster("dgx-a100:1"), run).notes)
    for words in (
        "lists no devices",
        "does not name",
        "unfinished rows of the log: 1",
        "wrong results: 1",
        "A100-SXM4",
    ):
        assert words in notes


def test_the_median_of_repeated_sizes_and_the_faster_place_count():
    run = read("broadcast.txt")
    out, inside = run.rows[-2:]
    rows = [replace(out, time_s=time_s) for time_s in (3e-3, 1e-3, 9e-3)] + [replace(inside, time_s=4e-3)]
    found = compare_run("broadcast", load_cluster("dgx-h100:1"), replace(run, rows=tuple(rows)))
    assert found.measured_s.tolist() == [3e-3]


@pytest.mark.parametrize(
    ("operation", "cluster", "name", "gpus", "message"),
    [
        ("all_gather", "dgx-h100:2", "all-reduce-2n.txt", None, "of all_reduce_perf, not of all_gather"),
        ("all_reduce", "dgx-h100:2", "all-reduce-2n.txt", 8, "the log has 16 GPUs"),
        ("all_reduce", "dgx-h100:1", "all-reduce-2n.txt", None, "more than the 8"),
        ("all_reduce", "gb200-nvl72:18", "all-reduce-2n.txt", None, "16 GPUs on 2 hosts"),
        ("all_reduce", "dgx-a100:1", "all-gather-old.txt", None, "busbw over algbw is 0.875"),
    ],
)
def test_a_log_of_something_else_is_refused(operation, cluster, name, gpus, message):
    with pytest.raises(InputError, match=message):
        compared(operation, cluster, name, gpus=gpus)


def test_published_misconfigured_runs_are_below_and_healthy_ones_are_not():
    runs_path = DATA / "collective_runs.csv"
    with runs_path.open(encoding="utf-8", newline="") as file:
        described = {row["run_id"]: row for row in csv.DictReader(file)}
    below = {"healthy": 0, "misconfigured": 0}
    count = dict.fromkeys(below, 0)
    for run in read_collectives(DATA / "collectives.csv", runs_path).runs:
        row = described[run.identity]
        has_choice = any(word in row["env"] for word in ("NVLS", "NCCL_ALGO"))
        if run.status not in below or (run.status == "healthy" and has_choice):
            continue
        sizes = np.unique(run.size_bytes)
        time_s = np.array([np.min(run.time_s[run.size_bytes == size]) for size in sizes])
        gpu = catalog.gpu(row["gpu"].split(" (")[0])
        nics = int(float(row["nics_per_node"] or 0))
        found = compare_times(run.operation, run.best, sizes, time_s, gpu=gpu, nics=nics)
        count[run.status] += 1
        below[run.status] += found.verdict is Verdict.BELOW
    assert count["misconfigured"] >= 16
    assert below["misconfigured"] == count["misconfigured"]
    assert below["healthy"] <= 0.02 * count["healthy"]
