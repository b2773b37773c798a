"""A rollout carried out from its first run to its promotion, and to everything that stops it."""

import datetime as dt
import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest

from linkwise.errors import ExitCode, InputError
from linkwise.rollout.canonical import canonical_text
from linkwise.rollout.carrying import actions
from linkwise.rollout.carrying.carrying import roll_back
from linkwise.rollout.carrying.deciding import Said, approve, suspend, waive
from linkwise.rollout.carrying.progress import Cause, progress_of
from linkwise.rollout.carrying.resuming import accept_file, resume
from linkwise.rollout.carrying.standing import Standing, exit_code_of, standing_of
from linkwise.rollout.plan import (
    Against,
    Configuration,
    Limits,
    Reaction,
    Reactions,
    Rollback,
    Sampling,
    Severity,
)
from linkwise.rollout.runs import RunState, Side
from linkwise.rollout.store.decisions import BOOKKEEPING, Kind
from linkwise.rollout.store.kept_configuration import put_back
from linkwise.rollout.store.verification import flaws_of
from tests.rollout.making import DIGESTS, at_least, objective
from tests.rollout.simulated import METRIC, Clock, Processes, carry, ground, holder, steps, three_steps

GOOD = dict.fromkeys(Side, 1e11)
SLOW = {**GOOD, Side.CANDIDATE: 0.8e11}
BACK = Reactions(fail=Reaction.ROLL_BACK)


def kinds(there, name="change"):
    return [each.kind for each in there.store.record(name).entries if each.kind not in BOOKKEEPING]


def said(there, why="a test"):
    return Said(by="mira", why=why, at=there.clock())


def load(there):
    return there.load()


def progress(there):
    return progress_of(there.store.record("change").entries)


def one_step(**more):
    plan = three_steps()
    return replace(plan, steps=plan.steps[:1], **more)


class File:
    """A rollout file that a test edits."""

    def __init__(self, plan):
        self.plan = plan

    def __call__(self):
        return self.plan

    def edit(self, **changes):
        self.plan = replace(self.plan, digest="e" * 64, **changes)


def at_once(_passed):
    """Stop before the first run."""
    return True


def wobbling():
    """Return who measures something that is now better, now worse: no number of runs decides."""
    # As far above as below in both sizes, whose order noise of 1 % cannot change: ranks stay balanced.
    levels = itertools.cycle((1.2e11, 1e11 / 1.05, 1.05e11, 1e11 / 1.2))
    return Processes(levels={**GOOD, Side.CANDIDATE: lambda _: next(levels)})


def other_candidate(digest="d" * 64):
    return Configuration(settings={"A": "3"}, digest=digest)


def test_a_good_change_is_promoted_through_three_steps(tmp_path):
    there = ground(tmp_path, three_steps())
    end = carry(there)
    assert isinstance(end.action, actions.Done)
    assert end.steps == ("one", "two", "all")
    assert kinds(there) == [Kind.BEGUN, *[Kind.JUDGED, Kind.STEP_PASSED] * 3, Kind.PROMOTED]
    assert json.loads(there.promoted.read_text())["digest"] == DIGESTS[Side.CANDIDATE]
    assert flaws_of(there.store.contents("change")) == ()
    assert exit_code_of(end.progress, end.action) is ExitCode.DONE


def test_one_step_at_a_time_stops_at_each_gate(tmp_path):
    there = ground(tmp_path, three_steps())
    for step in ("one", "two", "all"):
        end = carry(there, is_enough=lambda passed: len(passed) == 1)
        assert end.steps == (step,)
    assert end.progress.is_promoted


def test_candidate_and_control_are_run_in_the_order_a_b_b_a(tmp_path):
    there = ground(tmp_path, three_steps())
    carry(there, is_enough=lambda passed: len(passed) == 1)
    a, b = Side.CANDIDATE, Side.CONTROL
    assert [each.side for each in there.store.record("change").runs][:8] == [a, b, b, a, a, b, b, a]


def test_a_slow_change_is_suspended_at_the_first_gate(tmp_path):
    there = ground(tmp_path, three_steps(), measure=Processes(levels=SLOW))
    end = carry(there)
    assert isinstance(end.action, actions.Stopped)
    assert end.progress.cause is Cause.FAIL
    assert end.steps == ()
    assert kinds(there) == [Kind.BEGUN, Kind.JUDGED, Kind.SUSPENDED]
    assert not there.promoted.exists()
    assert exit_code_of(end.progress, end.action) is ExitCode.AGAINST


def test_runs_are_added_one_pair_at_a_time_while_nothing_is_decided(tmp_path):
    plan = replace(one_step(), objectives=(objective(at_least(1.0)),))
    there = ground(tmp_path, plan, measure=wobbling())
    end = carry(there)
    assert end.progress.cause is Cause.INCONCLUSIVE
    runs = there.store.record("change").runs
    assert sum(run.side is Side.CANDIDATE for run in runs) == plan.sampling.most_repeats
    assert exit_code_of(end.progress, end.action) is ExitCode.INCONCLUSIVE


@pytest.mark.parametrize("state", [RunState.FAILED, RunState.INVALID, RunState.CUT])
def test_runs_that_end_badly_are_no_data_and_never_a_pass(tmp_path, state):
    there = ground(tmp_path, one_step(), measure=Processes(states={Side.CANDIDATE: state}))
    end = carry(there)
    assert end.progress.cause is Cause.ERROR
    assert exit_code_of(end.progress, end.action) is ExitCode.NOT_MEASURED


def test_what_cannot_be_measured_suspends_at_once(tmp_path):
    class Broken(Processes):
        def measure(self, _request):
            raise InputError("there is no lab of that name")

    there = ground(tmp_path, one_step(), measure=Broken())
    end = carry(there)
    assert end.progress.cause is Cause.ERROR
    assert "no lab of that name" in end.progress.suspended.why
    assert len(there.store.record("change").runs) == 1


def test_a_comparison_with_a_baseline_that_nobody_stored_is_no_pass(tmp_path):
    plan = replace(one_step(), objectives=(objective(at_least(0.95, Against.BASELINE)),))
    end = carry(ground(tmp_path, plan))
    assert end.progress.cause is Cause.NO_DATA
    assert exit_code_of(end.progress, end.action) is ExitCode.NOT_MEASURED


def second(plan, *, level_digest="d" * 64, **more):
    """Return the rollout after one that was promoted, compared with what that left."""
    return replace(
        plan,
        name="next",
        digest="b" * 64,
        control=plan.candidate,
        candidate=other_candidate(level_digest),
        objectives=(objective(at_least(0.95, Against.BASELINE)),),
        **more,
    )


@pytest.mark.parametrize(("level", "cause"), [(1e11, None), (0.8e11, Cause.FAIL)])
def test_the_next_rollout_is_compared_with_what_was_promoted(tmp_path, level, cause):
    carry(ground(tmp_path, one_step()))
    there = ground(tmp_path, second(one_step()), measure=Processes(levels={Side.CANDIDATE: level}))
    assert carry(there).progress.cause is cause


def test_a_baseline_of_another_driver_is_none(tmp_path):
    carry(ground(tmp_path, one_step(), measure=Processes(seen={"driver": "550.1"})))
    there = ground(tmp_path, second(one_step()), measure=Processes(seen={"driver": "560.2"}))
    assert carry(there).progress.cause is Cause.NO_DATA


def test_a_baseline_of_another_nccl_serves_where_nccl_is_what_changes(tmp_path):
    carry(ground(tmp_path, one_step(), measure=Processes(seen={"nccl": "2.28.3"})))
    there = ground(tmp_path, second(one_step()), measure=Processes(seen={"nccl": "2.30.4"}))
    assert carry(there).progress.is_promoted


def test_too_many_failures_within_a_time_stop_it(tmp_path):
    plan = one_step(limits=Limits(most_failures=2, within_s=3600))
    there = ground(tmp_path, plan, measure=Processes(states={Side.CANDIDATE: RunState.FAILED}))
    end = carry(there)
    assert end.progress.cause is Cause.FAILURES
    assert sum(run.state is RunState.FAILED for run in there.store.record("change").runs) == 2
    resume(there.store, load(there), said(there))
    assert carry(there).progress.cause is Cause.FAILURES


def test_a_budget_is_not_overspent(tmp_path):
    plan = one_step(sampling=Sampling(repeats=5, warmup=0, budget_gpu_s=60))
    there = ground(tmp_path, plan)
    end = carry(there)
    assert end.progress.cause is Cause.BUDGET
    assert sum(run.gpu_s for run in there.store.record("change").runs) <= 60
    with pytest.raises(InputError, match="suspended again at once"):
        resume(there.store, load(there), said(there))


def test_a_step_larger_than_the_limit_does_not_start(tmp_path):
    plan = three_steps(limits=Limits(most_nodes=2))
    there = ground(tmp_path, plan)
    end = carry(there)
    assert end.steps == ("one", "two")
    assert end.progress.cause is Cause.NODES
    assert {run.step for run in there.store.record("change").runs} == {"one", "two"}


def test_a_cluster_that_changes_in_between_is_an_error(tmp_path):
    seen = {"driver": "550.1"}
    there = ground(tmp_path, three_steps(), measure=Processes(seen=seen))
    carry(there, is_enough=lambda passed: len(passed) == 1)
    seen["driver"] = "560.2"
    end = carry(there)
    assert end.progress.cause is Cause.CLUSTER
    assert "driver was 550.1 and is 560.2" in end.progress.suspended.why
    assert exit_code_of(end.progress, end.action) is ExitCode.NOT_MEASURED


def test_another_cluster_than_the_file_is_for_is_an_error(tmp_path):
    plan = one_step()
    plan = replace(plan, scope=replace(plan.scope, fingerprint={"nccl": ">=2.28,<2.30", "gpu": "h100-sxm"}))
    end = carry(ground(tmp_path, plan, measure=Processes(seen={"nccl": "2.30.1", "gpu": "H100-SXM"})))
    assert end.progress.cause is Cause.CLUSTER
    assert "nccl is 2.30.1" in end.progress.suspended.why


def test_a_number_past_its_day_suspends_before_anything_is_run(tmp_path):
    plan = replace(one_step(), objectives=(objective(review_by=dt.date(2026, 11, 29)),))
    there = ground(tmp_path, plan)
    assert carry(there).progress.cause is Cause.REVIEW
    assert there.store.record("change").runs == ()


def test_an_edited_file_is_noticed_and_accepted_by_name(tmp_path):
    file = File(three_steps())
    there = ground(tmp_path, file)
    carry(there, is_enough=lambda passed: len(passed) == 1)
    file.edit(owner="somebody else")
    assert carry(there).progress.cause is Cause.FILE
    with pytest.raises(InputError, match="--accept-file"):
        resume(there.store, load(there), said(there))
    accept_file(there.store, load(there), said(there))
    before = len(there.store.record("change").runs)
    end = carry(there)
    assert end.steps == ("one", "two", "all")
    assert end.progress.is_promoted
    # What was measured of the same candidate counts on: step one is judged on the runs it has.
    assert sum(run.step == "one" for run in there.store.record("change").runs) == before


def test_a_file_edited_while_it_is_carried_out_is_noticed(tmp_path):
    file = File(three_steps())

    class Editing(Processes):
        def measure(self, request):
            if len(self.measured) == 3:
                file.edit(owner="somebody else")
            return super().measure(request)

    there = ground(tmp_path, file, measure=Editing())
    assert carry(there).progress.cause is Cause.FILE
    assert len(there.store.record("change").runs) == 4


def test_a_failed_candidate_is_not_measured_until_it_passes(tmp_path):
    measure = Processes(levels=dict(SLOW))
    file = File(three_steps())
    there = ground(tmp_path, file, measure=measure)
    carry(there)
    measure.levels.update(GOOD)
    count = len(measure.measured)
    with pytest.raises(InputError, match="judged fail again"):
        resume(there.store, load(there), said(there))
    file.edit(objectives=(objective(at_least(0.5)),))
    with pytest.raises(InputError, match="another bar does not change that"):
        accept_file(there.store, load(there), said(there))
    assert isinstance(carry(there).action, actions.Stopped)
    assert len(measure.measured) == count


def test_a_changed_candidate_starts_again_and_the_old_one_stays_failed(tmp_path):
    measure = Processes(levels=dict(SLOW))
    file = File(three_steps())
    old = file.plan.candidate
    there = ground(tmp_path, file, measure=measure)
    carry(there)
    file.edit(candidate=other_candidate())
    accept_file(there.store, load(there), said(there))
    measure.levels.update(GOOD)
    assert carry(there, is_enough=lambda passed: len(passed) == 1).steps == ("one",)
    file.edit(candidate=old)
    file.plan = replace(file.plan, digest="9" * 64)
    with pytest.raises(InputError, match="failed step 'one'"):
        accept_file(there.store, load(there), said(there))


def test_runs_of_a_candidate_that_comes_back_still_count(tmp_path):
    file = File(replace(one_step(), objectives=(objective(at_least(1.0)),)))
    old, control = file.plan.candidate, file.plan.control
    there = ground(tmp_path, file, measure=wobbling())
    assert carry(there).progress.cause is Cause.INCONCLUSIVE
    file.edit(candidate=other_candidate())
    accept_file(there.store, load(there), said(there))
    carry(there)
    file.plan = replace(file.plan, candidate=old, digest="9" * 64)
    accept_file(there.store, load(there), said(there))
    count = len(there.store.record("change").runs)
    assert carry(there).progress.cause is Cause.INCONCLUSIVE
    assert len(there.store.record("change").runs) == count
    file.plan = replace(file.plan, control=replace(control, digest="5" * 64), digest="8" * 64)
    with pytest.raises(InputError, match="another control"):
        accept_file(there.store, load(there), said(there))


def test_a_step_that_is_undecided_goes_on_only_with_more_runs(tmp_path):
    file = File(replace(one_step(), objectives=(objective(at_least(1.0)),)))
    there = ground(tmp_path, file, measure=wobbling())
    carry(there)
    with pytest.raises(InputError, match="judged inconclusive again"):
        resume(there.store, load(there), said(there))
    file.edit(sampling=replace(file.plan.sampling, most_repeats=20))
    accept_file(there.store, load(there), said(there))
    carry(there)
    runs = there.store.record("change").runs
    assert sum(run.side is Side.CANDIDATE for run in runs) == 20


def test_after_an_error_more_runs_are_made_and_the_bad_ones_still_count(tmp_path):
    measure = Processes(states={Side.CANDIDATE: RunState.FAILED})
    there = ground(tmp_path, one_step(), measure=measure)
    assert carry(there).progress.cause is Cause.ERROR
    measure.states.clear()
    rounds = 0
    while not progress(there).is_promoted:
        resume(there.store, load(there), said(there))
        carry(there)
        rounds += 1
    # Of all runs 80 % must count: 5 bad ones need 20 good ones.
    assert rounds == 4
    assert sum(run.state is RunState.FAILED for run in there.store.record("change").runs) == 5


def test_a_step_waits_for_the_approvals_that_the_file_names(tmp_path):
    plan = replace(three_steps(), steps=steps("one", "two", approvals=("oncall", "lead")))
    there = ground(tmp_path, plan)
    with pytest.raises(InputError, match="there is no rollout 'change' in this store"):
        approve(there.store, "change", said(there), role="oncall")
    end = carry(there)
    assert end.action.who == ("oncall", "lead")
    assert exit_code_of(end.progress, end.action) is ExitCode.INCONCLUSIVE
    with pytest.raises(InputError, match="not of 'mira'"):
        approve(there.store, "change", said(there))
    approve(there.store, "change", said(there), role="oncall")
    with pytest.raises(InputError, match="approval of lead, not of 'oncall'"):
        approve(there.store, "change", said(there), role="oncall")
    assert carry(there).action.who == ("lead",)
    approve(there.store, "change", Said(by="lead", why="looks well", at=there.clock()))
    with pytest.raises(InputError, match="waits for no approval"):
        approve(there.store, "change", Said(by="lead", why="again", at=there.clock()))
    end = carry(there)
    assert end.steps == ("one",)
    assert end.action.step == "two"
    assert end.action.who == ("oncall", "lead")


def test_a_step_is_not_approved_before_it_is_judged(tmp_path):
    plan = replace(three_steps(), steps=steps("one", approvals=("oncall",)))
    there = ground(tmp_path, plan)
    carry(there, is_enough=at_once)
    with pytest.raises(InputError, match="no verdict yet"):
        approve(there.store, "change", said(there), role="oncall")


def test_what_should_hold_and_does_not_needs_the_owner(tmp_path):
    objectives = (
        objective(at_least(0.5)),
        objective(at_least(0.95), name="better", severity=Severity.SHOULD),
    )
    plan = replace(
        three_steps(), objectives=objectives, steps=steps("one", objectives=("bandwidth", "better"))
    )
    there = ground(tmp_path, plan, measure=Processes(levels=SLOW))
    assert carry(there).action.who == ("tests",)
    approve(there.store, "change", Said(by="tests", why="known", at=there.clock()))
    assert carry(there).progress.is_promoted


def test_a_failed_step_goes_on_by_a_waiver_until_its_day(tmp_path):
    clock = Clock()
    there = ground(tmp_path, three_steps(), measure=Processes(levels=SLOW), clock=clock)
    carry(there)
    with pytest.raises(InputError, match="is past"):
        waive(there.store, "change", said(there), until=dt.date(2026, 11, 1))
    waive(there.store, "change", said(there), until=dt.date(2026, 12, 2))
    end = carry(there)
    assert end.steps == ("one",)
    assert end.progress.passed[0].is_waived
    assert end.progress.cause is Cause.FAIL
    assert end.progress.suspended.step == "two"
    waive(there.store, "change", said(there), until=dt.date(2026, 12, 31))
    clock.now = dt.datetime(2026, 12, 3, tzinfo=dt.UTC)
    end = carry(there)
    assert end.progress.cause is Cause.WAIVER
    assert end.progress.suspended.step == "one"
    waive(there.store, "change", said(there), until=dt.date(2026, 12, 31))
    end = carry(there)
    waive(there.store, "change", said(there), until=dt.date(2026, 12, 31))
    end = carry(there)
    assert end.progress.is_promoted
    record = there.store.record("change")
    assert record.entries[-1].facts["waived"] == ["one", "two", "all"]


def test_what_was_never_measured_is_not_waived(tmp_path):
    plan = replace(one_step(), objectives=(objective(at_least(0.95, Against.BASELINE)),))
    there = ground(tmp_path, plan)
    carry(there)
    with pytest.raises(InputError, match="nothing was measured"):
        waive(there.store, "change", said(there), until=dt.date(2027, 1, 1))


def test_a_waiver_mends_no_other_stop(tmp_path):
    there = ground(tmp_path, one_step(), measure=Processes(seen={"driver": "1"}))
    with pytest.raises(InputError, match="there is no rollout 'change' in this store"):
        waive(there.store, "change", said(there), until=dt.date(2027, 1, 1))
    carry(there, is_enough=at_once)
    with pytest.raises(InputError, match="not suspended"):
        waive(there.store, "change", said(there), until=dt.date(2027, 1, 1))
    suspend(there.store, "change", said(there, "storage is down"))
    with pytest.raises(InputError, match="storage is down"):
        waive(there.store, "change", said(there), until=dt.date(2027, 1, 1))


def test_a_person_suspends_it_while_it_is_carried_out(tmp_path):
    class Noticing(Processes):
        def measure(self, request):
            if len(self.measured) == 2:
                assert suspend(there.store, "change", said(there, "storage is down"))
                assert not suspend(there.store, "change", said(there, "again"))
            return super().measure(request)

    there = ground(tmp_path, three_steps(), measure=Noticing())
    end = carry(there)
    assert end.progress.cause is Cause.PERSON
    assert len(there.store.record("change").runs) == 3
    assert all(run.state is RunState.VALID for run in there.store.record("change").runs)
    resume(there.store, load(there), said(there, "storage is back"))
    with pytest.raises(InputError, match="is not suspended"):
        resume(there.store, load(there), said(there))
    assert carry(there).progress.is_promoted


def test_a_soak_is_waited_for_and_half_as_much_is_measured_after_it(tmp_path):
    clock = Clock()
    plan = replace(three_steps(), steps=steps("one", soak_s=6 * 3600))
    there = ground(tmp_path, plan, clock=clock)
    end = carry(there)
    runs = there.store.record("change").runs
    soaked = runs[0].started + dt.timedelta(hours=6)
    assert end.action.until == soaked
    assert exit_code_of(end.progress, end.action) is ExitCode.INCONCLUSIVE
    assert len(runs) == 10
    clock.now = soaked
    assert carry(there).progress.is_promoted
    after = [run for run in there.store.record("change").runs if run.started >= soaked]
    assert len(after) == 6


def test_a_step_that_fails_does_not_soak(tmp_path):
    plan = replace(three_steps(), steps=steps("one", soak_s=6 * 3600))
    end = carry(ground(tmp_path, plan, measure=Processes(levels=SLOW)))
    assert end.progress.cause is Cause.FAIL


def test_what_goes_bad_during_the_soak_does_not_pass(tmp_path):
    clock = Clock()
    begin, soak_s = clock.now, 300.0

    def level(request):
        return 1e11 if clock.now < begin + dt.timedelta(seconds=soak_s) else 0.5e11

    plan = replace(three_steps(), steps=steps("one", soak_s=soak_s))
    levels = {**GOOD, Side.CANDIDATE: level}
    there = ground(tmp_path, plan, measure=Processes(levels=levels), clock=clock)
    end = carry(there, waits=True)
    assert clock.now >= begin + dt.timedelta(seconds=soak_s)
    assert not end.progress.is_promoted


def test_waiting_sits_a_soak_out(tmp_path):
    plan = replace(three_steps(), steps=steps("one", soak_s=60))
    assert carry(ground(tmp_path, plan), waits=True).progress.is_promoted


def test_a_failed_change_is_rolled_back_and_the_way_back_is_proven(tmp_path):
    there = ground(tmp_path, three_steps(reactions=BACK), measure=Processes(levels=SLOW))
    end = carry(there)
    assert standing_of(end.progress, end.action) is Standing.ROLLED_BACK
    assert exit_code_of(end.progress, end.action) is ExitCode.AGAINST
    assert json.loads(there.promoted.read_text())["digest"] == DIGESTS[Side.CONTROL]
    fresh = [run for run in there.store.record("change").runs if run.side is Side.PROMOTED]
    assert len(fresh) == 5
    assert kinds(there)[2:] == [Kind.SUSPENDED, Kind.ROLLBACK_BEGUN, Kind.RESTORED, Kind.ROLLBACK_VERIFIED]


def test_a_way_back_that_does_not_reach_what_was_is_not_proven(tmp_path):
    levels = {**SLOW, Side.PROMOTED: 0.8e11}
    there = ground(tmp_path, three_steps(reactions=BACK), measure=Processes(levels=levels))
    end = carry(there)
    assert standing_of(end.progress, end.action) is Standing.NOT_PROVEN
    assert kinds(there)[-1] is Kind.ROLLBACK_UNPROVEN


def test_a_control_is_not_asked_for_the_gain_of_its_candidate(tmp_path):
    plan = replace(three_steps(reactions=BACK), objectives=(objective(at_least(1.05)),))
    there = ground(tmp_path, plan)
    end = carry(there)
    assert end.progress.cause is Cause.FAIL
    assert standing_of(end.progress, end.action) is Standing.ROLLED_BACK


@pytest.mark.parametrize(
    ("program", "standing"), [("true", Standing.ROLLED_BACK), ("false", Standing.NOT_PROVEN)]
)
def test_the_command_of_the_rollback_decides_whether_it_goes_on(tmp_path, program, standing):
    plan = three_steps(reactions=BACK)
    plan = replace(plan, rollback=replace(plan.rollback, command=(program,)))
    there = ground(tmp_path, plan, measure=Processes(levels=SLOW))
    end = carry(there)
    assert standing_of(end.progress, end.action) is standing
    assert (Kind.RESTORED in kinds(there)) == (standing is Standing.ROLLED_BACK)


def test_the_output_of_the_command_is_kept(tmp_path):
    plan = three_steps(reactions=BACK)
    command = ("/bin/sh", str(tmp_path / "back.sh"))
    (tmp_path / "back.sh").write_text("echo restored $PWD; exit 3\n")
    there = ground(tmp_path, replace(plan, rollback=replace(plan.rollback, command=command)),
                   measure=Processes(levels=SLOW))  # fmt: skip
    carry(there)
    record = there.store.record("change")
    ended = next(each for each in record.entries if each.kind is Kind.COMMAND_ENDED)
    assert ended.facts["exit_code"] == 3
    assert record.kept[ended.evidence["output"]] == f"restored {tmp_path}\n"


def test_a_person_takes_the_way_back_after_a_promotion(tmp_path):
    there = ground(tmp_path, one_step())
    carry(there)
    end = roll_back(there, by=holder(), why="slow since noon")
    assert end.progress.rollback.is_proven
    assert not end.progress.is_promoted
    assert json.loads(there.promoted.read_text())["digest"] == DIGESTS[Side.CONTROL]
    assert flaws_of(there.store.contents("change")) == ()
    # What was taken back is no baseline any more.
    assert carry(ground(tmp_path, second(one_step()))).progress.cause is Cause.NO_DATA
    with pytest.raises(InputError, match="was rolled back"):
        roll_back(there, by=holder(), why="again")


def test_what_was_promoted_and_taken_back_is_not_promoted_again_by_a_word(tmp_path):
    there = ground(tmp_path, three_steps())
    carry(there)
    roll_back(there, by=holder(), why="slow since noon")
    with pytest.raises(InputError, match="promoted and taken back"):
        resume(there.store, load(there), said(there))


def test_a_way_back_that_nobody_kept_is_refused_before_anything_is_run(tmp_path):
    plan = three_steps()
    there = ground(tmp_path, replace(plan, rollback=Rollback(to="9" * 64, verify=("bandwidth",))))
    with pytest.raises(InputError, match="no configuration of that digest"):
        carry(there)
    assert not there.store.has("change")


def test_a_way_back_to_what_another_rollout_promoted(tmp_path):
    carry(ground(tmp_path, one_step()))
    plan = second(one_step(), reactions=BACK)
    plan = replace(
        plan,
        rollback=Rollback(to=DIGESTS[Side.CANDIDATE], verify=("bandwidth",)),
        control=other_candidate("7" * 64),
    )
    there = ground(tmp_path, plan, measure=Processes(levels=SLOW))
    end = carry(there)
    assert standing_of(end.progress, end.action) is Standing.ROLLED_BACK
    assert json.loads(there.promoted.read_text())["digest"] == DIGESTS[Side.CANDIDATE]


def test_files_of_a_configuration_come_back_as_they_were_kept(tmp_path):
    job = tmp_path / "jobs" / "job.yaml"
    job.parent.mkdir()
    job.write_text("model: ../models/m.json\n")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "m.json").write_text("{}")
    plan = three_steps(reactions=BACK)
    plan = replace(plan, control=replace(plan.control, job=str(job)))
    seen = {}

    class Looking(Processes):
        def measure(self, request):
            job.write_text("model: spoiled\n")
            if request.side is Side.PROMOTED:
                path = Path(request.configuration.job)
                seen["job"], seen["model"] = path.read_text(), (path.parent / "../models/m.json").read_text()
            return super().measure(request)

    carry(ground(tmp_path, plan, measure=Looking(levels=SLOW)))
    assert seen == {"job": "model: ../models/m.json\n", "model": "{}"}


def test_what_was_promoted_is_done_and_another_file_is_another_rollout(tmp_path):
    file = File(one_step())
    there = ground(tmp_path, file)
    carry(there)
    count = len(there.store.record("change").log)
    assert isinstance(carry(there).action, actions.Done)
    assert len(there.store.record("change").log) == count
    file.edit(owner="somebody else")
    with pytest.raises(InputError, match="give it another name"):
        carry(there)


def test_a_measure_cannot_say_that_its_run_was_another_one(tmp_path):
    there = ground(tmp_path, one_step())
    carry(there)
    for run in there.store.record("change").runs:
        assert run.step == "one"
        assert run.configuration == DIGESTS[run.side]
        assert run.samples[METRIC]


def test_a_run_that_another_host_keeps_is_left_to_it_unless_that_is_lost(tmp_path):
    class Killed(Processes):
        def measure(self, request):
            if len(self.measured) == 2:
                raise KeyboardInterrupt
            return super().measure(request)

    first = replace(ground(tmp_path, one_step(), measure=Killed()), host="login-1")
    with pytest.raises(KeyboardInterrupt):
        carry(first)
    there = replace(ground(tmp_path, one_step()), host="login-2", runs=tmp_path / "other-runs")
    with pytest.raises(InputError, match=r"was started on login-1 .* give --lost-host login-1"):
        carry(there)
    assert carry(replace(there, lost_hosts=frozenset({"login-1"}))).progress.is_promoted
    states = [run.state for run in there.store.record("change").runs]
    assert states.count(RunState.CUT) == 1


def kept_with(name):
    return canonical_text(
        {"digest": "x", "settings": {}, "layout": {}, "python": "", "command": [], "job": "j", "script": "",
         "files": {name: "no"}}
    )  # fmt: skip


def test_a_kept_file_with_a_whole_path_is_refused(tmp_path):
    with pytest.raises(InputError, match="outside"):
        put_back(kept_with(str(tmp_path / "elsewhere")), tmp_path / "home")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("ups", range(1, 7))
def test_a_kept_file_above_its_job_stays_in_the_folder(tmp_path, ups):
    put_back(kept_with("../" * ups + "model.json"), tmp_path / "home")
    assert [path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("model.json")] == ["home"]
