"""What gloo sends, against bytes counted on links with torch 2.13, and its laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.errors import InputError
from linkwise.network.gloo import GLOO_OPERATIONS, gloo_time_s, gloo_traffic, link_loads


def crossing(operation, ranks, per_node):
    """Return what leaves each node, in buffers."""
    sent = gloo_traffic(operation, ranks=ranks, size_bytes=1.0).sent_bytes
    nodes = np.arange(ranks) // per_node
    return [float(sent[np.ix_(nodes == node, nodes != node)].sum()) for node in range(ranks // per_node)]


@pytest.mark.parametrize(
    ("operation", "counted"),
    [
        # payload counted on four nodes of two ranks, buffers of 1 MiB, torch 2.13.0: less than 0.3 % off
        ("all_reduce", [1.755, 1.756, 1.756, 1.755]),
        ("all_gather", [0.878, 0.879, 0.879, 0.879]),
        ("reduce_scatter", [1.755, 1.756, 1.756, 1.756]),
        ("all_to_all", [1.507, 1.506, 1.509, 1.508]),
        ("broadcast", [4.002, 2.002, 0.002, 0.002]),
        ("reduce", [0.879, 1.129, 1.129, 1.129]),
        ("send_recv", [1.002, 1.002, 1.002, 1.002]),
    ],
)
def test_bytes_that_leave_nodes_are_those_counted(operation, counted):
    assert crossing(operation, 8, 2) == pytest.approx(counted, abs=0.01)


def test_broadcast_of_six_ranks_is_as_counted():
    # three nodes of two ranks, both rails together
    assert crossing("broadcast", 6, 2) == pytest.approx([4.002, 0.002, 0.002], abs=0.01)


@given(st.sampled_from(GLOO_OPERATIONS), st.integers(2, 33), st.floats(1.0, 1e12))
def test_every_rank_receives_what_it_must(operation, ranks, size_bytes):
    traffic = gloo_traffic(operation, ranks=ranks, size_bytes=size_bytes)
    received = traffic.sent_bytes.sum(axis=0)
    least = {"broadcast": 1.0, "send_recv": 1.0}.get(operation, (ranks - 1) / ranks)
    who = (
        slice(1, None) if operation == "broadcast" else slice(0, 1) if operation == "reduce" else slice(None)
    )
    assert (received[who] >= least * size_bytes * (1 - 1e-9)).all()
    assert (np.diag(traffic.sent_bytes) == 0).all()
    assert traffic.rounds >= 1


@given(st.integers(2, 33), st.floats(1.0, 1e12))
def test_reduce_scatter_sends_twice_an_all_gather(ranks, size_bytes):
    both = [gloo_traffic(one, ranks=ranks, size_bytes=size_bytes) for one in ("reduce_scatter", "all_gather")]
    assert both[0].sent_bytes.sum() == pytest.approx(2 * both[1].sent_bytes.sum())


@given(st.floats(1.0, 1e9), st.floats(1.0, 1e9), st.floats(0.0, 1.0), st.integers(1, 60))
def test_no_time_beats_the_bytes_of_any_link(load, rate, round_s, rounds):
    time_s = gloo_time_s({"a": load, "b": load / 2}, lambda _: rate, rounds=rounds, round_s=round_s)
    assert time_s == pytest.approx(rounds * round_s + load / rate)


def test_loads_follow_the_members_and_the_path():
    traffic = gloo_traffic("all_gather", ranks=2, size_bytes=100.0)
    loads = link_loads(traffic, (5, 3), lambda one, two: (f"{one}>{two}",))
    # two messages each way: 2 x 2 preambles of 48 bytes with each of one's own, 2 for those of the other
    assert loads == {"5>3": 50.0 + 6 * 48, "3>5": 50.0 + 6 * 48}


def test_a_message_costs_two_preambles_ahead_and_one_back():
    traffic = gloo_traffic("broadcast", ranks=2, size_bytes=1000.0)
    assert traffic.stream_bytes.tolist() == [[0.0, 1096.0], [48.0, 0.0]]


@given(st.sampled_from(GLOO_OPERATIONS), st.integers(2, 33), st.floats(1.0, 1e12))
def test_messages_go_where_bytes_go(operation, ranks, size_bytes):
    traffic = gloo_traffic(operation, ranks=ranks, size_bytes=size_bytes)
    assert ((traffic.messages > 0) == (traffic.sent_bytes > 0)).all()


def test_a_share_of_a_rate_makes_bytes_alone_slower():
    time_s = gloo_time_s({"a": 100.0}, lambda _: 1000.0, rounds=3, round_s=0.01, reached_fraction=0.5)
    assert time_s == pytest.approx(3 * 0.01 + 0.2)


def test_one_rank_and_unknown_operations_are_refused():
    with pytest.raises(InputError, match="two ranks"):
        gloo_traffic("all_reduce", ranks=1, size_bytes=1.0)
    with pytest.raises(InputError, match="did you mean all_reduce"):
        gloo_traffic("allreduce", ranks=2, size_bytes=1.0)
