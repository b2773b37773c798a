"""Faults: what is put in, what a real job does under one, and what the doctor says of its output alone."""

import json
import os
import signal
import sys
from dataclasses import replace

import pytest

from linkwise.cli.main import run
from linkwise.diagnose.doctor import diagnose
from linkwise.errors import ExitCode, InputError
from linkwise.job import Job
from linkwise.lab.faults import FaultKind, Injection, fault_run, faulty_request
from linkwise.lab.job import JobEnd, JobRequest, run_job
from linkwise.lab.lab_job import lab_job
from linkwise.lab.life import Ground, lab_in_use, take_down, take_up
from linkwise.lab.training import run_request
from linkwise.layout import Layout
from linkwise.readers.job_log.reading import parse_job_log
from tests.lab.test_design import DOCUMENT, cluster, design_of
from tests.lab.test_traffic import MODEL

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
def test_a_rank_that_is_killed_fails_the_job_at_once_and_the_doctor_names_it(lab, capsys):
    result = outcome("rank-killed", capsys)
    assert "Connection" in result["did"]
    assert result["noticed_s"] < 4.0
    assert result["doctor_causes"][0] == "rank_killed"
    assert (result["doctor_named_kind"], result["doctor_node"], result["doctor_named_node"]) == (
        True,
        "n1",
        True,
    )
    assert result["doctor_where"] == ["n1", "rank 3"]


@pytest.mark.full
@pytest.mark.requires("netns")
@pytest.mark.requires("torch")
def test_what_is_printed_of_a_fault_says_how_the_doctor_did(lab, capsys):
    assert (
        run(["lab", "fault", "node-lost", LAB, "--at", "1", "--steps", "3", "--timeout", "4"])
        == ExitCode.DONE
    )
    shown = capsys.readouterr().out
    assert "The doctor, from the output alone" in shown
    assert shown.endswith("Kind: right. Node: right\n")


_GOES_ON = (FaultKind.LINK_FLAP, FaultKind.SLOW_LINK, FaultKind.SLOW_NODE)
_AT_A_NODE = (FaultKind.SLOW_NODE, FaultKind.RANK_KILLED, FaultKind.RANK_FROZEN, FaultKind.NODE_LOST)
"""Kinds whose node the output shows; a link has two ends, and all ranks wait for the slowest."""

_TENSOR = Layout(tensor=2, micro_batch=2, sequence_parallel=False)
SCENES = {
    # nodes, GPUs of each, framework, layout, node of the fault, its step
    "2x2 data": (2, 2, "ddp", Layout(micro_batch=2), 1, 1),
    "2x2 data, first node": (2, 2, "ddp", Layout(micro_batch=2), 0, 3),
    "4x1 data": (4, 1, "ddp", Layout(micro_batch=2), 2, 2),
    "2x2 tensor and data": (2, 2, "megatron", _TENSOR, 1, 2),
    "4x1 tensor and data": (4, 1, "megatron", _TENSOR, 3, 1),
    "4x1 pipeline": (4, 1, "torchtitan", Layout(pipeline=4, micro_batch=2), 1, 2),
    "2x2 pipeline and data": (2, 2, "megatron", Layout(pipeline=2, micro_batch=2), 1, 3),
}


@pytest.fixture(scope="module")
def scene_lab(request):
    nodes, gpus, framework, layout, node, step = SCENES[request.param]
    there = cluster(nodes=nodes, gpus=gpus)
    name = f"s{os.getpid()}"
    take_up(design_of(there), name=name, ground=Ground())
    job = Job(model=MODEL, sequence_length=64, global_batch=16, framework=framework, layout=layout)
    yield name, lab_job(job, there, design_of(there)), node, step
    take_down(name, ground=Ground())


@pytest.mark.full
@pytest.mark.requires("netns")
@pytest.mark.requires("torch")
@pytest.mark.parametrize("scene_lab", SCENES, indirect=True)
@pytest.mark.parametrize("kind", FaultKind)
def test_the_doctor_names_every_kind_of_fault_from_the_output_alone(scene_lab, kind):
    name, job, node, step = scene_lab
    timeout_s = 60.0 if kind in _GOES_ON else 5.0
    with lab_in_use(name, ground=Ground()) as (held, design):
        fault = Injection(kind=kind, node=node, step=step, lab=held, design=design, shell=Ground().shell)
        request = run_request(job, design, steps=step + 3, python=sys.executable)
        # What is measured before the steps is not looked at here.
        request = replace(request, work={**request.work, "calls": []})
        try:
            end = run_job(
                faulty_request(request, fault, timeout_s=timeout_s),
                lab=held,
                design=design,
                watch=fault.watch,
            )
        finally:
            fault.mend()
    told = fault_run(fault, end)
    goes_on = kind in _GOES_ON
    assert (told.ended_s is None) == goes_on, end.output
    assert told.is_kind_named, (told.said, *end.output)
    assert told.is_node_right in ((True,) if kind in _AT_A_NODE else (True, None)), (told.said, *end.output)


@pytest.mark.full
@pytest.mark.requires("netns")
@pytest.mark.requires("torch")
@pytest.mark.parametrize("scene_lab", SCENES, indirect=True)
def test_nothing_is_found_in_a_job_without_a_fault(scene_lab):
    name, job, _, _ = scene_lab
    with lab_in_use(name, ground=Ground()) as (held, design):
        end = run_job(run_request(job, design, steps=6, python=sys.executable), lab=held, design=design)
    found = diagnose(parse_job_log([("output", "\n".join(end.output).encode())]))
    assert found.findings == (), (found, *end.output)
    # A machine that gets busier slows steps down, and then the doctor says that it cannot tell why.
    assert str(found.verdict) == "healthy" or "since step" in found.reason


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
