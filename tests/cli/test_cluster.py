"""`linkwise cluster import`, as a user meets it."""

from pathlib import Path

import pytest

from linkwise.cli.main import run
from linkwise.cluster import load_cluster
from linkwise.errors import ExitCode

DATA = Path(__file__).parents[1] / "data/imports"
XML = str(DATA / "nccl-dgx-h100.xml")


@pytest.fixture
def told(capsys):
    def tell(*arguments):
        code = run(arguments)
        said = capsys.readouterr()
        return code, said.out, said.err

    return tell


def test_document_goes_to_standard_output_and_what_was_read_beside_it(told):
    code, out, err = told("cluster", "import", XML, "--nodes", "4")
    assert code == ExitCode.DONE
    assert "linkwise: cluster/1\nnodes: 4  # as the option says\nnode: dgx-h100" in out
    assert f"linkwise: read {XML} as NCCL topology XML\n" in err


def test_output_is_a_document_that_plans(told, tmp_path):
    path = tmp_path / "c.yaml"
    code, out, _ = told("cluster", "import", XML, "--nodes", "4", "--name", "lab", "--output", str(path))
    assert (code, out) == (ExitCode.DONE, "")
    assert load_cluster(str(path)).name == "lab"
    assert [each.name for each in tmp_path.iterdir()] == ["c.yaml"]
    code, _, _ = told(
        "plan", "--model", "llama-3.1-8b", "--sequence-length", "8192", "--global-batch", "64",
        "--cluster", str(path), "--top", "1",
    )  # fmt: skip
    assert code == ExitCode.DONE


def test_nothing_is_written_when_a_file_is_wrong(told, tmp_path):
    path = tmp_path / "c.yaml"
    bad = tmp_path / "bad.xml"
    bad.write_text("<system>")
    code, out, err = told("cluster", "import", XML, str(bad), "--output", str(path))
    assert (code, out, path.exists()) == (ExitCode.WRONG_INPUT, "", False)
    assert f"{bad}:1: not well-formed XML" in err
    assert f"not read: {bad}" in err


def test_file_that_exists_is_left_alone(told, tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("mine")
    code, _, err = told("cluster", "import", XML, "--output", str(path))
    assert (code, path.read_text()) == (ExitCode.WRONG_INPUT, "mine")
    assert "exists and is left alone" in err


def test_files_that_cannot_be_read_are_told_together(told, tmp_path):
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    code, _, err = told("cluster", "import", str(tmp_path / "none"), str(binary), XML, XML)
    assert code == ExitCode.WRONG_INPUT
    assert "no such file" in err
    assert "is not UTF-8 text" in err
    assert "is given twice" in err


def test_command_without_files_says_what_is_missing(told):
    code, _, err = told("cluster", "import")
    assert code == ExitCode.WRONG_INPUT
    assert "FILE" in err


def test_standard_input_is_read_and_the_output_can_be_planned_from_a_pipe(told, monkeypatch):
    import io
    import sys
    from types import SimpleNamespace

    matrix = (DATA / "topo-4-nic-legend-dgx-h100.txt").read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(matrix)))
    code, out, err = told("cluster", "import", "-", "--system", "dgx-h100", "--nodes", "2")
    assert code == ExitCode.DONE
    assert "linkwise: read <stdin> as nvidia-smi topo -m" in err
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(out.encode())))
    code, _, _ = told(
        "plan", "--model", "llama-3.1-8b", "--sequence-length", "8192", "--global-batch", "64",
        "--cluster", "-", "--top", "1",
    )  # fmt: skip
    assert code == ExitCode.DONE


def test_files_that_cannot_be_opened_are_told_with_the_faults_of_the_others(told, tmp_path):
    bad = tmp_path / "bad.xml"
    bad.write_text("<system>")
    code, _, err = told("cluster", "import", str(tmp_path / "none"), str(bad), XML)
    assert code == ExitCode.WRONG_INPUT
    assert "no such file" in err
    assert f"{bad}:1: not well-formed XML" in err
    assert f"read: {XML} as NCCL topology XML; not read: {tmp_path / 'none'}, {bad}" in err
