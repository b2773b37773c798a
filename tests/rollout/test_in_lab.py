"""Rollouts end to end, in a lab: real training over shaped links, gates, decisions, the way back."""

import json
import os

import pytest

from linkwise.cli.main import run
from tests.rollout.lab_rollouts import clean_environment, lab_of_two, program, rate_command, write_rollout

pytestmark = [pytest.mark.requires("netns"), pytest.mark.requires("torch")]

FLOOR = {"against": "floor", "bar": "600 ms"}
ONE_TWO = (("one", "{nodes: 1}"), ("two", "{nodes: 2}"))
RATE_BYTES_PER_S = 10e6
"""Of a link of the lab: 400 Gbit/s over its dilation of 5,000."""


@pytest.fixture
def lab(tmp_path, monkeypatch):
    clean_environment(monkeypatch)
    with lab_of_two(tmp_path / "lab", f"r{os.getpid()}") as name:
        yield name


def told(file, capsys):
    capsys.readouterr()
    run(["rollout", "status", str(file), "--format", "json"])
    return json.loads(capsys.readouterr().out)


def by_objective(status, step):
    found = next(each for each in status["steps"] if each["name"] == step)
    return {each["name"]: each["outcome"] for each in found["objectives"]}


def check_rolled_back(file, capsys, *, passed, stopped, verdict):
    """Hold a status to: stopped at one gate after others were passed, and back, proven by its objectives."""
    status = told(file, capsys)
    steps = {each["name"]: (each["standing"], each["outcome"]) for each in status["steps"]}
    assert {name: steps[name] for name in passed} == dict.fromkeys(passed, ("passed", "pass"))
    assert steps[stopped][1] == verdict
    assert status["rollback"]["proven"] is True, status["rollback"]
    assert run(["rollout", "log", str(file), "--verify"]) == 0
    return status


def test_one_pass_through_the_lab(lab, tmp_path, capsys):
    script = program(tmp_path / "r", "train.py")
    file = write_rollout(
        tmp_path / "r", lab, "one-pass", candidate=script, control=script, steps=(("two", "{nodes: 2}"),),
        against="floor", bar="5 s",
    )  # fmt: skip
    assert run(["rollout", "run", str(file)]) == 0
    status = told(file, capsys)
    assert status["standing"] == "promoted"
    assert by_objective(status, "two") == {"step-time": "pass", "loss": "pass"}
    assert status["steps"][0]["runs"] == {"valid": 5}
    assert run(["rollout", "log", str(file), "--verify"]) == 0


@pytest.mark.full
def test_a_good_change_is_promoted_through_three_steps(lab, tmp_path, capsys):
    old = program(tmp_path / "r", "train.py")
    new = program(tmp_path / "r", "faster.py", rate=40.0)
    steps = (("one", "{nodes: 1}"), ("pair", "{pairs: 1}"), ("all", "{fraction: 100 %}"))
    file = write_rollout(tmp_path / "r", lab, "good", candidate=new, control=old, steps=steps, **FLOOR)
    for _ in steps:
        assert run(["rollout", "run", str(file)]) == 0
    status = told(file, capsys)
    assert status["standing"] == "promoted"
    assert [each["standing"] for each in status["steps"]] == ["passed"] * 3


@pytest.mark.full
def test_a_slow_link_is_stopped_where_two_nodes_meet(lab, tmp_path, capsys):
    script = program(tmp_path / "r", "train.py")
    slow, fast = (rate_command(tmp_path / "r", lab, RATE_BYTES_PER_S * share) for share in (1 / 40, 1))
    file = write_rollout(
        tmp_path / "r", lab, "slow-link", candidate=f"{script}, command: {json.dumps(slow)}",
        control=f"{script}, command: {json.dumps(fast)}", command=f", command: {json.dumps(fast)}",
        steps=ONE_TWO, **FLOOR,
    )  # fmt: skip
    assert run(["rollout", "run", str(file), "--until", "two"]) == 1
    status = check_rolled_back(file, capsys, passed=["one"], stopped="two", verdict="fail")
    assert by_objective(status, "two") == {"step-time": "fail", "loss": "pass"}


@pytest.mark.full
def test_a_job_that_takes_the_wrong_interface_is_stopped_where_two_nodes_meet(lab, tmp_path, capsys):
    good = program(tmp_path / "r", "train.py")
    bad = program(tmp_path / "r", "habit.py", habit='os.environ["GLOO_SOCKET_IFNAME"] = "lo"')
    file = write_rollout(
        tmp_path / "r", lab, "interface", candidate=bad, control=good, steps=ONE_TWO, **FLOOR
    )
    assert run(["rollout", "run", str(file), "--until", "two"]) in (1, 4)
    check_rolled_back(file, capsys, passed=["one"], stopped="two", verdict="error")


@pytest.mark.full
def test_a_worse_layout_is_stopped_at_the_first_gate(lab, tmp_path, capsys):
    file = write_rollout(
        tmp_path / "r", lab, "layout", candidate=", layout: {micro_batch: 1}", steps=ONE_TWO, loss=100
    )  # the program that launch renders
    assert run(["rollout", "run", str(file), "--until", "two"]) == 1
    status = check_rolled_back(file, capsys, passed=[], stopped="one", verdict="fail")
    assert by_objective(status, "one")["step-time"] == "fail"


@pytest.mark.full
@pytest.mark.parametrize("rate", [3e4, 1e30], ids=["worse", "not a number"])
def test_a_broken_loss_is_stopped_at_the_first_gate(rate, lab, tmp_path, capsys):
    good, bad = program(tmp_path / "r", "train.py"), program(tmp_path / "r", "broken.py", rate=rate)
    file = write_rollout(tmp_path / "r", lab, "loss", candidate=bad, control=good, steps=ONE_TWO, **FLOOR)
    assert run(["rollout", "run", str(file), "--until", "two"]) in (1, 4)
    status = check_rolled_back(file, capsys, passed=[], stopped="one", verdict="fail")
    assert by_objective(status, "one") == {"step-time": "pass", "loss": "fail"}
