"""`linkwise explain`, run as a user runs it."""

import json

import pytest

from linkwise.cli.main import run
from linkwise.errors import ExitCode

JOB = """
linkwise: job/1
model: llama-3.1-8b
sequence_length: 8192
global_batch: 256
layout: {layout}
"""
OPTIONS = [
    "--model", "llama-3.1-8b", "--cluster", "dgx-h100:4", "--sequence-length", "8192", "--global-batch", "256",
]  # fmt: skip
LAYOUT = ["--layout", "tensor=2,pipeline=2,zero_stage=1"]


@pytest.fixture
def job_file(tmp_path):
    def write(layout="search"):
        path = tmp_path / "job.yaml"
        path.write_text(JOB.format(layout=layout))
        return str(path)

    return write


def explained(arguments, capsys):
    code = run(["explain", *arguments])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_explain_traces_every_term_to_figures_with_sources(capsys):
    code, out, _ = explained([*OPTIONS, *LAYOUT, "--format", "json"], capsys)
    result = json.loads(out)
    assert code == ExitCode.DONE
    assert result["schema"] == "linkwise.explain/1"
    known = {"term", "job", "layout", "model", "cluster", "framework"}
    names = set()
    for term in result["terms"]:
        assert term["formula"], term["name"]
        assert term["source"], term["name"]
        for each in term["inputs"]:
            if each["origin"] == "term":
                assert each["name"] in names, f"{term['name']} is printed before {each['name']}"
            elif each["origin"] == "figure":
                assert each["basis"], each
                assert each["source"], each
                assert each["layer"], each
            else:
                assert each["origin"] in known
        names.add(term["name"])
    assert {"step_time_s", "memory_bytes"} <= names


def test_explain_parts_sum_to_the_whole(capsys):
    layout = json.loads(explained([*OPTIONS, *LAYOUT, "--format", "json"], capsys)[1])["layout"]
    assert sum(layout["parts"].values()) == pytest.approx(layout["step_time_s"])
    assert sum(layout["memory_parts"].values()) == pytest.approx(layout["memory_bytes"])


def test_explain_says_what_a_tenth_of_each_figure_buys(capsys):
    result = json.loads(explained([*OPTIONS, *LAYOUT, "--format", "json"], capsys)[1])
    bought = {each["figure"]: each["saved_fraction"] for each in result["sensitivities"]}
    assert set(bought) == {"tensor FLOP/s", "memory bandwidth", "NVLink", "NIC", "latency of sends"}
    assert all(0 <= share < 0.1 for share in bought.values())
    assert max(bought, key=bought.get) == "tensor FLOP/s"


def test_explain_prints_groups_formulas_and_sources(capsys):
    code, out, _ = explained([*OPTIONS, *LAYOUT], capsys)
    assert code == ExitCode.DONE
    for words in ("COMPUTE", "COMMUNICATION", "SCHEDULE", "MEMORY", "FIGURES", "WHAT A TENTH BUYS"):
        assert f"\n{words}\n" in out
    assert "peak_linear_flop_per_s = 989 TFLOP/s (datasheet, catalogue)" in out
    assert "ml-engineering" in out


@pytest.mark.parametrize(
    ("term", "says"),
    [("zzz", "without --term all of them are printed"), ("buble_s", "did you mean bubble_s")],
)
def test_explain_says_where_the_terms_are_when_one_is_unknown(term, says, capsys):
    code, _, err = explained([*OPTIONS, *LAYOUT, "--term", term], capsys)
    assert code == ExitCode.WRONG_INPUT
    assert f"unknown term {term!r}" in err
    assert says in err


def test_explain_prints_one_term_when_asked(capsys):
    code, out, _ = explained([*OPTIONS, *LAYOUT, "--term", "steady_s"], capsys)
    assert code == ExitCode.DONE
    assert out.startswith("steady_s = ")
    assert "slowest_stage_s" in out


def test_explain_suggests_terms_when_one_is_unknown(capsys):
    code, out, err = explained([*OPTIONS, *LAYOUT, "--term", "stedy_s"], capsys)
    assert (code, out) == (ExitCode.WRONG_INPUT, "")
    assert "steady_s" in err


def test_explain_takes_the_layout_beside_a_job_file(capsys, job_file):
    code, out, _ = explained([job_file(), "dgx-h100:4", *LAYOUT, "--format", "json"], capsys)
    layout = json.loads(out)["layout"]
    assert code == ExitCode.DONE
    assert (layout["tensor"], layout["pipeline"], layout["data"], layout["zero_stage"]) == (2, 2, 8, 1)


def test_explain_takes_the_layout_of_the_job_file(capsys, job_file):
    fixed = job_file("{tensor: 4, micro_batch: 2, recompute: full}")
    layout = json.loads(explained([fixed, "dgx-h100:4", "--format", "json"], capsys)[1])["layout"]
    assert (layout["tensor"], layout["micro_batch"], layout["recompute"]) == (4, 2, "full")


def test_explain_refuses_a_layout_beside_a_fixed_one(capsys, job_file):
    code, _, err = explained([job_file("{tensor: 4}"), "dgx-h100:4", *LAYOUT], capsys)
    assert code == ExitCode.WRONG_INPUT
    assert "--layout has no effect" in err


@pytest.mark.parametrize(
    ("layout", "says"),
    [
        ("tensor", "'tensor' is not KEY=VALUE"),
        ("tensor=2,tensor=4", "tensor is given twice"),
        ("tensor=two", "--layout tensor"),
        ("pipline=2", "did you mean 'pipeline'?"),
        ("tensor=3", "does not divide 32 GPUs"),
        ("virtual_pipeline=2", "has no effect with one pipeline stage"),
    ],
)
def test_explain_says_what_is_wrong_with_a_layout(capsys, layout, says):
    code, out, err = explained([*OPTIONS, "--layout", layout], capsys)
    assert (code, out) == (ExitCode.WRONG_INPUT, "")
    assert says in err
    assert "Traceback" not in err


def test_explain_of_a_layout_that_does_not_fit_says_so_by_its_exit_code(capsys):
    options = [
        "--model",
        "gpt-3-175b",
        "--cluster",
        "dgx-h100:1",
        "--sequence-length",
        "2048",
        "--global-batch",
        "8",
    ]
    code, out, _ = explained([*options, "--layout", "tensor=8", "--format", "json"], capsys)
    assert code == ExitCode.INFEASIBLE
    assert json.loads(out)["layout"]["short_bytes"] > 0
