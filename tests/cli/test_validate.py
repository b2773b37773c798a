"""The verb validate: what it prints, what it writes, with which code it leaves."""

import csv
import io
import json
from pathlib import Path

import pytest

from linkwise.cli.main import run
from linkwise.errors import ExitCode

DATA = Path(__file__).parent.parent / "data" / "training.csv"
_TWO = """\
id,source_year,framework,framework_family,layers,hidden,heads,kv_heads,ffn,vocab,gated_mlp,moe_experts,moe_topk,seq,gpu,\
gpus_per_node,n_gpus,inter_link,inter_gbps_per_node,tp,pp,vpp,cp,ep,dp,zero_stage,micro_batch,global_batch,precision,\
recompute,step_time_s,assumed,note
MINE-1,2024,Megatron-DeepSpeed,megatron,24,2048,16,16,8192,51200,0,,,1024,A100-SXM-80GB,8,8,,,2,1,,1,1,4,0,1,16,fp16,,0.5,vocab,"a, b"
MINE-2,2024,Megatron-DeepSpeed,megatron,24,2048,16,16,8192,51200,0,,,1024,Abacus,8,8,,,2,1,,1,1,4,0,1,16,fp16,full,0.5,,
"""


@pytest.fixture
def two(tmp_path):
    """Return a file with one row that can be scored and one on a GPU nobody knows."""
    path = tmp_path / "two.csv"
    path.write_text(_TWO, encoding="utf-8")
    return path


def _result(capsys, *words):
    code = run(["validate", "training", *map(str, words), "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


def test_json_has_the_published_names(capsys):
    code, result = _result(capsys, DATA, "--use", "bench,core")
    assert code == ExitCode.DONE
    assert result["schema"] == "linkwise.validate/1"
    assert result["rows"] == result["scored"] + sum(result["skipped"].values())
    assert result["scored"] >= 0.97 * result["rows"]
    figures = (
        "median_abs_error",
        "mape",
        "p90_abs_error",
        "bias",
        "interval_coverage",
        "interval_median_width",
    )
    assert all(isinstance(result[f"{name}_fraction"], float) for name in figures)
    assert set(result["regret"]) >= {"groups", "mean_fraction", "p95_fraction", "max_fraction", "worst"}
    assert result["regret"]["worst"]["reason"]
    assert result["memory"]["scored"] > 0
    assert {group["key"] for group in result["by"]} == {
        "source",
        "gpu",
        "framework",
        "family",
        "kind",
        "interconnect",
        "complete",
    }
    assert all(
        {"name", "scored", *(f"{name}_fraction" for name in figures)} <= set(group) for group in result["by"]
    )


def test_skipped_rows_are_counted_by_reason(capsys, two):
    code, result = _result(capsys, two)
    assert (code, result["rows"], result["scored"]) == (0, 2, 1)
    assert result["skipped"] == {"GPU Abacus is not in the catalogue": 1}


def test_rows_have_the_input_and_the_prediction(capsys, two, tmp_path):
    out = tmp_path / "rows.csv"
    assert _result(capsys, two, "--rows", out)[0] == ExitCode.DONE
    first, second = csv.DictReader(io.StringIO(out.read_text(encoding="utf-8")))
    assert first["note"] == "a, b"
    predicted = float(first["predicted_step_time_s"])
    assert float(first["low_s"]) < predicted < float(first["high_s"])
    assert float(first["error_fraction"]) == pytest.approx(predicted / 0.5 - 1)
    parts = [
        "compute_s",
        "tensor_s",
        "context_s",
        "expert_s",
        "pipeline_s",
        "bubble_s",
        "data_s",
        "optimizer_s",
        "overhead_s",
    ]
    assert sum(float(first[part]) for part in parts) == pytest.approx(predicted)
    assert first["memory_feasible"] == "1"
    assert first["assumed"] == "vocab;recompute;seq_parallel"
    assert first["filled"] == "recompute;seq_parallel"
    assert (first["recompute"], first["filled_recompute"]) == ("", "none")
    assert second["left_out"] == "GPU Abacus is not in the catalogue"
    assert second["predicted_step_time_s"] == ""


def test_rows_can_be_scored_again(capsys, two, tmp_path):
    out = tmp_path / "rows.csv"
    _, before = _result(capsys, two, "--rows", out)
    _, after = _result(capsys, out)
    assert before == after


def test_nothing_is_written_when_the_input_is_wrong(capsys, two, tmp_path):
    two.write_text(_TWO.replace(",0.5,vocab", ",fast,vocab"), encoding="utf-8")
    before = sorted(tmp_path.iterdir())
    assert (
        run(["validate", "training", str(two), "--rows", str(tmp_path / "rows.csv")]) == ExitCode.WRONG_INPUT
    )
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"{two}:2: step_time_s: 'fast' is not a number" in printed.err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["validate", "trainign", "x.csv"], "did you mean training"),
        (["validate", "training", "none.csv"], "none.csv: no such file"),
        (["validate", "training", str(DATA), "--require", "medain=1"], "did you mean median"),
        (["validate", "training", str(DATA), "--use", ","], "--use is empty"),
        (["validate", "training", str(DATA), "--rows", str(DATA)], "is the file that is scored"),
        (["validate", "training", str(DATA), "--rows", "/"], "is a directory"),
        (
            ["validate", "training", str(DATA), "--rows", "/no/such/rows.csv"],
            "there is no directory /no/such",
        ),
    ],
)
def test_wrong_use_leaves_with_two_and_one_message(capsys, words, message):
    assert run(words) == ExitCode.WRONG_INPUT
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err


@pytest.mark.parametrize(("limit", "code"), [("mape=100", ExitCode.DONE), ("mape=0", ExitCode.AGAINST)])
def test_require_decides_the_exit_code(capsys, two, limit, code):
    found, result = _result(capsys, two, "--require", limit)
    assert found == code
    assert result["requirements"][0]["met"] == (code == ExitCode.DONE)


def test_no_row_to_score_leaves_with_four(capsys, two):
    two.write_text(_TWO.replace("A100-SXM-80GB", "Abacus"), encoding="utf-8")
    code, result = _result(capsys, two, "--require", "mape=1")
    assert code == ExitCode.NOT_MEASURED
    assert result["mape_fraction"] is None
    assert run(["validate", "training", str(two)]) == ExitCode.NOT_MEASURED
    assert "no row could be scored" in capsys.readouterr().err


def test_rows_that_cannot_be_written_name_the_file_that_was_asked_for(capsys, two, monkeypatch, tmp_path):
    def refused(**_names):
        raise PermissionError(13, "Permission denied", "a name nobody gave")

    monkeypatch.setattr("tempfile.mkstemp", refused)
    out = tmp_path / "rows.csv"
    assert run(["validate", "training", str(two), "--rows", str(out)]) == ExitCode.WRONG_INPUT
    assert f"linkwise: --rows {out}: cannot be written (Permission denied)" in capsys.readouterr().err
    assert not out.exists()


def test_csv_has_all_rows_first(capsys, two):
    assert run(["validate", "training", str(two), "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert (rows[0]["key"], rows[0]["scored"]) == ("all", "1")
    assert {"source", "interconnect"} <= {each["key"] for each in rows}


@pytest.mark.parametrize("width", [60, 80, 120, 160])
def test_table_keeps_to_the_width_and_cuts_no_number(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    assert run(["validate", "training", str(DATA), "--use", "bench", "--require", "mape=1"]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= max(width, 80)
    assert "…" not in printed
    assert "Decision regret over" in printed
    assert "at least 800" in printed
    assert "met" in printed
