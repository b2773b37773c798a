"""Dumps of PyTorch's Flight Recorder, as pickle and as JSON."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.errors import DocumentError
from linkwise.readers.flight_recorder import is_flight_recording, parse_flight_recording
from tests.job_logs.flight import as_json, as_pickle, call, dump

_DUMP = dump([call(1), call(2, "broadcast", sizes=((8,),), state="scheduled", retired=True)])


@pytest.mark.parametrize("form", [as_pickle, as_json])
def test_both_forms_say_the_same(form):
    data = form(_DUMP)
    assert is_flight_recording(data[:4096])
    found = parse_flight_recording(data, path="/tmp/nccl_trace_rank_13")
    (group,) = found.groups
    assert found.rank == 13
    assert (group.name, group.description, group.ranks) == ("0", "default_pg", (0, 1, 2, 3))
    assert group.last_enqueued == 2
    assert [(each.sequence, each.operation, each.state) for each in group.calls] == [
        (1, "nccl:all_reduce", "completed"),
        (2, "nccl:broadcast", "scheduled"),
    ]
    assert group.calls[1].input_sizes == ((8,),)
    assert group.calls[1].has_timed_out
    assert not group.calls[0].has_timed_out


@pytest.mark.parametrize(
    ("name", "rank"), [("trace_3", 3), ("rank7.json", 7), ("a/nccl_trace_rank_0.pkl", 0), ("dump", None)]
)
def test_rank_is_the_end_of_the_name(name, rank):
    assert parse_flight_recording(as_pickle(_DUMP), path=name).rank == rank


def test_an_old_dump_numbers_its_group():
    entry = {"pg_id": 2, "seq_id": 5, "profiling_name": "nccl:all_reduce", "state": "started"}
    (group,) = parse_flight_recording(as_pickle({"version": "1.4", "entries": [entry]}), path="r0").groups
    assert (group.name, group.calls[0].sequence, group.ranks) == ("2", 5, ())


def test_a_long_dump_keeps_the_end_of_what_completed_and_the_start_of_what_waits():
    calls = [call(n) for n in range(1, 3000)] + [call(n, state="scheduled") for n in range(3000, 5000)]
    (group,) = parse_flight_recording(as_pickle(dump(calls)), path="r0").groups
    assert [each.sequence for each in group.calls] == list(range(2936, 3256))
    assert group.last_enqueued == 4999


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (as_pickle({"state_dict": {}}), "no dump of PyTorch's Flight Recorder"),
        (as_pickle([1, 2]), "no dump"),
        (as_pickle(_DUMP)[:300], "damaged pickle"),
        (b'{"entries": [{"collective_seq_id": 1', "not valid JSON"),
        (b'{"pg_config": ' + b"[" * 100_000, "nested too deep"),
    ],
)
def test_what_is_no_dump_is_refused(data, message):
    with pytest.raises(DocumentError, match=message):
        parse_flight_recording(data, path="x0")


_ODD = st.recursive(
    st.one_of(st.none(), st.integers(-5, 10**30), st.text(max_size=3), st.booleans()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["ranks", "last_enqueued_collective", "0"]), inner, max_size=3),
    ),
    max_leaves=6,
)


@given(st.sampled_from(sorted(_DUMP["entries"][0])), _ODD, st.sampled_from(["pg_config", "pg_status"]), _ODD)
@settings(max_examples=100, deadline=None)
def test_fields_of_any_type_are_read_or_left_out(field, value, table, other):
    entries = [{**_DUMP["entries"][0], field: value}, _DUMP["entries"][1]]
    parse_flight_recording(as_pickle({**_DUMP, "entries": entries, table: other}), path="r1")
