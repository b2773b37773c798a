"""Laws of what a bench reads from its ranks: measurements, or an error of ours; never a crash or a flood."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.bench.collectives import measured_sizes
from linkwise.bench.isolation import ISOLATIONS, prove
from linkwise.bench.pairs import measured_pairs
from linkwise.bench.training import measured_cuts
from linkwise.errors import InputError
from linkwise.launch.run.ending import Outcome, ending_of
from tests.launch.run.playing import play

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        "operation",
        "size_bytes",
        "time_s",
        "first_s",
        "calls",
        "wrong",
        "round",
        "pair",
        "cut",
        "loss",
        "step_time_s",
        "phases",
    ]
)
LIKELY = st.sampled_from(["all_reduce", "ddp", 8, 1e-3, [0, 1], {"forward_s": 0.1}])
EVENTS = st.lists(
    st.builds(
        lambda kind, rest: {**rest, "event": kind},
        st.sampled_from(["sample", "checked", "step", "begin", "odd"]),
        st.dictionaries(KEYS, VALUES | LIKELY, max_size=8),
    ),
    max_size=8,
)


@given(EVENTS)
@pytest.mark.parametrize("read", [measured_sizes, measured_pairs, measured_cuts])
def test_any_events_are_measurements_or_an_error_of_ours(read, events):
    try:
        found = read(events)
    except InputError as error:
        found = ()
        length = len(str(error))
    else:
        length = 0
    assert length < 300
    assert len(found) <= len(events)


@given(st.lists(st.text(max_size=200), max_size=20), st.integers(-200, 200), st.booleans())
def test_any_output_has_an_ending_of_bounded_length(output, exit_code, is_complete):
    found = ending_of(exit_code=exit_code, is_complete=is_complete, failures=(), output=output)
    assert (found.outcome is Outcome.DONE) == (exit_code == 0 and is_complete)
    assert bool(found.reason) == (found.outcome is not Outcome.DONE)
    assert len(found.reason) < 1000


@given(
    st.lists(
        st.text(max_size=100) | st.sampled_from(["Channel 00/0 : 0[0] -> 1[1] via ", "NET/IB/0"]), max_size=20
    )
)
def test_any_log_gives_a_proof_or_cannot_tell(log):
    assert prove(ISOLATIONS["network"], log).is_shown in (True, False, None)


@settings(max_examples=10)
@given(st.lists(st.binary(max_size=60) | st.just(b"@linkwise {"), max_size=8))
def test_any_bytes_of_a_job_end_in_a_record(tmp_path_factory, chunks):
    folder = tmp_path_factory.mktemp("run")
    run = play(f"for chunk in {chunks!r}: os.write(1, chunk)", folder)
    assert run.record.ending.outcome is not Outcome.DONE
    assert json.loads((folder / "record.json").read_text())["outcome"] == run.record.ending.outcome
