"""The verb bench: what it prints and with which code it leaves, with a Python that plays torchrun."""

import csv
import io
import json
import subprocess
import sys

import pytest

from linkwise.cli.main import run
from tests.bench.playing import COLLECTIVES, PAIRS, TRAINING, fake_python


def bench(*words):
    return run(["bench", *words])


def collectives_python(path, wrong=0):
    return fake_python(path, COLLECTIVES.replace("WRONG", str(wrong)))


def test_json_has_every_sample_and_the_run(tmp_path, capsys):
    python = collectives_python(tmp_path)
    assert bench("collectives", "--python", python, "--sizes", "1KiB:4KiB", "--format", "json") == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["schema"], result["kind"], result["backend"]) == (
        "linkwise.bench/1",
        "collectives",
        "gloo",
    )
    assert [row["size_bytes"] for row in result["rows"]] == [1024, 2048, 4096]
    for row in result["rows"]:
        assert len(row["time"]["samples_s"]) == 9
        assert row["time"]["low_s"] <= row["time"]["median_s"] <= row["time"]["high_s"]
        assert row["busbw_bytes_per_s"] == pytest.approx(row["size_bytes"] / row["time"]["median_s"])
    (ran,) = result["runs"]
    assert (ran["outcome"], ran["hosts"], ran["versions"]["torch"]) == ("done", ["node-1"], "2.13.0")


@pytest.mark.parametrize(
    "words",
    [
        ("collectives", "all_reduce", "all_gather", "--sizes", "8B:64MiB"),
        ("collectives", "--sizes", "8B:64MiB", "--cluster", "dgx-h100:1"),
    ],
)
def test_tables_fit_80_columns(tmp_path, capsys, monkeypatch, words):
    monkeypatch.setenv("COLUMNS", "80")
    assert bench(*words, "--python", collectives_python(tmp_path)) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "64 MiB" in out
    assert "96.1 % of cases" in " ".join(out.split())


def test_gloo_has_no_ratio_to_a_model_of_nccl(tmp_path, capsys):
    words = ("--cluster", "dgx-h100:1", "--sizes", "1MiB", "--format", "json")
    assert bench("collectives", *words, "--python", collectives_python(tmp_path)) == 0
    predicted = json.loads(capsys.readouterr().out)["rows"][0]["predicted"]
    assert predicted["time_s"] > 0
    assert (predicted["ratio"], predicted["standing"]) == (None, None)


def test_csv_has_the_samples_in_one_cell(tmp_path, capsys):
    assert (
        bench("collectives", "--python", collectives_python(tmp_path), "--sizes", "1KiB", "--format", "csv")
        == 0
    )
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert len(row["samples_s"].split()) == 9


def test_wrong_results_are_a_judgement_against(tmp_path, capsys):
    assert bench("collectives", "--python", collectives_python(tmp_path, wrong=3), "--sizes", "1KiB") == 1
    assert "3 wrong elements" in capsys.readouterr().err


def test_a_slow_node_is_called_so_after_a_second_run(tmp_path, capsys):
    python = fake_python(tmp_path, PAIRS.replace("SLOW", "5"))
    folder = tmp_path / "out"
    assert bench("pairs", "--python", python, "--ranks", "10", "--format", "json", "-o", str(folder)) == 1
    result = json.loads(capsys.readouterr().out)
    assert (result["verdict"], len(result["runs"])) == ("slow nodes", 2)
    worst = result["nodes"][0]
    assert (worst["node"], worst["is_low"], worst["confirmed"]) == (5, True, True)
    assert sum(node["is_low"] for node in result["nodes"]) == 1
    assert sorted(each.name for each in folder.iterdir()) == ["first", "second"]


def test_a_node_that_is_low_once_is_not_called_slow(tmp_path, capsys):
    script = PAIRS.replace("SLOW in pair", "5 in pair and len(plan['rounds']) == 5")
    assert bench("pairs", "--python", fake_python(tmp_path, script), "--ranks", "10") == 3
    out = " ".join(capsys.readouterr().out.split())
    assert "Cannot tell: low in the first run: 5; not again beside good nodes" in out


def test_nodes_that_are_alike_pass_and_few_are_not_judged(tmp_path, capsys):
    python = fake_python(tmp_path, PAIRS.replace("SLOW", "-1"))
    assert bench("pairs", "--python", python, "--ranks", "8") == 0
    assert "Alike: no node is below" in capsys.readouterr().out
    assert bench("pairs", "--python", python, "--ranks", "4") == 3
    assert "4 nodes; at least 8" in capsys.readouterr().out


def test_losses_that_disagree_are_a_judgement_against(tmp_path, capsys):
    good = fake_python(tmp_path, TRAINING.replace("OFF", "0"))
    assert bench("training", "--python", good) == 0
    assert "they do" in capsys.readouterr().out
    bad = fake_python(tmp_path, TRAINING.replace("OFF", "0.5"))
    assert bench("training", "--python", bad, "--format", "json") == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["losses_agree"] is False
    assert "one computes wrongly" in err


def test_training_prints_phases_and_losses_in_80_columns(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert bench("training", "--python", fake_python(tmp_path, TRAINING.replace("OFF", "0"))) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    for word in ("forward", "backward", "optimizer", "tokens/s", "first loss"):
        assert word in out


FAILING = 'say("sample", operation="all_reduce", size_bytes=1024, calls=1, time_s=1e-3, first_s=1e-3)\n'


@pytest.mark.parametrize(
    ("script", "code", "message"),
    [
        (FAILING + "sys.exit(1)", 1, "the job ended badly (failed)"),
        (FAILING, 1, "the job ended badly (cut)"),
        ("sys.exit(1)", 4, "the job ended badly (failed)"),
        ("time.sleep(60)", 4, "the job ended badly (silent)"),
        ('say("sample", operation="x", size_bytes=8); say("done")', 2, "no size of a collective"),
    ],
)
def test_a_bad_end_is_said_and_nothing_is_left(  # noqa: PLR0917 (fixtures)
    tmp_path, capsys, monkeypatch, script, code, message
):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    assert bench("collectives", "--python", fake_python(tmp_path, script), "--patience", "1") == code
    assert message in capsys.readouterr().err
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["collectives", "all_reduc"], "did you mean all_reduce"),
        (["collectives", "--repeats", "4"], "at least 5 are needed"),
        (["collectives", "--sizes", "4MiB:1MiB"], "larger than the last"),
        (["collectives", "send_recv", "--ranks", "1"], "two ranks"),
        (["collectives", "--device", "cuda"], "sees no GPU"),
        (["collectives", "--isolate", "network"], "gloo, which has TCP alone"),
        (["collectives", "--cluster", "dgx-h100:1", "--ranks", "9"], "more than the 8"),
        (["collectives", "--cluster", "dgx-h1oo:1"], "did you mean"),
        (["collectives", "--ranks", "5000"], "1 to 1,024"),
        (["collectives", "--python", "/no/such/python"], "cannot be started"),
        (["collectives", "--python", "false"], "has no torch; pip install 'linkwise[torch]'"),
        (["pairs", "--ranks", "1"], "two nodes"),
        (["pairs", "--ranks", "4", "--rounds", "9"], "1 to 3 rounds"),
        (["pairs", "--size", "4"], "--size"),
        (["training", "zigzag"], "unknown cut"),
        (["training", "--steps", "3"], "at least 5"),
        (["training", "tensor", "--ranks", "3"], "8 heads"),
    ],
)
def test_wrong_use_is_one_clear_message(monkeypatch, capsys, words, message):
    monkeypatch.setattr("linkwise.bench.devices.Path.is_dir", lambda _: False, raising=False)
    assert bench(*words) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err
    assert len(err.splitlines()) <= 4


def test_a_folder_with_something_in_it_is_refused(tmp_path, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/notes.txt").touch()
    words = ("--python", collectives_python(tmp_path), "-o", str(tmp_path / "out"))
    assert bench("collectives", *words) == 2
    assert "there is something already" in capsys.readouterr().err
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["notes.txt"]


def test_help_and_wrong_use_import_no_torch_and_no_numpy():
    code = (
        "import sys; from linkwise.cli.main import run; run(['bench', 'collectives', '--help']); "
        "print([name for name in ('torch', 'numpy', 'pydantic', 'rich') if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
