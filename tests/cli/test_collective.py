"""The verbs collective and validate collectives: what they print, and with which code they leave."""

import csv
import io
import json
from pathlib import Path

import pytest

from linkwise.cli.main import run
from linkwise.errors import ExitCode

DATA = Path(__file__).parent.parent / "data"
FILES = (str(DATA / "collectives.csv"), "--runs", str(DATA / "collective_runs.csv"))


def printed(capsys, *words):
    code = run(words)
    out, err = capsys.readouterr()
    assert code == ExitCode.DONE, err
    return out


def test_json_has_the_published_names(capsys):
    text = printed(
        capsys, "collective", "all_reduce", "dgx-h100:4", "--sizes", "1MiB:1GiB", "--format", "json"
    )
    result = json.loads(text)
    assert result["schema"] == "linkwise.collective/1"
    assert [row["size_bytes"] for row in result["rows"]] == [2**20 * 2**power for power in range(11)]
    for row in result["rows"]:
        assert row["time_low_s"] < row["time_s"] < row["time_high_s"]
        assert row["algbw_bytes_per_s"] == pytest.approx(row["size_bytes"] / row["time_s"])
        assert row["busbw_bytes_per_s"] == pytest.approx(row["algbw_bytes_per_s"] * 2 * 31 / 32)
        assert {"algorithm", "protocol"} <= set(row)


def test_the_default_is_all_sizes_of_nccl_tests(capsys):
    text = printed(capsys, "collective", "all_gather", "dgx-a100:1", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert (rows[0]["size_bytes"], rows[-1]["size_bytes"], len(rows)) == ("8", str(2**34), 32)


def test_table_prints_what_is_taken_for_granted(capsys):
    text = printed(capsys, "collective", "all_reduce", "dgx-h100:2", "--sizes", "8B,1GiB")
    for word in (
        "busbw [GB/s]",
        "nvls_tree",
        "1 GiB",
        "same moment",
        "routing adaptive",
        "times that of verbs",
    ):
        assert word in text


@pytest.mark.parametrize(
    "operation", ["alltoall", "all-to-all", "SendRecv", "reduce_scatter", "broadcast", "reduce"]
)
def test_spellings_of_nccl_tests_are_read(capsys, operation):
    assert "GB/s" in printed(capsys, "collective", operation, "dgx-h100:2", "--sizes", "1MiB")


def test_counts_and_networks_of_the_heading_are_readable(capsys):
    text = printed(capsys, "collective", "all_reduce", "aws-p4d:200000", "--sizes", "1GiB")
    assert "on 1,600,000 GPUs of aws-p4d:200000, 200,000 domains over efa-v1" in text


def test_a_forced_algorithm_is_the_only_one(capsys):
    words = ("--algorithm", "Ring", "--protocol", "simple", "--sizes", "8B:1MiB", "--format", "json")
    rows = json.loads(printed(capsys, "collective", "all_reduce", "dgx-h100:1", *words))["rows"]
    assert {(row["algorithm"], row["protocol"]) for row in rows} == {("ring", "simple")}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["all_reduc", "dgx-h100:2"], "did you mean all_reduce"),
        (["all_reduce", "dgx-h100:1", "--gpus", "1"], "at least two GPUs"),
        (["all_reduce", "dgx-h100:1", "--gpus", "9"], "more than the 8"),
        (["all_reduce", "dgx-h100:2", "--sizes", "1B:1e30GB"], "no size of a buffer"),
        (["all_reduce", "dgx-h100:2", "--sizes", "0B"], "no size of a buffer"),
        (["all_reduce", "dgx-h100:2", "--sizes", "1.5B"], "whole number"),
        (["all_reduce", "dgx-h100:2", "--sizes", "8GiB:8B"], "larger than the last"),
        (["all_reduce", "dgx-h100:2", "--sizes", ""], "--sizes: ''"),
        (["all_reduce", "dgx-h100:2", "--sizes", "1MiB,8B,1024KiB"], "1,048,576 bytes are given twice"),
        (["all_reduce", "dgx-h100:2", "--sizes", "8"], "--sizes"),
        (["all_reduce", "dgx-h100:2", "--sizes", ":"], "--sizes"),
        (["all_gather", "dgx-h100:2", "--algorithm", "tree"], "has no tree"),
        (["all_reduce", "dgx-a100:2", "--algorithm", "nvls"], "has no nvls"),
        (["all_reduce", "dgx-h100:2", "--algorithm", "rnig"], "ring"),
        (["all_reduce", "dgx-h100:2", "--protocol", "l128"], "ll128"),
        (["all_to_all", "dgx-h100:2", "--protocol", "ll"], "no effect"),
        (["all_reduce", "dgx-h10:2"], "dgx-h100"),
        (["all_reduce", "dgx-h100:2", "--compare", "no.log"], "no such file"),
        (["all_reduce", "dgx-h100:2", "--compare", "no.log", "--sizes", "8B"], "no effect with --compare"),
        (["all_reduce", "-", "--compare", "-"], "both be standard input"),
        (["all_reduce", "dgx-h100:2", "--compare", str(DATA / "collectives.md")], "no row with a size"),
        (["all_gather", "dgx-h100:2", "--compare", str(DATA / "nccl_tests/tiny.txt")], "not of all_gather"),
    ],
)
def test_wrong_input_is_told(capsys, words, message):
    assert run(["collective", *words]) == ExitCode.WRONG_INPUT
    out, err = capsys.readouterr()
    assert not out
    assert message in err


LOGS = DATA / "nccl_tests"


@pytest.mark.parametrize(
    ("operation", "log", "code", "words"),
    [
        ("all_reduce", "all-reduce-2n.txt", ExitCode.DONE, "As it should be"),
        ("all_reduce", "all-reduce-one-nic.txt", ExitCode.AGAINST, "1 of 8 NICs"),
        ("all_reduce", "tiny.txt", ExitCode.INCONCLUSIVE, "Cannot tell"),
    ],
)
def test_a_log_is_compared(capsys, operation, log, code, words):
    assert run(["collective", operation, "dgx-h100:2", "--compare", str(LOGS / log)]) == code
    out, err = capsys.readouterr()
    assert words in out
    assert "faster of in place and out of place" in out
    assert not err


def test_a_comparison_has_the_published_names(capsys):
    log = str(LOGS / "all-reduce-one-nic.txt")
    assert (
        run(["collective", "all_reduce", "dgx-h100:2", "--compare", log, "--format", "json"])
        == ExitCode.AGAINST
    )
    result = json.loads(capsys.readouterr().out)
    assert (result["schema"], result["verdict"]) == ("linkwise.collective/1", "below")
    assert set(result["causes"][0]) == {"cause", "ratio", "explained"}
    for row in result["rows"]:
        assert row["ratio"] == pytest.approx(row["time_s"] / row["measured_time_s"])
        assert row["measured_busbw_bytes_per_s"] == pytest.approx(row["busbw_bytes_per_s"] * row["ratio"])


def test_a_comparison_as_csv_has_the_measured_columns(capsys):
    log = str(LOGS / "broadcast.txt")
    rows = list(
        csv.DictReader(
            io.StringIO(
                printed(capsys, "collective", "broadcast", "dgx-h100:1", "--compare", log, "--format", "csv")
            )
        )
    )
    assert {"measured_time_s", "measured_busbw_bytes_per_s", "ratio", "inside"} <= set(rows[0])


def test_rows_without_a_log_have_no_measured_columns(capsys):
    words = ("collective", "all_reduce", "dgx-h100:1", "--sizes", "1MiB", "--format", "json")
    assert "measured" not in printed(capsys, *words)


def test_validation_has_the_published_names(capsys):
    result = json.loads(printed(capsys, "validate", "collectives", *FILES, "--format", "json"))
    assert result["schema"] == "linkwise.validate/1"
    assert result["rows"] == result["scored"] + sum(result["skipped"].values())
    assert {"median_abs_error_fraction", "mape_fraction", "bias_fraction", "within_25_fraction"} <= set(
        result
    )
    assert {group["key"] for group in result["by"]} == {
        "size_class",
        "reach",
        "run",
        "collective",
        "inter_kind",
    }
    assert {group["name"] for group in result["by"] if group["key"] == "size_class"} == {
        "under_1_mib",
        "from_1_mib",
    }
    assert {"misconfigured_fraction", "healthy_fraction"} <= set(result["flagged"])


def test_validation_prints_a_table_and_a_csv(capsys):
    table = printed(capsys, "validate", "collectives", *FILES)
    assert "misconfigured runs" in table
    assert "back-to-back broadcasts" in table
    rows = list(
        csv.DictReader(io.StringIO(printed(capsys, "validate", "collectives", *FILES, "--format", "csv")))
    )
    assert rows[0]["key"] == "all"


@pytest.mark.parametrize("form", ["table", "json"])
def test_validation_says_what_it_was_fitted_on(capsys, form):
    text = " ".join(printed(capsys, "validate", "collectives", *FILES, "--format", form).split())
    assert "fitted on the runs kept with this package" in text
    assert "with each source left out" in text
    assert "threshold was chosen on the same runs" in text


def test_validation_of_nothing_cannot_be_scored(capsys, tmp_path):
    runs = Path(FILES[2]).read_text(encoding="utf-8").splitlines()[:1]
    rows = Path(FILES[0]).read_text(encoding="utf-8").splitlines()[:1]
    for name, lines in (("rows.csv", rows), ("runs.csv", runs)):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = ["validate", "collectives", str(tmp_path / "rows.csv"), "--runs", str(tmp_path / "runs.csv")]
    assert run(words) == ExitCode.NOT_MEASURED
    assert "no row could be scored" in capsys.readouterr().err


def test_validation_without_the_runs_is_told(capsys):
    assert run(["validate", "collectives", FILES[0]]) == ExitCode.WRONG_INPUT
    assert "--runs" in capsys.readouterr().err


def test_measured_times_are_laid_over_the_model(capsys):
    log = str(DATA / "nccl_tests" / "all-reduce-2n.txt")
    asked = ("collective", "all_reduce", "dgx-h100:2", "--measured", log, "--sizes", "1GiB,3GiB,16GiB")
    result = json.loads(printed(capsys, *asked, "--format", "json"))
    assert [row["basis"] for row in result["rows"]] == ["measured", "interpolated", "scaled"]
    # 1 GiB: busbw 446.12 GB/s in the log.
    assert result["rows"][0]["busbw_bytes_per_s"] == pytest.approx(446.12e9, rel=1e-3)
    table = printed(capsys, *asked)
    assert "interpolated" in table
    assert "90 % interval" not in table.splitlines()[2]
    for words, says in (
        (("--compare", log), "--measured and --compare: give one"),
        (("--protocol", "ll"), "--protocol: no effect on times that were measured"),
    ):
        assert run((*asked, *words)) == ExitCode.WRONG_INPUT
        assert says in capsys.readouterr().err


def test_changes_of_nodes_that_take_part_count(capsys):
    there = str(Path(__file__).parents[2] / "examples" / "h100-256-changed.yaml")
    asked = ("collective", "all_gather", there, "--sizes", "1GiB", "--format", "json")
    all_nodes, first = (json.loads(printed(capsys, *asked, "--gpus", gpus)) for gpus in ("32", "24"))
    assert all_nodes["rows"][0]["busbw_bytes_per_s"] < 0.6 * first["rows"][0]["busbw_bytes_per_s"]
    assert any("0.5 of the rate of the NICs is left" in words for words in all_nodes["assumptions"])
    assert "changes: no NIC that takes part is changed" in first["assumptions"]


def test_validation_says_what_it_took_for_empty_cells(capsys):
    out = printed(capsys, "validate", "collectives", *FILES)
    assert "l40s-2n2g-ar: nic_gbit_per_s is empty, assumed: 400 Gbit/s" in out
