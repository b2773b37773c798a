import io
import time
from pathlib import Path

import pytest

from linkwise.calibrate.measured import read_measurements
from linkwise.calibrate.run_file import read_rows, source_of
from linkwise.errors import DocumentError, InputError


def test_read_rows_gives_line_of_each_row_when_a_cell_spans_lines(write_runs, row):
    path = write_runs(row(inter_link="two\nlines"), row(id="MINE-002"))
    assert [(line, cells["id"]) for line, cells in read_rows(path)] == [(2, "MINE-001"), (4, "MINE-002")]


@pytest.mark.parametrize("change", [lambda text: "\ufeff" + text, lambda text: text.replace("\n", "\r\n")])
def test_read_rows_is_the_same_with_byte_order_mark_or_windows_line_ends(write_runs, row, change):
    path = write_runs(row())
    plain = read_rows(path)
    path.write_bytes(change(path.read_text(encoding="utf-8")).encode())
    assert read_rows(path) == plain


def test_read_rows_names_every_missing_column(write_runs, row):
    path = write_runs(row(), drop=("tp", "recompute", "step_time_s"))
    with pytest.raises(InputError, match=r"runs\.csv:1: columns are missing: tp, recompute, step_time_s or"):
        read_rows(path)


def test_read_rows_suggests_the_column_that_was_meant(write_runs, row):
    path = write_runs({**row(), "Micro_Batch": "1"}, drop=("micro_batch",))
    with pytest.raises(InputError, match="did you write Micro_Batch for micro_batch"):
        read_rows(path)


def test_read_rows_offers_config_when_the_shape_is_missing(write_runs, row):
    with pytest.raises(InputError, match="a column config"):
        read_rows(write_runs(row(), drop=("layers",)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\n\n", "the file is empty"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\xff", "not UTF-8 text, so no CSV"),
        (b"id;source_year;framework\nA;2024;x\n", "cells must be separated by commas"),
        (b'{"rows": []}', "columns are missing: id, "),
        (b"id,id,seq\n", "columns are named twice: id"),
        (b"id," + b"x" * 200_000 + b"\n", "not a CSV file"),
    ],
)
def test_read_rows_says_what_is_wrong_with_a_file_that_is_no_table_of_runs(tmp_path, content, message):
    path = tmp_path / "runs.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_rows(path)


def test_read_rows_reads_standard_input_as_a_file(write_runs, row, monkeypatch):
    path = write_runs(row())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    assert read_rows(Path("-")) == read_rows(path)


def test_read_rows_is_soon_done_with_a_line_that_is_very_long(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(",".join(f"c{place}" for place in range(100_000)) + "\n", encoding="utf-8")
    began_s = time.process_time()
    with pytest.raises(InputError, match="columns are missing: id, "):
        read_rows(path)
    assert time.process_time() - began_s < 5


def test_read_rows_refuses_an_endless_file(monkeypatch):
    monkeypatch.setattr("linkwise.calibrate.run_file.LARGEST_BYTES", 2_000_000)
    with pytest.raises(InputError, match="/dev/zero: is larger than 2 MB"):
        read_rows(Path("/dev/zero"))


def test_read_rows_says_there_is_no_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_rows(tmp_path / "none.csv")
    with pytest.raises(InputError, match="cannot be read"):
        read_rows(tmp_path)


def test_read_rows_refuses_an_unclosed_quote_and_a_truncated_row(write_runs, row):
    path = write_runs(row(), row(id="MINE-002"))
    text = path.read_text(encoding="utf-8")
    path.write_text(text + '"MINE-003,', encoding="utf-8")
    with pytest.raises(InputError, match=r"not a CSV file \(unexpected end of data\)"):
        read_rows(path)
    path.write_text(text[:-20], encoding="utf-8")
    with pytest.raises(DocumentError, match=r"runs\.csv:3: \d+ cells where the heading has \d+"):
        read_rows(path)


@pytest.mark.parametrize(
    ("column", "text", "message"),
    [
        ("tp", "two", "'two' is not a number"),
        ("tp", "0", "'0' is not between 1 and"),
        ("tp", "1.5", "'1.5' is not a whole number"),
        ("dp", "-4", "'-4' is not between"),
        ("step_time_s", "nan", "'nan' is not between"),
        ("step_time_s", "inf", "'inf' is not between"),
        ("step_time_s", "1e999", "'1e999' is not between"),
        ("n_gpus", "inf", "'inf' is not between"),
        ("gpus_per_node", "1000000000", "is not between 1 and 10000"),
        ("zero_stage", "4", "'4' is not between 0 and 3"),
        ("hidden", "x" * 5000, "is not a number"),
    ],
)
def test_read_measurements_refuses_a_cell_with_its_line_and_column(write_runs, row, column, text, message):
    path = write_runs(row(), row(id="MINE-002", **{column: text}))
    with pytest.raises(DocumentError) as refused:
        read_measurements(path)
    (fault,) = refused.value.faults
    assert (fault.line, fault.key) == (3, column)
    assert message in fault.message
    assert len(fault.message) < 200


def test_read_measurements_gathers_the_faults_of_all_rows(write_runs, row):
    path = write_runs(row(tp="x", pp="y"), row(), row(step_time_s="-1"), row(task="lora", tp="z"))
    with pytest.raises(DocumentError) as refused:
        read_measurements(path)
    assert [(fault.line, fault.key) for fault in refused.value.faults] == [
        (2, "tp"),
        (2, "pp"),
        (4, "step_time_s"),
    ]


@pytest.mark.parametrize(
    ("identity", "source"),
    [
        ("SC21-007", "SC21"),
        ("VTRAIN-S0014", "VTRAIN-S"),
        ("run 3", "run"),
        ("mine", "mine"),
        ("12", "unnamed"),
    ],
)
def test_source_of_is_the_id_without_its_number(identity, source):
    assert source_of(identity) == source
