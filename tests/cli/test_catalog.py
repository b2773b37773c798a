import csv
import io
import json

import pytest

from linkwise.cli.main import run
from linkwise.errors import ExitCode


@pytest.fixture(autouse=True)
def _no_stated_width(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)


def _printed(capsys, *words):
    assert run(["catalog", *words]) == 0
    return capsys.readouterr().out


def test_kinds_are_listed_when_none_is_named(capsys):
    assert all(kind in _printed(capsys) for kind in ("gpu", "system", "link", "switch", "nic", "model"))


def test_systems_have_gpu_nic_and_fabric(capsys):
    (line,) = [line for line in _printed(capsys, "systems").splitlines() if line.startswith("dgx-b200 ")]
    assert all(word in line for word in ("b200-sxm", "connectx-7", "infiniband-ndr-400"))


@pytest.mark.parametrize("words", [("gpu", "H100_SXM"), ("h100-sxm",)])
def test_entry_has_value_basis_and_source_of_every_figure(capsys, words):
    printed = _printed(capsys, *words)
    assert printed.startswith("gpu h100-sxm")
    assert all(word in printed for word in ("450 GB/s", "3.35 TB/s", "989 TFLOP/s", "datasheet", "stas_net"))


def test_json_has_figures_and_the_sources_they_cite(capsys):
    published = json.loads(_printed(capsys, "gpu", "h100-sxm", "--format", "json"))
    (entry,) = published["entries"]
    assert published["schema"] == "linkwise.catalog/1"
    assert entry["figures"]["nvlink_bytes_per_s"]["value"] == 450e9
    assert set(entry["sources"]) == set(published["sources"])


def test_csv_has_a_row_for_each_figure(capsys):
    rows = list(csv.DictReader(io.StringIO(_printed(capsys, "link", "--format", "csv"))))
    assert {"name": "infiniband-ndr-400", "field": "bytes_per_s", "value": "50000000000.0"}.items() <= next(
        row for row in rows if row["name"] == "infiniband-ndr-400"
    ).items()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("gpuz",), "unknown kind or name 'gpuz'"),
        (("gpu", "h1000-sxm"), "did you mean h100-sxm"),
        (("chair", "x"), "unknown kind of entry 'chair'"),
    ],
)
def test_unknown_names_are_refused(capsys, words, says):
    assert run(["catalog", *words]) == ExitCode.WRONG_INPUT
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("words", [(), ("gpu",), ("systems",), ("models",), ("latency",), ("h100-sxm",)])
def test_no_word_is_cut_on_a_narrow_terminal(words, capsys, monkeypatch):
    whole = set(_printed(capsys, *words).split())
    monkeypatch.setenv("COLUMNS", "60")
    assert set(_printed(capsys, *words).split()) == whole


def test_an_entry_is_one_line_in_a_pipe(capsys):
    (line,) = [line for line in _printed(capsys, "gpu").splitlines() if line.startswith("h100-sxm ")]
    assert all(word in line for word in ("85.5 GB", "450 GB/s", "nvidia_smi"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("zzzz",), "'linkwise catalog' lists the kinds"),
        (("",), "'linkwise catalog' lists the kinds"),
        (("gpu", ""), "unknown GPU ''"),
        (
            ("gpu", "dgx-h100"),
            "'dgx-h100' is no gpu but a system; 'linkwise catalog system dgx-h100' prints it",
        ),
    ],
)
def test_a_refusal_says_where_to_look(words, says, capsys):
    assert run(["catalog", *words]) == ExitCode.WRONG_INPUT
    assert says in capsys.readouterr().err
