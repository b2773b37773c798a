"""A rollout carried out from its first run to its promotion, and to everything that stops it."""

import json

from linkwise.rollout import actions
from linkwise.rollout.decisions import Kind
from linkwise.rollout.progress import Cause
from linkwise.rollout.runs import Side
from tests.rollout.making import DIGESTS
from tests.rollout.simulated import Processes, carry, ground, three_steps


def kinds(there, name="change"):
    record = there.store.record(name)
    return [each.kind for each in record.entries if each.kind not in (Kind.RUN_STARTED, Kind.RUN_ENDED)]


def test_a_good_change_is_promoted_through_three_steps(tmp_path):
    there = ground(tmp_path, three_steps())
    end = carry(there)
    assert isinstance(end.action, actions.Done)
    assert end.steps == ("one", "two", "all")
    assert kinds(there) == [Kind.BEGUN, *[Kind.JUDGED, Kind.STEP_PASSED] * 3, Kind.PROMOTED]
    assert json.loads(there.promoted.read_text())["digest"] == DIGESTS[Side.CANDIDATE]


def test_candidate_and_control_are_run_in_the_order_a_b_b_a(tmp_path):
    there = ground(tmp_path, three_steps())
    carry(there, is_enough=lambda passed: len(passed) == 1)
    a, b = Side.CANDIDATE, Side.CONTROL
    assert [each.side for each in there.store.record("change").runs][:8] == [a, b, b, a, a, b, b, a]


def test_a_slow_change_is_suspended_at_the_first_gate(tmp_path):
    there = ground(
        tmp_path,
        three_steps(),
        measure=Processes(levels={**dict.fromkeys(Side, 1e11), Side.CANDIDATE: 0.8e11}),
    )
    end = carry(there)
    assert isinstance(end.action, actions.Stopped)
    assert end.progress.cause is Cause.FAIL
    assert end.steps == ()
    assert kinds(there) == [Kind.BEGUN, Kind.JUDGED, Kind.SUSPENDED]
    assert not there.promoted.exists()
