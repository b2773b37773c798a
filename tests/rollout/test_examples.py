"""The examples that ship, read and judged as a person would."""

import json
from pathlib import Path

from linkwise.cli.main import run as command
from linkwise.rollout.document.reading import read_rollout
from linkwise.rollout.gates.replay import replay_rollout
from linkwise.rollout.measuring.recorded_runs import read_recorded
from linkwise.rollout.verdicts import Outcome
from tests.rollout.making import TODAY

_EXAMPLES = Path(__file__).parents[2] / "examples"


def test_recorded_example_passes():
    rollout = read_rollout(_EXAMPLES / "rollout-local.yaml")
    replay = replay_rollout(rollout, read_recorded(_EXAMPLES / "rollout-local", rollout), today=TODAY)
    assert replay.outcome is Outcome.PASS
    assert [each.judged for each in replay.verdicts[0].objectives] == [5, 5]


def test_recorded_example_says_nothing_of_the_machine_it_was_recorded_on():
    for file in _EXAMPLES.glob("rollout-local/**/*.json"):
        text = file.read_text(encoding="utf-8")
        told = json.loads(text)
        assert {host for run in told["runs"] for host in run["hosts"]} == {"node-1"}
        assert not any(word.startswith("/") for run in told["runs"] for word in run["argv"])


def test_recorded_noise_of_pairs_is_less_than_that_of_runs(capsys):
    words = [
        "rollout",
        "check",
        str(_EXAMPLES / "rollout-local.yaml"),
        "--records",
        str(_EXAMPLES / "rollout-local"),
    ]
    assert command([*words, "--format", "json"], today=lambda: TODAY) == 0
    noise = {
        each["objective"]: each["noise_fraction"] for each in json.loads(capsys.readouterr().out)["power"]
    }
    assert 0.01 < noise["step-time"] < 0.1
    assert noise["loss"] == 0
