"""`linkwise doctor` and `linkwise validate doctor` as a user runs them."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
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


_FAULT = "n01:12:15 [0] misc/socket.cc:1 NCCL WARN Net : Socket creation failed : Too many open files\n"


def test_follow_tells_a_finding_within_a_second_and_ends_at_a_signal(tmp_path):
    log = tmp_path / "job.log"
    command = [
        sys.executable,
        "-c",
        "from linkwise.cli.main import main; main()",
        "doctor",
        "--follow",
        str(log),
    ]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
    ) as doctor:
        assert "is not there yet; waiting for it" in doctor.stderr.readline()
        time.sleep(0.3)
        log.write_text(_FAULT)
        start_s = time.monotonic()
        first = doctor.stdout.readline()
        assert time.monotonic() - start_s < 5, "one second, and time for a busy machine"
        assert "broken: too many open files (fd_limit), confidence" in first
        doctor.send_signal(signal.SIGTERM)
        rest, errors = doctor.communicate(timeout=20)
        assert doctor.returncode == 1
    assert "1. fd_limit: too many open files" in rest
    assert rest.count("fd_limit), confidence") == 0
    assert errors == ""


def test_follow_as_json_prints_a_line_for_each_change_and_the_answer(tmp_path, capsys):
    (tmp_path / "job.log").write_text(_FAULT)
    arguments = ["doctor", "--follow", str(tmp_path), "--until-quiet", "100 ms", "--format", "json"]
    assert run(arguments) == 1
    change, answer = map(json.loads, capsys.readouterr().out.splitlines())
    assert (change["schema"], change["change"]) == ("linkwise.doctor.change/1", "new")
    assert (change["finding"]["cause"], answer["schema"]) == ("fd_limit", "linkwise.doctor/1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--until-quiet", "5 s"], "has no effect without --follow"),
        (["--follow", "--until-quiet", "5"], "has no unit"),
        (["--follow", "--until-quiet", "0 s"], "above zero"),
    ],
)
def test_options_of_follow_that_cannot_be_are_refused(options, message, tmp_path, capsys):
    (tmp_path / "a.log").write_text("x\n")
    assert run(["doctor", str(tmp_path / "a.log"), *options]) == 2
    assert message in capsys.readouterr().err


def test_baseline_says_what_differs(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(_CASES)
    arguments = ["doctor", "GDR-02.log", "--baseline", "OK-02-ib-2node-gdr.log"]
    assert run(arguments) == 1
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert out.index("In use") < out.index("Against the good run") < out.index("1. gdr_off")
    assert "GPUDirect RDMA      no; was yes" in out
    run([*arguments, "--format", "json"])
    differences = json.loads(capsys.readouterr().out)["baseline"]["differences"]
    assert {"what": "GPUDirect RDMA", "good": "yes", "now": "no"}.items() <= next(
        each for each in differences if each["what"] == "GPUDirect RDMA"
    ).items()


class _Runs:
    def __reduce__(self):
        return os.mkdir, ("made",)


_WARN = "h:1:2 [0] misc/socket.cc:1 NCCL WARN Net : Socket creation failed : Too many open files"
_ENTITIES = (
    '<!DOCTYPE s [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    '<system version="1"><cpu numaid="&b;"/></system>'
)


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"", 2, "is empty"),
        (bytes(range(256)) * 40, 2, "seems to be binary data"),
        (b"x" * (5 << 20), 3, "no line of NCCL"),
        (b"h:1:2 [0] NCCL WARN \xff\xfe\xc3\x28 odd\n", 3, "too little of NCCL's start"),
        ((_WARN + " é").encode()[:-1], 1, "fd_limit"),
        (_ENTITIES.encode(), 3, "has a document type"),
        (pickle.dumps({"entries": [_Runs()]}, 4), 2, "can run any program"),
        (pickle.dumps({"entries": []}, 4)[:-3], 2, "damaged pickle"),
        (pickle.dumps({"weights": [1.0]}, 4), 2, "no dump of PyTorch's Flight Recorder"),
        (b'{"pg_config": {"0": ' + b"[" * 200_000, 2, "nested too deep"),
        (b"\x1f\x8b\x08\x00garbage", 2, "gzip that is cut short"),
        (b"PK\x03\x04" + bytes(90), 2, "zip archive"),
    ],
    ids=[
        "empty", "binary", "one line", "invalid UTF-8", "cut character", "entities", "pickle that runs", "cut pickle",
        "other pickle", "deep JSON", "gzip", "zip",
    ],
)  # fmt: skip
def test_bad_input_gets_one_message_and_runs_nothing(data, code, words, tmp_path, capsys):
    given = tmp_path / "given"
    given.write_bytes(data)
    assert run(["doctor", str(given)]) == code
    shown = capsys.readouterr()
    assert words in shown.out + shown.err
    assert "Traceback" not in shown.err
    assert not Path("made").exists()


def test_escapes_in_dumps_and_in_a_good_run_never_reach_the_terminal(tmp_path, capsys):
    calls = [{"collective_seq_id": 2, "profiling_name": "nccl:\x1b[2Jx", "state": "started", "retired": True}]
    for rank, entries in enumerate((calls, calls, [{**calls[0], "profiling_name": "\x1b]0;y\x07"}])):
        dump = {"pg_config": {"0": {"ranks": "[0, 1, 2]"}}, "entries": entries}
        (tmp_path / f"trace\x1b[31m{rank}").write_bytes(pickle.dumps(dump, 2))
    good = tmp_path / "good.log"
    good.write_text("h\x1b[1m:1:2 [0] NCCL INFO NCCL_IB_HCA set by environment to \x1b[5mmlx5_0.\n")
    assert run(["doctor", str(tmp_path), "--baseline", str(good)]) == 1
    run(["doctor", "--follow", str(tmp_path), "--until-quiet", "50 ms"])
    shown = capsys.readouterr()
    assert "desync" in shown.out
    assert not [char for char in shown.out + shown.err if ord(char) < 32 and char != "\n"]


def test_what_is_in_use_is_one_sentence_where_nothing_of_it_is_seen(tmp_path, capsys):
    (tmp_path / "a.log").write_text("step=1\n")
    run(["doctor", str(tmp_path / "a.log")])
    out = capsys.readouterr().out
    assert "In use\n  nothing of it is visible in this log, set NCCL_DEBUG=INFO" in out
    assert out.count("not visible") == 0


def test_one_node_with_fewer_nics_is_named_against_the_cluster(tmp_path, monkeypatch, capsys):
    log = (_CASES / "OK-02-ib-2node-gdr.log").read_text()
    lines = [line.replace(" [1]mlx5_1:1/IB", "") if "hgx-02" in line else line for line in log.splitlines()]
    (tmp_path / "a.log").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["doctor", str(tmp_path / "a.log"), "--cluster", "dgx-h100:2"]) == 1
    out = capsys.readouterr().out
    assert "NICs per node   1 of 8" in out
    assert "on hgx-02; the node with the fewest sets the rate" in out
    assert "it lacks mlx5_1:1" in out
