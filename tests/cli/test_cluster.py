"""`linkwise cluster import` and `export`, as a user meets them."""

from pathlib import Path

import pytest

from linkwise.cli.main import run
from linkwise.cluster import load_cluster
from linkwise.errors import ExitCode
from linkwise.network.exports import EXPORTS

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


@pytest.mark.parametrize("form", sorted(EXPORTS))
def test_every_format_is_written_and_its_help_names_it(form, capsys):
    assert run(["cluster", "export", form, "dgx-h100:8"]) == ExitCode.DONE
    assert capsys.readouterr().out.endswith("\n")
    run(["cluster", "export", "--help"])
    assert form in capsys.readouterr().out


def test_an_unknown_format_is_told_the_nearest(capsys):
    assert run(["cluster", "export", "slurm-tee", "dgx-h100:8"]) == ExitCode.WRONG_INPUT
    assert "slurm-tree" in capsys.readouterr().err


def test_an_export_leaves_a_file_that_is_there_alone(tmp_path, capsys):
    out = tmp_path / "topology.conf"
    line = ["cluster", "export", "slurm-tree", "dgx-h100:8", "--output", str(out)]
    assert run(line) == ExitCode.DONE
    before = out.read_text(encoding="utf-8")
    assert run(line) == ExitCode.WRONG_INPUT
    assert "exists and is left alone" in capsys.readouterr().err
    assert out.read_text(encoding="utf-8") == before


@pytest.mark.parametrize("form", ["nccl-xml", "slurm-tree", "slurm-block", "slurm-yaml", "topograph"])
@pytest.mark.parametrize("system", ["dgx-h100:64", "dgx-a100:300"])
def test_what_is_exported_is_imported_again(form, system, tmp_path, capsys):
    there, back = tmp_path / "there", tmp_path / "back.yaml"
    assert run(["cluster", "export", form, system, "--output", str(there)]) == ExitCode.DONE
    name, nodes = system.split(":")
    given = ["--system", name] + (["--nodes", nodes] if form == "nccl-xml" else [])
    assert run(["cluster", "import", str(there), *given, "--output", str(back)]) == ExitCode.DONE
    capsys.readouterr()
    first, second = load_cluster(system), load_cluster(str(back))
    assert (second.nodes, second.gpus, second.gpu, second.nics_per_node) == (
        first.nodes,
        first.gpus,
        first.gpu,
        first.nics_per_node,
    )


@pytest.mark.parametrize(
    ("files", "options"),
    [
        (("topo-4-nic-legend-dgx-h100.txt", "ibnetdiscover-rails.txt"), ("--system", "dgx-h100")),
        (("iblinkinfo-leaf-spine.txt",), ("--system", "azure-nd-a100-v4")),
        (("iblinkinfo-lines.txt",), ("--system", "dgx-h100")),
        (("nccl-dgx-h100.xml",), ("--nodes", "64")),
        (("slurm-tree.conf",), ("--system", "dgx-b200")),
    ],
)
def test_fabric_reads_what_import_writes(told, tmp_path, files, options):
    path = tmp_path / "c.yaml"
    code, _, err = told(
        "cluster", "import", *(str(DATA / each) for each in files), *options, "--output", str(path)
    )
    assert code == ExitCode.DONE, err
    code, out, err = told("fabric", str(path))
    assert code == ExitCode.DONE, err
    stated = load_cluster(str(path)).fabric.oversubscription
    is_reached = "Oversubscription at the fullest leaf" in out
    assert is_reached or stated == 1 or f"oversubscription {stated:g} to 1 is not reached" in out
