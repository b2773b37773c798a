"""Traces of PyTorch's profiler: what computes, what communicates, what of it shows."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.errors import InputError
from linkwise.readers.kineto import is_kineto, parse_kineto

TRACES = Path(__file__).parent.parent / "data" / "kineto"


def trace(*events, **others):
    return json.dumps({"traceEvents": list(events), **others})


def kernel(name, start, length, **args):
    return {
        "ph": "X",
        "cat": "kernel",
        "name": name,
        "ts": start,
        "dur": length,
        "pid": 0,
        "tid": 7,
        "args": args,
    }


def test_trace_of_a_gpu_adds_up_by_hand():
    found = parse_kineto((TRACES / "eight_gpus.json").read_text())
    assert (found.on_gpu, found.steps, found.world_size) == (True, 2, 8)
    assert found.step_times_s == (0.6, 0.6)
    # 32 layers of 3.0 + 0.6 ms forward and 8.0 + 0.2 ms backward, 20 ms of optimizer
    assert found.compute_s == pytest.approx(32 * 11.8e-3 + 20e-3)
    # gathers hide behind the forward pass; 2.8 of 5 ms of each scatter and the 0.5 ms reduction do not
    assert found.exposed_s == pytest.approx(32 * 2.8e-3 + 0.5e-3)
    scatter, reduction, gather = found.collectives
    assert (scatter.operation, scatter.calls, scatter.ranks) == ("reduce_scatter", 32, 8)
    assert scatter.busy_s == pytest.approx(32 * 5e-3)
    assert (reduction.operation, gather.operation) == ("all_reduce", "all_gather")
    assert gather.exposed_s == 0
    assert found.compute_s + found.exposed_s + found.idle_s == pytest.approx(0.6)


def test_trace_of_a_cpu_tells_its_operators_and_gloo():
    text = (TRACES / "one_cpu.json").read_text()
    found = parse_kineto(text)
    assert is_kineto(text)
    assert (found.on_gpu, found.steps) == (False, 3)
    assert [(each.operation, each.calls) for each in found.collectives] == [("all_reduce", 1)]
    assert 0 < found.exposed_s <= found.communication_s < found.compute_s


def test_nested_and_parallel_events_count_once():
    found = parse_kineto(
        trace(kernel("a", 0, 10), kernel("b", 2, 3), kernel("ncclDevKernel_SendRecv", 5, 10))
    )
    assert found.compute_s == pytest.approx(10e-6)
    assert found.exposed_s == pytest.approx(5e-6)
    assert found.collectives[0].operation == "send_recv"
    assert found.idle_s == pytest.approx(0)


def test_events_beside_the_steps_do_not_count():
    step = {"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#4", "ts": 0, "dur": 100}
    found = parse_kineto(trace(step, kernel("a", 50, 100), kernel("ncclKernel_AllReduce", 500, 5)))
    assert found.compute_s == pytest.approx(50e-6)
    assert found.collectives == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not valid JSON"),
        ("[]", "is no JSON object"),
        (trace(), "has no kernel and no operator"),
        ('{"traceEvents": 3}', "has no list traceEvents"),
        (trace({"ph": "X", "cat": "kernel", "name": "a", "ts": 0, "dur": -5}), "has no kernel"),
    ],
)
def test_what_is_no_trace_is_refused(text, words):
    with pytest.raises(InputError, match=words):
        parse_kineto(text, path="trace.json")


values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.lists(st.none())
)
events = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from(["X", "B", 3, None]),
        "cat": st.sampled_from(["kernel", "cpu_op", "user_annotation", None, 7]),
        "name": st.one_of(
            values, st.sampled_from(["ncclKernel_AllGather", "ProfilerStep#1", "aten::mm", "gloo:x"])
        ),
        "ts": values,
        "dur": values,
        "args": st.one_of(
            values, st.dictionaries(st.sampled_from(["Group size", "Collective name"]), values)
        ),
    },
)


@given(st.lists(events, max_size=8), values)
def test_any_events_are_read_or_refused(many, info):
    try:
        found = parse_kineto(json.dumps({"traceEvents": many, "distributedInfo": info}))
    except InputError:
        return
    assert found.exposed_s <= found.communication_s + 1e-12
    assert min(found.compute_s, found.exposed_s, found.idle_s) >= 0


@pytest.mark.requires("torch")
@pytest.mark.slow
def test_trace_that_torch_writes_here_is_read(tmp_path):
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    layer = torch.nn.Linear(64, 64)
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        for number in range(2):
            with record_function(f"ProfilerStep#{number}"):
                layer(torch.ones(64, 64)).sum().backward()
    path = tmp_path / "trace.json"
    profiled.export_chrome_trace(str(path))
    found = parse_kineto(path.read_text())
    assert (found.steps, found.on_gpu, found.collectives) == (2, False, ())
    assert 0 < found.compute_s <= sum(found.step_times_s)
