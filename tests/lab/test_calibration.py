"""What calls cost: which are of one kind, at which sizes they are measured, the line through them."""

import pytest

from linkwise.lab.calibration import calibrated, calibration_calls, kind_of
from linkwise.lab.job import JobEnd
from linkwise.lab.traffic import StepCall
from tests.lab.test_design import cluster, design_of

DESIGN = design_of(cluster(nodes=2, gpus=2))
RATE = DESIGN.nic_bytes_per_s * 1448 / 1514


def call(operation="all_reduce", groups=((0, 1, 2, 3),), size_bytes=2.0**16):
    return StepCall(part="x", operation=operation, groups=groups, size_bytes=size_bytes, count=1)


def test_calls_of_one_kind_put_the_same_shares_on_links():
    assert kind_of(call(), DESIGN) == kind_of(call(size_bytes=1000.0), DESIGN)
    there, back = call("send", ((1, 2),)), call("send", ((2, 1),))
    assert kind_of(there, DESIGN) == kind_of(back, DESIGN)
    assert kind_of(there, DESIGN) != kind_of(call("send", ((0, 1),)), DESIGN)  # inside a node
    assert kind_of(call(groups=((0, 2), (1, 3))), DESIGN) != kind_of(call(groups=((0, 1), (2, 3))), DESIGN)


def test_each_kind_is_measured_small_and_as_large_as_the_job_has_it_or_links_carry_in_a_moment():
    told = calibration_calls([call(size_bytes=1024.0), call(size_bytes=65536.0)], DESIGN)
    assert [each["size_bytes"] for each in told] == [8192, 65536]
    (_, huge) = calibration_calls([call(size_bytes=1e9)], DESIGN)
    assert 1.5 * huge["size_bytes"] / RATE == pytest.approx(0.12, rel=0.01)


def test_hops_are_measured_there_and_back():
    told = calibration_calls([call("send", ((1, 2),))], DESIGN)
    assert {each["operation"] for each in told} == {"there_and_back"}


def costs(small_s, large_s, given=None):
    given = call() if given is None else given
    events = [
        {"event": "measured", "call": 2 + number, "times_s": [9.0, taken, taken, taken, 9.0]}
        for number, taken in enumerate((small_s, large_s))
    ]
    end = JobEnd(events=tuple(events), output=(), exit_code=0, wall_s=1.0)
    found = calibrated([given], DESIGN, end, loopback_bytes_per_s=1e9, first=2)
    (cost,) = found.costs.values()
    return cost, found.time_s(given, DESIGN)


def link_s(size_bytes):
    return (1.5 * size_bytes + 48 * 12 * 3) / RATE


def test_a_line_gives_the_time_of_a_message_and_the_share_of_the_link():
    line = [0.006 + link_s(size) / 0.8 for size in (8192, 65536)]
    cost, time_s = costs(*line)
    assert cost.round_s == pytest.approx(0.001)  # six rounds
    assert cost.reached_fraction == pytest.approx(0.8)
    assert time_s == pytest.approx(line[1])


def test_a_line_that_would_begin_below_nothing_begins_there():
    cost, time_s = costs(0.5 * link_s(8192), link_s(65536))
    assert cost.round_s == 0.0
    assert time_s == pytest.approx(link_s(65536))


def test_a_call_whose_size_does_not_matter_is_all_messages():
    cost, _ = costs(0.012, 0.011)
    assert (cost.round_s, cost.reached_fraction) == (0.002, 1.0)


def test_half_of_there_and_back_is_a_hop():
    hop = call("send", ((1, 2),))
    _, time_s = costs(0.010, 0.080, hop)
    assert time_s == pytest.approx(0.040)
