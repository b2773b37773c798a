"""Hostlist expressions of Slurm."""

import pytest

from linkwise.errors import InputError
from linkwise.readers.hostlist import expand_hostlist


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ["n1"]),
        ("n1,login", ["n1", "login"]),
        ("n[0-2,7]", ["n0", "n1", "n2", "n7"]),
        ("n[008-011]", ["n008", "n009", "n010", "n011"]),
        ("r[1-2]n[1-2]-ib", ["r1n1-ib", "r1n2-ib", "r2n1-ib", "r2n2-ib"]),
        ("a[1],b-[5-6]", ["a1", "b-5", "b-6"]),
    ],
)
def test_names_are_expanded_in_order(text, names):
    assert list(expand_hostlist(text)) == names


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("n[0-9999999]", "stands for more than 200,000 names"),
        ("n[0-999]n[0-999]", "stands for more than 200,000 names"),
        ("a[0-99999],b[0-99999],c[0-1]", "stands for more than 200,000 names"),
        ("n[3-1]", "the range 3-1 in 'n[3-1]' runs backwards"),
        ("n[1-", "is not a list of names"),
        ("n[1-]", "'1-' in 'n[1-]' is not a number or a range"),
        ("n[]", "'' in 'n[]' is not a number or a range"),
        ("n1,", "ends where a name is due"),
        ("", "ends where a name is due"),
        ("n[1]n[1]n[1]n[1]n[1]", "has more than 4 brackets"),
        ("n[99999999999999999999]", "is not a number or a range"),
    ],
)
def test_fault_is_told(text, said):
    with pytest.raises(InputError) as told:
        expand_hostlist(text)
    assert said in str(told.value)
