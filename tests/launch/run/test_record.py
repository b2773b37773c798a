"""The record of a run, and its folder."""

import datetime as dt
import json

import pytest

from linkwise.errors import InputError
from linkwise.launch.run.ending import Ending, Outcome
from linkwise.launch.run.record import RunFolder, RunRecord, record_json, recorded_settings

RECORD = RunRecord(
    run_id="r1",
    what="bench pairs",
    place="local",
    argv=("python", "start.py"),
    settings={"NCCL_DEBUG": "INFO"},
    plan_digest="0" * 64,
    started=dt.datetime(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=dt.UTC),
    ranks=2,
)


def test_names_of_the_record_are_a_contract():
    values = json.loads(record_json(RECORD))
    assert list(values) == [
        "schema", "id", "what", "place", "outcome", "reason", "exit_code", "started", "ended", "ranks", "hosts",
        "argv", "settings", "plan_digest", "versions", "transports", "samples", "valid", "checks",
    ]  # fmt: skip
    assert (values["schema"], values["outcome"], values["ended"]) == ("linkwise.run/1", "running", None)
    assert values["started"] == "2026-01-02T03:04:05.678+00:00"


def test_settings_are_those_of_communication():
    environment = {"NCCL_IB_HCA": "mlx5", "PATH": "/bin", "HF_TOKEN": "hush", "CUDA_VISIBLE_DEVICES": "0"}
    assert recorded_settings(environment) == {"CUDA_VISIBLE_DEVICES": "0", "NCCL_IB_HCA": "mlx5"}


def test_a_folder_of_another_run_is_not_written_over(tmp_path):
    with RunFolder(tmp_path) as folder:
        folder.add_sample("{}")
    with pytest.raises(InputError, match="cannot be written"):
        RunFolder(tmp_path)
    assert (tmp_path / "samples.jsonl").read_text() == "{}\n"


def test_the_last_record_replaces_the_first_and_frees_what_was_kept_for_it(tmp_path):
    with RunFolder(tmp_path) as folder:
        folder.write_record(RECORD)
        assert (tmp_path / ".reserve").exists()
        done = Ending(outcome=Outcome.DONE, exit_code=0)
        folder.write_record(RunRecord(**{**_fields(RECORD), "ending": done}))
        assert not (tmp_path / ".reserve").exists()
    assert json.loads((tmp_path / "record.json").read_text())["outcome"] == "done"


def _fields(record):
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def test_output_without_end_is_cut(tmp_path, monkeypatch):
    monkeypatch.setattr("linkwise.launch.run.record._MOST_OUTPUT_BYTES", 100)
    with RunFolder(tmp_path) as folder:
        for _ in range(100):
            folder.add_output("x" * 9)
    assert (tmp_path / "output.log").stat().st_size == 100
