import json
from pathlib import Path

import pytest

from linkwise.cli.main import run as command
from linkwise.errors import InputError
from linkwise.rollout.gates.checking_power import recorded_noise
from linkwise.rollout.gates.replay import exit_code_of, replay_rollout
from linkwise.rollout.measuring.recorded_runs import read_recorded
from linkwise.rollout.plan import Step, Target, TargetKind, ValidRun, Workload, WorkloadKind
from linkwise.rollout.runs import RunState, Side
from linkwise.rollout.verdicts import Outcome
from tests.rollout.making import (
    TODAY,
    Against,
    Aggregate,
    Severity,
    at_least,
    at_most,
    objective,
    replace_steps,
    rollout,
)
from tests.rollout.recording import collectives, record, training

_ROOT = Path(__file__).parents[2]
TRAINING = Workload(kind=WorkloadKind.TRAINING, cut="ddp", steps=5)
LOSS = objective(
    at_most(1.005), name="loss", metric="train.loss", workload=TRAINING, aggregate=Aggregate.LAST
)


def replayed(folder, plan, **more):
    return replay_rollout(plan, read_recorded(folder, plan), today=TODAY, **more)


@pytest.mark.parametrize(
    ("factor", "outcome", "code"),
    [(0.99, Outcome.PASS, 0), (0.9, Outcome.FAIL, 1), (0.95, Outcome.INCONCLUSIVE, 3)],
)
def test_recorded_pairs_are_judged_as_real_ones(factor, outcome, code, tmp_path):
    around = (1.0, 1.002, 0.998, 1.001, 0.999)
    record(tmp_path, "one", "candidate", [collectives(factor * 3e11 * each) for each in around])
    record(tmp_path, "one", "control", [collectives(3e11)] * 5)
    replay = replayed(tmp_path, rollout())
    assert (replay.outcome, exit_code_of(replay)) == (outcome, code)
    assert replay.verdicts[0].objectives[0].value == pytest.approx(factor, rel=0.01)


def test_no_folder_of_a_step_is_no_data(tmp_path):
    replay = replayed(tmp_path, rollout())
    assert (replay.outcome, exit_code_of(replay)) == (Outcome.NO_DATA, 4)


def test_files_are_paired_in_their_natural_order_and_warm_up_is_left_out(tmp_path):
    record(tmp_path, "one", "candidate", [collectives(3e11 + place) for place in range(12)], name="run-{}")
    record(tmp_path, "one", "candidate", [collectives(1e11)], name="warmup-{}")
    record(tmp_path, "one", "control", [collectives(3e11)] * 12, name="run-{}")
    runs = read_recorded(tmp_path, rollout()).by_step["one"]
    counted = [run for run in runs if run.side is Side.CANDIDATE and not run.is_warmup]
    assert [run.run_id.rsplit("/")[-1] for run in counted[-3:]] == [
        "run-10.json",
        "run-11.json",
        "run-12.json",
    ]
    assert [run.turn for run in runs] == list(range(25))
    assert sum(run.is_warmup for run in runs) == 1
    sides = [str(run.side) for run in runs if not run.is_warmup][:4]
    assert sorted(sides) == ["candidate", "candidate", "control", "control"]


@pytest.mark.parametrize(
    "bad", ["", "{", "not json", '{"schema": "linkwise.bench/1", "kind": "collectives"}', json.dumps(collectives(3e11, outcome="failed"))],
    ids=["empty", "cut", "text", "damaged", "failed"],
)  # fmt: skip
def test_bad_result_is_a_run_that_failed(bad, tmp_path):
    record(tmp_path, "one", "candidate", [collectives(3e11), bad])
    runs = read_recorded(tmp_path, rollout()).by_step["one"]
    assert [run.state for run in runs] == [RunState.VALID, RunState.FAILED]
    assert runs[1].reason


def test_run_with_other_settings_than_the_candidate_is_invalid(tmp_path):
    told = collectives(3e11)
    told["runs"][0]["settings"] = {"A": "1"}
    record(tmp_path, "one", "candidate", [told])
    (run,) = read_recorded(tmp_path, rollout()).by_step["one"]
    assert run.state is RunState.INVALID
    assert "planned A=2, seen 1" in run.reason


def test_works_of_a_step_are_told_apart(tmp_path):
    plan = rollout(objective(), LOSS)
    for side in ("candidate", "control"):
        record(tmp_path, "one", side, [collectives(3e11)] * 5, name="a{}")
        record(tmp_path, "one", side, [training([3.0, 2.5, 2.0])] * 5, name="b{}")
    replay = replayed(tmp_path, plan)
    assert replay.outcome is Outcome.PASS
    assert [each.judged for each in replay.verdicts[0].objectives] == [5, 5]


def test_broken_loss_fails(tmp_path):
    record(tmp_path, "one", "candidate", [training([3.0, 2.5, None])] * 5)
    record(tmp_path, "one", "control", [training([3.0, 2.5, 2.0])] * 5)
    assert replayed(tmp_path, rollout(LOSS)).outcome is Outcome.FAIL


@pytest.mark.parametrize(
    "other", [collectives(3e11, size_bytes=2**20), collectives(3e11, collective="broadcast"), training([1.0])]
)
def test_result_of_other_work_is_refused(other, tmp_path):
    record(tmp_path, "one", "candidate", [other])
    with pytest.raises(
        InputError, match=r"01\.json: linkwise\.bench/1 of kind \w+ is of no work of step 'one'"
    ):
        read_recorded(tmp_path, rollout())


@pytest.mark.parametrize(
    ("step", "side", "says"),
    [("ones", "candidate", "did you mean one"), ("one", "kandidate", "did you mean candidate")],
)
def test_unknown_folders_are_refused(step, side, says, tmp_path):
    record(tmp_path, step, side, [collectives(3e11)])
    with pytest.raises(InputError, match=says):
        read_recorded(tmp_path, rollout())
    with pytest.raises(InputError, match="no such folder"):
        read_recorded(tmp_path / "none", rollout())


def test_hidden_folders_beside_the_steps_are_no_steps(tmp_path):
    record(tmp_path, "one", "candidate", [collectives(3e11)] * 5)
    record(tmp_path, "one", "control", [collectives(3e11)] * 5)
    (tmp_path / ".linkwise/runs").mkdir(parents=True)
    assert replayed(tmp_path, rollout()).outcome is Outcome.PASS


def test_promoted_runs_are_the_baseline(tmp_path):
    plan = rollout(objective(at_least(0.95, Against.BASELINE)))
    record(tmp_path, "one", "candidate", [collectives(2.99e11)] * 5)
    record(tmp_path, "one", "promoted", [collectives(3e11)] * 5)
    assert replayed(tmp_path, plan).outcome is Outcome.PASS


def test_first_step_that_does_not_pass_decides(tmp_path):
    plan = rollout()
    second = Step(name="two", target=Target(kind=TargetKind.NODES, amount=2), objectives=("bandwidth",))
    plan = replace_steps(plan, (*plan.steps, second))
    for step, factor in (("one", 0.95), ("two", 0.8)):
        record(
            tmp_path,
            step,
            "candidate",
            [collectives(factor * 3e11 * each) for each in (1.0, 1.001, 0.999, 1.002, 0.998)],
        )
        record(tmp_path, step, "control", [collectives(3e11)] * 5)
    replay = replayed(tmp_path, plan)
    assert [each.outcome for each in replay.verdicts] == [Outcome.INCONCLUSIVE, Outcome.FAIL]
    assert (replay.stopped_at, exit_code_of(replay)) == ("one", 3)
    assert replayed(tmp_path, plan, steps=["two"]).outcome is Outcome.FAIL
    with pytest.raises(InputError, match="did you mean two"):
        replayed(tmp_path, plan, steps=["twoo"])


def test_what_should_hold_and_does_not_waits_for_an_approval(tmp_path):
    plan = rollout(
        objective(), objective(at_least(1e12, Against.FLOOR), name="high", severity=Severity.SHOULD)
    )
    for side in ("candidate", "control"):
        record(tmp_path, "one", side, [collectives(3e11)] * 5)
    replay = replayed(tmp_path, plan)
    assert (replay.outcome, replay.to_approve, exit_code_of(replay)) == (Outcome.PASS, ("high",), 3)


def test_noise_of_records_is_their_spread(tmp_path):
    spread = (0.98, 0.99, 1.0, 1.01, 1.02)
    record(tmp_path, "one", "candidate", [collectives(3e11 * each) for each in spread])
    floor = rollout(objective(at_least(1e11, Against.FLOOR)))
    noise = recorded_noise(floor, read_recorded(tmp_path, floor))
    assert noise["bandwidth"].fraction == pytest.approx(1.4826 * 0.01, rel=0.01)
    assert noise["bandwidth"].basis == "recorded"
    assert recorded_noise(rollout(), read_recorded(tmp_path, rollout())) == {}
    record(tmp_path, "one", "control", [collectives(3e11 * each) for each in spread])
    assert recorded_noise(rollout(), read_recorded(tmp_path, rollout()))["bandwidth"].fraction < 1e-9


def test_command_prints_verdicts_and_writes_them_for_ci(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (_ROOT / "src/linkwise/rollout/document/template.yaml").read_text(encoding="utf-8")
    text = text.replace("      - {to: prediction, at_least: 75 %}\n", "").replace("repeats: 9", "repeats: 5")
    (tmp_path / "r.yaml").write_text(text, encoding="utf-8")
    for step in ("one-node", "all"):
        for side in ("candidate", "control"):
            record(tmp_path / "records", step, side, [collectives(3e11)] * 5)

    def replay(*more):
        return command(["rollout", "replay", "r.yaml", "--records", "records", *more], today=lambda: TODAY)

    assert replay("--junit", "gates.xml", "--ctrf", "gates.json") == 0
    shown = capsys.readouterr().out
    assert "one-node: pass, the one objective that must hold does." in shown
    assert shown.splitlines()[-1] == "all steps pass"
    assert 'tests="2"' in (tmp_path / "gates.xml").read_text(encoding="utf-8")
    assert (
        json.loads((tmp_path / "gates.json").read_text(encoding="utf-8"))["results"]["summary"]["passed"] == 2
    )
    record(tmp_path / "records", "all", "candidate", [collectives(2e11)] * 5)
    assert replay("--format", "json") == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["outcome"], told["stopped_at"]) == (
        "linkwise.rollout-verdicts/1",
        "fail",
        "all",
    )
    assert told["steps"][1]["objectives"][0]["value"] == pytest.approx(2 / 3)
    assert replay("--junit", "none/gates.xml") == 2


def test_check_that_is_left_out_makes_no_run_invalid(tmp_path):
    told = collectives(3e11)
    told["runs"][0] |= {
        "valid": False,
        "checks": [
            {"what": "GPUDirect RDMA", "planned": "yes", "seen": "no", "is_as_planned": False},
            {"what": "world size", "planned": "8", "seen": "8", "is_as_planned": True},
        ],
    }
    record(tmp_path, "one", "candidate", [told])
    strict = rollout()
    lenient = rollout(valid_run=ValidRun(left_out={"GPUDirect RDMA": "no RDMA here"}))
    other = rollout(valid_run=ValidRun(left_out={"transport": "of no matter"}))

    def state(plan):
        (run,) = read_recorded(tmp_path, plan).by_step["one"]
        return run.state, run.reason

    assert state(strict) == (RunState.INVALID, "GPUDirect RDMA: planned yes, seen no")
    assert state(other)[0] is RunState.INVALID
    assert state(lenient) == (RunState.VALID, "")
