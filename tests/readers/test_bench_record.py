"""Records of `linkwise bench collectives`."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.errors import InputError
from linkwise.readers.bench_record import is_bench_record, parse_bench_record


def record(**changes):
    row = {
        "collective": "all_reduce",
        "size_bytes": 1 << 20,
        "time": {"samples_s": [1e-4, 1.1e-4, 1.2e-4, 1e-4, 1.3e-4], "median_s": 1.1e-4},
        "wrong": 0,
    }
    whole = {
        "schema": "linkwise.bench/1",
        "kind": "collectives",
        "backend": "nccl",
        "ranks": 8,
        "runs": [{"outcome": "done"}],
        "rows": [row],
    }
    return {**whole, **changes}


def test_record_gives_samples_and_how_it_ended():
    text = json.dumps(record())
    found = parse_bench_record(text)
    assert is_bench_record(text)
    assert (found.backend, found.ranks, found.outcomes) == ("nccl", 8, ("done",))
    (row,) = found.rows
    assert (row.operation, row.size_bytes, len(row.samples_s)) == ("all_reduce", 1 << 20, 5)
    assert not row.wrong


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schema": "linkwise.plan/1"}, "schema is 'linkwise.plan/1', not linkwise.bench/1"),
        ({"kind": "training"}, "is of kind 'training', which no prediction stands beside"),
        ({"rows": []}, "has no rows"),
        ({"ranks": 0}, "0 is no number of ranks"),
        ({"rows": [{"collective": "x", "size_bytes": 1, "time": {}}]}, "has no samples"),
        ({"rows": [{"size_bytes": -1, "time": {"samples_s": [0.1]}}]}, "-1 is no size"),
        ({"rows": [{"size_bytes": 1, "time": {"samples_s": ["0.1"]}}]}, "no time above zero"),
    ],
)
def test_fault_of_a_record_is_named(changes, words):
    with pytest.raises(InputError, match=words):
        parse_bench_record(json.dumps(record(**changes)), path="bench.json")


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=10)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["time", "samples_s", "size_bytes", "outcome", "wrong"]), inner, max_size=4
        ),
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["ranks", "rows", "runs", "backend", "kind"]), values))
def test_any_record_is_read_or_refused(changes):
    try:
        found = parse_bench_record(json.dumps(record(**changes)))
    except InputError:
        return
    assert all(time > 0 for row in found.rows for time in row.samples_s)
