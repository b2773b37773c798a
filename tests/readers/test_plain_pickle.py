"""Pickles of plain values are read as Python reads them; anything else is refused and nothing runs."""

import contextlib
import os
import pickle
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.readers.plain_pickle import NotPlain, is_pickle, load_plain

_KEYS = st.one_of(st.text(max_size=5), st.integers(-(2**70), 2**70), st.booleans(), st.none())
_VALUES = st.recursive(
    st.one_of(_KEYS, st.floats(allow_nan=False)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.lists(inner, max_size=5).map(tuple),
        st.dictionaries(_KEYS, inner, max_size=5),
    ),
    max_leaves=30,
)
_FEW = settings(max_examples=80, deadline=None)


@given(_VALUES, st.integers(2, 5))
@_FEW
def test_plain_values_are_those_of_pickle(value, protocol):
    data = pickle.dumps(value, protocol)
    assert is_pickle(data)
    assert load_plain(data) == value


class _Runs:
    def __init__(self, call, arguments):
        self.call, self.arguments = call, arguments

    def __reduce__(self):
        return self.call, self.arguments


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_pickle_that_calls_something_is_refused_and_runs_nothing(protocol, tmp_path):
    made = tmp_path / "made"
    data = pickle.dumps({"entries": [_Runs(os.mkdir, (str(made),))]}, protocol)
    with pytest.raises(NotPlain, match="can run any program"):
        load_plain(data)
    assert not made.exists()


@pytest.mark.parametrize(
    "body",
    [
        b"cos\nsystem\n(S'true'\ntR.",
        b"(S'true'\nios\nsystem\n.",
        b"Pid\n.",
        b"\x82\x01.",
        b"\x97.",
    ],
    ids=["reduce", "inst", "persistent", "extension", "buffer"],
)
def test_every_other_instruction_is_refused(body):
    with pytest.raises(NotPlain, match="more than plain values"):
        load_plain(b"\x80\x02" + body)


@pytest.mark.parametrize(
    "body",
    [
        b"X" + struct.pack("<I", 2**31) + b"abc.",
        b"]r" + struct.pack("<I", 2**32 - 1) + b"0.",
        b"\x8b" + struct.pack("<i", 2**30) + b".",
        b"\x8d" + struct.pack("<Q", 2**62) + b".",
        b"e.",
        b"]u.",
        b"}(](u.",
        b"h\x05.",
        b"",
        b"\x87.",
    ],
)
def test_damaged_or_greedy_pickles_are_refused_at_once(body):
    with pytest.raises(NotPlain):
        load_plain(b"\x80\x02" + body)


def test_a_pickle_that_never_ends_is_bounded():
    with pytest.raises(NotPlain, match="3,000,000 instructions"):
        load_plain(b"\x80\x02]" + b"q\x00" * 3_000_001 + b".")


@given(st.binary(max_size=60))
@_FEW
def test_any_bytes_are_read_or_refused(data):
    with contextlib.suppress(NotPlain):
        load_plain(b"\x80\x04" + data)
