"""Faults of one file, gathered and bounded."""

import pytest

from linkwise.errors import DocumentError
from linkwise.readers.faults import MOST_FAULTS, Faults, excerpt


def test_nothing_is_raised_without_a_fault():
    Faults(path="f").raise_any()


def test_many_faults_are_counted_rather_than_printed():
    faults = Faults(path="f")
    for line in range(1000):
        faults.add("wrong", line=line)
    with pytest.raises(DocumentError) as told:
        faults.raise_any()
    assert len(told.value.faults) == MOST_FAULTS + 1
    assert str(told.value.faults[-1]) == f"f: {1000 - MOST_FAULTS} more faults of this kind are not printed"


def test_excerpt_is_short_and_printable():
    assert excerpt("a\x1b[4m\n") == r"'a\x1b[4m\n'"
    assert len(excerpt("x" * 10_000)) == 42
