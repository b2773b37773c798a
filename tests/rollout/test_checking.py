import datetime as dt
import json
import re
from pathlib import Path

import pytest

from linkwise.cli.main import run as command
from linkwise.cluster import load_cluster
from linkwise.rollout.document.reading import parse_rollout
from linkwise.rollout.gates.checking import check_rollout
from linkwise.rollout.gates.checking_power import StatedNoise, objective_powers, power_remarks
from linkwise.rollout.gates.remark import Level
from linkwise.rollout.plan import Against
from tests.rollout.making import at_least, at_most, objective, rollout

_ROOT = Path(__file__).parents[2]
_EXAMPLE = (_ROOT / "examples/rollout.yaml").read_text(encoding="utf-8")
_TODAY = dt.date(2026, 11, 30)


def _remarks(text, today=_TODAY):
    plan = parse_rollout(text, path=str(_ROOT / "examples/rollout.yaml"))
    return check_rollout(plan, load_cluster(plan.scope.cluster), today=today)


def _changed(*changes):
    text = _EXAMPLE
    for before, after in changes:
        changed = re.sub(before, lambda _, after=after: after, text, count=1, flags=re.MULTILINE)
        assert changed != text, before
        text = changed
    return text


def test_example_has_no_fault_and_no_warning():
    assert {each.level for each in _remarks(_EXAMPLE)} <= {Level.NOTE}


@pytest.mark.parametrize(
    ("changes", "level", "key", "says"),
    [
        ([("train-2.30", "train-2.28")], Level.FAULT, "candidate", "nothing would change"),
        ([("  fingerprint: .*\n", "")], Level.WARNING, "scope.fingerprint", "would judge any cluster"),
        ([("gpu: h100-sxm, nccl", "gpu: h100-sxm, firmware: '28.39.1002', nccl")], Level.WARNING, "scope.fingerprint.firmware", "no run tells it"),
        ([("  prices: .*\n", "")], Level.FAULT, "scope.prices", "train.cost hangs on prices"),
        ([("metric: train.loss", "metric: serve.ttft"), ("kind: job, steps: 50}\n    aggregate: last", "kind: endpoint, url: 'http://s/metrics'}\n    aggregate: p99")],
         Level.FAULT, "objectives.4.workload.kind", "nothing measures endpoint on slurm in a rollout"),
        ([("at_least: 97 %", "at_most: 97 %"), ("at_least: 75 %", "at_most: 75 %")],
         Level.FAULT, "objectives.0.compare", "can never fail for being worse"),
        ([("to: control, at_least: 97 %", "to: floor, at_least: 0 GB/s")], Level.FAULT, "objectives.0.compare.0", "it can never fail"),
        ([("at_least: 75 %", "at_least: 20 %")], Level.WARNING, "objectives.0.compare.1", "5 times worse"),
        ([("at_most: 110 %", "at_most: 300 %")], Level.WARNING, "objectives.1.compare.0", "3 times worse"),
        ([("to: control, at_least: 97 %", "to: floor, at_least: 100 GB/s")], Level.WARNING, "objectives.0.compare.0", "catches a breakdown only"),
        ([("to: control, at_least: 97 %", "to: floor, at_least: 3 TB/s")], Level.WARNING, "objectives.0.compare.0", "no run would meet this bar"),
        ([("to: control, at_most: 110 %", "to: floor, at_most: 1 s")], Level.WARNING, "objectives.1.compare.0", "catches a breakdown only"),
        ([("to: control, at_most: 110 %", "to: floor, at_most: 1 us")], Level.WARNING, "objectives.1.compare.0", "no run would meet this bar"),
        ([("sizes: .1 GiB, 4 GiB.", "sizes: [8 B, 4 GiB]")], Level.WARNING, "objectives.0.workload.sizes", "so far apart"),
        ([("operations: .all_reduce.", "operations: [all_reduce, broadcast]")], Level.WARNING, "objectives.0.workload.operations", "hides one"),
        ([("kind: job, steps: 50}\n    compare", "kind: job, steps: 50}\n    aggregate: p99\n    compare")],
         Level.WARNING, "objectives.3.aggregate", "p99 of 50 steps is the worst of them; run 100"),
        ([("dimension: quality", "dimension: throughput")], Level.NOTE, "objectives", "spoils the training would pass"),
        ([("review_by: 2027-02-20", "review_by: 2026-11-30")], Level.WARNING, "objectives.0.review_by", "by 2026-11-30: run suspends"),
        ([("objectives: .small-all-reduce, loss.", "objectives: [small-all-reduce]")], Level.FAULT, "steps.0.objectives", "it can never fail"),
        ([("target: .pairs: 4.", "target: {pairs: 20}")], Level.FAULT, "steps.1.target", "20 pairs of nodes, 40 nodes, are more than the 32 of h100-256"),
        ([("target: .nodes: 1.", "target: {nodes: 33}")], Level.FAULT, "steps.0.target", "33 nodes are more than the 32 of h100-256; lower"),
        ([("target: .nodes: 1.", "target: {gpus: 9}")], Level.FAULT, "steps.0.target", "more than the 8 of a node"),
        ([("target: .fraction: 25 %.", "target: {nodes: 2}")], Level.WARNING, "steps.2.target", "fewer than the 8 of the step before"),
        ([("target: .nodes: 1.", "target: {fraction: 50 %}")], Level.WARNING, "steps.0.target", "touches 16 of 32 nodes; begin with one"),
        ([("nodes: 32", "nodes: 8")], Level.FAULT, "limits.nodes", "is 8, and step 'all' needs 32"),
        ([("  rehearsed: .*\n", "")], Level.WARNING, "rollback.rehearsed", "never tried"),
        ([("rehearsed: .*", "rehearsed: 2027-01-01")], Level.FAULT, "rollback.rehearsed", "is not yet"),
        ([("  verify: .*\n", "")], Level.WARNING, "rollback.verify", "name an objective"),
        ([("verify: .*", "verify: [cost]")], Level.WARNING, "rollback.verify.0", "only watched"),
    ],
)  # fmt: skip
def test_lint_tells(changes, level, key, says):
    found = _remarks(_changed(*changes))
    assert any(each.level is level and each.key == key and says in each.text for each in found), found


@pytest.mark.parametrize(
    "changes",
    [
        [("review_by: 2027-02-20", "review_by: 2026-12-01")],
        [("target: .nodes: 1.", "target: {gpus: 8}")],
        [
            ("target: .pairs: 4.", "target: {leaves: 1}"),
            ("target: .fraction: 25 %.", "target: {fraction: 100 %}"),
        ],
        [("rehearsed: .*", "rehearsed: 2026-11-30")],
        [("at_least: 75 %", "at_least: 50 %")],
        [("sizes: .1 GiB, 4 GiB.", "sizes: [1 GiB, 64 GiB]")],
        [("to: control, at_least: 97 %", "to: floor, at_least: 300 GB/s")],
    ],
)
def test_lint_is_quiet_on_near_misses(changes):
    assert {each.level for each in _remarks(_changed(*changes))} <= {Level.NOTE}


def _powers(plan, fraction=0.03, **known):
    noise = {name: StatedNoise(fraction=each, basis="stated") for name, each in known.items()}
    return objective_powers(plan, noise=noise, assumed=StatedNoise(fraction=fraction, basis="assumed"))


def test_power_tells_that_runs_are_too_few_for_the_noise():
    (weak,) = _powers(rollout(objective(at_least(0.97)), repeats=5, most_repeats=9))
    assert weak.is_weak
    assert weak.enough_repeats in (20, 30)
    remarks = list(power_remarks([weak]))
    assert "passes in" in remarks[0].text
    assert f"most_repeats: {weak.enough_repeats} would do" in remarks[0].text
    (strong,) = _powers(rollout(objective(at_least(0.97))), fraction=0.005)
    assert not strong.is_weak
    assert list(power_remarks([strong])) == []


def test_power_says_that_no_change_passes_a_bar_above_the_control():
    (weak,) = _powers(rollout(objective(at_least(1.05)), most_repeats=9), fraction=0.01)
    assert (weak.healthy.passed, weak.enough_repeats) == (0, None)


def test_power_of_a_floor_is_told_on_either_side_of_it():
    (found,) = _powers(rollout(objective(at_least(3e9, Against.FLOOR))))
    assert (found.healthy_truth, found.bad_truth) == (1.06, 0.94)
    assert found.bad.passed == 0


def test_loss_has_power_only_where_its_noise_is_stated():
    loss = objective(at_most(1.005), name="loss", metric="train.loss")
    assert _powers(rollout(loss)) == ()
    (found,) = _powers(rollout(loss), loss=0.001)
    assert found.healthy.passed == found.healthy.trials


def test_check_publishes_steps_power_and_remarks(capsys):
    code = command(
        ["rollout", "check", str(_ROOT / "examples/rollout.yaml"), "--format", "json"], today=lambda: _TODAY
    )
    told = json.loads(capsys.readouterr().out)
    assert (code, told["schema"]) == (0, "linkwise.rollout-check/1")
    assert [(step["nodes"], step["gpus"]) for step in told["steps"]] == [(1, 8), (8, 64), (8, 64), (32, 256)]
    assert {power["noise_basis"] for power in told["power"]} == {"assumed"}
    assert all(power["healthy_passes_fraction"] > 0.9 for power in told["power"])
    assert [(remark["level"], remark["key"]) for remark in told["remarks"]] == [
        ("note", "objectives.5.compare"),
        ("note", "objectives.4"),
    ]


def test_check_reads_standard_input_and_exits_with_one_on_a_fault(tmp_path, monkeypatch, capsys):
    import io
    import sys

    text = (_ROOT / "src/linkwise/rollout/document/template.yaml").read_text(encoding="utf-8")

    def check(given):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        return command(["rollout", "check", "-", "--noise", "0.5 %"], today=lambda: _TODAY)

    assert check(text) == 0
    assert check(text.replace("nodes: 32,", "nodes: 2,")) == 1
    assert check(text.replace("97 %", "97")) == 2
    assert "<stdin>:34: objectives.0.compare.0.at_least" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("noise", "says"),
    [("3", "--noise 3"), ("x=1 %", "unknown objective 'x'"), ("much", "'much' is no ratio")],
)
def test_noise_that_is_none_is_refused(noise, says, capsys):
    assert (
        command(
            ["rollout", "check", str(_ROOT / "examples/rollout.yaml"), "--noise", noise], today=lambda: _TODAY
        )
        == 2
    )
    assert says in capsys.readouterr().err
