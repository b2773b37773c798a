"""`linkwise explain --against` with the run folder of a launched job."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from linkwise.cli.main import run
from linkwise.launch.run.ending import Ending, Outcome
from linkwise.launch.run.launch_record import Witnessed
from linkwise.launch.run.proof import Check
from linkwise.launch.run.steps import TrainedStep
from linkwise.report.launch_result import launch_json
from tests.launch.run.test_launching import record_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "llama-8b-run.yaml"
MEGATRON = Path(__file__).parents[1] / "data" / "training_logs" / "megatron-2025.log"
GOOD = Check(what="hosts", planned="n0", seen="n0", is_as_planned=True)
BAD = Check(what="between nodes", planned="NET/IB", seen="NET/Socket", is_as_planned=False)


def launched(path, *, step_s=3.5, checks=(GOOD,), outcome=Outcome.DONE, findings=(), **changes):
    """Write the run folder of a job on 32 GPUs, and return it."""
    expected = replace(record_of().expected, nodes=4, ranks_per_node=8, device=changes.pop("device", "cuda"))
    prediction = replace(record_of().prediction, tokens_per_step=changes.pop("tokens", 128 * 8192))
    record = replace(
        record_of(),
        expected=expected,
        prediction=prediction,
        ended=record_of().started,
        ending=Ending(outcome=outcome, reason="rank 3 was killed" if outcome is Outcome.FAILED else ""),
        witnessed=Witnessed(
            checks=checks,
            findings=findings,
            steps=tuple(TrainedStep(number=n, time_s=step_s * (1 + n / 1000)) for n in range(1, 13)),
        ),
        **changes,
    )
    path.mkdir(exist_ok=True)
    (path / "record.json").write_text(launch_json(record))
    return str(path)


def against(path, capsys, *more):
    code = run(["explain", str(EXAMPLE), "dgx-h100:4", "--against", path, *more, "--format", "json"])
    told = capsys.readouterr()
    return code, json.loads(told.out)["against"] if code in (0, 1, 3) else told.err


def test_launched_run_stands_beside_its_estimate(tmp_path, capsys):
    code, found = against(launched(tmp_path / "run"), capsys)
    assert (code, found["verdict"], found["source"]) == (0, "as predicted", "linkwise launch")
    assert (found["steps"], found["left_out"]) == (9, 3)
    code, found = against(launched(tmp_path / "run", step_s=9.0), capsys)
    assert (code, found["verdict"]) == (1, "slower")
    assert "a trace of PyTorch's profiler" in found["reason"]


def test_phases_are_those_of_the_output_beside_the_record(tmp_path, capsys):
    path = launched(tmp_path / "run", step_s=4.4)
    (tmp_path / "run" / "output.log").write_bytes(MEGATRON.read_bytes())
    _, found = against(path, capsys)
    assert found["source"] == "megatron"
    assert [each["name"] for each in found["phases"]] == ["forward and backward", "gradients", "optimizer"]
    assert found["off"] == "forward and backward"


def test_finding_of_the_doctor_is_the_first_reason(tmp_path, capsys):
    _, found = against(launched(tmp_path / "run", step_s=9.0, findings=("socket_fallback",)), capsys)
    assert found["reason"].startswith("the doctor found socket_fallback in its logs")


@pytest.mark.parametrize(
    ("changes", "verdict", "words"),
    [
        ({"checks": (GOOD, BAD)}, "invalid", "between nodes: NET/Socket, planned: NET/IB"),
        ({"outcome": Outcome.FAILED}, "invalid", "did not end well (failed: rank 3 was killed)"),
        ({"checks": ()}, "invalid", "nothing shows"),
        ({"device": "cpu"}, "cannot tell", "computed on CPUs"),
    ],
)
def test_run_that_is_not_compared_is_said_to_be_so_and_not_averaged(
    tmp_path, capsys, changes, verdict, words
):
    code = 1 if verdict == "invalid" else 3
    path = launched(tmp_path / "run", **changes)
    found_code, found = against(path, capsys)
    assert (found_code, found["verdict"], found["measured_s"]) == (code, verdict, None)
    assert words in found["reason"]
    assert run(["explain", str(EXAMPLE), "dgx-h100:4", "--against", path]) == code
    assert f"is not compared ({verdict})" in " ".join(capsys.readouterr().out.split())
    assert run(["calibrate", "dgx-h100:4", f"{EXAMPLE}={path}/record.json"]) == 2
    assert "is not used" in capsys.readouterr().err


def test_record_of_another_job_is_refused(tmp_path, capsys):
    code, said = against(launched(tmp_path / "run", tokens=1000), capsys)
    assert code == 2
    assert "is of a job of 1,000 tokens a step" in said
    assert run(["explain", str(EXAMPLE), "dgx-h100:2", "--against", str(tmp_path / "run")]) == 2
    assert "is of 32 ranks, the layout of 16" in capsys.readouterr().err


def test_valid_run_calibrates(tmp_path, capsys):
    path = launched(tmp_path / "run", step_s=4.4)
    assert run(["calibrate", "dgx-h100:4", f"{EXAMPLE}={path}"]) == 0
    assert "gpu_speed_16_bit" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text", ['{"schema": "linkwise.launch/1"}', '{"schema": "linkwise.launch/1", "samples": [1]}']
)
def test_damaged_record_is_refused(tmp_path, capsys, text):
    (tmp_path / "record.json").write_text(text)
    assert run(["explain", str(EXAMPLE), "dgx-h100:4", "--against", str(tmp_path)]) == 2
    assert "is no count above zero" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", " \n"])
def test_empty_file_is_said_to_be_empty(tmp_path, capsys, text):
    (tmp_path / "train.log").write_text(text)
    assert run(["calibrate", "dgx-h100:4", str(tmp_path / "train.log")]) == 2
    assert "is empty: nothing was measured" in capsys.readouterr().err
