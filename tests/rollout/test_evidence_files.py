"""Gates over the log of a rollout that was carried out."""

from dataclasses import replace

import pytest

from linkwise.errors import InputError
from linkwise.rollout.carrying.progress import progress_of
from linkwise.rollout.exports.decision_log import log_json
from linkwise.rollout.gates.gate import gate_of_log
from linkwise.rollout.gates.replay import replay_rollout
from linkwise.rollout.measuring.evidence_files import read_evidence
from linkwise.rollout.runs import Side
from linkwise.rollout.store.store import Store
from linkwise.rollout.verdicts import Outcome
from tests.rollout.making import TODAY, at_least, objective
from tests.rollout.simulated import Processes, carry, ground, three_steps

PLAN = replace(three_steps(), steps=three_steps().steps[:2])


def carried(folder, **levels):
    """Return the export of a rollout that was carried out, and its log."""
    measure = Processes(
        count=2, levels=dict.fromkeys(Side, 1e11) | {Side(each): level for each, level in levels.items()}
    )
    there = ground(folder, PLAN, measure=measure)
    carry(there)
    there.store.close()
    store = Store(str(folder / "store.sqlite"))
    contents, entries = store.contents("change"), store.record("change").entries
    store.close()
    file = folder / "log.json"
    file.write_text(log_json(contents), encoding="ascii")
    return file, entries


def replayed(file, plan=PLAN):
    return replay_rollout(plan, read_evidence(file, plan), today=TODAY)


def test_replay_over_the_log_says_what_the_rollout_said(tmp_path):
    file, entries = carried(tmp_path)
    assert [each.outcome for each in replayed(file).verdicts] == [Outcome.PASS, Outcome.PASS]
    assert gate_of_log(PLAN, "two", progress_of(entries)).is_open


def test_gate_of_a_step_that_failed_is_closed(tmp_path):
    file, entries = carried(tmp_path, candidate=0.8e11)
    verdicts = replayed(file).verdicts
    assert [each.outcome for each in verdicts] == [Outcome.FAIL, Outcome.NO_DATA]
    assert not gate_of_log(PLAN, "one", progress_of(entries)).is_open


def test_other_bars_are_tried_on_the_same_evidence(tmp_path):
    file, _ = carried(tmp_path)
    stricter = replace(PLAN, objectives=(objective(at_least(1.1)),), digest="e" * 64)
    assert replayed(file, stricter).outcome is Outcome.FAIL


def test_log_that_was_altered_or_is_of_another_candidate_is_refused(tmp_path):
    file, _ = carried(tmp_path)
    other = replace(PLAN, candidate=replace(PLAN.candidate, digest="b" * 64))
    with pytest.raises(InputError, match="has no run of candidate bbbbbbbbbbbb"):
        read_evidence(file, other)
    text = file.read_text(encoding="ascii")
    file.write_text(text.replace('\\"turn\\":3', '\\"turn\\":4', 1), encoding="ascii")
    assert file.read_text(encoding="ascii") != text
    with pytest.raises(InputError, match="nothing is judged on evidence that was altered"):
        read_evidence(file, PLAN)
    file.write_text("{}", encoding="ascii")
    with pytest.raises(InputError, match=r"log\.json: it is no linkwise\.rollout-log/1"):
        read_evidence(file, PLAN)
