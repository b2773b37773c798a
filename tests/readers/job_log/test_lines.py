"""Prefixes of every launcher, and text that no terminal acts on."""

import pytest

from linkwise.readers.job_log.lines import clean_text, parse_prefix


@pytest.mark.parametrize("prefix", [
    b"node-7:123:456 [3] ",
    b"[1,5]<stdout>:node-7:123:456 [3] ",
    b"5: node-7:123:456 [3] ",
    b"[default3]:node-7:123:456 [3] ",
    b"[rank3]:node-7:123:456 [3] ",
    b"train-worker-0: node-7:123:456 [3] ",
    b"(RayWorkerWrapper pid=1, ip=10.0.0.2) node-7:123:456 [3] ",
    b"2025-03-18T09:10:02.118000000Z node-7:123:456 [3] ",
    b"2025-03-18 09:10:02,118 | INFO | node-7:123:456 [3] ",
    b"\x1b[36m(pid=9)\x1b[0m node-7:123:456 [3] ",
    b"[2025-03-18 09:10:00] node-7:123:456 [3] ",
    b"[2025-03-18 09:10:00] node-7:123:456 [3] misc/socket.cc:71 ",
    b"node-7:123:456 [3] misc/ibvwrap.cc:243 (wrap_ibv_reg_mr_iova2) ",
    b"node-7:123:456 [3] ofi_process_cq:1039 ",
    b"node-7:123:456 [3] NCCL INFO ",
])  # fmt: skip
def test_process_is_told_from_any_prefix(prefix):
    found = parse_prefix(prefix)
    assert (found.host, found.pid, found.device) == ("node-7", 123, 3)


def test_source_file_of_a_warning_is_kept_without_its_line():
    assert parse_prefix(b"h:1:2 [0] misc/socket.cc:71 ").source == "misc/socket.cc"


def test_torn_prefix_names_no_process():
    assert parse_prefix(b"56 [3] ").host is None


@pytest.mark.parametrize("raw", [
    b"\x1b[31mred\x1b[0m", b"\x1b]0;title\x07red", b"\x1b[2J\x1b[Hred", b"\x9b31mred"[1:], b"r\x08ed\x00", b"\xe2\x80\xaered",
])  # fmt: skip
def test_text_has_no_escape_left(raw):
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 or char == "\u202e" for char in clean_text(raw))


def test_broken_utf8_is_replaced():
    assert clean_text(b"a\xffb\xe2\x82") == "a\ufffdb\ufffd"


def test_long_lines_are_cut():
    assert len(clean_text(b"x" * 10_000)) == 500
