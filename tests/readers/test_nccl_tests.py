"""What nccl-tests prints and writes as JSON."""

import json
from pathlib import Path

import pytest

from linkwise.errors import DocumentError
from linkwise.readers.nccl_tests import parse_nccl_tests

DATA = Path(__file__).parents[1] / "data/nccl_tests"
HEADING = "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n"
ROW = "1048576 262144 float sum -1 50.1 20.9 36.6 0 48.2 21.8 38.1 0\n"


def read(name):
    return parse_nccl_tests((DATA / name).read_text(encoding="utf-8"), path=name)


def test_a_table_between_lines_of_nccl_and_behind_prefixes_of_mpirun_is_read():
    run = read("all-reduce-2n.txt")
    assert (run.program, run.ranks, run.hosts) == ("all_reduce", 16, ("gpu001", "gpu002"))
    assert (run.gpu, run.gpus_per_thread, run.version) == ("NVIDIA H100 80GB HBM3", 1, "2.27")
    assert len(run.rows) == 2 * 31
    assert (run.rows[-1].size_bytes, run.rows[-1].in_place) == (2**33, True)
    assert run.rows[-1].algbw_bytes_per_s == pytest.approx(
        run.rows[-1].size_bytes / run.rows[-1].time_s, 0.01
    )


def test_labels_of_srun_are_dropped():
    run = read("all-reduce-sockets.txt")
    assert (run.ranks, len(run.rows)) == (16, 2 * 28)


@pytest.mark.parametrize(
    "prefix",
    [
        "[1,0]<stdout>:",
        "[1,0]<stdout> ",
        " 3: ",
        "(head, rank=0, pid=38) [1,0]<stdout>:",
        "(head, pid=38) ",
        "nccl-test-launcher-x7x2p: ",
        "[pod/nccl-test-launcher/mpi] 2025-03-18T09:10:02.118264Z [1,0]<stdout>:",
    ],
)
def test_prefixes_of_launchers_are_dropped(prefix):
    rank = "#   Rank  0 Pid 106347 on  nid000013 device  0 [0000:c9:00.0] Device 738c\n"
    text = "# nThread: 1 nGpus: 8 minBytes: 8\n" + rank + HEADING + ROW
    run = parse_nccl_tests("".join(prefix + line for line in text.splitlines(keepends=True)))
    assert (run.ranks, run.hosts, run.gpus_per_thread, len(run.rows)) == (1, ("nid000013",), 8, 2)


def test_an_old_table_with_errors_and_without_redop_is_read():
    run = read("all-gather-old.txt")
    assert (run.program, run.ranks, run.gpu) == (None, 8, "A100-SXM4-40GB")
    assert {row.wrong for row in run.rows} == {None}


def test_a_table_with_root_is_read():
    assert read("broadcast.txt").program == "broadcast"


def test_json_counts_all_gpus_of_a_process_that_lists_its_first():
    run = read("alltoall.json")
    assert (run.program, run.ranks, run.gpus_per_thread, run.version) == ("alltoall", 8, 8, "2.27")
    assert [row.wrong for row in run.rows[:2]] == [0.0, None]


def test_json_that_lists_every_gpu_is_not_counted_twice():
    document = json.loads((DATA / "alltoall.json").read_text(encoding="utf-8"))
    (first,) = document["config"]["devices"]
    document["config"]["devices"] = [{**first, "rank": rank} for rank in range(8)]
    assert parse_nccl_tests(json.dumps(document)).ranks == 8


def test_a_table_of_iterations_and_a_timestamp_is_read_by_its_heading():
    half = "time algbw busbw #wrong i_min i_max i_p99 i_cv%"
    heading = f"# size count type redop root {half} {half} timestamp\n"
    cells = "50.1 20.9 36.6 0 49 52 51 1.5"
    row = f"1048576 262144 float sum -1 {cells} {cells.replace('50.1', '47.0')} 2026-05-04 10:11:12\n"
    assert [each.time_s for each in parse_nccl_tests(heading + row).rows] == pytest.approx([50.1e-6, 47e-6])


def test_rows_without_a_heading_are_read():
    (first, second) = parse_nccl_tests(ROW).rows
    assert (first.time_s, second.time_s) == pytest.approx((50.1e-6, 48.2e-6))


def test_unchecked_results_and_empty_sizes_are_told_apart():
    text = HEADING + ROW.replace(" 0 ", " N/A ").replace(" 0\n", " N/A\n")
    assert {row.wrong for row in parse_nccl_tests(text).rows} == {None}
    empty = "0 0 float sum -1 4.1 0.00 0.00 0 4.0 0.00 0.00 0\n"
    assert len(parse_nccl_tests(HEADING + empty + ROW).rows) == 2


@pytest.mark.parametrize("words", range(3, 13))
def test_the_row_at_which_a_run_was_stopped_is_counted(words):
    run = parse_nccl_tests(HEADING + ROW + " ".join(ROW.split()[:words]))
    assert (len(run.rows), run.unfinished_lines) == (2, 1)


def test_rows_without_a_reduction_under_a_heading_that_has_it_are_read():
    assert len(parse_nccl_tests(HEADING + ROW.replace("sum -1 ", "")).rows) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no row with a size and times"),
        ("# Avg bus bandwidth : 1\n", "no row with a size and times"),
        (HEADING + ROW + HEADING + ROW, "f:3: a second table begins here, the first in line 1"),
        (HEADING + ROW.replace("20.9", "NCCL"), "f:2: 'NCCL' is not a number"),
        (HEADING + ROW.replace("50.1", "0.00"), "not above zero"),
        (HEADING + ROW.replace("50.1", "nan"), "'nan' is not a number of zero and more"),
        (HEADING + ROW.replace("sum", "sum x y z"), "more cells than the table has columns"),
        (HEADING.replace("time", "cputime") + ROW, "f:1: these are times of the CPU alone"),
        (HEADING.replace("time", "delay") + ROW, "f:1: the heading is not that of nccl-tests"),
        (
            "# size count type time algbw busbw\n1 1 float 1 1 1\n",
            "f:1: the heading is not that of nccl-tests",
        ),
        (
            "all_reduce_perf -b 8\nall_gather_perf -b 8\n" + ROW,
            "f:2: names all_reduce_perf (line 1) and all_gather_perf; give one run",
        ),
        ('{"results": {}}', "no list of results"),
        ('{"results": [3]}', "f: results.0: is no result with a size"),
        ('{"results": [{"size": 8, "out_of_place": {"cpu_time": 3}}]}', "CPU alone"),
        ('{"results": [{"size": 8, "out_of_place": {"time": "x"}}]}', "results.0.out_of_place: 'x'"),
        ('{"results": []}', "no row with a size and times"),
        ('{"results": [', "cut short"),
    ],
)
def test_faults_are_told_with_their_place(text, message):
    with pytest.raises(DocumentError) as told:
        parse_nccl_tests(text, path="f")
    assert message in str(told.value)


def test_several_groups_at_once_are_refused():
    line = "#  Rank  {0} Group  {0} Pid  1 on n1 device  {0} [0000:07:00] NVIDIA H100 80GB HBM3\n"
    with pytest.raises(DocumentError, match="2 groups"):
        parse_nccl_tests(line.format(0) + line.format(1) + ROW)
