"""Faults: what is put in, and what a real job does under one."""

import json
import os
import signal

import pytest

from linkwise.cli.main import run
from linkwise.errors import ExitCode, InputError
from linkwise.lab.faults import FaultKind, Injection, fault_run, faulty_request
from linkwise.lab.job import JobEnd, JobRequest
from tests.lab.test_design import DOCUMENT, cluster, design_of

DESIGN = design_of(cluster(nodes=2, gpus=2))
LAB = f"f{os.getpid()}"
BEGINS = {"event": "step begins", "step": 2, "at_s": 5.0}


def injected(kind):
    told = []
    fault = Injection(
        kind=kind,
        node=1,
        step=2,
        lab="x",
        design=DESIGN,
        shell=lambda argv, given: told.append((argv, given)),
    )
    fault.watch({**BEGINS, "step": 1})
    assert not told
    fault.watch(BEGINS)
    return fault, told


def test_links_go_down_at_the_leaf_and_are_mended():
    fault, told = injected(FaultKind.LINK_DOWN)
    assert told == [(("ip", "-n", "lw-x-sw", "-batch", "-"), "link set n1e0 down\n")]
    fault.mend()
    assert told[1][1] == "link set n1e0 up\n"


def test_a_slow_link_is_slow_both_ways():
    _, told = injected(FaultKind.SLOW_LINK)
    assert [argv[2] for argv, _ in told] == ["lw-x-n1", "lw-x-sw"]
    assert all("rate 4000000bit" in given for _, given in told)  # a tenth of 40 Mbit/s


def test_a_fault_comes_once():
    fault, told = injected(FaultKind.LINK_DOWN)
    fault.watch(BEGINS)
    assert len(told) == 1


def test_signals_go_to_ranks_of_the_node_alone(monkeypatch):
    sent = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    fault = Injection(kind=FaultKind.RANK_FROZEN, node=1, step=2, lab="x", design=DESIGN, shell=lambda *_: "")
    for rank in range(4):
        fault.watch({"event": "started", "rank": rank, "pid": 100 + rank})
    fault.watch(BEGINS)
    assert sent == [(103, signal.SIGSTOP)]
    fault.signal_ranks(signal.SIGKILL, is_all=True)
    assert sent[1:] == [(102, signal.SIGKILL), (103, signal.SIGKILL)]


def test_a_slow_node_is_in_the_plan_of_the_job():
    fault = Injection(kind=FaultKind.SLOW_NODE, node=1, step=2, lab="x", design=DESIGN, shell=lambda *_: "")
    request = faulty_request(JobRequest(kind="training", work={}, python="python"), fault, timeout_s=4.0)
    assert request.work["slow"] == {"namespace": "lw-x-n1", "step": 2, "factor": 8.0}


def test_a_job_that_ended_before_the_fault_is_said_so():
    fault = Injection(kind=FaultKind.LINK_DOWN, node=1, step=2, lab="x", design=DESIGN, shell=lambda *_: "")
    end = JobEnd(events=(), output=("No module named 'torch'",), exit_code=1, wall_s=1.0)
    with pytest.raises(InputError, match="before step 2: this Python has no torch"):
        fault_run(fault, end)


@pytest.fixture
def lab(tmp_path, capsys):
    path = tmp_path / "cluster.yaml"
    path.write_text(DOCUMENT.format(kind="single-switch", nodes=2, gpus=2, nics=1))
    assert run(["lab", "up", str(path), "--name", LAB]) == ExitCode.DONE
    capsys.readouterr()
    yield LAB
    run(["lab", "down", LAB])


def outcome(kind, capsys):
    words = ["lab", "fault", kind, LAB, "--at", "1", "--steps", "3", "--timeout", "4", "--format", "json"]
    assert run(words) == ExitCode.DONE
    return json.loads(capsys.readouterr().out)


@pytest.mark.requires("netns")
@pytest.mark.requires("torch")
def test_a_rank_that_is_killed_fails_the_job_at_once(lab, capsys):
    result = outcome("rank-killed", capsys)
    assert "Connection" in result["did"]
    assert result["noticed_s"] < 4.0


@pytest.mark.full
@pytest.mark.requires("netns")
@pytest.mark.requires("torch")
@pytest.mark.parametrize("kind", FaultKind)
def test_every_fault_has_the_effect_of_its_kind(lab, capsys, kind):
    result = outcome(kind, capsys)
    goes_on = kind in (FaultKind.LINK_FLAP, FaultKind.SLOW_LINK, FaultKind.SLOW_NODE)
    assert (result["ended_s"] is None) == goes_on
    if goes_on:
        assert result["longest_after_s"] > 1.2 * result["step_before_s"]
    else:
        assert result["noticed_s"] is not None


@pytest.mark.requires("netns")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["link-dwn"], "did you mean link-down"),
        (["link-down", "--node", "2"], "has nodes 0 to 1"),
        (["link-down", "--at", "9"], "raise --steps"),
    ],
)
def test_wrong_faults_are_refused(lab, capsys, words, said):
    assert run(["lab", "fault", words[0], LAB, *words[1:]]) == ExitCode.WRONG_INPUT
    assert said in capsys.readouterr().err
