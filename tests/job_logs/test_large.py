"""The writer of long logs."""

import argparse

import pytest

from tests.job_logs.large import main, size_of


def test_size_when_units_are_written():
    assert size_of("1GiB") == 2**30
    assert size_of("1.5MB") == 1_500_000
    assert size_of("4096") == 4096


@pytest.mark.parametrize("text", ["", "GiB", "1 parsec", "-3"])
def test_size_when_it_is_none(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is no size"):
        size_of(text)


def test_file_has_that_length_and_every_tenth_line_of_nccl(tmp_path, capsys):
    path = tmp_path / "large.log"
    assert main([str(path), "--bytes", "1MiB", "--ranks", "16", "--nccl-every", "10", "--port-error"]) == 0
    text = path.read_text()
    assert 0.98 * 2**20 < len(text) < 1.01 * 2**20
    later = text[text.index("| loss") :].splitlines()
    share = sum("NCCL INFO AllReduce" in row for row in later) / len(later)
    assert share == pytest.approx(0.1, abs=0.01)
    assert "Got async error event: port error" in text[-2000:]
    assert "MiB in" in capsys.readouterr().err


def test_ranks_below_one_are_refused(tmp_path):
    with pytest.raises(SystemExit) as stop:
        main([str(tmp_path / "x"), "--ranks", "0"])
    assert stop.value.code == 2
