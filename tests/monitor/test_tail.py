"""Files read as they grow: what comes out is what was written, through rotation and truncation."""

import os

from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.monitor.tail import FileTail, PipeTail

_MOST = 1 << 20


def _new(tail, most=_MOST):
    pieces = list(tail.pieces(most))
    return b"".join(each.data for each in pieces), any(each.is_restart for each in pieces)


def _append(path, data):
    with path.open("ab") as file:
        file.write(data)


def test_what_is_added_comes_out_once(tmp_path):
    path = tmp_path / "a.log"
    tail = FileTail(name="a", path=path)
    assert _new(tail) == (b"", False)
    _append(path, b"one\ntw")
    assert _new(tail) == (b"one\ntw", False)
    _append(path, b"o\n")
    assert _new(tail) == (b"o\n", False)
    assert _new(tail) == (b"", False)
    tail.close()


def test_a_renamed_file_is_read_to_its_end_before_the_new_one(tmp_path):
    path = tmp_path / "a.log"
    _append(path, b"one\n")
    tail = FileTail(name="a", path=path)
    _new(tail)
    path.rename(tmp_path / "a.log.1")
    _append(tmp_path / "a.log.1", b"two\n")
    assert _new(tail) == (b"two\n", False)
    path.touch()
    _append(tmp_path / "a.log.1", b"three\n")
    assert _new(tail) == (b"three\n", False), "the new file is empty, the writer may not have it yet"
    _append(tmp_path / "a.log.1", b"four\n")
    _append(path, b"five\n")
    pieces = list(tail.pieces(_MOST))
    assert [(each.data, each.is_restart) for each in pieces] == [
        (b"four\n", False),
        (b"", True),
        (b"five\n", False),
    ]
    tail.close()


def test_a_truncated_file_is_read_from_its_start(tmp_path):
    path = tmp_path / "a.log"
    _append(path, b"one\ntwo\n")
    tail = FileTail(name="a", path=path)
    _new(tail)
    path.write_bytes(b"x\n")
    assert _new(tail) == (b"x\n", True)
    tail.close()


def test_a_file_that_was_truncated_and_has_outgrown_itself_is_noticed(tmp_path):
    path = tmp_path / "a.log"
    _append(path, b"one\ntwo\n")
    tail = FileTail(name="a", path=path)
    _new(tail)
    path.write_bytes(b"three\nfour\nfive\n")
    assert _new(tail) == (b"three\nfour\nfive\n", True)
    tail.close()


def test_a_turn_is_bounded(tmp_path):
    path = tmp_path / "a.log"
    _append(path, bytes(5 << 20))
    tail = FileTail(name="a", path=path)
    assert len(_new(tail, most=1 << 20)[0]) == 1 << 20
    tail.close()


def test_a_file_that_cannot_be_opened_says_so_once(tmp_path):
    _append(tmp_path / "f", b"x")
    below = FileTail(name="f", path=tmp_path / "f" / "log")
    assert ["cannot be read" in each.fault for each in below.pieces(_MOST)] == [True]
    assert list(below.pieces(_MOST)) == []


def test_a_pipe_ends_with_its_writer():
    reader, writer = os.pipe()
    tail = PipeTail(name="p", descriptor=reader)
    assert _new(tail) == (b"", False)
    os.write(writer, b"one\n")
    assert _new(tail) == (b"one\n", False)
    assert not tail.is_over
    os.close(writer)
    assert _new(tail) == (b"", False)
    assert tail.is_over
    os.close(reader)


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "read", "rename", "truncate"]),
        st.binary(min_size=1, max_size=90),
    ),
    max_size=20,
)


@given(_STEPS)
@settings(max_examples=40, deadline=None)
def test_every_byte_comes_out_in_order_whatever_happens_to_the_file(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("tail")
    path = folder / "a.log"
    tail = FileTail(name="a", path=path)
    written, read = bytearray(), bytearray()
    for number, (step, data) in enumerate(steps):
        if step == "append":
            # Bytes that never repeat, so that a rewritten file cannot look like the one before.
            piece = b"%06d" % number + data
            _append(path, piece)
            written += piece
        read += _new(tail)[0]
        if step == "rename" and path.exists():
            path.rename(folder / f"a.log.{number}")
        elif step == "truncate" and path.exists():
            os.truncate(path, 0)
    read += _new(tail)[0]
    tail.close()
    assert read == written
