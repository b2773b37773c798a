"""The compiled catalogue: it is fresh, and every fault of an entry is refused with its file and key."""

import json
from pathlib import Path

import pytest

from linkwise.catalog import compile as compiler
from linkwise.catalog import store
from linkwise.errors import DocumentError

SOURCES = "stas_acc: {reference: stas00/ml-engineering}\n"
GPU = "name: a10\ntext: {architecture: Ampere}\nfigures:\n"
GOOD = "  memory_bytes: {value: 24 GB, basis: datasheet, source: stas_acc}\n"


def faults_of(
    folder: Path, gpu: str = GPU + GOOD, *, file: str = "a10.yaml", sources: str = SOURCES
) -> list[str]:
    (folder / "gpus").mkdir(exist_ok=True)
    (folder / "gpus" / file).write_text(gpu, encoding="utf-8")
    (folder / "sources.yaml").write_text(sources, encoding="utf-8")
    try:
        compiler.compile_catalog(folder)
    except DocumentError as error:
        return str(error).splitlines()
    return []


def test_committed_file_is_what_the_entries_compile_to() -> None:
    fresh = compiler.render(compiler.compile_catalog())
    stale = fresh != store.COMPILED.read_text(encoding="utf-8")
    assert not stale, "run python -m linkwise.catalog.compile and commit catalog.json"


def test_compile_takes_a_good_entry(tmp_path: Path) -> None:
    assert faults_of(tmp_path) == []


def test_values_are_kept_in_si_without_conversion_dust(tmp_path: Path) -> None:
    field = "  pcie_bytes_per_s: {value: 400 Gbit/s, basis: datasheet, source: stas_acc}\n"
    faults_of(tmp_path, GPU + GOOD + field)
    figures = compiler.compile_catalog(tmp_path)["entries"]["gpu"]["a10"]["figures"]
    assert figures["memory_bytes"][0] == 24_000_000_000
    assert figures["pcie_bytes_per_s"][0] == 50_000_000_000


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        ("tdp_w: {value: 150 W, basis: datasheet}", "give value, basis and source"),
        ("tdp_w: {value: 150 W, basis: datasheet, source: stas_acc, why: x}", "no more"),
        ("tdp_w: {value: 150 W, basis: datasheet, source: nobody}", "nobody is not in sources.yaml"),
        ("tdp_w: {value: 150 W, basis: datasheet, source: []}", "missing is not in sources.yaml"),
        ("tdp_w: {value: 150 W, basis: guessed, source: stas_acc}", "'guessed' is none of datasheet"),
        ("tdp_w: {value: 150 W, basis: assumed, source: stas_acc}", "say in a note why"),
        ("tdp_w: {value: 150, basis: datasheet, source: stas_acc}", "has no unit"),
        ("tdp_w: {value: 150 furlong, basis: datasheet, source: stas_acc}", "unknown unit 'furlong'"),
        ("tdp_w: {value: 150 GB, basis: datasheet, source: stas_acc}", "not a unit of a power"),
        ("tdp: {value: 150 W, basis: datasheet, source: stas_acc}", "says no unit"),
        ("pcie_lanes: {value: 16 B, basis: datasheet, source: stas_acc}", "not a plain number"),
        ("price_usd: {value: 900 USD, basis: datasheet, source: stas_acc}", "a price ages: give its date"),
    ],
)
def test_compile_refuses_a_figure_that(tmp_path: Path, figure: str, message: str) -> None:
    (fault,) = faults_of(tmp_path, GPU + GOOD + "  " + figure + "\n")
    assert fault.startswith(f"gpus/a10.yaml: figures.{figure.partition(':')[0]}: ")
    assert message in fault


def test_compile_reports_all_faults_together(tmp_path: Path) -> None:
    bad = "name: A10\ncolour: green\ntext: {}\nfigures:\n  tdp_w: {value: 150}\n"
    assert len(faults_of(tmp_path, bad)) == 4  # name, key, figure, and the source that nothing cites then


def test_compile_refuses_a_source_that_nothing_cites(tmp_path: Path) -> None:
    (fault,) = faults_of(tmp_path, sources=SOURCES + "idle: {reference: none}\n")
    assert fault == "sources.yaml: idle: no figure cites this source; remove it"


def test_compile_refuses_an_alias_of_two_entries(tmp_path: Path) -> None:
    aliased = GPU.replace("text", "aliases: [A10 PCIe]\ntext") + GOOD
    assert faults_of(tmp_path, aliased) == []
    (fault,) = faults_of(tmp_path, aliased.replace("name: a10", "name: a10g"), file="a10g.yaml")
    assert "'A10 PCIe' also finds a10" in fault


def test_compile_refuses_a_system_of_unknown_parts(tmp_path: Path) -> None:
    (tmp_path / "systems").mkdir()
    system = "name: box\ntext: {kind: system, gpu: a11, link: ndr}\nfigures: {}\n"
    (tmp_path / "systems" / "box.yaml").write_text(system, encoding="utf-8")
    assert [fault.partition(": ")[2] for fault in faults_of(tmp_path)] == [
        "text.gpu: there is no gpu 'a11'",
        "text.link: there is no link 'ndr'",
    ]


def test_main_writes_nothing_when_an_entry_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    faults_of(tmp_path, file="b10.yaml")
    monkeypatch.setattr(compiler, "DATA", tmp_path)
    monkeypatch.setattr(compiler, "COMPILED", tmp_path / "catalog.json")
    assert compiler.main() == 2
    assert "gpus/b10.yaml: name" in capsys.readouterr().err
    assert not (tmp_path / "catalog.json").exists()


def test_rendered_file_is_json_with_one_entry_on_a_line() -> None:
    text = store.COMPILED.read_text(encoding="utf-8")
    assert json.loads(text)["entries"]["gpu"]["h100-sxm"]["text"]["architecture"] == "Hopper"
    assert max(len(line) for line in text.splitlines()) < 5000
