"""The verbs that carry a rollout out, as a person calls them; runs are simulated, all else is real."""

import datetime as dt
import json
import tarfile

import pytest

from linkwise.cli import main as cli
from linkwise.cli import rollout_run
from linkwise.errors import ExitCode
from linkwise.rollout.runs import Side
from tests.rollout.simulated import Processes
from tests.rollout.test_verification import key_pair

FILE = """\
linkwise: rollout/1
name: nccl-2.30
owner: fabric-team
change: {{what: "NCCL 2.28 to 2.30", kind: nccl, reference: CHG-118}}
scope: {{cluster: "dgx-h100:4", place: local}}
control: {{settings: {{NCCL_ALGO: Ring}}}}
candidate: {{settings: {{NCCL_ALGO: {candidate}}}}}
objectives:
  - name: all-reduce
    dimension: throughput
    metric: collective.busbw
    workload: {{kind: collectives, operations: [all_reduce], sizes: [1 GiB]}}
    compare: [{{to: control, at_least: {bar}}}]
    why: a test
    by: fabric-team
    review_by: {review_by}
sampling: {{repeats: 5, most_repeats: 7, warmup: 1}}
steps:
  - {{name: one, target: {{nodes: 1}}, objectives: [all-reduce], approvals: {approvals}}}
  - {{name: all, target: {{fraction: 100 %}}, objectives: [all-reduce]}}
when: {{fail: {fail}}}
rollback: {{to: control, verify: [all-reduce]}}
incident: {{page: mira, runbook: runbooks/nccl.md, collect: [decisions, runs, records, configurations, fingerprint]}}
"""


@pytest.fixture
def measure(monkeypatch):
    """Put simulated measurements in the place of real ones, and return them."""
    found = Processes(seen={"nccl": "2.30.4"})
    monkeypatch.setattr(rollout_run, "measure_with", lambda _: found)
    return found


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    write()
    return tmp_path / "rollout.yaml"


def write(*, candidate="Tree", bar="95 %", approvals="[]", fail="suspend", review_by=None):
    from pathlib import Path

    day = review_by or dt.datetime.now(tz=dt.UTC).date() + dt.timedelta(days=90)
    text = FILE.format(candidate=candidate, bar=bar, approvals=approvals, fail=fail, review_by=day)
    Path("rollout.yaml").write_text(text)


def call(*words):
    return cli.run(["rollout", *words])


def status(capsys):
    capsys.readouterr()
    call("status", "rollout.yaml", "--format", "json")
    return json.loads(capsys.readouterr().out)


def slow(measure):
    measure.levels[Side.CANDIDATE] = 0.8e11


def test_run_carries_out_one_step_and_then_the_next(file, measure, capsys):
    assert call("run", "rollout.yaml") == ExitCode.DONE
    told = capsys.readouterr()
    assert "+ one, 1 node: pass" in told.out
    assert "next      measure all on 100 % of the nodes" in told.out
    assert "one: collectives, candidate, turn 0, warm-up" in told.err
    assert call("run", "rollout.yaml") == ExitCode.DONE
    assert "nccl-2.30: promoted" in capsys.readouterr().out
    assert json.loads((file.parent / ".linkwise/promoted.json").read_text())["settings"] == {
        "NCCL_ALGO": "Tree"
    }


def test_status_as_json_has_what_programs_read(file, measure, capsys):
    call("run", "rollout.yaml", "--until", "all")
    found = status(capsys)
    assert found["schema"] == "linkwise.rollout/1"
    assert found["standing"] == "promoted"
    assert found["ledger"]["spent_gpu_h"] == pytest.approx(24 * 8 / 3600)
    assert [step["standing"] for step in found["steps"]] == ["passed", "passed"]
    objective = found["steps"][0]["objectives"][0]
    assert (objective["planned"], objective["executed"], objective["judged"]) == (5, 5, 5)
    assert len(found["head"]["digest"]) == 64


def test_a_gate_that_fails_says_so_with_whom_to_call(file, measure, capsys):
    slow(measure)
    assert call("run", "rollout.yaml") == ExitCode.AGAINST
    told = capsys.readouterr().out
    assert "nccl-2.30: suspended" in told
    assert "page      mira" in told
    assert "runbook   runbooks/nccl.md" in told
    assert "'resume --accept-file', or 'waive'; or 'rollback'" in " ".join(told.split())
    assert call("run", "rollout.yaml") == ExitCode.AGAINST
    assert call("resume", "rollout.yaml", "--by", "mira", "--reason", "again") == ExitCode.WRONG_INPUT
    assert "every run counts" in capsys.readouterr().err


def test_a_failed_gate_rolls_back_where_the_file_says_so(file, measure, capsys):
    write(fail="roll-back")
    slow(measure)
    assert call("run", "rollout.yaml") == ExitCode.AGAINST
    told = " ".join(capsys.readouterr().out.split())
    assert "nccl-2.30: rolled back" in told
    assert "or 'waive'" in told
    assert "or 'rollback'" not in told  # it is taken already
    assert json.loads((file.parent / ".linkwise/promoted.json").read_text())["settings"] == {
        "NCCL_ALGO": "Ring"
    }


def test_approve_lets_a_waiting_step_go_on(file, measure, capsys):
    write(approvals="[oncall]")
    assert call("run", "rollout.yaml") == ExitCode.INCONCLUSIVE
    assert "one waits for the approval of oncall" in capsys.readouterr().out
    assert call("status", "rollout.yaml") == ExitCode.INCONCLUSIVE
    done = call("approve", "rollout.yaml", "--by", "mira", "--as", "oncall", "--reason", "clean")
    assert done == ExitCode.DONE
    assert call("run", "rollout.yaml", "--steps", "2") == ExitCode.DONE
    assert status(capsys)["standing"] == "promoted"


def test_waive_answers_for_a_failed_step(file, measure, capsys):
    slow(measure)
    call("run", "rollout.yaml")
    until = str(dt.datetime.now(tz=dt.UTC).date() + dt.timedelta(days=9))
    words = ("waive", "rollout.yaml", "--by", "mira", "--reason", "known", "--until")
    assert call(*words, "tomorrow") == ExitCode.WRONG_INPUT
    assert call(*words, until) == ExitCode.DONE
    assert call("run", "rollout.yaml") == ExitCode.DONE
    assert status(capsys)["steps"][0]["waived_by"] == "mira"


def test_an_interrupted_run_says_how_it_goes_on(file, measure, capsys):
    def interrupt(request):
        raise KeyboardInterrupt

    measure.levels[Side.CANDIDATE] = interrupt
    assert call("run", "rollout.yaml") == ExitCode.INTERRUPTED
    assert "the next 'linkwise rollout run' goes on from here" in capsys.readouterr().err
    measure.levels[Side.CANDIDATE] = 1e11
    assert call("run", "rollout.yaml") == ExitCode.DONE


def test_an_export_without_any_objective_says_that_nothing_is_written(file, capsys):
    assert call("export", "openslo", "rollout.yaml", "--target", "99 %") == ExitCode.NOT_MEASURED
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "nothing is written" in printed.err


def test_suspend_and_resume(file, measure, capsys):
    call("run", "rollout.yaml")
    assert call("suspend", "rollout.yaml", "--by", "mira", "--reason", "storage is down") == ExitCode.DONE
    assert call("suspend", "rollout.yaml", "--by", "tom", "--reason", "again") == ExitCode.DONE
    assert call("run", "rollout.yaml") == ExitCode.INCONCLUSIVE
    assert "storage is down" in capsys.readouterr().out
    assert call("resume", "rollout.yaml", "--by", "mira", "--reason", "it is back") == ExitCode.DONE
    assert call("run", "rollout.yaml") == ExitCode.DONE


def test_a_changed_file_is_accepted_by_name(file, measure, capsys):
    slow(measure)
    call("run", "rollout.yaml")
    write(candidate="NVLS")
    measure.levels[Side.CANDIDATE] = 1e11
    words = ("resume", "rollout.yaml", "--by", "mira", "--reason", "another algorithm")
    assert call(*words) == ExitCode.WRONG_INPUT
    assert "--accept-file" in capsys.readouterr().err
    assert call(*words, "--accept-file") == ExitCode.DONE
    assert call("run", "rollout.yaml", "--steps", "2") == ExitCode.DONE


def test_rollback_restores_and_proves(file, measure, capsys):
    call("run", "rollout.yaml", "--steps", "2")
    words = ("rollback", "rollout.yaml", "--by", "mira", "--reason", "slow since noon")
    assert call(*words) == ExitCode.DONE
    told = capsys.readouterr().out
    assert "rolled back" in told
    assert "rollback  restored, proven" in told
    assert call(*words) == ExitCode.WRONG_INPUT


def test_rollback_that_is_not_proven_is_a_judgement_against(file, measure):
    call("run", "rollout.yaml", "--steps", "2")
    measure.levels[Side.PROMOTED] = 0.5e11
    assert call("rollback", "rollout.yaml", "--by", "mira", "--reason", "slow") == ExitCode.AGAINST


def test_log_prints_verifies_and_exports(file, measure, capsys):
    call("run", "rollout.yaml", "--steps", "2")
    capsys.readouterr()
    assert call("log", "rollout.yaml") == ExitCode.DONE
    told = capsys.readouterr().out
    assert "judged one, by " in told
    assert "entries about runs left out" in told
    assert call("log", "rollout.yaml", "--verify") == ExitCode.DONE
    assert "as they were written" in capsys.readouterr().out
    assert call("log", "rollout.yaml", "--export", "json", "-o", "log.json") == ExitCode.DONE
    head = status(capsys)["head"]["digest"]
    assert call("log", "log.json", "--verify", "--head", head) == ExitCode.DONE
    assert call("log", "log.json", "--verify", "--head", "0" * 64) == ExitCode.AGAINST
    text = (file.parent / "log.json").read_text()
    (file.parent / "log.json").write_text(text.replace("judged", "Judged", 1))
    assert call("log", "log.json", "--verify") == ExitCode.AGAINST
    assert call("log", "log.json") == ExitCode.WRONG_INPUT
    assert call("log", "rollout.yaml", "--export", "madr", "-o", "decisions") == ExitCode.DONE
    assert {path.name for path in (file.parent / "decisions").iterdir()} >= {
        "README.md",
        "0000-begin-the-rollout.md",
    }


def test_a_signed_log_is_verified_by_its_public_key(file, measure, capsys):
    private, public = key_pair(file.parent)
    call("run", "rollout.yaml", "--key", str(private))
    assert call("log", "rollout.yaml", "--verify", "--public-key", str(public)) == ExitCode.DONE
    call("suspend", "rollout.yaml", "--by", "tom", "--reason", "without a key")
    assert call("log", "rollout.yaml", "--verify", "--public-key", str(public)) == ExitCode.AGAINST
    assert "signed by nobody" in capsys.readouterr().out


def test_incident_collects_what_the_file_names_without_names(file, measure, capsys):
    slow(measure)
    call("run", "rollout.yaml")
    assert call("incident", "rollout.yaml", "-o", "incident.tar.gz", "--names", "names.json") == ExitCode.DONE
    told = capsys.readouterr().out
    assert "call mira; runbook runbooks/nccl.md" in told
    with tarfile.open(file.parent / "incident.tar.gz") as archive:
        files = {
            each.name.partition("/")[2]: archive.extractfile(each).read() for each in archive.getmembers()
        }
    manifest = json.loads(files["MANIFEST.json"])
    assert set(files) > {"rollout.yaml", "decisions.json", "runs.jsonl", "fingerprint.json"}
    assert any(name.startswith("records/") for name in files)
    assert manifest["redacted"]["host"]["places"] > 0
    names = json.loads((file.parent / "names.json").read_text())
    for original in (*names.values(), str(file.parent), "node-0"):
        assert not [name for name, data in files.items() if original.encode() in data], original
    assert call("incident", "rollout.yaml", "-o", "incident.tar.gz") == ExitCode.WRONG_INPUT
    assert call("incident", "rollout.yaml", "-o", "open.tar.gz", "--no-redact") == ExitCode.DONE
    assert "names were left in" in capsys.readouterr().out


def test_a_rollout_in_a_store_is_found_by_its_name(file, measure, capsys):
    assert call("run", "rollout.yaml", "--store", "team.sqlite") == ExitCode.DONE
    capsys.readouterr()
    assert call("status", "nccl-2.30", "--store", "team.sqlite") == ExitCode.DONE
    assert "+ one, 1 node: pass" in capsys.readouterr().out
    assert call("log", "nccl-2.31", "--store", "team.sqlite") == ExitCode.WRONG_INPUT
    assert "did you mean" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("run", "rollout.yaml", "--steps", "2", "--until", "all"), "give one of them"),
        (("run", "rollout.yaml", "--until", "al"), "did you mean all"),
        (("run", "-"), "give the path of a file"),
        (("run", "rollout.yaml", "--config-out", "nowhere/promoted.json"), "a directory that is there"),
        (("status", "rollout.yaml"), "there is no store"),
        (("status", "none.yaml"), "none.yaml"),
        (("approve", "rollout.yaml", "--by", "", "--reason", "x"), "--by is empty"),
        (("log", "rollout.yaml", "--head", "0" * 64), "no effect without --verify"),
        (("log", "rollout.yaml", "-o", "x"), "no effect without --export"),
        (("incident", "rollout.yaml", "--no-redact", "--names", "n.json"), "no effect with --no-redact"),
        (("rollback", "rollout.yaml", "--by", "a", "--reason", "b"), "there is no store"),
        (("run", "rollout.yaml", "--key", "rollout.yaml"), "no private key"),
        (("export", "openslo", "rollout.yaml", "--target", "99"), "--target: 99"),
        (("run", "rollout.yaml", "--store", "mysql://a/b"), "cannot be in mysql"),
    ],
)
def test_wrong_use_is_told_and_nothing_is_begun(file, measure, capsys, words, told):
    assert call(*words) == ExitCode.WRONG_INPUT
    error = capsys.readouterr().err
    assert told in error
    assert "Traceback" not in error
    assert not measure.measured


@pytest.mark.parametrize(("kind", "word"), [("junit", "<testsuites"), ("ctrf", '"reportFormat"')])
def test_verdicts_of_the_log_are_written_for_ci(file, measure, capsys, kind, word):
    call("run", "rollout.yaml")
    capsys.readouterr()
    assert call("log", "rollout.yaml", "--export", kind) == ExitCode.DONE
    told = capsys.readouterr().out
    assert word in told
    assert "all-reduce" in told
    assert status(capsys)["head"]["digest"] in told


WATCHED = """\
linkwise: rollout/1
name: watched
owner: fabric-team
change: {what: a try, kind: settings}
scope: {cluster: "dgx-h100:1", place: local}
control: {settings: {A: "1"}}
candidate: {settings: {A: "2"}}
objectives:
  - name: step-time
    dimension: throughput
    metric: train.step_time
    workload: {kind: training, cut: ddp, steps: 20}
    compare: [{to: floor, at_most: BAR}]
    why: a test
    by: fabric-team
    review_by: 2999-01-01
  - name: bandwidth
    dimension: throughput
    metric: collective.busbw
    workload: {kind: collectives, operations: [all_reduce], sizes: [1 GiB]}
    compare: [{to: floor, at_least: 1 GB/s}]
    why: a test
    by: fabric-team
    review_by: 2999-01-01
steps: [{name: one, target: {nodes: 1}, objectives: [step-time, bandwidth]}]
rollback: {to: control, verify: [step-time]}
incident: {page: mira, runbook: r.md, collect: [decisions]}
"""


@pytest.mark.parametrize(("bar", "code"), [("1 s", ExitCode.DONE), ("100 ms", ExitCode.AGAINST)])
def test_a_watched_job_is_held_to_the_objectives_of_the_file(tmp_path, capsys, bar, code):
    (tmp_path / "rollout.yaml").write_text(WATCHED.replace("BAR", bar))
    (tmp_path / "job.log").write_text(
        "".join(f"step {n} loss 2.1 time 0.5 s tokens/s 2000\n" for n in range(1, 200))
    )
    words = ["watch", "--replay", str(tmp_path / "job.log"), "--no-drift"]
    assert cli.run([*words, "--objectives", str(tmp_path / "rollout.yaml")]) == code
    told = capsys.readouterr()
    assert "step-time: train.step_time" in told.out
    assert "bandwidth: a watched job does not show the median of collective.busbw" in told.err
