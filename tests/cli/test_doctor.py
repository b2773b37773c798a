"""`linkwise doctor` and `linkwise validate doctor` as a user runs them."""

import json
from pathlib import Path

import pytest

from linkwise.cli.main import run

_CASES = Path(__file__).parents[1] / "data" / "nccl_cases"


def _case(name):
    return [str(path) for path in sorted(_CASES.glob(f"{name}.*"))]


@pytest.mark.parametrize(
    ("name", "code"), [("OK-02-ib-2node-gdr", 0), ("GDR-01", 1), ("OOM-01", 1), ("COSM-04", 0)]
)
def test_exit_code_is_that_of_the_verdict(name, code, capsys):
    assert run(["doctor", *_case(name)]) == code
    assert capsys.readouterr().err == ""


def test_a_log_that_says_nothing_cannot_tell(tmp_path, capsys):
    (tmp_path / "a.log").write_text("step=1\n")
    assert run(["doctor", str(tmp_path / "a.log")]) == 3
    assert capsys.readouterr().out.startswith("cannot tell: no line of NCCL")


def test_json_is_the_published_result(capsys):
    assert run(["doctor", *_case("GDR-02"), "--format", "json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert (result["schema"], result["verdict"]) == ("linkwise.doctor/1", "slow")
    assert {
        "intra_node", "inter_node", "gpudirect_rdma", "nvls", "nics_per_node", "nccl_version", "cuda_version", "ranks",
        "nodes",
    } <= set(result["transport"])  # fmt: skip
    (finding,) = result["findings"]
    assert set(finding) == {
        "cause", "family", "severity", "confidence", "where", "evidence", "explanation", "fix", "next_check",
    }  # fmt: skip
    assert set(finding["evidence"][0]) == {"file", "line", "text"}


def test_table_fits_eighty_columns_and_keeps_its_order(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(_CASES)
    run(["doctor", "IBMISS-01.log"])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert (
        out.index("slow: ") < out.index("In use") < out.index("1. socket_fallback") < out.index("to mend it")
    )


def test_escapes_of_a_log_never_reach_the_terminal(tmp_path, capsys):
    log = "h:1:2 [0] NCCL INFO Bootstrap : Using e\x1b[31mth0\x1b]0;owned\x07:1.2.3.4<0>\nh:1:2 [0] x.cc:1 NCCL WARN Net : Socket creation failed : Too many open files \x1b[2J\n"
    (tmp_path / "a\x1b[31m.log").write_text(log)
    run(["doctor", str(tmp_path)])
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
    assert "\x07" not in shown.out + shown.err


def test_missing_rails_cost_bandwidth_against_the_cluster(capsys):
    code = run(["doctor", *_case("OK-02-ib-2node-gdr"), "--cluster", "dgx-h100:2", "--format", "json"])
    result = json.loads(capsys.readouterr().out)
    lacking = {each["what"]: each for each in result["shortfalls"]}
    nics = lacking["NICs per node"]
    assert (code, nics["used"], nics["there"]) == (1, "2", "8")
    assert nics["busbw_used_bytes_per_s"] < 0.6 * nics["busbw_there_bytes_per_s"]
    assert [each["cause"] for each in result["findings"]] == ["rails"]


def test_a_job_without_a_cluster_has_no_effect(capsys):
    assert run(["doctor", *_case("GDR-01"), "--job", "x.yaml"]) == 2
    assert "--job has no effect without --cluster" in capsys.readouterr().err


def test_unusable_input_gets_one_message(tmp_path, capsys):
    (tmp_path / "x.png").write_bytes(b"\x89PNG" + bytes(50))
    assert run(["doctor", str(tmp_path / "x.png")]) == 2
    assert "seems to be a PNG image" in capsys.readouterr().err


def test_validate_doctor_prints_shares(capsys):
    arguments = ["validate", "doctor", str(_CASES.parent / "nccl_cases.jsonl"), str(_CASES)]
    assert run([*arguments, "--require", "first=0.9,three=0.97,well=1,verdict=0.95"]) == 0
    assert "right cause first" in capsys.readouterr().out
    assert run([*arguments, "--require", "frist=0.9"]) == 2
    assert "did you mean first" in capsys.readouterr().err
