import contextlib
import datetime as dt
import http.client
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from linkwise.cli.main import run as command
from linkwise.errors import ExitCode, InputError, UnknownName
from linkwise.rollout.carrying.progress import progress_of
from linkwise.rollout.document.loading import load_rollout, place_of_store
from linkwise.rollout.gates.gate import Gate, check_step, gate_of_log
from linkwise.rollout.gates.gate_server import serve_gates
from linkwise.rollout.store.decisions import Entry, Kind
from linkwise.rollout.store.store import Store
from tests.rollout.making import TODAY, rollout
from tests.rollout.recording import collectives, record

_ROOT = Path(__file__).parents[2]
_AT = dt.datetime(2026, 11, 30, 8, tzinfo=dt.UTC)
PLAN = rollout()


def entry(kind, *, why="", **facts):
    facts = {name: value for name, value in facts.items() if value is not None}
    return Entry(number=0, rollout=PLAN.name, kind=kind, at=_AT, by="tests", why=why, step="one", facts=facts)


BEGUN = entry(Kind.BEGUN, file=PLAN.digest, candidate=PLAN.candidate.digest, control=PLAN.control.digest)


def judged(outcome):
    return entry(Kind.JUDGED, why=f"one: {outcome}.", outcome=outcome)


PASSED = entry(Kind.STEP_PASSED)


def gate(*log):
    return gate_of_log(PLAN, "one", progress_of(log))


def test_gate_is_open_only_where_the_log_has_a_pass():
    assert gate(BEGUN, judged("pass"), PASSED).is_open
    stopped = entry(Kind.SUSPENDED, why="stop", cause="by hand")
    waived = entry(Kind.STEP_PASSED, is_waived=True)
    for code, log in (
        (ExitCode.NOT_MEASURED, ()),
        (ExitCode.NOT_MEASURED, (BEGUN,)),
        (ExitCode.AGAINST, (BEGUN, judged("fail"))),
        (ExitCode.AGAINST, (BEGUN, judged("fail"), waived)),
        (ExitCode.AGAINST, (BEGUN, judged("pass"), PASSED, entry(Kind.ROLLBACK_BEGUN))),
        (ExitCode.INCONCLUSIVE, (BEGUN, judged("inconclusive"))),
        (ExitCode.INCONCLUSIVE, (BEGUN, judged("inconclusive"), waived)),
        (ExitCode.NOT_MEASURED, (BEGUN, judged("error"))),
        (ExitCode.NOT_MEASURED, (BEGUN, judged("no data"))),
        (ExitCode.INCONCLUSIVE, (BEGUN, judged("pass"))),  # an approval is due
        (ExitCode.INCONCLUSIVE, (BEGUN, judged("pass"), PASSED, stopped)),
    ):
        assert gate(*log).code is code, log


def test_pass_of_another_file_opens_no_gate():
    other = entry(Kind.BEGUN, file="f" * 64, candidate=PLAN.candidate.digest, control=PLAN.control.digest)
    assert gate(other, judged("pass"), PASSED).code is ExitCode.INCONCLUSIVE


def test_unknown_step_is_refused():
    with pytest.raises(UnknownName, match="did you mean one"):
        check_step(PLAN, "ones")


def asked(port, path, method="POST"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        body = json.dumps({"name": "podinfo", "namespace": "test", "phase": "Progressing", "metadata": {}})
        connection.request(method, path, body=body if method == "POST" else None)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def answers(step):
    if step == "broken":
        raise RuntimeError("a bug")
    if step == "no-file":
        raise InputError("no such file")
    if step not in ("good", "bad"):
        raise UnknownName.among(["good", "bad"], kind="step", given=step)
    code = ExitCode.DONE if step == "good" else ExitCode.AGAINST
    return Gate(step=step, code=code, why=f"{step}: so it is")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_server_says_200_for_an_open_gate_and_for_nothing_else(method):
    with serve_gates(answers, host="127.0.0.1", port=0) as server:
        assert asked(server.port, "/gate/good", method) == (200, "good: so it is\n")
        assert asked(server.port, "/gate/bad", method) == (409, "bad: so it is\n")
        assert asked(server.port, "/gate/goood", method)[0] == 404
        assert asked(server.port, "/", method)[0] == 404
        assert asked(server.port, "/rollback/good", method)[0] == 404
        assert asked(server.port, "/gate/no-file", method) == (503, "no such file\n")
        assert asked(server.port, "/gate/broken", method) == (500, "internal error, RuntimeError: a bug\n")


def test_server_takes_no_endless_body_and_no_taken_port():
    with serve_gates(answers, host="127.0.0.1", port=0) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        connection.putrequest("POST", "/gate/good")
        connection.putheader("Content-Length", str(1 << 30))
        connection.endheaders()
        assert connection.getresponse().status == 413
        connection.close()
        with (
            pytest.raises(InputError, match="cannot be listened on"),
            serve_gates(answers, host="127.0.0.1", port=server.port),
        ):
            pass


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (_ROOT / "src/linkwise/rollout/document/template.yaml").read_text(encoding="utf-8")
    text = text.replace("      - {to: prediction, at_least: 75 %}\n", "").replace("repeats: 9", "repeats: 5")
    (tmp_path / "r.yaml").write_text(text, encoding="utf-8")
    for side in ("candidate", "control"):
        record(tmp_path / "records", "one-node", side, [collectives(3e11)] * 5)
    return tmp_path


def ask(step, *more):
    return command(["rollout", "gate", "r.yaml", "--step", step, *more], today=lambda: TODAY)


def test_command_ends_with_0_only_on_a_pass(folder, capsys):
    assert ask("one-node", "--records", "records") == 0
    assert capsys.readouterr().out == "open: one-node: pass, the one objective that must hold does.\n"
    assert ask("all", "--records", "records") == 4
    assert "Nothing was measured" in capsys.readouterr().out
    record(folder / "records", "one-node", "candidate", [collectives(2e11)] * 5)
    assert ask("one-node", "--records", "records") == 1
    assert ask("one") == 2


def test_command_without_a_store_opens_nothing(folder, capsys):
    assert ask("one-node") == 2
    assert "store" in capsys.readouterr().err


def test_serve_tells_what_is_wrong_before_anybody_asks(folder, capsys):
    for words in (["none.yaml"], ["r.yaml", "--bind", "8080"], ["-"]):
        assert command(["rollout", "serve", *words], today=lambda: TODAY) == 2
    assert "write host and port" in capsys.readouterr().err


@pytest.fixture
def serve(folder):
    """Return the port of a real ``rollout serve`` over a store in which the rollout has begun."""
    plan = load_rollout("r.yaml").rollout
    facts = {"file": plan.digest, "candidate": plan.candidate.digest, "control": plan.control.digest}
    made = Store(str(place_of_store("r.yaml")), may_make=True)
    with contextlib.closing(made), made.writing(plan.name) as writing:
        writing.append(Kind.BEGUN, at=_AT, by="tests", why="a test", facts=facts)
    program = "import sys; from linkwise.cli.main import main; sys.exit(main())"
    words = ["rollout", "serve", "r.yaml", "--bind", "127.0.0.1:0"]
    process = subprocess.Popen([sys.executable, "-c", program, *words], stderr=subprocess.PIPE, text=True)
    try:
        yield int(re.search(r":(\d+)/gate", process.stderr.readline()).group(1))
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == ExitCode.INTERRUPTED
        process.stderr.close()


def test_served_command_answers_from_the_decision_log(serve):
    for _ in range(2):  # each in a thread of its own
        status, told = asked(serve, "/gate/one-node")
        assert status == 409, told
        assert "one-node" in told
    assert asked(serve, "/gate/one-nod")[0] == 404
