"""Jobs run in a lab: what is refused, what a step is predicted to be, and real jobs of torch."""

import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from linkwise.errors import InputError
from linkwise.job import Job
from linkwise.lab.calibration import Calibration, CallCost, kind_of
from linkwise.lab.job import JobEnd, run_job
from linkwise.lab.lab_job import lab_job
from linkwise.lab.life import Ground, lab_in_use, lab_states, take_down, take_up
from linkwise.lab.prediction import WorkAlone, predicted_step, work_alone
from linkwise.lab.training import run_request, run_result
from linkwise.layout import Layout, RankOrder, Recompute
from linkwise.model import load_model
from tests.lab.test_design import cluster, design_of
from tests.lab.test_traffic import MODEL

CLUSTER = cluster(nodes=2, gpus=2)
DESIGN = design_of(CLUSTER)
IDLE = WorkAlone(forward_s=0.0, backward_s=0.0, update_s=0.0)
CUTS = {
    "ddp": ("ddp", Layout(micro_batch=2)),
    "fsdp": ("torchtitan", Layout(micro_batch=2, zero_stage=3)),
    "tensor": ("torchtitan", Layout(tensor=4, micro_batch=2, sequence_parallel=False)),
    "tensor and data": ("megatron", Layout(tensor=2, micro_batch=2, sequence_parallel=False)),
    "tensor and fsdp": ("torchtitan", Layout(tensor=2, micro_batch=2, zero_stage=3, sequence_parallel=False)),
    "pipeline": ("torchtitan", Layout(pipeline=4, micro_batch=2)),
    "pipeline and data": ("megatron", Layout(pipeline=2, micro_batch=2)),
}

KILLED = """\
import sys
from linkwise.lab.job import run_job
from linkwise.lab.life import Ground, lab_in_use
from linkwise.lab.lab_job import lab_job
from linkwise.lab.training import run_request
from tests.lab.test_training import CLUSTER, DESIGN, job_of
run = lab_job(job_of(), CLUSTER, DESIGN)
def watch(event):
    if event["event"] == "step begins":
        print("step begins", flush=True)
with lab_in_use(sys.argv[1], ground=Ground()) as (held, design):
    run_job(run_request(run, design, steps=50, python=sys.executable), lab=held, design=design, watch=watch)
"""


def job_of(name="ddp", **changes):
    framework, layout = CUTS[name]
    job = Job(model=MODEL, sequence_length=64, global_batch=16, framework=framework, layout=layout)
    return replace(job, **changes)


def predicted(run, alone=IDLE, design=DESIGN, **cost):
    costs = {kind_of(call, design): CallCost(**({"round_s": 0.0} | cost)) for call in run.calls}
    return predicted_step(run, design, Calibration(loopback_bytes_per_s=1e12, costs=costs), alone)


@pytest.mark.parametrize("name", CUTS)
def test_parts_of_a_predicted_step_sum_to_it(name):
    step = predicted(lab_job(job_of(name), CLUSTER, DESIGN))
    assert sum(step.parts.values()) == pytest.approx(step.time_s)


@pytest.mark.parametrize("name", CUTS)
def test_a_step_is_never_shorter_where_calls_or_computing_cost_more(name):
    run = lab_job(job_of(name), CLUSTER, DESIGN)
    least = predicted(run).time_s
    assert predicted(run, round_s=0.001).time_s > least
    assert predicted(run, reached_fraction=0.5).time_s > least
    assert predicted(run, WorkAlone(forward_s=0.1, backward_s=0.0, update_s=0.0)).time_s > least


def test_tensor_parallel_across_nodes_takes_the_bytes_of_the_nic():
    # 4 layers x 4 all-reduces x 2 micro-batches of 2 x 64 x 128 x 4 bytes, 1.5 of them on a NIC
    run = lab_job(job_of("tensor", global_batch=4), CLUSTER, DESIGN)
    step = predicted(run)
    rate = DESIGN.nic_bytes_per_s * 1448 / 1514
    preambles = 48 * 12 * 3  # each way 12 messages of a ring over 4 ranks cross, with two each and one back
    assert step.parts["tensor"] == pytest.approx(4 * 4 * 2 * (1.5 * 2 * 64 * 128 * 4 + preambles) / rate)


def test_gradients_hide_behind_the_backward_of_all_layers_but_the_first():
    # 4 layers, embedding and head: 5 buckets, of which the last is sent after all computing
    run = lab_job(job_of(), CLUSTER, DESIGN)
    step = predicted(run)
    whole = step.time_s - 4 * 2 * (run.forward_s + run.backward_s) - run.optimizer_s + 3 * run.backward_s
    slow = WorkAlone(forward_s=0.0, backward_s=10.0, update_s=0.0)
    assert predicted(run, slow).parts["data"] == pytest.approx(whole / 5, rel=0.01)


def test_stages_sum_their_gradients_one_after_the_other():
    apart = Layout(pipeline=2, micro_batch=2, rank_order=RankOrder.TENSOR_CONTEXT_PIPELINE_DATA)
    run = lab_job(job_of("pipeline and data", layout=apart), CLUSTER, DESIGN)
    rate = DESIGN.nic_bytes_per_s * 1448 / 1514
    # both replicas of a stage are in different nodes: all parameters cross, one of two layers of each hides
    whole = 4 * 803_968 / rate
    assert predicted(run).parts["data"] == pytest.approx(whole - 2 * run.backward_s, rel=0.01)


def test_beside_tensor_parallelism_gradients_do_not_hide():
    run = lab_job(job_of("tensor and data"), CLUSTER, DESIGN)
    slow = WorkAlone(forward_s=0.0, backward_s=10.0, update_s=0.0)
    assert predicted(run, slow).parts["data"] == pytest.approx(predicted(run).parts["data"])


@pytest.mark.parametrize(("name", "share"), [("fsdp", 2.0), ("tensor and data", 2.0), ("ddp", 1.0)])
def test_ranks_that_wait_for_one_another_in_every_layer_share_the_cores(name, share):
    run = lab_job(job_of(name), CLUSTER, DESIGN)  # four ranks on two cores
    told = {"event": "alone", "times_s": [[0.008, 0.016, 0.01]], "cores": 2}
    end = JobEnd(events=(told,) * 4, output=(), exit_code=0, wall_s=1.0)
    alone = work_alone(run, end, core_share=2.0)
    passes = run.micro_batches * 4
    assert alone.backward_s == pytest.approx(share * 0.016 / passes)
    assert alone.forward_s == pytest.approx(share * 0.008 / passes)
    assert alone.update_s == pytest.approx(2 * 0.01)


def test_ranks_that_compute_longer_than_they_sleep_wait_for_cores_all_the_same():
    run = lab_job(job_of(), CLUSTER, DESIGN)
    told = {"event": "alone", "times_s": [[80.0, 0.0, 0.0]], "cores": 1}
    end = JobEnd(events=(told,) * 4, output=(), exit_code=0, wall_s=1.0)
    alone = work_alone(run, end, core_share=1.0)
    assert alone.forward_s == pytest.approx(4 * 10.0 - run.forward_s)


def test_computing_is_that_of_the_estimate_times_the_dilation():
    slow = lab_job(job_of(), CLUSTER, design_of(CLUSTER, dilation=10_000))
    fast = lab_job(job_of(), CLUSTER, design_of(CLUSTER, dilation=5_000))
    assert slow.forward_s == pytest.approx(2 * fast.forward_s)
    assert predicted(fast).parts["compute"] == pytest.approx(4 * 2 * (fast.forward_s + fast.backward_s))


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (job_of(layout=None), "state its degrees"),
        (job_of(model=load_model("llama-3.1-8b")), "8,030,261,248 parameters"),
        (job_of("tensor", layout=Layout(tensor=2, zero_stage=3)), "sequence_parallel: false"),
        (job_of("fsdp", layout=Layout(zero_stage=2)), "zero_stage 2 is not run"),
        (job_of("fsdp", layout=Layout(zero_stage=3, recompute=Recompute.FULL)), "recompute is not run"),
        (job_of("pipeline", global_batch=6), "raise global_batch"),
    ],
)
def test_what_a_lab_does_not_run_is_refused(job, words):
    with pytest.raises(InputError, match=words):
        lab_job(job, CLUSTER, DESIGN)


@pytest.fixture
def lab():
    name = f"r{os.getpid()}"
    take_up(DESIGN, name=name, ground=Ground())
    yield name
    take_down(name, ground=Ground())


def measured(lab, name, *, global_batch=16):
    run = lab_job(job_of(name, global_batch=8 if name == "tensor" else global_batch), CLUSTER, DESIGN)
    with lab_in_use(lab, ground=Ground()) as (held, design):
        end = run_job(run_request(run, design, steps=2, python=sys.executable), lab=held, design=design)
    assert end.is_done, (end.reason, end.output)
    return run_result(lab, run, design, end)


@pytest.mark.requires("netns")
@pytest.mark.requires("torch")
def test_a_real_job_sends_the_bytes_that_are_predicted(lab):
    result = measured(lab, "ddp")
    assert max(tier.worst_fraction for tier in result.tiers) <= 0.03
    assert result.losses[-1] < result.losses[0]
    assert result.measured_s > 0.3


@pytest.mark.full
@pytest.mark.requires("netns")
@pytest.mark.requires("torch")
@pytest.mark.parametrize("name", CUTS)
def test_every_cut_sends_the_bytes_that_are_predicted(lab, name):
    result = measured(lab, name)
    assert max(tier.worst_fraction for tier in result.tiers) <= 0.03


@pytest.mark.full
@pytest.mark.requires("netns")
@pytest.mark.requires("torch")
def test_stages_and_replicas_with_as_many_micro_batches_as_stages_run_more_than_a_step(lab):
    # torch counts gradients twice where it learns shapes by a pass of its own: then the second step fails
    assert len(measured(lab, "pipeline and data", global_batch=8).steps_s) == 2


@pytest.mark.full
@pytest.mark.requires("netns")
@pytest.mark.requires("torch")
def test_ranks_end_with_a_command_that_is_killed(lab):
    command = subprocess.Popen([sys.executable, "-c", KILLED, lab], stdout=subprocess.PIPE)
    assert command.stdout.readline() == b"step begins\n"
    command.kill()
    command.wait()
    command.stdout.close()
    deadline = time.monotonic() + 5.0
    while (state := next(each for each in lab_states(Ground()) if each.name == lab)).processes:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not state.is_busy
