"""Decisions as MADR, an incident's archive, runs for a replay."""

import json
import os
import re
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from linkwise.errors import InputError
from linkwise.rollout.carrying.incident import Gathering, collect_incident, redactor_of
from linkwise.rollout.carrying.progress import progress_of
from linkwise.rollout.exports.decision_log import log_json, parse_log
from linkwise.rollout.exports.madr import madr_files
from linkwise.rollout.exports.records import write_records
from linkwise.rollout.plan import COLLECTED, Incident, Reaction, Reactions
from linkwise.rollout.runs import Side
from linkwise.rollout.store.verification import flaws_of
from tests.rollout.simulated import Processes, carry, ground, three_steps

LOG = Path(__file__).parents[1] / "data" / "rollout" / "decision-log.json"


def failed(folder, **more):
    plan = three_steps(reactions=Reactions(fail=Reaction.ROLL_BACK), **more)
    levels = {**dict.fromkeys(Side, 1e11), Side.CANDIDATE: 0.8e11}
    there = ground(folder, plan, measure=Processes(levels=levels))
    carry(there)
    return there


def test_each_decision_is_a_file_in_the_layout_of_madr(tmp_path):
    there = failed(tmp_path)
    record = there.store.record("change")
    files = madr_files(record)
    texts = [text for name, text in files.items() if name != "README.md"]
    assert len(texts) == 6
    for name, text in files.items():
        if name == "README.md":
            continue
        assert re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", name)
        head, _, body = text.removeprefix("---\n").partition("---\n")
        assert {line.split(":")[0] for line in head.splitlines()} == {"status", "date", "decision-makers"}
        titles = re.findall(r"^#+ (.*)$", body, re.MULTILINE)
        assert titles[1] == "Context and Problem Statement"
        assert titles[-2:] == ["Decision Outcome", "Confirmation"]
    assert record.head.digest in files["README.md"]
    for link in re.findall(r"\]\(([^)]+)\)", files["README.md"]):
        assert link in files


def test_words_of_people_stay_words_in_markdown(tmp_path):
    there = failed(tmp_path)
    record = there.store.record("change")
    entry = replace(record.log[-1].entry, why="# no title\n<script> [a](b) `c`", by="O'Neil: [x]")
    spoiled = replace(record, log=(*record.log[:-1], replace(record.log[-1], entry=entry)))
    text = madr_files(spoiled)[
        next(name for name in madr_files(spoiled) if name.startswith(f"{entry.number:04d}"))
    ]
    assert "\n# no title" not in text
    assert "decision-makers: 'O''Neil: [x]'" in text
    assert r"\<script\>" in text


def gathering(there, *, is_redacted, collect_host=None):
    record = there.store.record("change")
    loaded = there.load()
    redactor = redactor_of(loaded, record, people=["mira"], hosts=["login-1"]) if is_redacted else None
    return Gathering(
        loaded=loaded,
        contents=there.store.contents("change"),
        record=record,
        runs=there.runs,
        collect_host=collect_host or (lambda folder, _: folder.mkdir()),
        redactor=redactor,
        now=there.clock(),
    )


def files_of(path):
    with tarfile.open(path) as archive:
        return {
            each.name.partition("/")[2]: archive.extractfile(each).read() for each in archive.getmembers()
        }


EVERYTHING = Incident(page=("oncall",), runbook="r.md", collect=tuple(COLLECTED))


def test_an_archive_has_every_kind_of_evidence_and_names_what_it_left_out(tmp_path):
    there = failed(tmp_path, incident=EVERYTHING)
    run = there.store.record("change").runs[0]
    folder = there.runs / run.run_id
    (folder / "core").write_bytes(b"\x7fELF\0\0")
    (folder / "passwd").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe")
    (folder / "login-1.log").write_text("login-1:7:7 [0] NCCL INFO 10.1.2.3 mira\n")

    def host(target, is_masked):
        assert is_masked
        target.mkdir()
        (target / "kernel.txt").write_text("6.1 on login-1\n")

    found = collect_incident(gathering(there, is_redacted=True, collect_host=host), tmp_path / "a.tar.gz")
    files = files_of(tmp_path / "a.tar.gz")
    tops = {name.partition("/")[0] for name in files}
    assert tops == {
        "MANIFEST.json", "rollout.yaml", "decisions.json", "runs.jsonl", "records", "configurations",
        "fingerprint.json", "host",
    }  # fmt: skip
    manifest = json.loads(files["MANIFEST.json"])
    assert {each["name"].rpartition("/")[2] for each in manifest["left_out"]} == {"core", "passwd", "pipe"}
    assert manifest["head"]["digest"] == there.store.record("change").head.digest
    assert manifest["redacted"] == found.redacted
    told = files["host/kernel.txt"].decode()
    login = told.removeprefix("6.1 on ").strip()
    assert re.fullmatch(r"host-\d+", login)
    line = files[f"records/{run.run_id}/{login}.log"].decode()
    assert re.fullmatch(rf"{login}:7:7 \[0\] NCCL INFO address-1 user-\d+\n", line)
    for name in ("login-1", "10.1.2.3", "mira", "node-0"):
        assert not [file for file, data in files.items() if name.encode() in data or name in file]


def test_an_archive_with_names_has_the_log_as_it_is(tmp_path):
    there = failed(tmp_path, incident=EVERYTHING)
    found = collect_incident(gathering(there, is_redacted=False), tmp_path / "a.tar.gz")
    assert found.redacted is None
    assert flaws_of(parse_log(files_of(tmp_path / "a.tar.gz")["decisions.json"])) == ()


def test_a_host_that_says_nothing_is_left_out_and_the_rest_is_there(tmp_path):
    there = failed(tmp_path, incident=EVERYTHING)

    def host(_folder, _is_masked):
        raise InputError("there is no shell")

    found = collect_incident(gathering(there, is_redacted=True, collect_host=host), tmp_path / "a.tar.gz")
    assert ("host", "there is no shell") in found.left_out
    assert "runs.jsonl" in found.files


def test_runs_are_not_written_for_a_replay_where_a_result_was_altered(tmp_path):
    there = failed(tmp_path)
    record = there.store.record("change")
    result = tmp_path / "result.json"
    result.write_text("{}")
    runs = (replace(record.runs[0], record=str(result), record_digest="0" * 64), *record.runs[1:])
    with pytest.raises(InputError, match="was altered"):
        write_records(replace(record, runs=runs), progress_of(record.entries), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_log_that_was_written_before_is_still_read():
    # Written by the first Linkwise that had logs; never refreshed: it stands for those that people keep.
    contents = parse_log(LOG.read_bytes())
    assert flaws_of(contents) == ()
    assert log_json(contents).encode() == LOG.read_bytes()
