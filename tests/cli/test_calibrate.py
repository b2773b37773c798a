"""`linkwise calibrate` and `--calibration`, run as a user runs them."""

import datetime as dt
import json
from pathlib import Path

import pytest

from linkwise.cli.main import run
from linkwise.errors import ExitCode

DATA = Path(__file__).parent.parent / "data"
TWO_NODES = str(DATA / "nccl_tests" / "all-reduce-2n.txt")
JOB = """
linkwise: job/1
model: llama-3.1-8b
sequence_length: 8192
global_batch: 128
layout: {layout}
"""


@pytest.fixture
def said(capsys):
    def call(*arguments):
        code = run([str(each) for each in arguments], today=lambda: dt.date(2026, 12, 1))
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


@pytest.fixture
def job_file(tmp_path):
    def write(layout="{tensor: 2, zero_stage: 1}", name="job.yaml"):
        path = tmp_path / name
        path.write_text(JOB.format(layout=layout))
        return path

    return write


@pytest.fixture(scope="module")
def overlay(tmp_path_factory):
    folder = tmp_path_factory.mktemp("overlay")
    job = folder / "job.yaml"
    job.write_text(JOB.format(layout="{tensor: 2, zero_stage: 1}"))
    log = DATA / "training_logs" / "megatron-2025.log"
    path = folder / "overlay.yaml"
    arguments = ["calibrate", "dgx-h100:4", f"{job}={log}", TWO_NODES, "-o", str(path)]
    assert run(arguments, today=lambda: dt.date(2026, 12, 1)) == ExitCode.DONE
    return path


def test_calibrate_writes_an_overlay_that_plan_takes(said, overlay, job_file):
    text = overlay.read_text()
    assert text.startswith("linkwise: calibration/1\n")
    assert "made: 2026-12-01" in text
    code, out, _ = said("plan", job_file(), "dgx-h100:4", "--calibration", overlay, "--format", "json")
    plain = json.loads(said("plan", job_file(), "dgx-h100:4", "--format", "json")[1])
    laid = json.loads(out)
    assert code == ExitCode.DONE
    # the log's step takes 4.4 s, the model says 3.5 s; one run is followed about half way
    assert plain["layouts"][0]["step_time_s"] == pytest.approx(3.5, rel=0.02)
    assert laid["layouts"][0]["step_time_s"] == pytest.approx((3.5 + 4.4) / 2.0, rel=0.06)
    assert any("site's calibration" in each for each in laid["assumptions"])


def test_collective_and_explain_take_it_and_name_the_layer(said, overlay, job_file):
    code, out, _ = said("collective", "all_reduce", "dgx-h100:2", "--calibration", overlay, "--sizes", "1GiB")
    assert code == ExitCode.DONE
    assert "site's calibration" in out
    arguments = ("dgx-h100:4", "--calibration", overlay, "--term", "linear_flop_per_s")
    code, out, _ = said("explain", job_file(), *arguments)
    assert code == ExitCode.DONE
    assert "times gpu_speed_16_bit" in out


def test_calibration_of_another_cluster_is_refused(said, overlay, job_file):
    code, _, err = said("plan", job_file(), "dgx-a100:4", "--calibration", overlay)
    assert code == ExitCode.WRONG_INPUT
    assert "is of another cluster than dgx-a100:4: gpu h100-sxm, not a100-sxm-80gb" in err


def test_compare_takes_it_for_the_clusters_it_is_of(said, overlay, job_file):
    code, _, err = said("compare", job_file(), "dgx-h100:4", "dgx-a100:4", "--calibration", overlay)
    assert code == ExitCode.DONE
    assert "--calibration not taken" in err
    assert "dgx-a100:4" in err


def test_result_is_published_and_fits_a_terminal(said, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    files = (TWO_NODES, str(DATA / "nccl_tests" / "alltoall.json"))
    code, out, _ = said("calibrate", "dgx-h100:2", *files)
    assert code == ExitCode.DONE
    assert max(map(len, out.splitlines())) <= 80
    assert "left out in turn" in out
    result = json.loads(said("calibrate", "dgx-h100:2", *files, "--format", "json")[1])
    assert result["schema"] == "linkwise.calibrate/1"
    assert {each["tier"] for each in result["factors"]} == {"nvlink", "network"}
    assert result["held_out"]["units"] == 2
    assert result["advice"]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (["nofile.log"], "nofile.log: cannot be read: no such file"),
        ([str(DATA / "training_logs" / "nemo-1.log")], "say which job it is of"),
        ([str(DATA / "training.md")], "training.md: is none of"),
        (["=x"], "'=x' is not JOB=FILE"),
        (["-", "-"], "'-' stands twice"),
    ],
)
def test_file_that_cannot_be_used_is_named(said, files, words):
    code, out, err = said("calibrate", "dgx-h100:4", *files)
    assert (code, out) == (ExitCode.WRONG_INPUT, "")
    assert words in err
    assert "Traceback" not in err


def test_schema_of_the_document_is_printed(said):
    code, out, _ = said("schema", "calibration")
    assert code == ExitCode.DONE
    assert json.loads(out)["properties"]["linkwise"]["const"] == "calibration/1"


def test_explain_sets_a_run_beside_its_estimate(said, job_file, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    log = DATA / "training_logs" / "deepspeed-2025.log"
    code, out, _ = said("explain", job_file(), "dgx-h100:4", "--against", log)
    assert code == ExitCode.AGAINST
    assert "Off most: forward and backward" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
    code, out, _ = said("explain", job_file(), "dgx-h100:4", "--against", log, "--format", "json")
    found = json.loads(out)["against"]
    assert (code, found["verdict"], found["off"]) == (
        ExitCode.AGAINST,
        "slower",
        "forward and backward",
    )


def test_explain_against_refuses_what_has_no_effect(said, job_file):
    log = DATA / "training_logs" / "nemo-1.log"
    code, _, err = said("explain", job_file(), "dgx-h100:4", "--against", log, "--term", "tensor_s")
    assert code == ExitCode.WRONG_INPUT
    assert "--term has no effect beside --against" in err
    code, _, err = said("explain", job_file("search"), "dgx-h100:4", "--against", log)
    assert code == ExitCode.WRONG_INPUT
    assert "a measured run has one layout" in err
    code, _, err = said("explain", job_file(), "dgx-h100:4", "--against", TWO_NODES)
    assert code == ExitCode.WRONG_INPUT
    assert "holds nccl-tests" in err
