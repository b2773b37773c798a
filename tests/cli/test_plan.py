"""`linkwise plan`, run as a user runs it."""

import csv
import io
import json
from pathlib import Path

import pytest

from linkwise.cli.main import run
from linkwise.errors import ExitCode

EXAMPLES = Path(__file__).parents[2] / "examples"
JOB, CLUSTER = str(EXAMPLES / "llama-70b.yaml"), str(EXAMPLES / "h100-256.yaml")
SMALL = ["--model", "llama-3.1-8b", "--sequence-length", "8192", "--global-batch", "64"]
HUGE = [
    "--model",
    "gpt-3-175b",
    "--sequence-length",
    "2048",
    "--global-batch",
    "8",
    "--cluster",
    "dgx-h100:1",
]

LAYOUT_FIELDS = {
    "tensor", "context", "pipeline", "virtual_pipeline", "expert", "data", "micro_batch", "zero_stage", "recompute",
    "step_time_s", "step_time_low_s", "step_time_high_s", "tokens_per_s_per_gpu", "mfu_fraction", "memory_bytes",
    "memory_available_bytes", "parts",
}  # fmt: skip
"""What other programs read of a layout: a contract."""


def planned(arguments, capsys):
    code = run(["plan", *arguments])
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    return code, told.out, told.err


def planned_json(arguments, capsys):
    code, out, _ = planned([*arguments, "--format", "json"], capsys)
    return code, json.loads(out)


@pytest.fixture
def write(tmp_path):
    def to(name, text):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return to


def test_plan_publishes_the_fields_of_its_contract(capsys):
    code, result = planned_json([*SMALL, "--cluster", "dgx-h100:2"], capsys)
    assert code == ExitCode.DONE
    assert result["schema"] == "linkwise.plan/1"
    assert {"layouts", "evaluated", "infeasible", "closest", "assumptions"} <= set(result)
    assert len(result["layouts"]) == 10
    for layout in result["layouts"]:
        assert set(layout) >= LAYOUT_FIELDS
        assert sum(layout["parts"].values()) == pytest.approx(layout["step_time_s"])
        assert sum(layout["memory_parts"].values()) == pytest.approx(layout["memory_bytes"])
        assert layout["step_time_low_s"] < layout["step_time_s"] < layout["step_time_high_s"]
        assert layout["memory_bytes"] <= layout["memory_available_bytes"]
        assert layout["tensor"] * layout["context"] * layout["pipeline"] * layout["data"] == 16
    times = [layout["step_time_s"] for layout in result["layouts"]]
    assert times[0] <= min(times) * 1.001
    assert result["evaluated"] > 100
    assert result["closest"] is None


def test_plan_prints_the_table_of_the_example(capsys):
    code, out, err = planned([JOB, CLUSTER], capsys)
    assert (code, err) == (ExitCode.DONE, "")
    for words in (
        "llama-3.1-70b",
        "h100-256",
        "step time",
        "80 % interval",
        "MFU",
        "Parts of the step",
        "Looked at",
    ):
        assert words in out


def test_plan_says_the_same_of_files_and_options(capsys, write):
    file = write(
        "job.yaml", "linkwise: job/1\nmodel: llama-3.1-8b\nsequence_length: 8192\nglobal_batch: 64\n"
    )
    from_file = planned_json([file, "dgx-h100:2"], capsys)[1]
    assert from_file == planned_json([*SMALL, "--cluster", "dgx-h100:2"], capsys)[1]
    assert from_file == planned_json([file, "--cluster", "dgx-h100:2"], capsys)[1]


def test_plan_prints_as_many_layouts_as_asked(capsys):
    assert len(planned_json([*SMALL, "--cluster", "dgx-h100:1", "--top", "3"], capsys)[1]["layouts"]) == 3


def test_plan_estimates_a_fixed_layout(capsys, write):
    file = write(
        "job.yaml",
        "linkwise: job/1\nmodel: llama-3.1-8b\nsequence_length: 8192\nglobal_batch: 64\n"
        "layout: {tensor: 2, micro_batch: 1, zero_stage: 1, recompute: selective}\n",
    )
    code, result = planned_json([file, "dgx-h100:1"], capsys)
    assert code == ExitCode.DONE
    assert [(each["tensor"], each["data"], each["recompute"]) for each in result["layouts"]] == [
        (2, 4, "selective")
    ]


def test_plan_names_the_closest_layout_when_nothing_fits(capsys):
    code, result = planned_json(HUGE, capsys)
    assert code == ExitCode.INFEASIBLE
    assert result["layouts"] == []
    closest = result["closest"]
    assert closest["short_bytes"] == pytest.approx(
        closest["memory_bytes"] - closest["memory_available_bytes"]
    )
    assert 0 <= closest["stage"] < closest["pipeline"]
    code, out, _ = planned(HUGE, capsys)
    assert code == ExitCode.INFEASIBLE
    assert "No layout fits. The closest lacks" in out
    assert "optimizer" in out


def test_plan_writes_csv_with_one_row_per_layout(capsys):
    code, out, _ = planned([*SMALL, "--cluster", "dgx-h100:1", "--format", "csv"], capsys)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == ExitCode.DONE
    assert len(rows) == 10
    assert set(rows[0]) >= (LAYOUT_FIELDS - {"parts"}) | {"part_compute_s", "memory_weights_bytes", "fits"}
    assert {row["fits"] for row in rows} == {"1"}


def test_plan_reads_standard_input(capsys, monkeypatch):
    class Stdin:
        buffer = io.BytesIO(Path(JOB).read_bytes())

    monkeypatch.setattr("sys.stdin", Stdin)
    assert planned(["-", "dgx-h100:32"], capsys)[0] == ExitCode.DONE


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "no job: give JOB and CLUSTER, or --model"),
        ([JOB], "no CLUSTER beside the job"),
        (["-", "-"], "standard input can be read once"),
        ([JOB, CLUSTER, "--precision", "fp8"], "--precision has no effect beside the job file"),
        ([JOB, CLUSTER, "--tokens", "1e12", "--model", "x"], "--model, --tokens have no effect"),
        ([JOB, CLUSTER, "--cluster", "dgx-h100:2"], "--cluster dgx-h100:2 has no effect"),
        (["missing.yaml", CLUSTER], "missing.yaml: no such file"),
        ([JOB, "dgx-h100:none"], "'none'"),
        ([*SMALL], "--cluster: the option is required and missing"),
        ([*SMALL, "--cluster", "dgx-h101:2"], "did you mean dgx-h100"),
        ([*SMALL, "--cluster", "dgx-h100:2", "--precision", "bf17"], "--precision"),
        ([*SMALL, "--cluster", "dgx-a100:2", "--precision", "fp8"], "fp8"),
        ([*SMALL, "--cluster", "dgx-h100:2", "--framework", "megatorn"], "megatron"),
        ([*SMALL, "--cluster", "dgx-h100:2", "--top", "0"], "--top"),
        ([*SMALL, "--cluster", "dgx-h100:2", "--format", "xml"], "--format"),
    ],
)
def test_plan_says_what_is_wrong_and_prints_nothing_else(capsys, arguments, says):
    code, out, err = planned(arguments, capsys)
    assert (code, out) == (ExitCode.WRONG_INPUT, "")
    assert says in err


def test_plan_reports_the_faults_of_both_files_together(capsys, write):
    job = write("job.yaml", "linkwise: job/1\nmodel: llama-3.1-8\nsequence_lenght: 8192\nglobal_batch: 64\n")
    cluster = write(
        "cluster.yaml", "linkwise: cluster/1\nnodes: 4\nnode: dgx-h100\nfabric: {link: infiniband-ndr}\n"
    )
    code, out, err = planned([job, cluster], capsys)
    assert (code, out) == (ExitCode.WRONG_INPUT, "")
    assert f"{job}:2: model" in err
    assert f"{job}:3: sequence_lenght: unknown key; did you mean 'sequence_length'?" in err
    assert f"{cluster}:4: fabric.link" in err


def test_plan_names_every_missing_option_at_once(capsys):
    _, _, err = planned(["--model", "llama-3.1-8b"], capsys)
    for option in ("--sequence-length", "--global-batch", "--cluster"):
        assert f"{option}: the option is required and missing" in err


def _planned(tmp_path, *words):
    out = tmp_path / "ranks.csv"
    line = ["plan", "--model", "llama-3.1-8b", "--sequence-length", "4096", "--global-batch", "64"]
    return run([*line, *words, "--ranks", str(out)]), out


def test_the_file_of_ranks_is_said(tmp_path, capsys):
    code, out = _planned(tmp_path, "--cluster", "dgx-h100:2", "--top", "1")
    assert (code, capsys.readouterr().err) == (0, f"wrote {out}\n")


def test_ranks_of_the_first_layout_are_written(tmp_path, capsys):
    code, out = _planned(tmp_path, "--cluster", "dgx-h100:2", "--top", "1", "--format", "json")
    best = json.loads(capsys.readouterr().out)["layouts"][0]
    rows = list(csv.DictReader(out.read_text(encoding="utf-8").splitlines()))
    assert code == ExitCode.DONE
    assert [row["rank"] for row in rows] == [str(rank) for rank in range(16)]
    for group in ("tensor", "context", "expert", "data", "pipeline"):
        assert {int(row[group]) for row in rows} == set(range(best[group]))


def test_no_ranks_are_written_where_nothing_fits(tmp_path, capsys):
    out = tmp_path / "ranks.csv"
    line = ["plan", "--model", "gpt-3-175b", "--cluster", "dgx-h100:1", "--ranks", str(out)]
    assert run([*line, "--sequence-length", "2048", "--global-batch", "8"]) == ExitCode.INFEASIBLE
    assert "is not written: no layout fits" in capsys.readouterr().err
    assert not out.exists()


def test_a_place_that_cannot_be_written_is_refused_before_the_search(tmp_path, capsys):
    code, _ = _planned(tmp_path / "nowhere", "--cluster", "dgx-h100:2")
    assert code == ExitCode.WRONG_INPUT
    assert "there is no directory" in capsys.readouterr().err
