"""Programs of nccl-tests driven and read: fakes that print real output."""

import json
import sys
from pathlib import Path

import pytest

from linkwise.cli.main import run

LOG = Path(__file__).parents[1] / "data/nccl_tests/all-reduce-one-nic.txt"


def fake(path, script, name="all_reduce_perf"):
    path.mkdir(exist_ok=True)
    program = path / name
    program.write_text(
        f"#!{sys.executable}\nimport os, sys, time\nlog = open({str(LOG)!r}).read()\n{script}\n"
    )
    program.chmod(0o755)
    return path


def bench(path, *words):
    return run(
        ["bench", "collectives", "--nccl-tests", str(path), "--ranks", "16", "--sizes", "1MiB:8GiB", *words]
    )


def test_each_repeat_is_a_run_whose_table_is_read(tmp_path, capsys):
    told = tmp_path / "argv"
    script = f"open({str(told)!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n'); print(log)"
    code = bench(
        fake(tmp_path / "bin", script), "--repeats", "5", "--format", "json", "-o", str(tmp_path / "out")
    )
    result = json.loads(capsys.readouterr().out)
    assert code == 0
    assert (result["backend"], len(result["runs"]), len(result["rows"])) == ("nccl-tests", 5, 14)
    first = result["rows"][0]
    assert (first["size_bytes"], first["wrong"]) == (2**20, 0)
    assert first["time"]["samples_s"] == pytest.approx([121.17e-6] * 5)  # out of place, as the file has it
    assert first["busbw_bytes_per_s"] == pytest.approx(16.23e9, rel=1e-3)
    words = told.read_text().splitlines()
    assert words == ["-t 16 -g 1 -b 1048576 -e 8589934592 -f 2 -n 20 -w 5 -c 1"] * 5
    assert json.loads((tmp_path / "out/all_reduce-5/record.json").read_text())["outcome"] == "done"


def test_predictions_stand_beside_and_say_what_is_slower(tmp_path, capsys):
    assert bench(fake(tmp_path / "bin", "print(log)"), "--repeats", "5", "--cluster", "dgx-h100:2") == 0
    out = capsys.readouterr().out
    assert "beside dgx-h100:2" in out
    assert "slower" in out  # the log is of a run with one NIC of eight


@pytest.mark.parametrize(
    ("script", "code", "message"),
    [
        ("print('no CUDA-capable device'); sys.exit(3)", 4, "no CUDA-capable device"),
        ("print('hello')", 2, "what it printed cannot be read"),
        ("print(log.replace('Rank 15', 'Rank 14'))", 2, "ran on 15 GPUs, and 16 were asked for"),
        ("print(log); sys.exit(1)", 1, "exit code 1"),
        ("print(log, flush=True); time.sleep(60)", 1, "said nothing for"),
    ],
)
def test_a_program_that_fails_is_said(tmp_path, capsys, script, code, message):
    assert bench(fake(tmp_path / "bin", script), "--repeats", "5", "--patience", "1") == code
    assert message in capsys.readouterr().err


def test_wrong_results_are_a_judgement_against(tmp_path, capsys):
    script = "print(log.replace('16.23      0', '16.23      7')); sys.exit(1)"
    assert bench(fake(tmp_path / "bin", script), "--repeats", "5") == 1
    assert "7 wrong elements" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["all_gather"], "has no program all_gather_perf"),
        (["--sizes", "1MiB,3MiB"], "sizes that double"),
        (["--python", "python3"], "--python: no effect with --nccl-tests"),
        (["--device", "cpu"], "no CPUs to run on"),
        (["--ranks", "-3"], "1 to 1,024 ranks"),
    ],
)
def test_options_that_do_not_go_with_it_are_refused(tmp_path, capsys, words, message):
    assert bench(fake(tmp_path / "bin", "print(log)"), *words) == 2
    assert message in capsys.readouterr().err


def test_a_directory_that_is_not_there_is_refused(tmp_path, capsys):
    assert bench(tmp_path / "gone") == 2
    assert "there is no such directory" in capsys.readouterr().err


ISOLATED = "'h1:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0'"


@pytest.mark.parametrize(
    ("lines", "code", "message"),
    [
        (f"assert os.environ['NCCL_P2P_DISABLE'] == '1'; print({ISOLATED})", 0, "network alone was used"),
        (
            "print('h1:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct')",
            1,
            "network was not isolated",
        ),
        ("pass", 3, "cannot tell whether network was isolated"),
    ],
)
def test_isolation_is_proved_from_the_log(tmp_path, capsys, lines, code, message):
    words = ("--repeats", "5", "--isolate", "network")
    assert bench(fake(tmp_path / "bin", f"{lines}\nprint(log)"), *words) == code
    assert message in " ".join(capsys.readouterr().out.split())
