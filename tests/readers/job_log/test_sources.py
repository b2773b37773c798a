"""Inputs of every kind, and those that are none."""

import gzip
import io
import os
import zlib

import pytest

from linkwise.errors import DocumentError
from linkwise.readers.job_log.reading import read_job_logs

_LINE = b"h:1:2 [0] NCCL INFO Using network IB\n"


def test_standard_input_is_read():
    log = read_job_logs(["-"], stdin=io.BytesIO(_LINE))
    assert [each.name for each in log.inputs] == ["<stdin>"]
    assert "network" in log.sightings


def test_members_of_one_gzip_are_read_on(tmp_path):
    (tmp_path / "a.gz").write_bytes(
        gzip.compress(_LINE, mtime=0)
        + gzip.compress(b"h:1:2 [0] NCCL INFO Bootstrap : Using eth0:1.2.3.4<0>\n")
    )
    assert set(read_job_logs([str(tmp_path / "a.gz")]).sightings) == {"network", "bootstrap"}


def test_a_folder_is_all_files_in_it(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.log").write_bytes(_LINE)
    (tmp_path / "a.log").write_bytes(_LINE)
    (tmp_path / ".hidden").write_bytes(_LINE)
    assert len(read_job_logs([str(tmp_path)]).inputs) == 2


@pytest.mark.parametrize(("data", "words"), [
    (b"", "is empty"),
    (b"\x7fELF" + bytes(100), "ELF"),
    (b"logs/rank0.log".ljust(257, b"\0") + b"ustar\x0000" + bytes(248) + _LINE, "tar -xf"),
    (b"logs/rank0.log".ljust(257, b"\0") + b"ustar  \0" + bytes(248) + _LINE, "tar -xf"),
    (gzip.compress(b"logs/rank0.log".ljust(257, b"\0") + b"ustar\x0000" + bytes(248), mtime=0), "tar -xf"),
    (b"\x89PNG\r\n" + bytes(100), "PNG"),
    (b"PK\x03\x04" + bytes(100), "zip archive"),
    ("NCCL INFO".encode("utf-16"), "UTF-16"),
    (bytes(range(256)) * 40, "binary"),
    (b"\x1f\x8b" + b"garbage" * 9, "damaged gzip"),
    (b"\x28\xb5\x2f\xfd" + bytes(9), "zstd"),
])  # fmt: skip
def test_what_is_no_log_is_named(tmp_path, data, words):
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(DocumentError, match=words):
        read_job_logs([str(tmp_path / "x")])


def test_a_bad_file_beside_a_good_one_is_left_out_and_said(tmp_path):
    (tmp_path / "a.log").write_bytes(_LINE)
    (tmp_path / "b.bin").write_bytes(b"\x7fELF" + bytes(100))
    log = read_job_logs([str(tmp_path)])
    assert len(log.inputs) == 1
    assert "b.bin" in log.unread[0]


def test_a_gzip_bomb_is_refused_early(tmp_path):
    packer = zlib.compressobj(9, wbits=31)
    packed = b"".join(packer.compress(b"a" * (1 << 24)) for _ in range(20)) + packer.flush()
    (tmp_path / "bomb.gz").write_bytes(packed)
    with pytest.raises(DocumentError, match="swells"):
        read_job_logs([str(tmp_path / "bomb.gz")])


def test_one_line_of_many_megabytes_is_bounded(tmp_path):
    (tmp_path / "long.log").write_bytes(b"x" * 30_000_000 + b"\n" + _LINE)
    log = read_job_logs([str(tmp_path / "long.log")])
    assert log.sightings["network"][0].evidence.text == _LINE.decode().strip()


def test_a_missing_file_names_the_nearest(tmp_path):
    (tmp_path / "train.log").write_bytes(_LINE)
    with pytest.raises(DocumentError, match=r"did you mean .*train\.log"):
        read_job_logs([str(tmp_path / "trian.log")])


def test_a_file_without_permission_is_said(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (tmp_path / "a.log").write_bytes(_LINE)
    (tmp_path / "a.log").chmod(0)
    with pytest.raises(DocumentError, match="Permission denied"):
        read_job_logs([str(tmp_path / "a.log")])


def test_hostile_xml_is_refused_and_said(tmp_path):
    (tmp_path / "topo.xml").write_text('<!DOCTYPE x [<!ENTITY a "aaaa">]>\n<system version="1">&a;</system>')
    assert read_job_logs([str(tmp_path / "topo.xml")]).unread
