"""Scores of measured collectives: files, rules and flags."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from linkwise.calibrate.collective_accuracy import collective_accuracy
from linkwise.calibrate.collective_fit import (
    fit_collectives,
    fitted_factors,
    free_collective_constants,
    operation_factors,
    training_runs,
)
from linkwise.calibrate.collective_runs import read_collectives
from linkwise.calibrate.collective_score import (
    predict_collectives,
    rule_of,
    score_collectives,
    slowdown,
    validate_collectives,
)
from linkwise.errors import DocumentError, InputError
from linkwise.network.collective_interval import interval_factors
from linkwise.network.setting import OPERATIONS, Launch
from linkwise.readers.faults import MOST_FAULTS
from linkwise.report.collective_page import accuracy_entry, collective_page

DATA = Path(__file__).parent.parent / "data"
RUN = {
    "run_id": "mine",
    "source": "me:log.txt",
    "gpu": "H100 SXM 80GB",
    "n_nodes": "2",
    "n_gpus": "16",
    "nccl_version": "2.27.3",
    "collective": "all_reduce",
    "dtype": "float",
    "tool": "nccl-tests",
    "env": "",
    "status": "healthy",
    "intra_kind": "nvswitch",
    "inter_kind": "infiniband",
    "nics_per_node": "8",
    "nic_gbit_per_s": "400",
    "nvlink_domain_gpus": "8",
    "ranks_per_thread": "",
    "nics_used_per_node": "",
    "notes": "",
}
ROWS = ({"run_id": "mine", "in_place": "0", "size_bytes": "1073741824", "time_us": "4500"},)


def written(path, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, fieldnames=list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return path


@pytest.fixture
def read(tmp_path):
    """Return a function that reads runs, each with the same rows."""

    def read_them(*runs, rows=ROWS):
        return read_collectives(written(tmp_path / "rows.csv", rows), written(tmp_path / "runs.csv", runs))

    return read_them


def one_run(read, rows=ROWS, **changes):
    return read(RUN | changes, rows=rows).runs[0]


def test_a_run_becomes_a_setting(read):
    run = one_run(read)
    group = run.setting.group
    assert (group.ranks, group.domains, group.generation, group.release) == (16, 2, "hopper", (2, 27))
    assert group.network_bytes_per_s == pytest.approx(400e9)
    assert (run.setting.network, run.setting.launch) == ("infiniband", Launch.OWN_THREADS)


def test_a_rack_is_one_domain_and_a_box_is_none(read):
    rack = one_run(read, gpu="GB300", n_nodes="4", inter_kind="nvlink", nvlink_domain_gpus="72")
    assert rack.setting.group.domains == 1
    blank = one_run(read, gpu="GB300", n_nodes="4", inter_kind="nvlink", nvlink_domain_gpus="")
    assert blank.setting.group.domains == 1
    apart = one_run(read, n_gpus="2", nvlink_domain_gpus="8")
    assert apart.setting.group.domains == 2


def test_variables_of_a_run_are_applied_but_not_to_what_is_expected(read):
    run = one_run(read, env='NCCL_ALGO=Ring NCCL_NET="AWS Libfabric" NCCL_NVLS_ENABLE=0')
    assert run.setting.limits.algorithms == {"ring"}
    assert "nvls_tree" in run.best.limits.algorithms


def test_disabled_rdma_is_sockets_and_expected_to_be_rdma(read):
    run = one_run(read, env="NCCL_IB_DISABLE=1")
    assert (run.setting.network, run.best.network) == ("sockets", "infiniband")


def test_unused_nics_count_in_what_is_expected(read):
    run = one_run(read, nics_used_per_node="1")
    assert run.setting.group.network_bytes_per_s == pytest.approx(50e9)
    assert run.best.group.network_bytes_per_s == pytest.approx(400e9)


@pytest.mark.parametrize(
    ("changes", "launch"),
    [
        ({"ranks_per_thread": "8"}, Launch.ONE_THREAD),
        ({"ranks_per_thread": "1"}, Launch.OWN_THREADS),
        ({"dtype": "torch bench"}, Launch.FRAMEWORK),
        ({"notes": "PyTorch benchmark"}, Launch.FRAMEWORK),
    ],
)
def test_launch_is_read_from_the_columns(read, changes, launch):
    assert one_run(read, **changes).setting.launch is launch


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"gpu": "Abacus"}, "GPU not in the catalogue"),
        ({"n_gpus": "1"}, "fewer than two GPUs"),
        ({"collective": "gather"}, "no model of the collective gather"),
    ],
)
def test_what_cannot_be_scored_is_counted_with_its_reason(read, changes, reason):
    measured = read(RUN | changes)
    assert measured.runs == ()
    assert measured.skipped == {reason: 1}
    assert score_collectives([], skipped=measured.skipped).rows == 1


def test_another_library_is_no_row_of_the_bar(read):
    measured = read(RUN | {"tool": "osu"})
    assert (measured.runs, measured.skipped, measured.other_library_rows) == ((), {}, 1)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"time_us": "soon"}, "time_us: 'soon' is not a positive number"),
        ({"time_us": "-3"}, "time_us: '-3' is not a positive number"),
        ({"size_bytes": "nan"}, "size_bytes: 'nan' is not a positive number"),
        ({"size_bytes": "1 MiB"}, "size_bytes: '1 MiB' is not a positive number"),
        ({"in_place": "maybe"}, "in_place: 'maybe' is neither 1"),
        ({"in_place": ""}, "in_place: '' is neither 1"),
        ({"n_gpus": "8"}, "n_gpus: '8' is not that of the run, '16' in --runs"),
        ({"collective": "broadcast"}, "collective: 'broadcast' is not that of the run"),
        ({"run_id": "other"}, "in no row of --runs"),
    ],
)
def test_wrong_cells_are_told_with_their_line(read, row, words):
    with pytest.raises(DocumentError, match=words) as caught:
        read(RUN, rows=(ROWS[0] | row,))
    assert ":2" in str(caught.value)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("n_nodes", "two", "not a whole number from 1"),
        ("n_nodes", "0", "not a whole number from 1"),
        ("n_nodes", "16.5", "not a whole number from 1"),
        ("n_nodes", "32", "16 GPUs are fewer than the 32 nodes"),
        ("n_gpus", "-4", "not a whole number from 0"),
        ("n_gpus", "7.5", "not a whole number from 0"),
        ("nic_gbit_per_s", "fast", "not a rate"),
        ("nic_gbit_per_s", "inf", "not a rate"),
        ("nic_gbit_per_s", "0.5", "not a rate"),
        ("nics_per_node", "nan", "not a whole number"),
        ("nics_used_per_node", "1.5", "not a whole number"),
        ("ranks_per_thread", "many", "not a whole number"),
        ("nvlink_domain_gpus", "1e99", "not a whole number"),
        ("status", "ill", "unknown status 'ill'; valid: healthy, misconfigured, unknown"),
        ("status", "helthy", "did you mean healthy?"),
        ("status", "", "unknown status ''"),
        ("inter_kind", "pigeon", "unknown inter_kind 'pigeon'; valid: none, nvlink, infiniband"),
        ("inter_kind", "infinband", "did you mean infiniband?"),
        ("intra_kind", "nvswich", "did you mean nvswitch?"),
        ("tool", "stopwatch", "unknown tool 'stopwatch'; valid: nccl-tests, rccl-tests, osu"),
        ("tool", "nccl-test", "did you mean nccl-tests"),
        ("env", "NCCL_ALGO=Foo", "unknown word of NCCL_ALGO 'foo'; valid: ring, tree"),
        ("env", "NCCL_PROTO=^LL129", "unknown word of NCCL_PROTO 'll129'; did you mean ll128"),
        ("nccl_version", "banana", "'banana' is no release"),
    ],
)
def test_wrong_cells_of_a_run_are_told_with_line_column_and_what_is_valid(read, column, value, words):
    with pytest.raises(DocumentError) as caught:
        read(RUN | {"run_id": "good"}, RUN | {column: value})
    (fault,) = caught.value.faults
    assert (fault.path[-8:], fault.line) == ("runs.csv", 3)
    assert fault.key == ("n_gpus" if "fewer" in words else column)
    assert words in fault.message


@pytest.mark.parametrize(
    "changes",
    [
        {"env": "NCCL_ALGO=^Ring,CollnetDirect NCCL_PROTO=LL128"},
        {"env": "NCCL_ALGO=allreduce:tree,nvls_tree;broadcast:ring"},
        {"nccl_version": ""},
        {"nccl_version": "RCCL (ROCm 6.4.1)"},
        {"nccl_version": "n/a (Open MPI)"},
        {"intra_kind": "pcie-shm"},
        {"n_gpus": "16.0"},
        {"nics_per_node": "0", "nic_gbit_per_s": "0"},
    ],
)
def test_cells_that_are_as_described_pass(read, changes):
    assert one_run(read, **changes).identity == "mine"


def test_a_surplus_cell_is_told(read, tmp_path):
    read(RUN)
    runs = tmp_path / "runs.csv"
    heading, row = runs.read_text(encoding="utf-8").splitlines()
    runs.write_text(f"{heading}\n{row},odd\n", encoding="utf-8")
    with pytest.raises(DocumentError, match=r"runs.csv:2: 20 cells, but 19 columns"):
        read_collectives(tmp_path / "rows.csv", runs)


def test_faults_are_grouped_by_run_and_capped(read, tmp_path):
    read(RUN)
    rows = tmp_path / "rows.csv"
    written(rows, [ROWS[0] | {"run_id": f"r{number % 30}"} for number in range(3000)])
    with pytest.raises(DocumentError) as caught:
        read_collectives(rows, tmp_path / "runs.csv")
    first, *_, last = map(str, caught.value.faults)
    assert first.endswith("rows.csv:2: run_id: 'r0' is in no row of --runs (100 rows, the first here)")
    assert last.endswith("10 more faults of this kind are not printed")
    assert len(caught.value.faults) == MOST_FAULTS + 1


def test_empty_cells_of_the_network_are_said(read):
    assert read(RUN).assumed == ()
    blank = {"nics_per_node": "", "nic_gbit_per_s": ""}
    assert read(RUN | blank).assumed == (
        "mine: nic_gbit_per_s is empty, assumed: 400 Gbit/s",
        "mine: nics_per_node is empty, assumed: a NIC for each GPU",
    )
    alone = {"n_nodes": "1", "n_gpus": "8", "inter_kind": "none"}
    assert read(RUN | blank | alone).assumed == ()


def test_a_run_that_stands_twice_is_told(read):
    with pytest.raises(DocumentError, match="stands twice"):
        read(RUN, RUN)


def test_blank_nics_are_one_of_400_gbit_per_gpu(read):
    run = one_run(read, nics_per_node="", nic_gbit_per_s="")
    assert run.setting.group.network_bytes_per_s == pytest.approx(8 * 50e9)


def test_missing_columns_are_told(tmp_path):
    runs = written(tmp_path / "runs.csv", [{"run_id": "mine"}])
    with pytest.raises(InputError, match=r"columns are missing: source, gpu"):
        read_collectives(written(tmp_path / "rows.csv", ROWS), runs)
    with pytest.raises(InputError, match="no such file"):
        read_collectives(tmp_path / "none.csv", written(tmp_path / "runs.csv", [RUN]))


def test_a_floor_that_nothing_explains_is_set_apart(read):
    rows = tuple(ROWS[0] | {"size_bytes": str(size), "time_us": "2000"} for size in (1024, 2**20))
    late = predict_collectives([one_run(read, rows=rows)])[0]
    assert rule_of(late) == "unexplained latency floor"
    assert rule_of(replace(late, time_s=late.run.time_s)) is None


@pytest.mark.parametrize(("time_us", "rule"), [("7", "back-to-back broadcasts"), ("15", None)])
def test_a_broadcast_faster_than_its_hops_is_set_apart(read, time_us, rule):
    # Eight GPUs of a node: NCCL's own latency is 6.6 + 7 x 0.6 us.
    rows = (ROWS[0] | {"size_bytes": "8", "time_us": time_us}, ROWS[0])
    node = {"collective": "broadcast", "n_nodes": "1", "n_gpus": "8", "inter_kind": "none"}
    assert rule_of(predict_collectives([one_run(read, rows=rows, **node)])[0]) == rule


def test_a_run_of_small_sizes_gets_no_verdict(read):
    assert slowdown(one_run(read, rows=(ROWS[0] | {"size_bytes": "1024"},))) is None


def test_the_faster_of_in_place_and_out_of_place_is_judged(read):
    rows = (ROWS[0], ROWS[0] | {"in_place": "1", "time_us": "45000"})
    assert slowdown(one_run(read, rows=rows)) == pytest.approx(slowdown(one_run(read)))


def test_a_slow_run_is_flagged_and_a_healthy_one_is_not(read):
    slow = one_run(read, rows=(ROWS[0] | {"time_us": "18000"},), status="misconfigured")
    score = score_collectives(predict_collectives([slow, one_run(read)]), skipped={})
    assert score.flagged.misconfigured_fraction == 1.0
    assert score.flagged.healthy_fraction == 0.0
    assert score.rows == 1


def test_groups_are_those_of_the_contract(read):
    score = score_collectives(predict_collectives([one_run(read)]), skipped={})
    assert {(group.key, group.name) for group in score.by} == {
        ("size_class", "from_1_mib"),
        ("reach", "multi_node_from_1_mib"),
        ("run", "mine"),
        ("collective", "all_reduce"),
        ("inter_kind", "infiniband"),
    }


def test_free_constants_lie_in_their_range():
    free = free_collective_constants()
    assert 10 <= len(free) <= 20
    assert all(one.low < one.start < one.high for one in free)


def test_a_fit_recovers_times_that_a_known_constant_makes():
    measured = read_collectives(DATA / "collectives.csv", DATA / "collective_runs.csv")
    runs = [run for run in training_runs(measured.runs) if run.setting.group.generation == "hopper"][:12]
    made = [replace(one.run, time_s=one.time_s) for one in predict_collectives(runs)]
    fitted = fit_collectives(made)
    again = predict_collectives(made, constants=fitted)
    error = np.concatenate([one.error_fraction for one in again])
    assert np.max(np.abs(error)) < 0.12
    assert set(fitted_factors(again)) == {"one_domain", "domains"}


def test_intervals_of_an_operation_are_those_of_its_own_rows():
    shipped = read_collectives(DATA / "collectives.csv", DATA / "collective_runs.csv").runs
    made = [one for one in predict_collectives(shipped) if one.run.status == "healthy"]
    every = operation_factors(made)
    sizes = np.array([8.0, 2.0**21, 2.0**25, 2.0**30])
    for operation in OPERATIONS:
        rows = sum(len(one.time_s) for one in made if one.run.operation == operation)
        assert (operation in every) is (rows >= 100)
        for reach in ("one_domain", "domains"):
            pooled, own = interval_factors(reach, sizes), interval_factors(reach, sizes, operation=operation)
            assert np.array_equal(pooled, own) or rows >= 100
            assert np.all((own[0] <= 1.0) & (own[1] >= 1.0))


def test_coverage_of_each_operation_is_near_the_stated_share():
    score = validate_collectives(DATA / "collectives.csv", DATA / "collective_runs.csv")
    for group in score.by:
        if group.key == "collective" and group.errors.scored >= 100:
            assert 0.85 <= group.errors.interval_coverage_fraction <= 0.97, group.name


def test_figures_quoted_in_sample_are_those_of_the_shipped_model():
    score = validate_collectives(DATA / "collectives.csv", DATA / "collective_runs.csv")
    now, kept = accuracy_entry(score), collective_accuracy()["in_sample"]
    for one, other in zip(now["groups"], kept["groups"], strict=True):
        assert (one["name"], one["scored"]) == (other["name"], other["scored"])
        assert one["median_abs_error_fraction"] == pytest.approx(other["median_abs_error_fraction"], abs=2e-4)
        assert one["bias_fraction"] == pytest.approx(other["bias_fraction"], abs=1e-3)


def test_the_page_is_what_the_kept_figures_give():
    page = (DATA.parent.parent / "docs" / "collectives.md").read_text(encoding="utf-8")
    assert page == collective_page(collective_accuracy())


def test_left_out_is_no_better_than_in_sample():
    parts = collective_accuracy()
    seen, unseen = (
        next(one for one in parts[part]["groups"] if one["name"] == "from_1_mib")
        for part in ("in_sample", "left_out")
    )
    assert seen["median_abs_error_fraction"] < unseen["median_abs_error_fraction"] < 0.07


def test_gpus_without_peer_access_are_slower_but_expected_to_have_it(read):
    run = one_run(read, gpu="RTX 4090", n_nodes="1", n_gpus="8", intra_kind="pcie-shm", inter_kind="none")
    assert run.setting.through_host
    assert not run.best.through_host
    times = [predict_collectives([replace(run, setting=one)])[0].time_s[0] for one in (run.setting, run.best)]
    assert times[0] > 1.25 * times[1]
